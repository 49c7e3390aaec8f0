"""The client's side of HTTP+SSE (2024-11-05): one GET whose stream has all messages of the server, and POSTs to its
URL."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from accord.errors import AccordError, ConnectError, ConnectionLost, visible
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.bounds import URI_LENGTH
from accord.messages.envelope import RequestId
from accord.transport.base import Message, TransportObserver, UnansweredRequest
from accord.transport.http.credentials import Credentials
from accord.transport.http.event_stream import (
    EventStreamReader,
    is_stream,
    read_error_body,
    read_excerpt,
    report_event,
)
from accord.transport.http.failures import Complaints, response_error
from accord.transport.http.fetcher import STREAM_ONLY, Fetcher
from accord.transport.http.inbox import ANSWER_BYTES, Backlog, HTTPInbox
from accord.transport.http.messages import CANCELLED, SentMessage, parse_received, parse_sent
from accord.transport.http.redaction import without_credentials
from accord.transport.http.settings import HTTPSettings
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent

if TYPE_CHECKING:
    from aiohttp import ClientResponse


class SSETransport:
    """A transport to the server whose stream is at `url`. `name` is its name in errors."""

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
        self._loop: asyncio.AbstractEventLoop
        self._slots = asyncio.Semaphore(settings.connections)
        self._answer_slots = asyncio.Semaphore(settings.connections)
        self._endpoint: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._posting: set[asyncio.Task[None]] = set()
        self._unsent: dict[RequestId, asyncio.Task[None]] = {}  # requests that wait
        self._last_notification: asyncio.Task[None] | None = None
        self._backlog = Backlog()
        self._complaints = Complaints()
        self._lost = ConnectionLost(f"{self._name}: the stream has ended")
        self._closing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def observer(self) -> TransportObserver | None:
        """The observer of all requests and responses; set before `open`."""
        return self._fetcher.observer

    @observer.setter
    def observer(self, observer: TransportObserver | None) -> None:
        self._fetcher.observer = observer

    async def open(self) -> None:
        """Open the stream, and receive the URL for POSTs. Raises `ConnectError`."""
        loop = self._loop = asyncio.get_running_loop()
        await self._fetcher.open()
        self._endpoint = loop.create_future()
        try:
            async with asyncio.timeout(self._limits.client.connect_seconds):
                response = await self._stream()
                self._reading = loop.create_task(self._read(response, self._endpoint))
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            seconds = self._limits.client.connect_seconds
            raise ConnectError(f"{self._name} (HTTP+SSE) sent no endpoint event in {seconds:g} s") from None
        except ConnectError:
            raise
        except AccordError as exc:
            raise ConnectError(str(exc)) from exc

    async def _stream(self) -> ClientResponse:
        what = f"the stream of {self._name} (HTTP+SSE)"
        response = await self._fetcher.fetch("GET", STREAM_ONLY, what=what)
        if is_stream(response):
            return response
        body = await read_excerpt(response)
        self._fetcher.report(response, body)
        response.close()
        raise response_error(response, body, what, self._fetcher.redactor)

    async def _read(self, response: ClientResponse, endpoint: asyncio.Future[None]) -> None:
        """Process all events; the first one has the URL for POSTs."""
        stream = EventStreamReader(self._limits.line_bytes, self._inbox.wait_capacity)

        def take(event: ServerSentEvent | SkippedMessage) -> bool:
            report_event(self._fetcher, response, event)
            if not endpoint.done():
                self._set_endpoint(event, endpoint)
            elif isinstance(event, SkippedMessage):
                self._inbox.put(event)
            elif event.event == "message":
                self._inbox.put(event.data)
            return endpoint.exception() is not None

        try:
            await stream.read(response, take, f"the stream of {self._name}")
        except ConnectionLost as exc:
            self._lost = exc
        finally:
            response.close()
            self._inbox.end()
            self._backlog.end()
            if not endpoint.done():
                endpoint.set_exception(self._lost)
                endpoint.exception()  # mark as retrieved: no task may be waiting

    def _set_endpoint(self, event: ServerSentEvent | SkippedMessage, endpoint: asyncio.Future[None]) -> None:
        """Set the URL for POSTs, which must be on the same origin."""
        target = (
            event.data.decode(errors="replace")
            if isinstance(event, ServerSentEvent) and event.event == "endpoint"
            else ""
        )
        if target and len(target) <= URI_LENGTH and self._fetcher.set_endpoint(target):
            return endpoint.set_result(None)
        shown = visible(without_credentials(target[:URI_LENGTH])[:500])
        reason = f"wants messages posted to {shown}, which is not on its own origin"
        if len(target) > URI_LENGTH:  # a long URL takes minutes to resolve, and is sent with each message
            reason = f"wants messages posted to a URL of {len(target):,} characters, expected at most {URI_LENGTH:,}"
        if not target:
            reason = "does not begin its stream with an event `endpoint`"
        endpoint.set_exception(ConnectError(f"{self._name} (HTTP+SSE) {reason}"))
        return None

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        return self._inbox.receive()

    def flush(self) -> None:
        """Do nothing: each message has an HTTP request of its own."""

    async def drain(self) -> None:
        await self._backlog.wait_below(self._limits.pending_bytes)

    def lost(self) -> ConnectionLost:
        return self._lost

    # --- sending -----------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        if self._closing is not None:
            return
        out = parse_sent(message)
        if out.method is None:
            self._start(self._send_answer(out, message), len(message) + ANSWER_BYTES)
        elif out.method == CANCELLED:
            if not self._cancel_unsent(out):
                self._start(self._post(out, message), len(message))
        elif out.id is None:
            self._last_notification = self._start(
                self._send_notification(self._last_notification, out, message), len(message)
            )
        else:
            self._unsent[out.id] = self._start(
                self._send_request(self._last_notification, out.id, out, message), len(message)
            )

    def _start(self, work: Coroutine[Any, Any, None], size: int) -> asyncio.Task[None]:
        def posted(task: asyncio.Task[None]) -> None:
            self._posting.discard(task)
            self._backlog.remove(size)

        self._backlog.add(size)
        task = self._loop.create_task(work)  # a client may send notifications between two runs of its loop
        self._posting.add(task)
        task.add_done_callback(posted)
        return task

    def _cancel_unsent(self, cancelled: SentMessage) -> bool:
        """Cancel a request that was not sent yet; return whether it was in time."""
        id = cancelled.params.cancelled if cancelled.params is not None else None
        task = self._unsent.pop(id, None) if isinstance(id, int | str) else None
        if task is not None:
            task.cancel()
        return task is not None

    async def _send_request(
        self, previous: asyncio.Task[None] | None, id: RequestId, out: SentMessage, message: bytes
    ) -> None:
        """Send a request when there is a free slot. No other message needs one of these: a request may wait for it."""
        await _end_of(previous)
        async with self._slots:
            self._unsent.pop(id, None)
            await self._post(out, message)

    async def _send_answer(self, out: SentMessage, message: bytes) -> None:
        """Send a response when few are being sent: each has a connection of its own, whatever the server requests."""
        async with self._answer_slots:
            await self._post(out, message)

    async def _send_notification(self, previous: asyncio.Task[None] | None, out: SentMessage, message: bytes) -> None:
        """Send a notification after the previous one, because some servers rely on the order."""
        await _end_of(previous)
        await self._post(out, message)

    async def _post(self, out: SentMessage, message: bytes) -> None:
        what = f"{out.method or 'an answer'} to {self._name}"
        try:
            async with asyncio.timeout(self._limits.client.connect_seconds):
                await self._deliver(out, message, what)
        except TimeoutError:
            seconds = self._limits.client.connect_seconds
            self._fail(out, ConnectionLost(f"{what}: its POST was not answered in {seconds:g} s"))
        except AccordError as exc:
            self._fail(out, exc)

    async def _deliver(self, out: SentMessage, message: bytes, what: str) -> None:
        response = await self._fetcher.fetch("POST", {}, message, what=what)
        try:
            if response.status < 300:
                return
            data = await read_error_body(response, self._limits.line_bytes)
            self._fetcher.report(response, data)
        finally:
            response.release()
        data = self._fetcher.redactor.redact_error(data)
        received = parse_received(data)
        if out.method is not None and out.id is not None and received.is_answer_to(out.id):
            self._inbox.put(data)
        else:
            raise received.error or response_error(response, data, what, self._fetcher.redactor)

    def _fail(self, out: SentMessage, error: AccordError) -> None:
        """Fail a request, or log the error of another message."""
        if out.method is not None and out.id is not None:
            self._inbox.put(UnansweredRequest(out.id, error))
        else:
            self._complaints.log(out.method or "answer", "accord: %s", error)

    async def close(self) -> None:
        """Send the queued messages, and close the stream; in bounded time."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._inbox.end()
        for task in self._unsent.values():  # their callers already know that they are not sent
            task.cancel()
        try:
            if self._posting:
                await asyncio.wait(self._posting, timeout=self._limits.close_seconds / 2)
            tasks = [*self._posting, *([self._reading] if self._reading is not None else [])]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=self._limits.close_seconds / 2)
        finally:
            await self._fetcher.close()


async def _end_of(task: asyncio.Task[None] | None) -> None:
    if task is not None and not task.done():
        await asyncio.wait([task])
