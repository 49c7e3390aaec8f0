"""A server that is killed at one operation of its task store.

    python killed.py FOLDER [OPERATION NUMBER WHEN]

It counts the calls of `create` and `save`, and ends as by `kill -9` before or after one of them. Its tools write a line
into a file for each time they ask and end.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from accord import Accepted, Context, Server, ToolAnnotations
from accord.stores import SQLiteTasks, TaskRecord

FOLDER = Path(sys.argv[1])
KILLED = sys.argv[2:]


class Name(msgspec.Struct):
    name: str


class KilledTasks(SQLiteTasks):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.counts = {"create": 0, "save": 0}

    async def create(self, record: TaskRecord) -> None:
        await self._counted("create", super().create, record)

    async def save(self, record: TaskRecord) -> None:
        await self._counted("save", super().save, record)

    async def _counted(self, name: str, method: Any, record: TaskRecord) -> None:
        self.counts[name] += 1
        self._die(name, "before")
        await method(record)
        self._die(name, "after")

    def _die(self, name: str, when: str) -> None:
        if [name, str(self.counts[name]), when] == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)


server = Server("killed", tasks=KilledTasks(FOLDER / "tasks.db"))


def note(line: str) -> None:
    """Write a line that survives the process."""
    with (FOLDER / "effects").open("a") as file:
        file.write(line + "\n")


async def work(ctx: Context, kind: str) -> str:
    note(f"{kind} began")
    number = await ctx.once("number", lambda: 7)
    answer = await ctx.elicit("Who?", Name)
    name = answer.data.name if isinstance(answer, Accepted) else "nobody"
    note(f"{kind} ended")
    return f"{number} {name}"


@server.tool(task=True, annotations=ToolAnnotations(idempotent_hint=True))
async def safe(ctx: Context) -> str:
    return await work(ctx, "safe")


@server.tool(task=True)
async def unsafe(ctx: Context) -> str:
    return await work(ctx, "unsafe")


@server.tool
def end() -> None:
    """End as by `kill -9`, at any moment."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    server.run()
