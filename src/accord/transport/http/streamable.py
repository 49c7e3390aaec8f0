"""Streamable HTTP, the client's side: each message is a POST of its own.

From 2026-07-28 on that is all. Before, `initialize` may open a session: its id goes with whatever follows, a GET holds
the stream of what the server says unasked, and DELETE ends it. Which of the two a message belongs to is seen from the
message itself.

What we say that gets no answer: notifications, one after the other, and answers of ours to the server.

Requests wait until the server has taken `notifications/initialized`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from accord.errors import AccordError, ConnectionLost, SessionEnded
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.base import Message
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.get_stream import GetStream
from accord.transport.http.in_flight import InFlightRequests, PostRequest, PostState
from accord.transport.http.inbox import ANSWER_BYTES, Backlog, HTTPInbox
from accord.transport.http.messages import CANCELLED, SentMessage, parse_sent
from accord.transport.http.notifications import NotificationSender
from accord.transport.http.post_sender import PostSender
from accord.transport.http.session_state import ClientSessionState, Mirrors
from accord.transport.http.settings import HTTPSettings

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


log: logging.Logger = logging.getLogger("accord")

_GET_STREAM_WAIT_SECONDS = 0.1
"""Seconds that requests wait at most for the stream of what is told unasked, once, at the opening."""


class StreamableTransport:
    """Reaches the server at `url`. `name` is what to call it in errors."""

    answer_bytes: int = ANSWER_BYTES

    def __init__(
        self, url: str, *, name: str = "", settings: HTTPSettings | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        settings = settings or HTTPSettings()
        self._name = name or url
        self._limits = limits
        self._inbox = HTTPInbox(limits)
        self._fetcher = Fetcher(url, settings, limits)
        self._session_state = ClientSessionState()
        self._backlog = Backlog()
        self._in_flight = InFlightRequests(
            self._inbox, self._backlog, self._session_state, limits, settings.connections
        )
        shared = self._fetcher, self._session_state
        self._post_sender = PostSender(*shared, self._inbox, self._in_flight, limits, self._on_session_ended)
        self._get_stream = GetStream(
            *shared, self._inbox, limits, self._name, self._in_flight.receive_unsolicited, self._on_session_ended
        )
        telling = NotificationSender(
            *shared, self._backlog, self._in_flight, limits, self._name, self._on_session_ended
        )
        self._send_queue = SendQueue(telling.send, self._open_get_stream, self._start)
        self._ended: SessionEnded | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def mirrors(self) -> Mirrors | None:
        """Which arguments of a tool stand in headers too, by its name; set by the client."""
        return self._session_state.mirrors

    @mirrors.setter
    def mirrors(self, mirrors: Mirrors | None) -> None:
        self._session_state.mirrors = mirrors

    @property
    def on_answer(self) -> Callable[[bytes], None] | None:
        """Takes answers at once; set by whoever receives."""
        return self._inbox.on_answer

    @on_answer.setter
    def on_answer(self, on_answer: Callable[[bytes], None] | None) -> None:
        self._inbox.on_answer = on_answer

    @property
    def on_missed(self) -> Callable[[str], None] | None:
        """Is told of gaps in what the server says unasked; set by the client."""
        return self._get_stream.on_missed

    @on_missed.setter
    def on_missed(self, on_missed: Callable[[str], None] | None) -> None:
        self._get_stream.on_missed = on_missed

    async def open(self) -> None:
        """Get ready; nothing is connected before the first message."""
        self._send_queue.open()
        await self._fetcher.open()

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        return self._inbox.receive()

    def flush(self) -> None:
        """Nothing waits: each message has a request of its own."""

    async def drain(self) -> None:
        await self._backlog.wait_below(self._limits.pending_bytes)

    def lost(self) -> ConnectionLost:
        return self._ended or ConnectionLost(f"{self._name}: the connection was closed")

    # --- out ---------------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        out = parse_sent(message)
        if self._closing is not None:
            return
        if out.method is not None and out.id is not None:
            self._send_queue.send_request(PostRequest(out, message, self._name))
        elif out.method != CANCELLED or self._cancel(out):
            self._send_queue.send(out, message)

    def _start(self, post: PostRequest) -> None:
        self._in_flight.start(post, self._post_sender.run)

    def _cancel(self, out: SentMessage) -> bool:
        """Close the response to the request that is given up; whether the server has to be told as well."""
        id = out.params.cancelled if out.params is not None else None
        if self._send_queue.cancel_request(id):  # it was not sent
            return False
        found = self._in_flight.get(id)
        if found is None:
            return True
        was_sent = found.state is not PostState.QUEUED
        self._in_flight.cancel(found)
        return was_sent and not found.names_revision

    async def _open_get_stream(self) -> None:
        """The server knows that we are ready: it may be listened to.

        Some servers ask on that stream whatever they ask, and drop it while there is none: so it has a moment's lead.
        """
        self._get_stream.start()
        await self._get_stream.wait_known(_GET_STREAM_WAIT_SECONDS)

    # --- the end -----------------------------------------------------------------------------------------------

    def _on_session_ended(self) -> None:
        """The server does not know our session any more: this connection is over."""
        if self._ended is None and self._closing is None:
            self._ended = SessionEnded(f"{self._name}: the server has ended the session")
            self._ending = asyncio.get_running_loop().create_task(self._end_session(self._ended))

    async def _end_session(self, ended: SessionEnded) -> None:
        """What was sent and not responded to is about to be refused too; what is being answered is lost."""
        await self._in_flight.refuse(ended)
        await self._get_stream.end()
        await self._in_flight.end(ConnectionLost(f"{self._name}: the session ended before the answer"))
        self._inbox.end()
        self._backlog.end()

    async def close(self) -> None:
        """Close what is open, send what was said, and end the session; in bounded time."""
        if self._closing is None:
            self._send_queue.stop()
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._inbox.end()
        self._backlog.end()
        try:
            if self._ending is not None:
                self._ending.cancel()
            await self._get_stream.end()
            await self._in_flight.end()
            await self._send_queue.flush(self._limits.close_seconds / 2)
            await self._delete_session()
        finally:
            await self._fetcher.close()

    async def _delete_session(self) -> None:
        """End the session: "Clients that no longer need a particular session [...] SHOULD send an HTTP DELETE"."""
        if self._session_state.session is None or self._ended is not None:
            return
        try:
            async with asyncio.timeout(self._limits.close_seconds / 2):
                headers = self._session_state.session_headers()
                response = await self._fetcher.fetch("DELETE", headers, what=f"the end of {self._name}")
                response.close()
        except (AccordError, TimeoutError) as exc:
            log.debug("accord: the session was not ended on the server: %s", exc)
