"""A client in this process: an async function of the target, in place of a command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

InProcess = Callable[[str], Awaitable[Any]]
"""Connects to the target, a URL or a command line, does what it does, and returns; what it raises is its failure."""

_END_SECONDS = 2.0


class InProcessClient:
    """One call of such a function, seen as a process."""

    def __init__(self, client: InProcess, target: str) -> None:
        self._client = client
        self._target = target
        self._task: asyncio.Task[None] | None = None
        self.exited: asyncio.Event = asyncio.Event()
        self.exit_code: int | None = None
        self.output: str = ""

    def start(self) -> None:
        """Call it."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cancel it, if it still runs."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_END_SECONDS)

    async def _run(self) -> None:
        try:
            await self._client(self._target)
            self.exit_code = 0
        except Exception as exc:  # any failure of the client's own is how it ends
            self.output = f"{type(exc).__name__}: {exc}"
            self.exit_code = 1
        finally:
            self.exited.set()
