"""One HTTP/1.1 connection of a server, as a state machine: bytes in, events out; answers in, bytes out. No I/O.

           head complete        body complete           response over
    HEAD ────────────────► BODY ───────────────► COMPLETE ───────────────► HEAD
                            │ response over       body complete              ▲
                            └───────────────────► DRAINING ──────────────────┘

    any state ──► CLOSED: what came is refused, or the response was the last one of the connection

One request is read at a time: what a client sends behind it (a pipeline) stays bytes until the response to it is over.
One budget holds in every state, and `reading` says whether there is room for more:

- head, chunk extensions and trailers of a request share `ConnectionBudget.head_bytes`; its header and trailer fields
  `ConnectionBudget.fields`; trailers are counted and dropped, and headers do not change once the head has ended;
- its body has `ConnectionBudget.body_bytes`, of which `ConnectionBudget.buffer_bytes` may wait for the application;
- of what follows it, `ConnectionBudget.head_bytes` are read ahead; behind the last request of a connection they are
  dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import msgspec

from accord.errors import LocalProtocolError
from accord.wire.http1.chunked import ChunkedReader
from accord.wire.http1.head import Header, HeadReader, HeadReceived
from accord.wire.http1.lines import UnacceptableRequest
from accord.wire.http1.response import ResponseWriter


class ConnectionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection may hold of its peer. One read may be more than that: it is taken, and is the last."""

    head_bytes: int
    fields: int
    body_bytes: int
    buffer_bytes: int = 64 << 10


class BodyReceived(msgspec.Struct, frozen=True):
    """A part of the body of the request. It is charged until `HTTPConnection.release`."""

    data: bytes


class RequestComplete(msgspec.Struct, frozen=True):
    """The request has ended."""


class RequestRefused(msgspec.Struct, frozen=True):
    """What came is not acceptable; the connection reads no more. `status` is for a response, if none has begun."""

    status: int
    text: str


Event = HeadReceived | BodyReceived | RequestComplete | RequestRefused

HEAD, BODY, COMPLETE, DRAINING, CLOSED = "head", "body", "complete", "draining", "closed"

