"""Recording of connections: a transport that reports all traffic of another one, as entries of a session file.

    recorder = SessionRecorder(sink)         # a session file, or what prints or stores entries
    Client(target, record=recorder)          # each connection of the client has a number

Transports that send messages later, or over HTTP, report them themselves (`ObservableTransport`); those of others are
recorded in `send` and `receive`. A client that does not record has none of this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from accord import __version__
from accord.errors import AccordError, ConnectionLost
from accord.transport.base import (
    Message,
    SkippedMessage,
    Transport,
    UnansweredRequest,
    answer_overhead,
    has_headers,
    has_process,
    is_lossy,
    is_observable,
)
from accord.transport.session_queue import SessionQueue
from accord.wire.headers import Mirrored
from accord.wire.request_tracker import RequestTracker
from accord.wire.session_file import (
    VERSION,
    ClosedEntry,
    ConnectedEntry,
    Entry,
    HTTPEntry,
    LostEntry,
    MessageDirection,
    RemarkEntry,
    SessionHeader,
    SkippedEntry,
    StderrEntry,
    UnansweredEntry,
    message_entry,
)
from accord.wire.transcript import Transcript


class EntrySink(Protocol):
    """A destination of entries."""

    def write(self, entry: Entry) -> None:
        """Receive an entry."""


class SessionSink(EntrySink, Protocol):
    """A destination of whole recordings."""

    def begin(self, header: SessionHeader) -> None:
        """Receive the header, before all entries. Raises `ConnectError`."""

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Receive texts that must not be written."""


class SessionRecorder:
    """The recorder of one client, as `Client(record=...)` takes it: it records all connections to `sinks`."""

    def __init__(self, *sinks: SessionSink) -> None:
        self._sinks = sinks
        self._queues = [sink for sink in sinks if isinstance(sink, SessionQueue)]
        self._started: float | None = None
        self._connections = 0
        self.entries: int = 0
        """The number of entries so far; the next one has it as its number."""

    def __call__(self, inner: Transport) -> Transport:
        """Return a transport that records `inner`. Raises `ConnectError` if a file cannot be written."""
        return self._recorded(inner, self)

    def with_sink(self, sink: EntrySink) -> Callable[[Transport], Transport]:
        """Return what records connections here, and passes their entries on to `sink` too, as they are."""
        return lambda inner: self._recorded(inner, _BothSinks(self, sink))

    def _recorded(self, inner: Transport, sink: EntrySink) -> Transport:
        if self._started is None:
            self.begin(inner.name)
        if has_process(inner):
            self.add_secrets(inner.secrets)
        return RecordingTransport(inner, self.connection(sink=sink), self._queues)

    def connection(self, client: MessageDirection = "sent", sink: EntrySink | None = None) -> ConnectionRecorder:
        """Return the recorder of a new connection; `client` says in which direction the messages of the client go.

        `sink` receives its entries instead of this recorder.
        """
        self._connections += 1
        return ConnectionRecorder(self if sink is None else sink, self._connections, self.seconds, client)

    @property
    def connections(self) -> int:
        """Return the number of connections so far, which is that of the last one."""
        return self._connections

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Replace these texts wherever they occur."""
        known = list(secrets)
        for sink in self._sinks:
            sink.add_secrets(known)

    def begin(self, target: str) -> None:
        """Begin the recording. Raises `ConnectError` if a file cannot be written."""
        header = new_header(target)
        for sink in self._sinks:
            sink.begin(header)
        self._started = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds since the beginning."""
        return round(time.monotonic() - (self._started or 0.0), 6)

    def write(self, entry: Entry) -> None:
        """Pass an entry on to all sinks."""
        self.entries += 1
        for sink in self._sinks:
            sink.write(entry)


class _BothSinks:
    """A sink that passes each entry on to two others."""

    def __init__(self, first: EntrySink, second: EntrySink) -> None:
        self._first = first
        self._second = second

    def write(self, entry: Entry) -> None:
        self._first.write(entry)
        self._second.write(entry)


