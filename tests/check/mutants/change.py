"""One change to what a right server says or hears, made where its messages pass: the server itself knows nothing.

change.answers("tools/call")(lambda request, answer: ...)     another answer to a method, None for none, a list, bytes
change.notifications("notifications/progress")(lambda message: ...)
change.every(lambda message: ...)          every message that goes out
change.heard(lambda message: ...)          every message that comes in; None: the server does not get it
change.before("tools/list")(lambda request: [...])            what is said before the answer
change.reply(lambda reply: ...)            over HTTP: an `HTTPReply`, whose status and headers may be changed
change.request_headers(lambda headers: ...)          the headers of what comes in, names in lower case
change.request_headers_by_body(lambda headers, message: ...)    the same, with the message
change.greeting(lambda reply: ...)         what a stream begins with, as bytes
change.events(lambda event: ...)           each event of a stream, as it is written; b"" for none
change.cut(lambda: ...)                    over HTTP: is called when a client is gone before its request was whole
change.treats(lambda connection, data: ...) over HTTP: each piece of bytes that a client sends, before they are read;
                                           None: nothing is read any more, and the connection stays open
"""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec

from accord.errors import ConnectionLost
from accord.transport.base import Message, Transport

from tests.check.mutants.byte_relay import Treat

Asked = MutableMapping[Any, Any]
"""The requests of one conversation that are not answered, by id."""

Said = Any
"""A message (dict), several (list), bytes as they are, or None for nothing."""


class HTTPReply:
    """A response on its way out. `request` is the message that was posted, `headers` have names in lower case."""

    def __init__(self, method: str, sent: dict[str, str], request: Any) -> None:
        self.method = method
        self.sent = sent
        self.request = request
        self.status = 0
        self.headers: dict[str, str] = {}


