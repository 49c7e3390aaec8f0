"""A state machine of one HTTP/1.1 server connection: bytes in, events out; responses in, bytes out. No I/O.

           head complete        body complete           response over
    HEAD ────────────────► BODY ───────────────► COMPLETE ───────────────► HEAD
                            │ response over       body complete              ▲
                            └───────────────────► DRAINING ──────────────────┘

    any state ──► CLOSED: a request was refused, or the response was the last one of the connection

One request is parsed at a time: pipelined requests stay bytes until the response to the previous one is complete.
The limits hold in every state, and `reading` says whether there is room for more:

- head, chunk extensions and trailers of a request share `ConnectionBudget.head_bytes`; its header and trailer fields
  share `ConnectionBudget.fields`; trailers are counted and dropped, and headers do not change after the head;
- its body has `ConnectionBudget.body_bytes`, of which `ConnectionBudget.buffer_bytes` may wait for the application;
- `ConnectionBudget.head_bytes` of the bytes behind it are read ahead; bytes behind the last request of a connection
  are dropped.
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
    """The limits of one connection on data of its peer. One read may exceed them: it is accepted, and is the last."""

    head_bytes: int
    fields: int
    body_bytes: int
    buffer_bytes: int = 64 << 10


class BodyReceived(msgspec.Struct, frozen=True):
    """A part of the body of the request. It counts against the limit until `HTTPConnection.release`."""

    data: bytes


class RequestComplete(msgspec.Struct, frozen=True):
    """The request is complete."""


class RequestRefused(msgspec.Struct, frozen=True):
    """The data is not acceptable; the connection reads no more. `status` is for a response, if none has begun."""

    status: int
    text: str


Event = HeadReceived | BodyReceived | RequestComplete | RequestRefused

HEAD, BODY, COMPLETE, DRAINING, CLOSED = "head", "body", "complete", "draining", "closed"

_REQUEST_COMPLETE = RequestComplete()
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class HTTPConnection:
    """The state of one connection; see the docstring of this module."""

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
        self._left = 0  # missing bytes of a body of known length
        self._body = 0  # bytes of the body so far
        self._unreleased = 0  # those that the application has not consumed
        self._dropped = 0  # bytes after the last request
        self._expects_continue = False  # whether the client waits for 100 Continue
        self.state: str = HEAD
        self.requests: int = 0
        """Number of received heads."""
        self.response: ResponseWriter | None = None
        """The response to the current request, or to one whose body is drained."""
        self.writable: bool = True
        """Whether the peer reads the responses: set by the writer, which calls `resume` when that changes."""

    # --- reading ------------------------------------------------------------------------------------------------

    @property
    def reading(self) -> bool:
        """Return whether to read more; the only condition for reading."""
        if not self.writable or self._unreleased >= self._budget.buffer_bytes:
            return False
        if self.state == BODY or self.state == DRAINING:
            return True
        return len(self._data) - self._at + self._dropped < self._budget.head_bytes

    @property
    def unparsed(self) -> int:
        """Return the number of bytes that wait to be parsed."""
        return len(self._data) - self._at

    @property
    def buffered_bytes(self) -> int:
        """Return the number of the peer's bytes that are buffered, here or for the application."""
        return len(self._data) + self._unreleased

    @property
    def idle(self) -> bool:
        """Return whether the connection is between two requests."""
        return self.state == HEAD and self.requests > 0 and not self.unparsed

    def receive(self, data: bytes) -> list[Event]:
        """Process received bytes, and return the events."""
        if self.state == CLOSED or (self.state == COMPLETE and self._is_last):
            self._dropped += len(data)
            return []
        self._data = self._data[self._at :] + data if self._data else data
        self._at = 0
        return self._parse()

    def resume(self) -> list[Event]:
        """Return the events of the next request, once the response is complete and the sent bytes have been read."""
        return self._parse() if self.unparsed else []

    def release(self, size: int) -> None:
        """Release so many bytes of the current request's body, which the application has consumed."""
        self._unreleased -= size

    def finish(self) -> None:
        """Serve no request after the current one."""
        if self.state in (BODY, COMPLETE) and self.response is not None:
            self.response.keep_alive = False
        else:
            self.close()

    def close(self) -> None:
        """Stop reading; a response that has begun is the last."""
        self.state = CLOSED
        self._drop()
        if self.response is not None:
            self.response.keep_alive = False

    @property
    def _is_last(self) -> bool:
        """Return whether no request is served after the current one."""
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
            self._data, self._at = b"", 0  # an idle connection keeps nothing of its requests
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
            finally:  # also the valid part before the error
                self._charge_body(b"".join(chunks), events)
            over = self._chunks.over
        if not over:
            return
        if self.state == DRAINING:
            self.state, self.response = HEAD, None
            return
        self.state = COMPLETE
        events.append(_REQUEST_COMPLETE)
        if self._is_last:
            self._drop()

    def _charge_body(self, piece: bytes, events: list[Event]) -> None:
        """Count a part of a body, and report it if the application can still consume it."""
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

    # --- responses ----------------------------------------------------------------------------------------------

    def send_continue(self) -> bytes:
        """Return the interim response that the client waits for before it sends the body; empty if it does not wait
        (RFC 9110, 10.1.1)."""
        if not self._expects_continue or self.state != BODY or (self.response or _no_request()).started:
            return b""
        self._expects_continue = False
        return _CONTINUE

    def send_head(self, status: int, headers: Iterable[Header]) -> bytes:
        """Return the head of the response. Raise the `LocalProtocolError` of `ResponseWriter`."""
        response = self.response or _no_request()
        if self._expects_continue and self.state == BODY:  # the client may send the body now, or the next request
            response.keep_alive = False
        return response.head(status, headers)

    def send_body(self, data: bytes, *, more: bool) -> bytes:
        """Return a part of the response; after the last part, continue with the next request. Raise the
        `LocalProtocolError` of `ResponseWriter`."""
        response = self.response or _no_request()
        framed = response.body(data, more=more)
        if response.over:
            self._unreleased = 0  # no application consumes it any more
            if not response.keep_alive:
                self.close()
            elif self.state == COMPLETE:
                self.state, self.response = HEAD, None
            else:
                self.state = DRAINING
        return framed


def _no_request() -> NoReturn:
    raise LocalProtocolError("there is no request to respond to")
