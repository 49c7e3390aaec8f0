"""The response to one request of a client, from the process that answers it, or from several one after the other.

A stream that stays open moves to the process that takes over: a GET is resumed from its last event, and a subscription
is sent again. The client sees one stream.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from accord.dev import announcements
from accord.dev.http_processes import HTTPProcess, HTTPProcesses
from accord.dev.http_upstream import UpstreamLost, UpstreamResponse, open_request
from accord.dev.proxied_request import ProxiedRequest
from accord.dev.rewriting import result_for_host
from accord.dev.unavailable import ended_reason, failed_call
from accord.messages import envelope
from accord.messages.base import RequestId
from accord.messages.envelope import MalformedMessage
from accord.transport.asgi.request import Send, send_json, send_text

_EVENT_ID = re.compile(rb"^id: ?(.*?)\r?$", re.MULTILINE)
_DATA = re.compile(rb"^data: ?(.*?)\r?$", re.MULTILINE)
_ENDPOINT = re.compile(rb"event: ?endpoint\r?\ndata: ?(.*?)\r?\n")
"""Matches the first event of a stream of HTTP+SSE."""
_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")
_MOST_OF_END = len(b"\r\n\r")
"""The bytes of an end that may be in the piece before."""

RETRY_LATER = ((b"retry-after", b"1"),)


class Stopped(UpstreamLost):
    """A request was ended before its response began, with the answer in `final`."""

    def __init__(self, final: bytes) -> None:
        super().__init__("reloaded")
        self.final = final


class ProxiedResponse:
    """The response to `request`. With `search`, a list has the tools for searching."""

    def __init__(
        self,
        processes: HTTPProcesses,
        request: ProxiedRequest,
        send: Send,
        disconnected: asyncio.Future[None],
        *,
        search: bool,
    ) -> None:
        self._processes = processes
        self._request = request
        self._send = send
        self._disconnected = disconnected
        self._search = search
        self._pending = bytearray()  # the unfinished event
        self._skipped = 0  # events that are not passed on

    async def open(self, process: HTTPProcess) -> UpstreamResponse | None:
        """Return the response of a process, or None if the client disconnects or the request is stopped first."""
        request = self._request
        headers = request.resumed_headers()
        opening = asyncio.ensure_future(
            open_request(process.port, request.method, request.target, headers, request.body)
        )
        try:
            await self._first(opening)
            if opening.done():
                return opening.result()
        finally:
            opening.cancel()
        if request.stopped.done() and (final := request.stopped.result()):
            raise Stopped(final)
        current = self._processes.current
        if request.stopped.done() and request.is_stream and current is not None and current is not process:
            request.resume()
            return await self.open(current)
        return None

    async def send(self, process: HTTPProcess, response: UpstreamResponse) -> None:
        """Send the response, until its end or the end of the client. Raises `UpstreamLost`."""
        request = self._request
        if not response.is_event_stream:
            await self._send_whole(process, response)
            return
        await self._start(response)
        request.is_event_stream = True
        try:
            while await self._copy(process, response):
                following = self._processes.current
                if following is None or following is process:
                    break
                for event in self._announcements(process, following):
                    await self._write(event)
                process.finish(request)
                process = following
                process.begin(request)
                opened = await self._reopen(process)
                if opened is None or not opened.is_event_stream:
                    break
                response = opened
        finally:
            process.finish(request)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _reopen(self, process: HTTPProcess) -> UpstreamResponse | None:
        """Return the rest of the stream, from the process that it moves to."""
        self._request.resume()
        self._pending = bytearray()
        self._skipped = 1 if self._request.exchange is not None else 0  # the acknowledgement
        return await self.open(process)

    async def _send_whole(self, process: HTTPProcess, response: UpstreamResponse) -> None:
        """Send a body that is not a stream of events."""
        reading = asyncio.ensure_future(response.body())
        request = self._request
        await self._first(reading)
        if not reading.done():
            reading.cancel()
            if request.stopped.done() and (final := request.stopped.result()):
                raise Stopped(final)
            return
        body = reading.result()
        self._processes.retry_owners.note(process.generation, body)
        if request.exchange is not None and response.status == 200:
            body = request.answer = result_for_host(request.exchange.method, body, search=self._search)
        elif request.exchange is not None:
            request.answer = body
        await self._start(response, (b"content-length", b"%d" % len(body)))
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _start(self, response: UpstreamResponse, *headers: tuple[bytes, bytes]) -> None:
        self._request.has_started, self._request.status = True, response.status
        start = {"type": "http.response.start", "status": response.status, "headers": [*response.headers, *headers]}
        await self._send(start)

    async def _copy(self, process: HTTPProcess, response: UpstreamResponse) -> bool:
        """Copy whole events. Return whether the stream shall move to the current process."""
        chunks = response.chunks()
        request = self._request
        while True:
            reading = asyncio.ensure_future(anext(chunks, None))
            await self._first(reading)
            if reading.done():
                chunk = reading.result()
                if chunk is None:
                    return False
                await self._copy_events(process, chunk)
                continue
            reading.cancel()
            await asyncio.wait({reading})
            response.close()
            final = request.stopped.result() if request.stopped.done() else b""
            if final:
                request.answer = final
                await self._write(event_of(final))
            return final is None

    async def _copy_events(self, process: HTTPProcess, chunk: bytes) -> None:
        searched = max(0, len(self._pending) - _MOST_OF_END)
        self._pending += chunk
        ends = [each.end() for each in _END_OF_EVENT.finditer(self._pending, searched)]
        if not ends:
            return
        start, self._skipped = (ends[0], 0) if self._skipped else (0, 0)
        whole = bytes(self._pending[start : ends[-1]])
        del self._pending[: ends[-1]]
        if self._request.method == "GET":
            if match := _ENDPOINT.match(whole):
                self._request.endpoint = match[1]
                process.unanswered[match[1]] = set()
            for match in _EVENT_ID.finditer(whole):
                self._request.last_event_id = match[1]
        for id, answer in self._responses_in(whole):
            if self._request.endpoint:
                process.answer(self._request.endpoint, id)
            else:
                self._request.answer = answer
                self._processes.retry_owners.note(process.generation, answer)
        if whole:
            await self._write(whole)

    def _responses_in(self, events: bytes) -> Iterator[tuple[RequestId, bytes]]:
        """Yield the response to the request, if it is in these events; on a stream of HTTP+SSE, all responses."""
        exchange = self._request.exchange
        if b'"result"' not in events and b'"error"' not in events:
            return
        if not self._request.endpoint and (exchange is None or exchange.is_listening):
            return
        for match in _DATA.finditer(events):
            try:
                incoming = envelope.read(match[1])
            except MalformedMessage:
                continue
            id = incoming.id
            if incoming.method is not UNSET or id is UNSET or id is None:
                continue
            if exchange is None or id == exchange.id:
                yield id, match[1]

    def _announcements(self, old: HTTPProcess, new: HTTPProcess) -> list[bytes]:
        kinds = announcements.compare(old.surface, new.surface)[1]
        exchange = self._request.exchange
        listening = [] if exchange is None else [exchange]
        messages = announcements.notifications(kinds, session=exchange is None, listening=listening)
        return [event_of(each) for each in messages]

    async def _write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _first(self, work: asyncio.Future[Any]) -> None:
        """Wait until the work is done, the request is stopped, or the client disconnects."""
        await asyncio.wait({work, self._request.stopped, self._disconnected}, return_when=asyncio.FIRST_COMPLETED)


def event_of(message: bytes) -> bytes:
    """Return a message as an event of a stream."""
    return b"event: message\r\ndata: %b\r\n\r\n" % message


async def send_failure(request: ProxiedRequest, send: Send, failure: UpstreamLost) -> None:
    """End a response whose process is gone: with an error for a request, as far as the response allows it."""
    reason = ended_reason(str(failure))
    if isinstance(failure, Stopped):
        request.answer = failure.final
    elif request.exchange is not None:
        request.answer = failed_call(request.exchange, reason)
    if request.is_event_stream:
        final = event_of(request.answer) if request.answer and not request.is_stream else b""
        await send({"type": "http.response.body", "body": final, "more_body": False})
    elif not request.has_started and request.answer:
        await send_json(send, 200, request.answer)
    elif not request.has_started:
        request.status = 502
        await send_text(send, 502, reason, RETRY_LATER)
