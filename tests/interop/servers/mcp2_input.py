"""A peer server on the official SDK 2.x whose tools ask back: what test_client_input expects of one."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

import http_arguments

server = MCPServer("input")
PAGE = "https://example.com/sign-in"


class Order(BaseModel):
    size: Literal["small", "large"] = Field(title="Size")
    count: int = Field(default=1, ge=1, le=9)


def ask_order() -> Elicit[Order]:
    return Elicit("What will it be?", Order)


def ask_model() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is 6 times 7?"))
    return Sample([question], max_tokens=50, system_prompt="Be brief.")


def ask_roots() -> ListRoots:
    return ListRoots()


def told(order: ElicitationResult[Order]) -> str:
    return f"{order.data.count} {order.data.size}" if order.action == "accept" else order.action


@server.tool()
def buy(order: Annotated[ElicitationResult[Order], Resolve(ask_order)]) -> str:
    """Ask the person."""
    return told(order)


@server.tool()
def think(answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Ask the model."""
    return f"{answer.model}: {answer.content.text}"


@server.tool()
def folders(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Ask for the folders."""
    return " ".join(str(root.uri) for root in roots.roots)


@server.tool()
def everything(
    order: Annotated[ElicitationResult[Order], Resolve(ask_order)],
    answer: Annotated[CreateMessageResult, Resolve(ask_model)],
    roots: Annotated[ListRootsResult, Resolve(ask_roots)],
) -> str:
    """Ask for everything at once."""
    return f"{told(order)}, {answer.content.text}, {len(roots.roots)} folders"


@server.tool()
async def visit(ctx: Context) -> str | InputRequiredResult:
    """Send the person to a page."""
    if ctx.request_context.protocol_version != "2026-07-28":
        return (await ctx.elicit_url("Sign in", PAGE, "visit-1")).action
    if ctx.input_responses:
        return ctx.input_responses["page"].action
    params = ElicitRequestURLParams(message="Sign in", url=PAGE)
    return InputRequiredResult(input_requests={"page": ElicitRequest(params=params)})


if __name__ == "__main__":
    http_arguments.run_mcp2(server)
