"""A peer client on FastMCP and fastmcp-tasks that runs the tools of examples/tasks.py as tasks (2026-07-28), and prints
what it saw: `fastmcp_tasks_client.py COMMAND...`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp_tasks.client import ToolTask, call_tool_task
from mcp.shared.exceptions import MCPError

SECONDS = 60


async def main() -> None:
    command, *arguments = sys.argv[1:]
    transport = StdioTransport(command, arguments, keep_alive=False)
    async with Client(transport, mode="2026-07-28", elicitation_handler=confirm) as client, asyncio.timeout(SECONDS):
        print(json.dumps(await story(client)))


async def confirm(message: str, response_type: Any, params: Any, context: Any) -> Any:
    return {"confirm": message == "Delete a.txt?"}


async def story(client: Client[Any]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for tool in ("confirm_delete", "failing_job", "protocol_error_job"):
        seen[tool] = await result_text(client.call_tool(tool, {}, raise_on_error=False))
    task = await call_tool_task(client, "slow_compute", {"seconds": 0.5, "label": "x"})
    seen["first"] = (await task.status()).status
    seen["slow_compute"] = await result_text(task.result())
    seen["last"] = (await task.status()).status
    task = await call_tool_task(client, "slow_compute", {"seconds": 50})
    await task.cancel()
    seen["cancel"] = (await task.status()).status
    seen["cancel again"] = await outcome(task.cancel())
    unknown = ToolTask(client, "slow_compute", task.create_result.model_copy(update={"task_id": "unknown"}))
    seen["unknown"] = [await outcome(unknown.status()), await outcome(unknown.cancel())]
    return seen


async def result_text(answer: Awaitable[Any]) -> Any:
    result: Any = await answer
    return [result.is_error, result.content[0].text]


async def outcome(answer: Awaitable[Any]) -> Any:
    """Return None for a result, or the error that came instead of it."""
    try:
        await answer
    except MCPError as error:
        return [error.error.code, error.error.message]
    return None


if __name__ == "__main__":
    asyncio.run(main())
