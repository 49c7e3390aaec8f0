"""A server that asks, written with accord: what the peer clients with callbacks open (see input_story)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

from accord import (
    Accepted,
    Context,
    Elicit,
    Roots,
    Sample,
    SamplingMessage,
    Server,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolResultContent,
)

server = Server("input", "1.0")

ADD = Tool(name="add", description="Add", input_schema={"type": "object", "properties": {"a": {}, "b": {}}})


@dataclass
class Order:
    size: Literal["small", "large"]
    count: int = 1


@server.tool
async def buy(ctx: Context) -> str:
    """Ask the person."""
    order = await ctx.elicit("What will it be?", Order)
    return f"{order.data.count} {order.data.size}" if isinstance(order, Accepted) else order.action


@server.tool
async def refuse(ctx: Context) -> str:
    """Ask what the person says no to."""
    return (await ctx.elicit("Really?", bool)).action


@server.tool
def delete(path: str, ok: Annotated[bool, Elicit("Delete {path}?")] = False) -> str:
    """Ask before it runs."""
    return "deleted" if ok else "kept"


@server.tool
async def think(ctx: Context) -> str:
    """Ask the model."""
    answer = await ctx.sample("What is 6 times 7?", max_tokens=50, system_prompt="Be brief.")
    return f"{answer.model}: {answer.text}"


@server.tool
async def reckon(ctx: Context) -> str:
    """Give the model a tool."""
    question = SamplingMessage(role="user", content=TextContent(text="Add 1 and 2."))
    wish = await ctx.sample(question, tools=[ADD])
    (use,) = wish.tool_uses
    said = SamplingMessage(role="assistant", content=wish.content)
    result = ToolResultContent(tool_use_id=use.id, content=[TextContent(text="3")])
    given = SamplingMessage(role="user", content=result)
    return (await ctx.sample([question, said, given], tools=[ADD])).text


@server.tool
async def folders(ctx: Context) -> str:
    """Ask for the folders."""
    return " ".join(root.uri for root in await ctx.list_roots())


@server.tool
async def together(ctx: Context) -> str:
    """Ask for everything at once."""
    order, answer, roots = await ctx.ask(Elicit("What will it be?", Order), Sample("What is 6 times 7?"), Roots())
    return f"{order.action}, {answer.text}, {len(roots)} folders"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
async def number(ctx: Context) -> str:
    """Ask twice, and may run again for each answer."""
    made = await ctx.once("number", lambda: 7, int)
    first, second = await ctx.sample("First?"), await ctx.sample("Second?")
    return f"{made} {first.text} {second.text}"


@server.tool
async def visit(ctx: Context) -> str:
    """Send the person to a page."""
    return (await ctx.elicit_url("Sign in", "https://example.com/sign-in")).action


@server.tool
async def tell(ctx: Context) -> str:
    """Log on the way."""
    ctx.debug("not loud enough")
    ctx.warning("almost full")
    return "told"


@server.tool
async def change(ctx: Context) -> str:
    """Change a resource and the list of tools."""
    server.resource_updated("notes://today")
    server.tool(name="added")(lambda: "added")
    return "changed"


@server.resource("notes://today")
def today() -> str:
    """What there is to do today."""
    return "buy milk"


@server.resource("vault://key")
async def key(ctx: Context) -> str:
    """A resource that asks the model."""
    return f"opened: {(await ctx.sample('The word?')).text}"


@server.prompt
async def letter(to: str, ctx: Context) -> str:
    """A prompt that asks the model."""
    return f"Write {(await ctx.sample('A number?')).text} to {to}."


@server.prompt
def plan(city: str, country: str = "") -> str:
    """Plan a day."""
    return f"Plan a day in {city}."


@plan.complete("city")
def cities(prefix: str, country: str = "") -> list[str]:
    return [f"{prefix}slo", country] if country else [f"{prefix}slo"]


if __name__ == "__main__":
    server.run(http=sys.argv[1]) if len(sys.argv) > 1 else server.run()