class Change:
    """What is different."""

    def __init__(self) -> None:
        self.port: int = 0  # over HTTP: where it is served
        self.takes_a_piece = False  # over HTTP: takes the first piece of a body for the whole
        self.stays_open = False  # over HTTP: answers as a stream, which never ends
        self.treat: Treat | None = None  # over HTTP: what becomes of the bytes that a client sends
        self._answers: dict[str, Callable[[Any, Any], Said]] = {}
        self._notifications: dict[str, Callable[[Any], Said]] = {}
        self._before: dict[str, Callable[[Any], list[Any]]] = {}
        self._every: Callable[[Any], Said] | None = None
        self._heard: Callable[[Any], Any] | None = None
        self._reply: Callable[[HTTPReply], None] | None = None
        self._headers: Callable[[dict[str, str], Any], None] | None = None
        self._events: Callable[[bytes], bytes] | None = None
        self._cut: Callable[[], None] | None = None
        self._greeting: Callable[[HTTPReply], bytes] | None = None

    def answers(self, method: str) -> Callable[[Callable[[Any, Any], Said]], None]:
        return lambda function: self._answers.__setitem__(method, function)

    def notifications(self, method: str) -> Callable[[Callable[[Any], Said]], None]:
        return lambda function: self._notifications.__setitem__(method, function)

    def before(self, method: str) -> Callable[[Callable[[Any], list[Any]]], None]:
        return lambda function: self._before.__setitem__(method, function)

    def every(self, function: Callable[[Any], Said]) -> None:
        self._every = function

    def heard(self, function: Callable[[Any], Any]) -> None:
        self._heard = function

    def reply(self, function: Callable[[HTTPReply], None]) -> None:
        self._reply = function

    def request_headers(self, function: Callable[[dict[str, str]], None]) -> None:
        self._headers = lambda headers, message: function(headers)

    def request_headers_by_body(self, function: Callable[[dict[str, str], Any], None]) -> None:
        self._headers = function

    def greeting(self, function: Callable[[HTTPReply], bytes]) -> None:
        self._greeting = function

    def events(self, function: Callable[[bytes], bytes]) -> None:
        self._events = function

    def cut(self, function: Callable[[], None]) -> None:
        self._cut = function

    def treats(self, function: Treat) -> None:
        self.treat = function

    # --- where messages pass -----------------------------------------------------------------------------------

    def incoming(self, raw: bytes, asked: Asked) -> list[bytes]:
        """What the server gets for what came; a request is kept in `asked`, for its answer."""
        message = _decoded(raw)
        if isinstance(message, dict) and "method" in message and "id" in message:
            asked[_key(message["id"])] = message
        if self._heard is None:
            return [raw]
        said = self._heard(message if message is not None else raw)
        return [raw] if said is message or said is raw else _encoded(said)

    def outgoing(self, raw: bytes, asked: Asked) -> list[bytes]:
        """What the client gets for what the server says."""
        message = _decoded(raw)
        if not isinstance(message, dict):
            return [raw]
        said: list[Any] = []
        changed: Any = message
        method = message.get("method")
        if method is None:
            request = asked.pop(_key(message.get("id")), None)
            name = str(request.get("method")) if request else None
            if name in self._before:
                said += self._before[name](request)
            if name in self._answers:
                changed = self._answers[name](request, message)
        elif method in self._notifications:
            changed = self._notifications[method](message)
        said += changed if isinstance(changed, list) else [changed]
        if self._every is not None:
            said = [each for one in said for each in _listed(self._every(one))]
        return [each for one in said for each in _encoded(one)]

    def sent_headers(self, headers: list[tuple[bytes, bytes]], body: bytes) -> list[tuple[bytes, bytes]]:
        """The headers that the server gets."""
        if self._headers is None:
            return list(headers)
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        self._headers(named, _decoded(body))
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in named.items()]

    def event(self, event: bytes) -> bytes:
        """One event as the client gets it."""
        return event if self._events is None else self._events(event)

    def first_events(self, reply: HTTPReply) -> bytes:
        """What is said on a stream before anything else."""
        return b"" if self._greeting is None else self._greeting(reply)

    def was_cut(self) -> None:
        if self._cut is not None:
            self._cut()

    def answer_headers(self, reply: HTTPReply) -> None:
        if self._reply is not None:
            self._reply(reply)


class ChangedTransport:
    """A server's end of a connection, with the change."""

    def __init__(self, inner: Transport, change: Change) -> None:
        self._inner = inner
        self._change = change
        self._asked: Asked = {}
        self.name = inner.name

    async def open(self) -> None:
        await self._inner.open()

    async def receive(self) -> list[Message]:
        while messages := await self._inner.receive():
            passed: list[Message] = []
            for message in messages:
                passed += self._change.incoming(message, self._asked) if isinstance(message, bytes) else [message]
            if passed:
                return passed
        return []

    def send(self, message: bytes) -> None:
        for each in self._change.outgoing(message, self._asked):
            self._inner.send(each)

    def flush(self) -> None:
        self._inner.flush()

    async def drain(self) -> None:
        await self._inner.drain()

    async def close(self) -> None:
        await self._inner.close()

    def lost(self) -> ConnectionLost:
        return self._inner.lost()


class Changed:
    """A server in this process, with the change: a target for `check_server`."""

    def __init__(self, server: Any, change: Change) -> None:
        self._server = server
        self._change = change

    async def serve(self, transport: Transport) -> None:
        await self._server.serve(ChangedTransport(transport, self._change))


