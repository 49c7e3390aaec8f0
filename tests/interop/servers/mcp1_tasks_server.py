"""A peer server with tasks on the official SDK 1.x (2025-11-25): what test_tasks expects of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp import types
from mcp.server.experimental.task_context import ServerTaskContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

server: Server[Any, Any] = Server("tasks")
server.experimental.enable_tasks()

Work = Callable[[ServerTaskContext], Awaitable[types.CallToolResult]]

CONFIRMATION = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}


async def slow_compute(task: ServerTaskContext) -> types.CallToolResult:
    await task.update_status("1 of 2 steps")
    await anyio.sleep(0.3)
    return text("computed")


async def failing_job(task: ServerTaskContext) -> types.CallToolResult:
    raise ValueError("the job has failed")


async def confirm_delete(task: ServerTaskContext) -> types.CallToolResult:
    answer = await task.elicit("Delete a.txt?", CONFIRMATION)
    return text("deleted a.txt" if answer.content and answer.content["confirm"] else "kept a.txt")


async def endless(task: ServerTaskContext) -> types.CallToolResult:
    await anyio.sleep_forever()
    raise AssertionError


WORK: dict[str, Work] = {each.__name__: each for each in (slow_compute, failing_job, confirm_delete, endless)}


def text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    required = types.ToolExecution(taskSupport="required")
    return [types.Tool(name=name, inputSchema={"type": "object"}, execution=required) for name in WORK]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> types.CreateTaskResult:
    experimental = server.request_context.experimental
    experimental.validate_task_mode("required")
    return await experimental.run_task(WORK[name])


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
