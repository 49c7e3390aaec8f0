"""A bakery that asks: the person, by declared questions and in the middle of its work; the model; and for folders.

    accord call examples/order.py order bread=rye          # asked in the terminal
    accord call examples/order.py order bread=rye --answer count=2
    accord call examples/order.py slogan bread=rye         # you, or --sample-with COMMAND, answer for the model
    accord call examples/order.py keep note=closed --roots .

The same code asks in every revision of the protocol that has the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from accord import Context, Declined, Elicit, Sample, Server, ToolError

server = Server("bakery", version="1.0.0")


@dataclass
class Details:
    """How an order should be."""

    count: Annotated[int, "How many loaves?"]
    size: Literal["small", "large"] = "small"
    name: Annotated[str, "Who picks it up?"] = "nobody in particular"


# Declared: asked before the function runs. The person fills in a form with the fields of `Details`; a client that
# cannot ask, or a person who declines, ends the call with an error that says so.
@server.tool
def order(bread: str, details: Annotated[Details, Elicit("How should we bake your {bread}?")]) -> str:
    """Order bread."""
    return f"{details.count} {details.size} {bread} for {details.name}"


# `bool | Declined` gets a refusal as a value instead.
@server.tool
def cancel(number: int, sure: Annotated[bool | Declined, Elicit("Cancel order {number}?")]) -> str:
    """Cancel an order."""
    return f"order {number} is cancelled" if sure is True else f"order {number} stays"


# In the body: asked only where it turns out to be needed. Nothing here runs twice, whatever the revision.
@server.tool
async def pay(euros: int, ctx: Context) -> str:
    """Pay for what was ordered."""
    if euros < 100:
        return f"paid {euros} euros"
    answer = await ctx.elicit_url(
        "Please confirm large sums at your bank.", f"https://bank.example/confirm?sum={euros}"
    )
    if answer.action != "accept":
        raise ToolError("nothing was paid")
    return f"{euros} euros are paid as soon as your bank agrees"


# The client's model, not ours, and on the client's account.
@server.tool
def slogan(bread: str, line: Annotated[str, Sample("Praise our bread in one line.", max_tokens=50)]) -> str:
    """A line for the shop window."""
    return f"{bread}: {line}"


# The client says where we may work; a path that leads out of there is refused.
@server.tool
async def keep(note: str, ctx: Context) -> str:
    """Keep a note in the first folder of the client."""
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
