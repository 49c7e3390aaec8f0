"""A peer server with tasks on FastMCP and fastmcp-tasks (2026-07-28): what test_tasks expects of one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = FastMCP("tasks")
server.add_extension(TasksExtension())

POLLED = TaskConfig(poll_interval=timedelta(seconds=0.1))

CONFIRMATION = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}


@server.tool(task=POLLED)
async def slow_compute() -> str:
    """Return a result after a while."""
    await asyncio.sleep(0.3)
    return "computed"


@server.tool(task=POLLED)
async def failing_job() -> str:
    """Fail."""
    raise ToolError("the job has failed")


@server.tool(task=POLLED)
async def confirm_delete(ctx: Context) -> str | InputRequiredResult:
    """Ask the user."""
    answer = (ctx.input_responses or {}).get("ok")
    if answer is None:
        params = ElicitRequestFormParams(message="Delete a.txt?", requested_schema=CONFIRMATION)
        return InputRequiredResult(input_requests={"ok": ElicitRequest(params=params)})
    return "deleted a.txt" if answer.content["confirm"] else "kept a.txt"


@server.tool(task=POLLED)
async def endless() -> str:
    """Wait for the cancellation."""
    await asyncio.Event().wait()
    return ""


if __name__ == "__main__":
    server.run(show_banner=False)
