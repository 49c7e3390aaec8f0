"""A server whose tools go on after their request, as tasks; the official conformance suite runs against it.

    python examples/tasks.py :8000                 # over HTTP, tasks in memory
    python examples/tasks.py --store tasks.db      # over stdio; tasks survive the process
    accord call examples/tasks.py slow_compute seconds=3

The suite defines the names and results of the tools (see docs/tasks.md).
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Annotated

import msgspec

from accord import Accepted, Cancelled, Context, Declined, Elicit, Server, SQLiteTasks, Task, ToolAnnotations, ToolError
from accord.errors import InternalError

SAFE = ToolAnnotations(read_only_hint=True)
"""The handler of a read-only tool runs again after the server has stopped during a task."""


class Confirmation(msgspec.Struct):
    confirm: bool


class Name(msgspec.Struct):
    name: str


def make_server(store: str | None = None) -> Server:
    """Return the server, with tasks in a file or in memory."""
    server = Server("tasks", "1.0.0", tasks=None if store is None else SQLiteTasks(store))

    @server.tool(annotations=SAFE)
    def greet(name: str) -> str:
        """A greeting, at once."""
        return f"Hello, {name}!"

    @server.tool(task=True, annotations=SAFE)
    async def slow_compute(ctx: Context, seconds: float = 1, label: str = "") -> str:
        """A computation that takes a while, and reports its progress."""
        for step in range(1, 11):
            await asyncio.sleep(seconds / 10)
            ctx.report_progress(step, 10, f"{step} of 10 steps")
        return f"computed {label}".strip()

    @server.tool(task=Task(after=1), annotations=SAFE)
    async def maybe_slow(seconds: float = 0) -> str:
        """A result, or a task if it takes longer than a second."""
        await asyncio.sleep(seconds)
        return "done"

    @server.tool(task="required", annotations=SAFE)
    async def failing_job() -> str:
        """A failure, which a model can read; only clients that can wait may call it."""
        await asyncio.sleep(0.2)
        raise ToolError("the job has failed")

    @server.tool(task=True, annotations=SAFE)
    async def protocol_error_job() -> str:
        """A failure of the server: the task fails, and has no result."""
        await asyncio.sleep(0.2)
        raise InternalError("the job broke")

    @server.tool(task=True, annotations=SAFE)
    async def confirm_delete(ctx: Context, filename: str = "a.txt") -> str:
        """A question in the middle of the work."""
        answer = await ctx.elicit(f"Delete {filename}?", Confirmation)
        return f"deleted {filename}" if isinstance(answer, Accepted) and answer.data.confirm else f"kept {filename}"

    @server.tool(task=True, annotations=SAFE)
    async def multi_input(ctx: Context) -> str:
        """Two questions at once."""
        first, second = await asyncio.gather(ctx.elicit("The first name?", Name), ctx.elicit("The second name?", Name))
        return f"{_name(first)} and {_name(second)}"

    @server.tool(task="required", annotations=SAFE)
    async def test_tool_with_task(user_name: Annotated[Name, Elicit("Who are you?")]) -> str:
        """A question before the task, and the answer in its result."""
        await asyncio.sleep(0.2)
        return f"Hello, {user_name.name}!"

    return server


def _name(answer: Accepted[Name] | Declined | Cancelled) -> str:
    return answer.data.name if isinstance(answer, Accepted) else "nobody"


server = make_server()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A server with tasks")
    parser.add_argument("http", nargs="?", help="the address, such as :8000; stdio without one")
    parser.add_argument("--store", help="the file of the tasks")
    options = parser.parse_args()
    make_server(options.store).run(http=options.http)