class ChangedApp:
    """An ASGI application, with the change: bodies that are read whole, events one by one."""

    def __init__(self, app: Any, change: Change) -> None:
        self._app = app
        self._change = change
        self._asked: Asked = {}  # HTTP+SSE answers elsewhere than on the response to a POST

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, more = b"", scope["method"] == "POST"
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                self._change.was_cut()
                return
            body, more = body + event.get("body", b""), event.get("more_body", False) and not self._change.takes_a_piece
        own: Asked = {}
        passed = self._change.incoming(body, own) if body else [b""]
        self._asked.update(own)
        given = iter([{"type": "http.request", "body": passed[0] if passed else b"", "more_body": False}])

        async def replay() -> Any:
            return next(given, None) or await receive()

        sent = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        changed = self._change.sent_headers(scope["headers"], body)
        headers = [(name.lower(), value) for name, value in changed if name.lower() != b"content-length"]
        headers += [(b"content-length", str(len(passed[0] if passed else b"")).encode())] if body else []
        out = _Out(HTTPReply(scope["method"], sent, _decoded(body)), self._change, own or self._asked, send)
        await self._app({**scope, "headers": headers}, replay, out)
        while out.stays_open and (await receive())["type"] != "http.disconnect":
            continue


class _Out:
    """The response of one request."""

    def __init__(self, reply: HTTPReply, change: Change, asked: Asked, send: Any) -> None:
        self._reply = reply
        self._asked = asked
        self._change = change
        self._send = send
        self._start: Any = None
        self._body = b""
        self.stays_open = False  # as a stream that has its answer, and does not end

    async def __call__(self, event: Any) -> None:
        if event["type"] == "http.response.start":
            self._start = event
            self._reply.status = event["status"]
            self._reply.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in event["headers"]
            }
            self._change.answer_headers(self._reply)
            if self._streams:
                await self._begin()
                first = self._change.first_events(self._reply)
                await self._send({"type": "http.response.body", "body": first, "more_body": True})
        elif event["type"] == "http.response.body":
            await self._go_on(event)
        else:
            await self._send(event)

    @property
    def _streams(self) -> bool:
        return "event-stream" in self._reply.headers.get("content-type", "")

    async def _begin(self) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._reply.headers.items()]
        await self._send({"type": "http.response.start", "status": self._reply.status, "headers": headers})

    async def _go_on(self, event: Any) -> None:
        self._body += event.get("body", b"")
        more = event.get("more_body", False)
        if self._streams:
            *whole, self._body = self._body.split(b"\n\n")
            changed = b"".join(self._event(each) for each in whole)
            rest = b"" if more else self._body
            await self._send({"type": "http.response.body", "body": changed + rest, "more_body": more})
        elif not more:
            body = b"".join(self._change.outgoing(self._body, self._asked)) if self._body else b""
            self._reply.headers.pop("content-length", None)
            if self._change.stays_open and body and self._reply.status == 200:
                await self._stay_open(body)
                return
            self._reply.headers["content-length"] = str(len(body))
            await self._begin()
            await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _stay_open(self, body: bytes) -> None:
        """Answer as a stream, and do not end it."""
        self.stays_open = True
        self._reply.headers["content-type"] = "text/event-stream"
        await self._begin()
        await self._send({"type": "http.response.body", "body": b"data: %b\n\n" % body, "more_body": True})

    def _event(self, event: bytes) -> bytes:
        """One event, its data changed; what goes before the answer becomes events without an id."""
        lines = event.split(b"\n")
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        if not data or _decoded(data) is None:
            return self._ended(event)
        *first, last = self._change.outgoing(data, self._asked) or [None]
        head = b"".join(line + b"\n" for line in lines if not line.startswith(b"data:"))
        extra = b"".join(self._ended(b"data: %b" % each) for each in first)
        return extra + (b"" if last is None else self._ended(head + b"data: %b" % last))

    def _ended(self, event: bytes) -> bytes:
        changed = self._change.event(event)
        return changed + b"\n\n" if changed else b""


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _listed(said: Said) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _encoded(said: Said) -> list[bytes]:
    if said is None:
        return []
    if isinstance(said, bytes):
        return [said]
    if isinstance(said, list):
        return [raw for each in said for raw in _encoded(each)]
    return [msgspec.json.encode(said)]


def _key(id: Any) -> Any:
    return type(id), id if isinstance(id, int | str | float) else repr(id)
