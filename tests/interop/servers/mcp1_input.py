"""A peer server on the official SDK 1.x whose tools ask back: what test_client_input expects of one."""

from __future__ import annotations

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel, Field

import http_arguments

server = FastMCP("input")
PAGE = "https://example.com/sign-in"


class Order(BaseModel):
    size: str = Field(title="Size")
    count: int = Field(default=1, ge=1, le=9)


@server.tool()
async def buy(ctx: Context) -> str:
    """Ask the person."""
    order = await ctx.elicit("What will it be?", Order)
    return f"{order.data.count} {order.data.size}" if order.action == "accept" else order.action


@server.tool()
async def think(ctx: Context) -> str:
    """Ask the model."""
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is 6 times 7?"))
    # On the stream of this call: on that of the session it is lost where the client has not opened one yet.
    answer = await ctx.session.create_message(
        [question], max_tokens=50, system_prompt="Be brief.", related_request_id=ctx.request_id
    )
    return f"{answer.model}: {answer.content.text}"


@server.tool()
async def folders(ctx: Context) -> str:
    """Ask for the folders."""
    return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()
async def visit(ctx: Context) -> str:
    """Send the person to a page."""
    agreed = await ctx.elicit_url("Sign in", PAGE, "visit-1")
    await ctx.session.send_elicit_complete("visit-1")
    return agreed.action


if __name__ == "__main__":
    http_arguments.run_mcp1(server)
