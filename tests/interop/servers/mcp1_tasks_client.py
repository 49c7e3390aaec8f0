"""A peer client on the official SDK 1.x that runs the tools of examples/tasks.py as tasks (2025-11-25), and prints what
it saw: `mcp1_tasks_client.py COMMAND...`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable
from typing import Any

import anyio
from mcp import ClientSession, McpError, types
from mcp.client.stdio import StdioServerParameters, stdio_client

SECONDS = 60


async def main() -> None:
    command, *arguments = sys.argv[1:]
    async with (
        stdio_client(StdioServerParameters(command=command, args=arguments)) as streams,
        ClientSession(*streams, elicitation_callback=confirm) as session,
    ):
        await session.initialize()
        with anyio.fail_after(SECONDS):
            print(json.dumps(await story(session)))


async def confirm(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"confirm": params.message == "Delete a.txt?"})


async def story(session: ClientSession) -> dict[str, Any]:
    tasks = session.experimental
    seen: dict[str, Any] = {}
    for tool, arguments in (
        ("slow_compute", {"seconds": 0.5, "label": "x"}),
        ("confirm_delete", {}),
        ("failing_job", {}),
        ("protocol_error_job", {}),
    ):
        id = (await tasks.call_tool_as_task(tool, arguments)).task.taskId
        states = []
        async for state in tasks.poll_task(id):
            states.append(state)
            if state.status == "input_required":
                break
        result = await outcome(tasks.get_task_result(id, types.CallToolResult))
        last = (await tasks.get_task(id)).status
        seen[tool] = {"statuses": [each.status for each in states], "last": last, "result": result}
        seen["message"] = seen.get("message") or states[-1].statusMessage
    id = (await tasks.call_tool_as_task("slow_compute", {"seconds": 50})).task.taskId
    seen["cancel"] = (await tasks.cancel_task(id)).status
    seen["cancel again"] = await outcome(tasks.cancel_task(id))
    seen["unknown"] = [await outcome(ask("unknown")) for ask in (tasks.get_task, tasks.cancel_task)]
    seen["not a task"] = await outcome(tasks.call_tool_as_task("greet", {"name": "Ada"}))
    seen["required"] = await outcome(session.call_tool("failing_job", {}))
    return seen


async def outcome(answer: Awaitable[Any]) -> Any:
    """Return a result as JSON, or the error that came instead of it."""
    try:
        result: Any = await answer
    except McpError as error:
        return [error.error.code, error.error.message]
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


if __name__ == "__main__":
    anyio.run(main)
