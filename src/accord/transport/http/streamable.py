"""The client's side of Streamable HTTP: each message is a POST of its own.

From 2026-07-28 on that is all. Before, `initialize` may open a session: its id is sent with all further messages, a GET
stream has the messages of the server that belong to no request, and DELETE ends the session. The message itself shows
to which of the two eras it belongs.

`SendQueue` sends messages without a response: notifications in order, and responses to the server.

Requests wait until the server has accepted `notifications/initialized`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from accord.errors import AccordError, ConnectionLost, SessionEnded
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.base import Message, TransportObserver
from accord.transport.http.credentials import Credentials
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
"""Sends one message; never raises for a failure."""


class SendQueue:
    """The order of the messages of one connection.

    `send_message` sends; `on_initialized` is called once `initialized` is accepted, and then `start` with each request
    that waited.
    """

    def __init__(
        self,
        send_message: SendMessage,
        on_initialized: Callable[[], Awaitable[None]],
        start: Callable[[PostRequest], None],
    ) -> None:
        self._send_message = send_message
        self._on_initialized = on_initialized
        self._start = start
        self._loop: asyncio.AbstractEventLoop
        self._queue: deque[tuple[SentMessage, bytes]] = deque()
        self._held: list[PostRequest] | None = None  # while `initialized` is not accepted
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False
        self._ended = False

    def open(self) -> None:
        """Use the running event loop."""
        self._loop = asyncio.get_running_loop()

    # --- requests ----------------------------------------------------------------------------------------------

    def send_request(self, post: PostRequest) -> None:
        """Send a request, now or once the server is ready."""
        if self._held is None:
            self._start(post)
        else:
            self._held.append(post)

    def cancel_request(self, id: object) -> bool:
        """Remove a waiting request; return whether there was one."""
        remaining = [post for post in self._held or () if post.id != id]
        if self._held is None or len(remaining) == len(self._held):
            return False
        self._held = remaining
        return True

    # --- other messages ----------------------------------------------------------------------------------------

    def send(self, out: SentMessage, message: bytes) -> None:
        """Send a message without a response. Notifications are sent in order, because some servers rely on it.

        A response does not wait, because the server may block until it arrives; neither does a cancellation.
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
        # A client may send notifications between two runs of its loop.
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
        waiting, self._held = self._held, None
        for post in waiting or ():
            self._start(post)

    def stop(self) -> None:
        """Start no further request: waiting ones are never sent."""
        self._ended = True
        self._held = []

    async def flush(self, seconds: float) -> None:
        """Finish the queued messages, in bounded time."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()


log: logging.Logger = logging.getLogger("accord")

_GET_STREAM_WAIT_SECONDS = 0.1
"""Limit in seconds of the wait for the GET stream, once, during the handshake."""


class StreamableTransport:
    """A transport to the server at `url`. `name` is its name in errors."""

    answer_bytes: int = ANSWER_BYTES

    def __init__(
        self,
        url: str,
        *,
        name: str = "",
        settings: HTTPSettings | None = None,
        limits: Limits = DEFAULT_LIMITS,
        credentials: Credentials | None = None,
    ) -> None:
        settings = settings or HTTPSettings()
        self._name = name or url
        self._limits = limits
        self._inbox = HTTPInbox(limits)
        self._fetcher = Fetcher(url, settings, limits, credentials)
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
        notifications = NotificationSender(
            *shared,
            self._backlog,
            self._in_flight,
            limits,
            self._name,
            settings.connections,
            self._on_session_ended,
        )
        self._send_queue = SendQueue(notifications.send, self._open_get_stream, self._start)
        self._ended: SessionEnded | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def mirrors(self) -> Mirrors | None:
        """Return the mirrored arguments of a tool, by its name; set by the client."""
        return self._session_state.mirrors

    @mirrors.setter
    def mirrors(self, mirrors: Mirrors | None) -> None:
        self._session_state.mirrors = mirrors

    @property
    def on_answer(self) -> Callable[[bytes], None] | None:
        """Called with responses at once; set by the receiver."""
        return self._inbox.on_answer

    @on_answer.setter
    def on_answer(self, on_answer: Callable[[bytes], None] | None) -> None:
        self._inbox.on_answer = on_answer

    @property
    def on_missed(self) -> Callable[[str], None] | None:
        """Called when notifications or requests of the server may have been missed; set by the client."""
        return self._get_stream.on_missed

    @on_missed.setter
    def on_missed(self, on_missed: Callable[[str], None] | None) -> None:
        self._get_stream.on_missed = on_missed

    @property
    def observer(self) -> TransportObserver | None:
        """The observer of all requests and responses; set before `open`."""
        return self._fetcher.observer

    @observer.setter
    def observer(self, observer: TransportObserver | None) -> None:
        self._fetcher.observer = observer

    async def session_headers(self) -> dict[str, str]:
        """Return the headers of a further request in this session, with credentials. Raises `AuthorizationError`."""
        return {**await self._fetcher.access_headers(), **self._session_state.session_headers()}

    async def open(self) -> None:
        """Prepare the transport; it connects with the first message."""
        self._send_queue.open()
        await self._fetcher.open()

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        return self._inbox.receive()

    def flush(self) -> None:
        """Do nothing: each message has an HTTP request of its own."""

    async def drain(self) -> None:
        await self._backlog.wait_below(self._limits.pending_bytes)

    def lost(self) -> ConnectionLost:
        return self._ended or ConnectionLost(f"{self._name}: the connection was closed")

    # --- sending -----------------------------------------------------------------------------------------------

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
        """Close the response to a cancelled request; return whether to send the cancellation to the server as well."""
        id = out.params.cancelled if out.params is not None else None
        if self._send_queue.cancel_request(id):  # it was not sent
            return False
        post = self._in_flight.get(id)
        if post is None:
            return True
        was_sent = post.state is not PostState.QUEUED
        self._in_flight.cancel(post)
        return was_sent and not post.names_revision

    async def _open_get_stream(self) -> None:
        """Open the GET stream, because the server knows that the client is ready.

        Some servers send all requests on that stream, and drop them while there is none: so the stream opens a moment
        before further requests.
        """
        self._get_stream.start()
        await self._get_stream.wait_known(_GET_STREAM_WAIT_SECONDS)

    # --- shutdown ----------------------------------------------------------------------------------------------

    def _on_session_ended(self) -> None:
        """End the connection, because the server no longer knows the session."""
        if self._ended is None and self._closing is None:
            self._ended = SessionEnded(f"{self._name}: the server has ended the session")
            self._ending = asyncio.get_running_loop().create_task(self._end_session(self._ended))

    async def _end_session(self, ended: SessionEnded) -> None:
        """Fail the requests in flight: those without a response would be refused too, and partial responses are
        lost."""
        await self._in_flight.refuse(ended)
        await self._get_stream.end()
        await self._in_flight.end(ConnectionLost(f"{self._name}: the session ended before the answer"))
        self._inbox.end()
        self._backlog.end()

    async def close(self) -> None:
        """Close the streams, send the queued messages, and end the session; in bounded time."""
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
