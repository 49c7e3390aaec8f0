"""A peer server on the official SDK 2.x that tells of changes: what test_client_notifications expects of one."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

import http_arguments

server = MCPServer("notifications")


@server.resource("notes://today")
def today() -> str:
    """What there is to do today."""
    return "buy milk"


@server.prompt()
def plan(city: str) -> str:
    """Plan a trip."""
    return city


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion | None:
    """Complete cities."""
    cities = [city for city in ("Oslo", "Osaka", "Rome") if city.startswith(argument.value)]
    return Completion(values=cities, total=len(cities), has_more=False)


@server.tool()
async def change(ctx: Context) -> str:
    """Tell of changes, and say so in the log."""
    await ctx.notify_resource_updated("notes://today")
    await ctx.notify_tools_changed()
    await ctx.info("changed")
    return "changed"


if __name__ == "__main__":
    http_arguments.run_mcp2(server)
