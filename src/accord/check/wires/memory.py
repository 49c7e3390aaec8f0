"""Messages to and from a server in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from accord.check.engine.report import TransportName
from accord.check.wires.base import OnMessage
from accord.client.target import InProcessServer
from accord.errors import describe
from accord.transport import memory
from accord.transport.base import UnansweredRequest


class MemoryWire:
    """A server in this process, with messages as over stdio."""

    transport: TransportName = "memory"
    stderr = ""
    exit_code = None

    def __init__(self, server: InProcessServer) -> None:
        self.on_message: OnMessage = lambda raw, stream: None
        self.on_close: Callable[[], None] = lambda: None
        self._server = server
        self._here, self._there = memory.pair()
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._ended = False

    async def open(self) -> None:
        self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(self._receive())]

    def send(self, message: bytes, headers: Mapping[str, str | None]) -> int:
        self._here.send(message)
        return 0

    async def close(self) -> None:
        await self._here.close()
        _, pending = await asyncio.wait(self._tasks, timeout=2) if self._tasks else ((), ())
        for task in pending:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def close_reason(self) -> str:
        return f"the server failed: {describe(self._failure)}" if self._failure else "the server closed the connection"

    async def _serve(self) -> None:
        try:
            await self._server.serve(self._there)
        except Exception as exc:
            self._failure = exc
        finally:
            await self._there.close()

    async def _receive(self) -> None:
        while messages := await self._here.receive():
            for message in messages:
                if not isinstance(message, UnansweredRequest):
                    self.on_message(message, 0)
        if not self._ended:
            self._ended = True
            self.on_close()
