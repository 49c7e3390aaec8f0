"""An event stream over one or more responses: its position, and the delay before a resumption.

Also reads bodies of responses within limits: one message, or an excerpt of another body.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from accord.errors import RemoteProtocolError
from accord.transport.http.failures import http_errors, media_type, read_error
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent, SSEParser

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from accord.transport.http.fetcher import Fetcher

_AT_ONCE = 256 << 10
_EXCERPT_BYTES = 2_000
_EXCERPT_SECONDS = 2


def is_stream(response: ClientResponse) -> bool:
    """Return whether a response is an event stream."""
    return response.status == 200 and media_type(response) == "text/event-stream"


def is_json(response: ClientResponse) -> bool:
    """Return whether the Content-Type of a response is JSON."""
    kind = media_type(response)
    return kind == "application/json" or kind.endswith("+json")


async def read_body(response: ClientResponse, most: int, what: str) -> bytes:
    """Return a body of at most `most` bytes. Raise `RemoteProtocolError` for a larger one, `ConnectionLost` if it
    breaks."""
    length = response.content_length
    if length is not None and length <= min(most, _AT_ONCE) and "Content-Encoding" not in response.headers:
        try:
            return await response.read()
        except http_errors() as exc:
            raise read_error(exc, what) from exc
    body = bytearray()
    while piece := await read_chunk(response, what):
        body += piece
        if len(body) > most:
            raise RemoteProtocolError(f"{what}: the answer is larger than {most:,} bytes (Limits.line_bytes)")
    return bytes(body)


async def read_chunk(response: ClientResponse, what: str) -> bytes:
    """Return received bytes of a body, empty at its end. Raise `ConnectionLost` if the connection breaks."""
    try:
        return await response.content.readany()
    except http_errors() as exc:
        raise read_error(exc, what) from exc


async def read_excerpt(response: ClientResponse, most: int = _EXCERPT_BYTES) -> bytes:
    """Return the beginning of a body that is not a message, as far as it arrives soon; the connection may break."""
    body = bytearray()
    try:
        async with asyncio.timeout(_EXCERPT_SECONDS):
            while len(body) < most and (piece := await response.content.read(_EXCERPT_BYTES)):
                body += piece
    except http_errors():  # a timeout is one of them
        return bytes(body)
    return bytes(body)


async def read_error_body(response: ClientResponse, most: int) -> bytes:
    """Return the body of a response that is not a result: up to `most` bytes of JSON, else an excerpt."""
    return await (read_excerpt(response, most) if is_json(response) else read_excerpt(response))


log: logging.Logger = logging.getLogger("accord")

_MAX_EVENT_IDS = 1_000
"""Number of event ids that are remembered, to drop replayed events."""
_SHORT_ID = 100
"""Characters up to which an event id is remembered as it is; of a longer one, the digest is."""
_PAUSE = 1.0
"""Seconds before a stream is resumed if the server sets no delay."""
_LEAST_PAUSE = 0.1
_MOST_PAUSE = 30.0

_PIECE = 16 << 10
"""Bytes that are parsed at once: with small events, they take time."""


def report_event(fetcher: Fetcher, response: ClientResponse, event: ServerSentEvent | SkippedMessage) -> None:
    """Report a message of a stream to the observer of its connection."""
    if isinstance(event, SkippedMessage):
        fetcher.report(response, event)
    elif event.event == "message":
        fetcher.report(response, event.data)


HandleEvent = Callable[[ServerSentEvent | SkippedMessage], bool]
"""Processes one event; returns whether the stream has served its purpose."""


class EventStreamReader:
    """Reader of a stream whose events have at most `max_bytes`. `room` is awaited before more is read."""

    def __init__(self, max_bytes: int, room: Callable[[], Awaitable[None]]) -> None:
        self._max_bytes = max_bytes
        self._wait_capacity = room
        self._parser: SSEParser  # of the current response
        self._event_ids: OrderedDict[str, int] = OrderedDict()  # the response of each id
        self._response = 0
        self._repeats = False
        self._retry: float | None = None
        self.last_id: str | None = None
        """The id of the event to resume after; None if the stream cannot be resumed."""
        self.failures: int = 0
        """Number of consecutive failures to resume."""

    async def read(self, response: ClientResponse, take: HandleEvent, what: str) -> bool:
        """Process the events of a response; return True if the stream has served its purpose, False at its end.

        A response without data counts as a failure. Raises `ConnectionLost` if the connection breaks.
        """
        self._parser = SSEParser(self._max_bytes)
        self._response += 1
        self.failures += 1  # until data arrives
        return await self.read_on(response, take, what)

    async def read_on(self, response: ClientResponse, take: HandleEvent, what: str) -> bool:
        """Process further events of the response, as `read` does, which has returned True."""
        done = False
        while not done and (chunk := await read_chunk(response, what)):
            self.failures = 0
            for start in range(0, len(chunk), _PIECE):
                if start:
                    await asyncio.sleep(0)
                events = self._parser.feed(chunk[start : start + _PIECE])
                self._update_position()
                done |= self._handle(events, take)
                await self._wait_capacity()
        return done

    def _update_position(self) -> None:
        if self._parser.last_id is not None:
            self.last_id = self._parser.last_id
        if self._parser.retry is not None:
            self._retry = self._parser.retry / 1000

    def _handle(self, events: Sequence[ServerSentEvent | SkippedMessage], take: HandleEvent) -> bool:
        done = False
        for event in self._new_events(events):
            done |= take(event)
        return done

    def _new_events(
        self, events: Sequence[ServerSentEvent | SkippedMessage]
    ) -> Iterator[ServerSentEvent | SkippedMessage]:
        """Yield the events that have data and are new: a replay may overlap."""
        for event in events:
            if isinstance(event, ServerSentEvent):
                if event.id and self._is_known(event.id):
                    self._log_repeat(event.id)
                    continue
                if not event.data:  # it only has an id or a delay, and is not a message
                    continue
            yield event

    def _is_known(self, id: str) -> bool:
        """Return whether an earlier response had this id. Some servers use the same id for all events of one
        response."""
        if len(id) > _SHORT_ID:
            id = sha256(id.encode()).hexdigest()
        if self._event_ids.setdefault(id, self._response) != self._response:
            return True
        if len(self._event_ids) > _MAX_EVENT_IDS:
            self._event_ids.popitem(last=False)
        return False

    def _log_repeat(self, id: str) -> None:
        if not self._repeats:
            self._repeats = True
            log.info("accord: event %.100r came again, and others may: dropped", id)

    # --- resumption --------------------------------------------------------------------------------------------

    @property
    def retry_delay(self) -> float:
        """Return the seconds until the stream may be resumed: not earlier than the server says, and later after
        failures.

        "The client MUST respect the `retry` field, waiting the given number of milliseconds".
        """
        own = min(_MOST_PAUSE, _PAUSE * 2.0 ** (self.failures - 1)) if self.failures else 0
        return max(own, _LEAST_PAUSE, _PAUSE if self._retry is None else self._retry)

    def count_failure(self) -> None:
        """Count a failure to resume."""
        self.failures += 1
