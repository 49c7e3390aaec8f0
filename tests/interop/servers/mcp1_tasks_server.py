"""A peer server with tasks on the official SDK 1.x (2025-11-25): what test_tasks expects of one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp import McpError, types
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


async def confirm_as_task(task: ServerTaskContext) -> types.CallToolResult:
    answer = await task.elicit_as_task("Delete a.txt?", CONFIRMATION)
    return text("deleted a.txt" if answer.content and answer.content["confirm"] else "kept a.txt")


async def think_as_task(task: ServerTaskContext) -> types.CallToolResult:
    prompt = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))
    answer = await task.create_message_as_task([prompt], max_tokens=10)
    assert isinstance(answer.content, types.TextContent)
    return text(answer.content.text)


async def endless(task: ServerTaskContext) -> types.CallToolResult:
    await anyio.sleep_forever()
    raise AssertionError


WORK: dict[str, Work] = {
    each.__name__: each for each in (slow_compute, failing_job, confirm_delete, confirm_as_task, think_as_task, endless)
}


def text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    required = types.ToolExecution(taskSupport="required")
    tasks = [types.Tool(name=name, inputSchema={"type": "object"}, execution=required) for name in WORK]
    return [*tasks, types.Tool(name="ask_as_tasks", inputSchema={"type": "object"})]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> types.CreateTaskResult | types.CallToolResult:
    if name == "ask_as_tasks":
        return await ask_as_tasks()
    experimental = server.request_context.experimental
    experimental.validate_task_mode("required")
    return await experimental.run_task(WORK[name])


async def ask_as_tasks() -> types.CallToolResult:
    """Ask in a call that is no task itself, and look at the tasks of the client."""
    features, session = server.request_context.session.experimental, server.request_context.session
    answer = await features.elicit_as_task("Delete a.txt?", CONFIRMATION)
    listed = await session.send_request(types.ServerRequest(types.ListTasksRequest()), types.ListTasksResult)
    (task,) = listed.tasks
    seen = [answer.action, answer.content, task.status, (await features.get_task(task.taskId)).status]
    params = types.CancelTaskRequestParams(taskId=task.taskId)
    request = types.ServerRequest(types.CancelTaskRequest(params=params))
    for asked in (session.send_request(request, types.CancelTaskResult), features.get_task("unknown")):
        try:
            await asked
        except McpError as error:
            seen.append(error.error.message)
    return text(json.dumps(seen))


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
