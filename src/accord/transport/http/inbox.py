"""Messages on their way in, from several responses to the one who receives; who brings too many waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from accord.limits import Limits
from accord.transport.base import Message
from accord.transport.inbox import Inbox


class HTTPInbox:
    """The inbox of a transport over HTTP."""

    def __init__(self, limits: Limits) -> None:
        self._inbox = Inbox(limits.pending_bytes, self._on_capacity)
        self._capacity = asyncio.Event()
        self.on_answer: Callable[[bytes], None] | None = None
        """Takes answers, where that is quicker than to be waited for."""

    def _on_capacity(self) -> None:
        self._capacity.set()

    def put_answer(self, message: bytes) -> None:
        """Hand on the answer to a request of ours: at once where somebody takes it, and nothing came before it."""
        if self.on_answer is not None and self._inbox.idle:
            self.on_answer(message)
        else:
            self.put(message)

    def put(self, message: Message) -> None:
        """Add one message. It is taken in any case: call `wait_capacity` before more is read."""
        self._inbox.put([message], len(message) if isinstance(message, bytes) else 0)

    async def wait_capacity(self) -> None:
        """Wait until what came before has been received, if it is much."""
        while self._inbox.full:
            self._capacity.clear()
            await self._capacity.wait()

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        """As `Transport.receive`."""
        return self._inbox.get()

    def end(self) -> None:
        """Nothing more will come."""
        self._inbox.end()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._inbox.ended
