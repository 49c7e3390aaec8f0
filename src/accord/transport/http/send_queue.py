"""What we say that gets no answer: notifications, one after the other, and answers of ours to the server.

Requests wait until the server has taken `notifications/initialized`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from accord.transport.http.in_flight import PostRequest
from accord.transport.http.messages import CANCELLED, SentMessage

_INITIALIZED = "notifications/initialized"

SendMessage: TypeAlias = Callable[[SentMessage, bytes], Coroutine[Any, Any, None]]
"""Sends one message; never raises for what becomes of it."""


class SendQueue:
    """The order in which things are said on one connection.

    `tell` sends; `stands` is called once `initialized` is taken, and `start` then, with each request that was held.
    """

    def __init__(
        self, tell: SendMessage, stands: Callable[[], Awaitable[None]], start: Callable[[PostRequest], None]
    ) -> None:
        self._send_message = tell
        self._on_initialized = stands
        self._start = start
        self._loop: asyncio.AbstractEventLoop
        self._queue: deque[tuple[SentMessage, bytes]] = deque()
        self._held: list[PostRequest] | None = None  # while `initialized` is not taken
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False
        self._ended = False

    def open(self) -> None:
        """Get ready, on the loop that runs."""
        self._loop = asyncio.get_running_loop()

    # --- requests ----------------------------------------------------------------------------------------------

    def send_request(self, post: PostRequest) -> None:
        """Start a request, now or when the server is ready for it."""
        if self._held is None:
            self._start(post)
        else:
            self._held.append(post)

    def cancel_request(self, id: object) -> bool:
        """Forget a request that is held; whether there was one."""
        kept = [post for post in self._held or () if post.id != id]
        if self._held is None or len(kept) == len(self._held):
            return False
        self._held = kept
        return True

    # --- the rest ----------------------------------------------------------------------------------------------

    def send(self, out: SentMessage, message: bytes) -> None:
        """Send what gets no answer. Notifications go one after the other: some count on their order.

        An answer of ours does not wait, for what it answers may hold up everything else; nor does it that a request
        is given up.
        """
        if out.method is None or out.method == CANCELLED:
            self._run(self._send_message(out, message))
            return
        if out.method == _INITIALIZED:
            self._held = []
        self._queue.append((out, message))
        if not self._running:
            self._running = True
            self._run(self._send_all())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        # A client may notify between two runs of its loop.
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_all(self) -> None:
        try:
            while self._queue:
                await self._send_next(*self._queue.popleft())
        finally:
            self._running = False

    async def _send_next(self, out: SentMessage, message: bytes) -> None:
        try:
            await self._send_message(out, message)
        finally:
            if out.method == _INITIALIZED and not self._ended:
                await self._on_initialized()
                self._release()

    def _release(self) -> None:
        held, self._held = self._held, None
        for post in held or ():
            self._start(post)

    def stop(self) -> None:
        """Start no request any more: what is held is never sent."""
        self._ended = True
        self._held = []

    async def flush(self, seconds: float) -> None:
        """Say what is left, in bounded time."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
