"""The GET stream of a session (2025-03-26 to 2025-11-25), for messages that belong to no request, in the background.

It never delays a request, and a server need not have one. A stream that ends is resumed after the delay that the server
sets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from accord.errors import AccordError, ConnectionLost
from accord.limits import Limits
from accord.transport.http.event_stream import EventStreamReader, is_stream, report_event
from accord.transport.http.fetcher import STREAM_ONLY, Fetcher
from accord.transport.http.inbox import HTTPInbox
from accord.transport.http.session_state import ClientSessionState
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent

if TYPE_CHECKING:
    from aiohttp import ClientResponse

log: logging.Logger = logging.getLogger("accord")


class GetStream:
    """The GET stream of one session. `take` is called with each message."""

    def __init__(
        self,
        fetcher: Fetcher,
        session_state: ClientSessionState,
        inbox: HTTPInbox,
        limits: Limits,
        name: str,
        take: Callable[[bytes], None],
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._session_state = session_state
        self._inbox = inbox
        self._limits = limits
        self._what = f"the stream of {name}"
        self._on_message = take
        self._on_session_ended = on_session_ended
        self._task: asyncio.Task[None] | None = None
        self._opened = False  # whether the stream has ever been open
        self._known = asyncio.Event()  # whether the server has answered the first GET
        self.on_missed: Callable[[str], None] | None = None
        """Called when messages may have been missed."""

    def start(self) -> None:
        """Open the stream."""
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def wait_known(self, seconds: float) -> None:
        """Wait until it is known whether the server has such a stream, at most `seconds`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._known.wait(), seconds)

    async def end(self) -> None:
        """Close the stream."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=self._limits.close_seconds / 2)

    async def _listen(self) -> None:
        try:
            stream = EventStreamReader(self._limits.line_bytes, self._inbox.wait_capacity)
            reconnects = True
            while reconnects:
                reconnects = await self._read_response(stream) and await self._wait(stream.retry_delay)
        except Exception:
            log.exception("accord: a defect in %s", self._what)

    async def _wait(self, delay: float) -> bool:
        limit = self._limits.client.retry_seconds
        if delay > limit:
            what = f"the server asks to reconnect in {delay:g} s; the limit is {limit:g} s (ClientLimits.retry_seconds)"
            return self._stop(what)
        await asyncio.sleep(delay)
        return True

    async def _read_response(self, stream: EventStreamReader) -> bool:
        """Read one response to its end; return whether to reconnect."""
        resume_headers = {} if stream.last_id is None else {"Last-Event-ID": stream.last_id}
        try:
            response = await self._fetcher.fetch(
                "GET", {**STREAM_ONLY, **self._session_state.session_headers(), **resume_headers}, what=self._what
            )
        except AccordError as exc:
            if not self._opened and not isinstance(exc, ConnectionLost):
                return self._stop(str(exc))
            log.debug("accord: %s", exc)
            stream.failures += 1
            return True
        finally:
            self._known.set()
        return await self._read(stream, response)

    async def _read(self, stream: EventStreamReader, response: ClientResponse) -> bool:
        try:
            if not is_stream(response):
                return self._handle_refusal(stream, response.status)
            if self._opened and stream.last_id is None:
                self._report_missed("the stream had ended, and could not be resumed where it was")
            self._opened = True
            await stream.read(response, partial(self._handle, response), self._what)
        except ConnectionLost as exc:
            log.debug("accord: %s", exc)
        finally:
            response.close()
        return True

    def _handle_refusal(self, stream: EventStreamReader, status: int) -> bool:
        """Handle a response without a stream: there is none ("405 Method Not Allowed"), not now, or no longer. Return
        whether to retry."""
        if status in (404, 410) and stream.last_id is not None:  # the events are gone: start a new stream
            stream.last_id = None
        elif status == 404 and self._opened and self._session_state.session is not None:
            self._on_session_ended()
            return False
        elif status == 405 or (status < 500 and not self._opened):
            return self._stop(f"HTTP {status}; the server has no GET stream")
        stream.failures += 1
        return True

    def _stop(self, reason: str) -> bool:
        """Stop, and return False."""
        log.info("accord: %s: %s", self._what, reason)
        if self._opened:
            self._report_missed(reason)
        return False

    def _report_missed(self, reason: str) -> None:
        if self.on_missed is not None:
            self.on_missed(f"{self._what}: {reason}")

    def _handle(self, response: ClientResponse, event: ServerSentEvent | SkippedMessage) -> bool:
        report_event(self._fetcher, response, event)
        if isinstance(event, SkippedMessage):
            self._inbox.put(event)
        elif event.event == "message":
            self._on_message(event.data)
        return False