_REQUEST_COMPLETE = RequestComplete()
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class HTTPConnection:
    """The state of one connection; see the head of this module."""

    __slots__ = (
        "_at",
        "_body",
        "_budget",
        "_chunks",
        "_data",
        "_dropped",
        "_expects_continue",
        "_head",
        "_left",
        "_unreleased",
        "requests",
        "response",
        "state",
        "writable",
    )

    def __init__(self, budget: ConnectionBudget) -> None:
        self._budget = budget
        self._head = HeadReader(budget.head_bytes, budget.fields)
        self._data = b""  # received, and not parsed from `_at` on
        self._at = 0
        self._chunks: ChunkedReader | None = None
        self._left = 0  # bytes of a body of known length that are not there yet
        self._body = 0  # bytes of the body so far
        self._unreleased = 0  # those that the application has not taken
        self._dropped = 0  # bytes behind the last request
        self._expects_continue = False  # whether the client waits for 100 Continue
        self.state: str = HEAD
        self.requests: int = 0
        """Heads that were received."""
        self.response: ResponseWriter | None = None
        """The response to the request that is being served, or drained."""
        self.writable: bool = True
        """Whether the peer takes what is sent to it: set by who writes, who calls `resume` when it is again."""

    # --- reading ------------------------------------------------------------------------------------------------

    @property
    def reading(self) -> bool:
        """Whether to read more. Nothing else decides it."""
        if not self.writable or self._unreleased >= self._budget.buffer_bytes:
            return False
        if self.state == BODY or self.state == DRAINING:
            return True
        return len(self._data) - self._at + self._dropped < self._budget.head_bytes

    @property
    def unparsed(self) -> int:
        """Bytes that wait to be parsed."""
        return len(self._data) - self._at

    @property
    def buffered_bytes(self) -> int:
        """Bytes of the peer that are kept, here or for the application."""
        return len(self._data) + self._unreleased

    @property
    def idle(self) -> bool:
        """Whether the next request has not begun, and there was one before."""
        return self.state == HEAD and self.requests > 0 and not self.unparsed

    def receive(self, data: bytes) -> list[Event]:
        """Take what was read, and return what it means."""
        if self.state == CLOSED or (self.state == COMPLETE and self._is_last):
            self._dropped += len(data)
            return []
        self._data = self._data[self._at :] + data if self._data else data
        self._at = 0
        return self._parse()

    def resume(self) -> list[Event]:
        """Return what is there of the next request, once a response is over and what was sent is taken."""
        return self._parse() if self.unparsed else []

    def release(self, size: int) -> None:
        """The application has taken so many bytes of the body of the request that is being served."""
        self._unreleased -= size

    def finish(self) -> None:
        """Serve no request behind the one that is being served."""
        if self.state in (BODY, COMPLETE) and self.response is not None:
            self.response.keep_alive = False
        else:
            self.close()

    def close(self) -> None:
        """Read nothing more; a response that has begun is the last."""
        self.state = CLOSED
        self._drop()
        if self.response is not None:
            self.response.keep_alive = False

    @property
    def _is_last(self) -> bool:
        """Whether no request is served behind this one."""
        return self.response is not None and not self.response.keep_alive

    def _drop(self) -> None:
        self._dropped += self.unparsed
        self._data, self._at = b"", 0

    def _parse(self) -> list[Event]:
        events: list[Event] = []
        try:
            if self.state == DRAINING:
                self._read_body(events)
            if self.state == HEAD and self.writable:
                self._read_head(events)
            if self.state == BODY:
                self._read_body(events)
        except UnacceptableRequest as exc:
            self.close()
            events.append(RequestRefused(exc.status, exc.text))
        if self._at == len(self._data):
            self._data, self._at = b"", 0  # a connection that is idle keeps nothing of its requests
        return events

    def _read_head(self, events: list[Event]) -> None:
        head = self._head.read(self._data, self._at)
        if head is None:
            return
        self._at += self._head.size
        events.append(head)
        self.requests += 1
        self.response = ResponseWriter(head.method, head.version, head.keep_alive)
        self.state = BODY
        self._body = 0
        self._expects_continue = head.expects_continue
        if head.length is not None:
            self._chunks, self._left = None, head.length
        else:
            budget = self._budget
            self._chunks = ChunkedReader(budget.head_bytes, budget.fields, self._head.size, self._head.fields)

    def _read_body(self, events: list[Event]) -> None:
        if self._chunks is None:
            piece = self._data[self._at : self._at + self._left]
            self._at += len(piece)
            self._left -= len(piece)
            over = not self._left
            self._charge_body(piece, events)
        else:
            chunks: list[bytes] = []
            try:
                self._at = self._chunks.read(self._data, self._at, chunks)
            finally:  # what came before something unacceptable did come
                self._charge_body(b"".join(chunks), events)
            over = self._chunks.over
        if over:
            self._complete(events)

    def _charge_body(self, piece: bytes, events: list[Event]) -> None:
        """Charge a part of a body, and hand it on if there is someone to take it."""
        if not piece:
            return
        self._expects_continue = False
        room = self._budget.body_bytes - self._body
        self._body += len(piece)
        if self.state == BODY:
            self._unreleased += min(len(piece), room)
            events.append(BodyReceived(piece[:room]))
        if len(piece) > room:
            raise UnacceptableRequest(413, f"the body of a request is at most {self._budget.body_bytes} bytes here")

    def _complete(self, events: list[Event]) -> None:
        if self.state == DRAINING:
            self.state, self.response = HEAD, None
            return
        self.state = COMPLETE
        events.append(_REQUEST_COMPLETE)
        if self._is_last:
            self._drop()

    # --- answering ----------------------------------------------------------------------------------------------

    def send_continue(self) -> bytes:
        """Return what a client waits for before it sends the body; nothing if it does not wait (RFC 9110, 10.1.1)."""
        if not self._expects_continue or self.state != BODY or (self.response or _no_request()).started:
            return b""
        self._expects_continue = False
        return _CONTINUE

    def send_head(self, status: int, headers: Iterable[Header]) -> bytes:
        """Return the head of the response. Raises `LocalProtocolError`; see `ResponseWriter`."""
        response = self.response or _no_request()
        if self._expects_continue and self.state == BODY:  # it may send the body now, or the next request
            response.keep_alive = False
        return response.head(status, headers)

    def send_body(self, data: bytes, *, more: bool) -> bytes:
        """Return a part of the response, and go on to the next request behind the last one. Raises
        `LocalProtocolError`; see `ResponseWriter`.
        """
        response = self.response or _no_request()
        framed = response.body(data, more=more)
        if response.over:
            self._unreleased = 0  # nobody takes it any more
            if not response.keep_alive:
                self.close()
            elif self.state == COMPLETE:
                self.state, self.response = HEAD, None
            else:
                self.state = DRAINING
        return framed


def _no_request() -> NoReturn:
    raise LocalProtocolError("there is no request to respond to")
