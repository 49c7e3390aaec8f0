"""One stream of events, over as many responses as it takes: where it stands, and when to come back for the rest.

Reading what a response says, within bounds: one message, or the beginning of what is none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from accord.errors import RemoteProtocolError
from accord.transport.http.failures import http_errors, media_type, translate_read_errors
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent, SSEParser

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_AT_ONCE = 256 << 10
_EXCERPT_BYTES = 2_000
_EXCERPT_SECONDS = 2


def is_stream(response: ClientResponse) -> bool:
    """Whether it is a stream of events."""
    return response.status == 200 and media_type(response) == "text/event-stream"


def is_json(response: ClientResponse) -> bool:
    """Whether it says that it is JSON."""
    kind = media_type(response)
    return kind == "application/json" or kind.endswith("+json")


async def read_body(response: ClientResponse, most: int, what: str) -> bytes:
    """A body of at most `most` bytes. Raises `RemoteProtocolError` for a larger one, `ConnectionLost` if it breaks."""
    length = response.content_length
    if length is not None and length <= min(most, _AT_ONCE) and "Content-Encoding" not in response.headers:
        with translate_read_errors(what):
            return await response.read()
    body = bytearray()
    while piece := await read_chunk(response, what):
        body += piece
        if len(body) > most:
            raise RemoteProtocolError(f"{what}: the answer is larger than {most:,} bytes (Limits.line_bytes)")
    return bytes(body)


async def read_chunk(response: ClientResponse, what: str) -> bytes:
    """What has come of a body; nothing at its end. Raises `ConnectionLost` if it breaks."""
    with translate_read_errors(what):
        return await response.content.readany()


async def read_excerpt(response: ClientResponse, most: int = _EXCERPT_BYTES) -> bytes:
    """How a body begins, as far as it comes soon: it is no answer, and may break off."""
    body = bytearray()
    try:
        async with asyncio.timeout(_EXCERPT_SECONDS):
            while len(body) < most and (piece := await response.content.read(_EXCERPT_BYTES)):
                body += piece
    except http_errors():  # a timeout is one of them
        return bytes(body)
    return bytes(body)


async def read_error_body(response: ClientResponse, most: int) -> bytes:
    """What a response says that is no answer: up to `most` bytes where that is JSON, else how it begins."""
    return await (read_excerpt(response, most) if is_json(response) else read_excerpt(response))


log: logging.Logger = logging.getLogger("accord")

_MAX_EVENT_IDS = 1_000
"""Ids of events that are known again when they are replayed."""
_PAUSE = 1.0
"""Seconds before a stream is taken up again where the server does not say."""
_LEAST_PAUSE = 0.1
_MOST_PAUSE = 30.0

_PIECE = 16 << 10
"""Bytes that are taken at once: in small events, they are much work."""

HandleEvent = Callable[[ServerSentEvent | SkippedMessage], bool]
"""Takes one event; whether the stream has served its purpose with it."""


class EventStreamReader:
    """A stream of which one event is at most `max_bytes`. `room` is awaited before more is read."""

    def __init__(self, max_bytes: int, room: Callable[[], Awaitable[None]]) -> None:
        self._max_bytes = max_bytes
        self._wait_capacity = room
        self._event_ids: OrderedDict[str, int] = OrderedDict()  # and in which response
        self._response = 0
        self._repeats = False
        self._retry: float | None = None
        self.last_id: str | None = None
        """The event that the rest comes after; None when nothing can be resumed."""
        self.failures: int = 0
        """How often in a row it could not be taken up again."""

    async def read(self, response: ClientResponse, take: HandleEvent, what: str) -> bool:
        """Take what a response brings, until it ends or has served its purpose: which of the two.

        One that brings nothing has failed. Raises `ConnectionLost` when it breaks.
        """
        parser = SSEParser(self._max_bytes)
        self._response += 1
        self.failures += 1  # until something comes
        while chunk := await read_chunk(response, what):
            self.failures = 0
            for start in range(0, len(chunk), _PIECE):
                if start:
                    await asyncio.sleep(0)
                events = parser.feed(chunk[start : start + _PIECE])
                self._update_position(parser)
                if self._handle(events, take):
                    return True
                await self._wait_capacity()
        return False

    def _update_position(self, parser: SSEParser) -> None:
        if parser.last_id is not None:
            self.last_id = parser.last_id
        if parser.retry is not None:
            self._retry = parser.retry / 1000

    def _handle(self, events: Sequence[ServerSentEvent | SkippedMessage], take: HandleEvent) -> bool:
        served = False
        for event in self._new(events):
            served |= take(event)
        return served

    def _new(self, events: Sequence[ServerSentEvent | SkippedMessage]) -> Iterator[ServerSentEvent | SkippedMessage]:
        """Events that carry something, and have not come before: what is replayed may overlap."""
        for event in events:
            if isinstance(event, ServerSentEvent):
                if event.id and self._is_known(event.id):
                    self._log_repeat(event.id)
                    continue
                if not event.data:  # it primes us to come back, and is no message
                    continue
            yield event

    def _is_known(self, id: str) -> bool:
        """Whether an earlier response had it. Within one, some servers give every event the same."""
        if self._event_ids.setdefault(id, self._response) != self._response:
            return True
        if len(self._event_ids) > _MAX_EVENT_IDS:
            self._event_ids.popitem(last=False)
        return False

    def _log_repeat(self, id: str) -> None:
        if not self._repeats:
            self._repeats = True
            log.info("accord: event %.100r came again, and others may: dropped", id)

    # --- coming back -------------------------------------------------------------------------------------------

    @property
    def retry_delay(self) -> float:
        """Seconds until the stream may be taken up again: never earlier than the server says, and later after failures.

        "The client MUST respect the `retry` field, waiting the given number of milliseconds".
        """
        own = min(_MOST_PAUSE, _PAUSE * 2.0 ** (self.failures - 1)) if self.failures else 0
        return max(own, _LEAST_PAUSE, _PAUSE if self._retry is None else self._retry)

    def count_failure(self) -> None:
        """It could not be taken up again."""
        self.failures += 1
