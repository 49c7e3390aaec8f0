"""The HTTP side of live reload: an application that passes each request to the process that must answer it.

- New requests go to the current process. Those in progress stay with theirs, until its grace is over.
- Streams that stay open (GET, `subscriptions/listen`) move to the process that takes over. The client sees one stream:
  a GET is resumed from its last event, and a subscription is sent again.
- An answer to a question, and a retry with answers, go to the process that asked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import UNSET, Raw

from accord.check.surface.schema_changes import Change
from accord.dev import announcements
from accord.dev.announcements import LISTENING
from accord.dev.host_session import Exchange
from accord.dev.http_upstream import UpstreamLost, UpstreamRefused, UpstreamResponse, open_request
from accord.dev.outcome import outcome
from accord.dev.preparation import LIST_METHODS
from accord.dev.relay import REPEATABLE
from accord.dev.rewriting import edit_result, members, never_cached
from accord.dev.unavailable import answer_without_process, failed_call
from accord.limits import DEFAULT_LIMITS
from accord.messages import envelope
from accord.messages.base import JSONObject
from accord.messages.envelope import MalformedMessage
from accord.messages.meta import PROTOCOL_VERSION
from accord.transport.asgi.request import Receive, Scope, Send
from accord.transport.asgi.responses import send_json, send_text

_EVENT_ID = re.compile(rb"^id: ?(.*?)\r?$", re.MULTILINE)
_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")
_STATE = re.compile(rb'"requestState":\s*"([^"\\]+)"')
_CACHEABLE = {*LIST_METHODS, "server/discover", "resources/read"}
_END_SECONDS = 1.0
"""How long the end of a process may take after its connections were closed."""
_LATER = ((b"retry-after", b"1"),)
_BOTH = ("notifications/cancelled", "notifications/progress")


class HTTPProcess:
    """A process that serves HTTP at a port of this machine."""

    def __init__(self, generation: int) -> None:
        self.generation: int = generation
        self.port: int = 0
        self.path: str = ""
        self.surface: JSONObject | None = None
        self.answered: bool = False
        self.requests: dict[ProxiedRequest, None] = {}
        """The requests in progress."""
        self.states: set[str] = set()
        """The `requestState` of each question that waits for a retry with its answers."""
        self.ended: asyncio.Event = asyncio.Event()
        """Set when the process has ended, and the proxy was told."""
        self.progressed: asyncio.Event = asyncio.Event()
        """Set when a request has ended."""

    @property
    def is_finished(self) -> bool:
        """Return whether no call is in progress, nor waits for answers."""
        return not self.calls and not self.states

    def note_questions(self, body: bytes) -> None:
        """Remember the questions in a response."""
        if b'"input_required"' in body:
            self.states.update(state.decode() for state in _STATE.findall(body))

    @property
    def calls(self) -> list[ProxiedRequest]:
        """Return the requests in progress that are not streams."""
        return [each for each in self.requests if not each.is_stream]


class ProxiedRequest:
    """One request of a client."""

    def __init__(self, scope: Scope, body: bytes) -> None:
        self.method: str = scope["method"]
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        self.target: bytes = scope.get("raw_path", scope["path"].encode()) + query
        self.headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self.body: bytes = body
        self.exchange: Exchange | None = None
        self.notification: str | None = None
        self.is_answer: bool = False
        self._is_repeated = False
        self.has_started: bool = False
        self.is_event_stream: bool = False
        self.last_event_id: bytes = b""
        self.stopped: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        """What ends the response, or None for a stream that moves to the current process."""
        if self.method == "POST":
            self._classify()

    @property
    def is_stream(self) -> bool:
        """Return whether the response stays open until the client closes it."""
        return self.method == "GET" or (self.exchange is not None and self.exchange.method == LISTENING)

    def _classify(self) -> None:
        try:
            incoming = envelope.read(self.body)
        except MalformedMessage:
            return
        if incoming.method is UNSET:
            self.is_answer = True
        elif incoming.id is UNSET or incoming.id is None:
            self.notification = incoming.method
        else:
            params = incoming.params if incoming.params is not UNSET else Raw(b"{}")
            per_request = PROTOCOL_VERSION.encode() in self.body
            self.exchange = Exchange(incoming.id, incoming.method, self.body, params, per_request)

    def may_repeat(self, failure: UpstreamLost) -> bool:
        """Return whether the request may be sent again, once: it was not received, or changes nothing."""
        is_first, self._is_repeated = not (self._is_repeated or self.has_started), True
        is_safe = self.exchange is not None and self.exchange.method in REPEATABLE
        return is_first and (is_safe or isinstance(failure, UpstreamRefused))

    def stop(self, final: bytes | None) -> None:
        """End the response, or move the stream."""
        if not self.stopped.done():
            self.stopped.set_result(final)


class ReloadingProxy:
    """The ASGI application. `on_call` receives the method and name of each call, its outcome and its seconds."""

    def __init__(self, target: str, start_seconds: float, on_call: Callable[[str, str, float], None]) -> None:
        self.current: HTTPProcess | None = None
        self.retired: list[HTTPProcess] = []
        self.failure: str = f"{target} does not run"
        self.is_expected: bool = True
        """Whether a process is about to take over."""
        self.changed: asyncio.Event = asyncio.Event()
        """Set when a process has taken over, or none is expected any more."""
        self._target = target
        self._start_seconds = start_seconds
        self._on_call = on_call
        self._requests: set[ProxiedRequest] = set()
        self._ended_request = asyncio.Event()

    # --- processes ------------------------------------------------------------------------------------------------

    def take_over(self, process: HTTPProcess) -> tuple[tuple[Change, ...], tuple[str, ...]]:
        """Send new requests to a process, and move the streams of the one before. Return what changed."""
        old, self.current, self.is_expected = self.current, process, False
        self.changed.set()
        if old is None:
            return (), ()
        changes, kinds = announcements.compare(old.surface, process.surface)
        self.retired.append(old)
        for request in [each for each in old.requests if each.is_stream]:
            request.stop(None)
        return changes, kinds

    def lose(self, process: HTTPProcess, reason: str, *, is_expected: bool) -> None:
        """Note that a process is gone."""
        if process in self.retired:
            self.retired.remove(process)
        if process is self.current:
            self.current = None
            self.failure, self.is_expected = f"{self._target} does not run: {reason}", is_expected
            self.changed.set()

    async def drain(self, seconds: float) -> bool:
        """End the streams, and wait for the calls."""
        for request in list(self._requests):
            if request.is_stream:
                request.stop(b"")
        try:
            async with asyncio.timeout(seconds):
                while self._requests:
                    self._ended_request.clear()
                    await self._ended_request.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """End all responses."""
        for request in list(self._requests):
            request.stop(b"")

    # --- requests -------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        body = await _read_body(receive)
        if body is None:
            await send_text(send, 413, "the body is too large")
            return
        request = ProxiedRequest(scope, body)
        self._requests.add(request)
        began = asyncio.get_running_loop().time()
        disconnected = asyncio.ensure_future(_wait_disconnect(receive))
        exchange = request.exchange
        result = "ok"
        try:
            result = await self._serve(request, send, disconnected)
        finally:
            disconnected.cancel()
            self._requests.discard(request)
            self._ended_request.set()
            if exchange is not None and exchange.method == "tools/call":
                what = f"tools/call {members(exchange.params).get('name')}"
                self._on_call(what, result, asyncio.get_running_loop().time() - began)

    async def _serve(self, request: ProxiedRequest, send: Send, disconnected: asyncio.Future[None]) -> str:
        process = await self._process()
        if process is None:
            return await self._answer_alone(request, send)
        older = self.retired[-1] if self.retired else None
        if older is not None and request.notification in _BOTH:
            await _post_quietly(older, request)
        if (owner := self._owner_of_state(request)) is not None:
            return await self._respond(request, owner, None, send, disconnected)
        if older is not None and request.is_answer:
            response = await _accepted(older, request)
            if response is not None:
                return await self._respond(request, older, response, send, disconnected)
        return await self._respond(request, process, None, send, disconnected)

    def _owner_of_state(self, request: ProxiedRequest) -> HTTPProcess | None:
        """Return the process that waits for a retry with answers."""
        if request.exchange is None or b'"requestState"' not in request.body:
            return None
        state = str(members(request.exchange.params).get("requestState"))
        for process in self.retired:
            if state in process.states:
                process.states.discard(state)
                return process
        return None

    async def _process(self) -> HTTPProcess | None:
        """Return the current process, after a wait for one that is expected."""
        try:
            async with asyncio.timeout(self._start_seconds):
                while self.current is None and self.is_expected:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            pass
        return self.current

    async def _answer_alone(self, request: ProxiedRequest, send: Send) -> str:
        if request.exchange is not None and request.exchange.method == "tools/call":
            answer = answer_without_process(request.exchange, self.failure, self._target)
            await send_json(send, 200, answer)
            return outcome(answer)
        await send_text(send, 503, self.failure, _LATER)
        return "error 503"

    async def _respond(
        self,
        request: ProxiedRequest,
        process: HTTPProcess,
        response: UpstreamResponse | None,
        send: Send,
        disconnected: asyncio.Future[None],
    ) -> str:
        process.requests[request] = None
        try:
            if response is None:
                response = await self._open(process, request, disconnected)
            if response is None:
                return "cancelled"
            process.answered = True
            return await _Pump(self, request, send, disconnected).run(process, response)
        except UpstreamLost as exc:
            failure = exc
        finally:
            process.requests.pop(request, None)
            process.progressed.set()
        if not isinstance(failure, _Stopped):
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await process.ended.wait()  # so that the next request goes to the next process
            if request.may_repeat(failure):
                return await self._serve(request, send, disconnected)
        return await _send_failure(request, send, self._ended(failure))

    async def _open(
        self, process: HTTPProcess, request: ProxiedRequest, disconnected: asyncio.Future[None]
    ) -> UpstreamResponse | None:
        """Return the response of a process, or None if the client disconnects or the request is stopped first."""
        headers = [each for each in request.headers if each[0] != b"last-event-id" or not request.last_event_id]
        if request.last_event_id:
            headers.append((b"last-event-id", request.last_event_id))
        opening = asyncio.ensure_future(
            open_request(process.port, request.method, request.target, headers, request.body)
        )
        try:
            await _first(opening, disconnected, request.stopped)
            if opening.done():
                return opening.result()
        finally:
            opening.cancel()
        if request.stopped.done() and (final := request.stopped.result()):
            raise _Stopped(final)
        if request.stopped.done() and request.is_stream and self.current not in (None, process):
            request.stopped = asyncio.get_running_loop().create_future()
            assert self.current is not None
            return await self._open(self.current, request, disconnected)
        return None

    def _ended(self, exc: UpstreamLost) -> str | bytes:
        if isinstance(exc, _Stopped):
            return exc.final
        return f"the program ended during this call; whether it took effect is unknown: {exc}"


class _Stopped(UpstreamLost):
    """A request was ended before its response began, with the answer in `final`."""

    def __init__(self, final: bytes) -> None:
        super().__init__("reloaded")
        self.final = final


class _Pump:
    """The body of one response, from the process, or from several one after the other, to the client."""

    def __init__(
        self, proxy: ReloadingProxy, request: ProxiedRequest, send: Send, disconnected: asyncio.Future[None]
    ) -> None:
        self._proxy = proxy
        self._request = request
        self._send = send
        self._disconnected = disconnected
        self._pending = b""  # the unfinished event
        self._skipped = 0  # events that are not passed on

    async def run(self, process: HTTPProcess, response: UpstreamResponse) -> str:
        """Send the response, and return its outcome. Raises `UpstreamLost`."""
        request = self._request
        if not response.is_event_stream:
            return await self._send_whole(process, response)
        await self._start(response)
        request.is_event_stream = True
        while await self._copy(process, response):
            moved = self._proxy.current
            if moved is None or moved is process:
                break
            for event in self._announcements(process, moved):
                await self._write(event)
            process.requests.pop(request, None)
            process.progressed.set()
            process, self._pending = moved, b""
            process.requests[request] = None
            request.stopped = asyncio.get_running_loop().create_future()
            following = await self._proxy._open(process, request, self._disconnected)
            if following is None or not following.is_event_stream:
                break
            self._skipped = 1 if request.exchange is not None else 0  # the acknowledgement
            response = following
        process.requests.pop(request, None)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return "ok"

    async def _send_whole(self, process: HTTPProcess, response: UpstreamResponse) -> str:
        """Send a body that is not a stream of events."""
        reading = asyncio.ensure_future(response.body())
        request = self._request
        await _first(reading, request.stopped, self._disconnected)
        if not reading.done():
            reading.cancel()
            if request.stopped.done() and (final := request.stopped.result()):
                raise _Stopped(final)
            return "cancelled"
        body = reading.result()
        process.note_questions(body)
        if request.exchange is not None and request.exchange.method in _CACHEABLE and b'"ttlMs"' in body:
            body = edit_result(body, never_cached)
        await self._start(response, (b"content-length", b"%d" % len(body)))
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
        return outcome(body)

    async def _start(self, response: UpstreamResponse, *headers: tuple[bytes, bytes]) -> None:
        self._request.has_started = True
        await self._send(
            {"type": "http.response.start", "status": response.status, "headers": [*response.headers, *headers]}
        )

    async def _copy(self, process: HTTPProcess, response: UpstreamResponse) -> bool:
        """Copy whole events. Return whether the stream shall move to the current process."""
        chunks = response.chunks()
        request = self._request
        while True:
            reading = asyncio.ensure_future(anext(chunks, None))
            await _first(reading, request.stopped, self._disconnected)
            if reading.done():
                chunk = reading.result()
                if chunk is None:
                    return False
                process.note_questions(chunk)
                await self._copy_events(chunk)
                continue
            reading.cancel()
            await asyncio.wait({reading})
            response.close()
            final = request.stopped.result() if request.stopped.done() else b""
            if final:
                await self._write(_event(final))
            return final is None

    async def _copy_events(self, chunk: bytes) -> None:
        self._pending += chunk
        ends = [each.end() for each in _END_OF_EVENT.finditer(self._pending)]
        if not ends:
            return
        start, self._skipped = (ends[0], 0) if self._skipped else (0, 0)
        whole, self._pending = self._pending[start : ends[-1]], self._pending[ends[-1] :]
        for match in _EVENT_ID.finditer(whole):
            self._request.last_event_id = match[1] if self._request.method == "GET" else b""
        if whole:
            await self._write(whole)

    def _announcements(self, old: HTTPProcess, new: HTTPProcess) -> list[bytes]:
        kinds = announcements.compare(old.surface, new.surface)[1]
        exchange = self._request.exchange
        listening = [] if exchange is None else [exchange]
        return [
            _event(each) for each in announcements.notifications(kinds, session=exchange is None, listening=listening)
        ]

    async def _write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


def _event(message: bytes) -> bytes:
    return b"event: message\r\ndata: %b\r\n\r\n" % message


async def _send_failure(request: ProxiedRequest, send: Send, reason: str | bytes) -> str:
    """End a response whose process is gone: with an error for a request, as far as the response allows it."""
    if isinstance(reason, bytes):
        answer = reason
    elif request.exchange is not None:
        answer = failed_call(request.exchange, reason)
    else:
        answer = b""
    if request.is_event_stream:
        final = _event(answer) if answer and not request.is_stream else b""
        await send({"type": "http.response.body", "body": final, "more_body": False})
    elif not request.has_started and answer:
        await send_json(send, 200, answer)
    elif not request.has_started:
        await send_text(send, 502, str(reason), _LATER)
    return outcome(answer) if answer else "error 502"


async def _accepted(process: HTTPProcess, request: ProxiedRequest) -> UpstreamResponse | None:
    """Return the response of an older process, or None if the message is not for it."""
    try:
        response = await open_request(process.port, request.method, request.target, request.headers, request.body)
    except UpstreamLost:
        return None
    if response.status >= 400:
        response.close()
        return None
    return response


async def _post_quietly(process: HTTPProcess, request: ProxiedRequest) -> None:
    """Send a notification that may be for an older process."""
    if (response := await _accepted(process, request)) is not None:
        response.close()


async def _first(*futures: asyncio.Future[Any]) -> None:
    """Wait until one of the futures is done."""
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body, or None if it is too large."""
    parts, size = [], 0
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return b""
        size += len(message.get("body", b""))
        if size > DEFAULT_LIMITS.http.body_bytes:
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