def new_header(target: str) -> SessionHeader:
    """Return the header of a recording that begins now."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return SessionHeader(version=VERSION, at=now, program=f"accord {__version__}", target=target)


class ConnectionRecorder:
    """The entries of one connection, in the order in which they happen; a `TransportObserver`.

    `client` says in which direction the messages of the client go.
    """

    def __init__(
        self,
        sink: EntrySink,
        connection: int = 1,
        clock: Callable[[], float] = time.monotonic,
        client: MessageDirection = "sent",
    ) -> None:
        self._sink = sink
        self._connection = connection
        self._clock = clock
        self._tracker = RequestTracker(client)
        self._closed = False

    def opened(self, name: str, transport: str) -> None:
        """Record that the connection is opened."""
        self._write(ConnectedEntry, name=name, transport=transport)

    def message(self, message: bytes | SkippedMessage, direction: MessageDirection, exchange: int = 0) -> None:
        """Record a message."""
        if isinstance(message, bytes):
            request = self._tracker.request_of(message, direction, exchange)
            self._write(message_entry, data=bytes(message), direction=direction, request=request, exchange=exchange)
        elif not message.tail:  # the end of a message that is already recorded
            self._write(SkippedEntry, direction=direction, reason=message.reason, size=message.size, exchange=exchange)

    def unanswered(self, request: int | str, reason: str) -> None:
        """Record that a request gets no response."""
        self._write(UnansweredEntry, request=request, reason=reason)

    def stderr(self, line: str) -> None:
        """Record a line of stderr."""
        self._write(StderrEntry, text=line)

    def remark(self, text: str) -> None:
        """Record a remark."""
        self._write(RemarkEntry, text=text)

    def lost(self, reason: str) -> None:
        """Record that the peer ended the connection."""
        self._write(LostEntry, reason=reason)

    def closed(self) -> None:
        """Record that this side has closed the connection; nothing is recorded afterwards."""
        self._write(ClosedEntry)
        self._closed = True

    def on_request(
        self, exchange: int, method: str, url: str, headers: Mapping[str, str], message: bytes | None, repeats: int
    ) -> None:
        """See `TransportObserver`."""
        self._write(
            HTTPEntry, direction="sent", exchange=exchange, method=method, url=url, headers=headers, repeats=repeats
        )
        if message is not None:
            self.message(message, "sent", exchange)

    def on_response(self, exchange: int, status: int, headers: Mapping[str, str]) -> None:
        """See `TransportObserver`."""
        self._write(HTTPEntry, direction="received", exchange=exchange, status=status, headers=headers)

    def on_message(self, exchange: int, message: bytes | SkippedMessage) -> None:
        """See `TransportObserver`."""
        self.message(message, "received", exchange)

    def _write(self, make: Callable[..., Entry], **fields: object) -> None:
        if not self._closed:
            self._sink.write(make(at=self._clock(), connection=self._connection, **fields))


class RecordingTransport:
    """A transport that reports all traffic of `inner` to `recorder`, and waits while a queue is full."""

    def __init__(self, inner: Transport, recorder: ConnectionRecorder, queues: Sequence[SessionQueue] = ()) -> None:
        self._inner = inner
        self._recorder = recorder
        self._queues = queues
        self._reports = is_observable(inner)
        self._ended = False
        if is_observable(inner):
            inner.observer = recorder
        if has_process(inner):
            inner.on_stderr = _both(recorder.stderr, inner.on_stderr)

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def inner(self) -> Transport:
        """Return the recorded transport."""
        return self._inner

    @property
    def answer_bytes(self) -> int:
        """Return the number of bytes that a response takes in addition to its own."""
        return answer_overhead(self._inner)

    @property
    def mirrors(self) -> Callable[[str], Mirrored] | None:
        """Return that of `inner`; the attribute exists only if `inner` has headers."""
        if not has_headers(self._inner):
            raise AttributeError(f"{self.name} has no headers")
        return self._inner.mirrors

    @mirrors.setter
    def mirrors(self, mirrors: Callable[[str], Mirrored] | None) -> None:
        if has_headers(self._inner):
            self._inner.mirrors = mirrors

    @property
    def on_missed(self) -> Callable[[str], None] | None:
        """Return that of `inner`; the attribute exists only if `inner` is lossy."""
        if not is_lossy(self._inner):
            raise AttributeError(f"{self.name} has no gaps")
        return self._inner.on_missed

    @on_missed.setter
    def on_missed(self, on_missed: Callable[[str], None] | None) -> None:
        if is_lossy(self._inner):
            self._inner.on_missed = on_missed

    # --- the transport -----------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._recorder.opened(self.name, type(self._inner).__name__)
        try:
            await self._inner.open()
        except AccordError as exc:
            self._ended = True
            self._recorder.lost(str(exc))
            raise

    async def receive(self) -> list[Message]:
        await self._wait_for_queues()
        messages = await self._inner.receive()
        self._record_received(messages)
        return messages

    async def _wait_for_queues(self) -> None:
        for queue in self._queues:
            if queue.is_full:
                await queue.wait()

    def _record_received(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, UnansweredRequest):
                self._recorder.unanswered(message.id, str(message.error))
            elif not self._reports:
                self._recorder.message(message, "received")
        if not messages and not self._ended:
            self._ended = True
            self._recorder.lost(str(self._inner.lost()))

    def send(self, message: bytes) -> None:
        if not self._reports:
            self._recorder.message(message, "sent")
        self._inner.send(message)

    def flush(self) -> None:
        self._inner.flush()

    async def drain(self) -> None:
        await self._inner.drain()
        await self._wait_for_queues()

    async def close(self) -> None:
        self._ended = True  # its end is no news
        try:
            await self._inner.close()
            await asyncio.sleep(0)  # the last lines of stderr
        finally:
            self._recorder.closed()
            for queue in self._queues:
                await queue.wait()

    def lost(self) -> ConnectionLost:
        return self._inner.lost()


class TranscriptTransport(RecordingTransport):
    """A transport that records the messages of `inner` in a transcript, the short form of a session file."""

    def __init__(self, inner: Transport, transcript: Transcript) -> None:
        super().__init__(inner, ConnectionRecorder(self))
        self.transcript = transcript

    def write(self, entry: Entry) -> None:
        """See `EntrySink`."""
        self.transcript.write(entry)


def _both(first: Callable[[str], None], second: Callable[[str], None] | None) -> Callable[[str], None]:
    if second is None:
        return first

    def call(line: str) -> None:
        first(line)
        second(line)

    return call
