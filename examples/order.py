"""A bakery that asks the user, by declared questions and during a call; the model; and for folders.

    accord call examples/order.py order bread=rye          # asked in the terminal
    accord call examples/order.py order bread=rye --answer count=2
    accord call examples/order.py slogan bread=rye         # you, or --sample-with COMMAND, answer for the model
    accord call examples/order.py keep note=closed --roots .

The same code works in every revision of the protocol that has the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from accord import Context, Declined, Elicit, Sample, Server, ToolError

server = Server("bakery", version="1.0.0")


@dataclass
class Details:
    """The details of an order."""

    count: Annotated[int, "How many loaves?"]
    size: Literal["small", "large"] = "small"
    name: Annotated[str, "Who picks it up?"] = "nobody in particular"


# A declared question: asked before the function runs. The user fills in a form with the fields of `Details`; a client
# without elicitation, or a user who declines, ends the call with an error.
@server.tool
def order(bread: str, details: Annotated[Details, Elicit("How should we bake your {bread}?")]) -> str:
    """Order bread."""
    return f"{details.count} {details.size} {bread} for {details.name}"


# With `bool | Declined`, the function receives a refusal as a value.
@server.tool
def cancel(number: int, sure: Annotated[bool | Declined, Elicit("Cancel order {number}?")]) -> str:
    """Cancel an order."""
    return f"order {number} is cancelled" if sure is True else f"order {number} stays"


# A question during the call, asked only when it is needed. The function runs once, in every revision.
@server.tool
async def pay(euros: int, ctx: Context) -> str:
    """Pay for an order."""
    if euros < 100:
        return f"paid {euros} euros"
    answer = await ctx.elicit_url(
        "Please confirm large sums at your bank.", f"https://bank.example/confirm?sum={euros}"
    )
    if answer.action != "accept":
        raise ToolError("nothing was paid")
    return f"{euros} euros are paid as soon as your bank agrees"


# The client's model answers, at the client's expense.
@server.tool
def slogan(bread: str, line: Annotated[str, Sample("Praise our bread in one line.", max_tokens=50)]) -> str:
    """Return a line for the shop window."""
    return f"{bread}: {line}"


# The client names the folders; a path outside of them is rejected.
@server.tool
async def keep(note: str, ctx: Context) -> str:
    """Save a note in the first folder of the client."""
    roots = await ctx.list_roots()
    if not roots.paths:
        raise ToolError("there is no folder to keep it in")
    file = roots.paths[0] / "bakery-note.txt"
    if not roots.contains(file):
        raise ToolError(f"{file} leads out of your folders")
    file.write_text(note, encoding="utf-8")
    return f"kept in {file.name}"


if __name__ == "__main__":
    server.run()
