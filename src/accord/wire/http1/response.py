"""Encoder of the response to one request: its head, and the framing of its body (RFC 9112, 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

import msgspec

from accord.errors import LocalProtocolError
from accord.wire.http1.head import TOKEN, Header
from accord.wire.http1.lines import CONTROLS, CRLF

_NAME = re.compile(TOKEN)
_FRAMING = frozenset((b"content-length", b"transfer-encoding", b"connection"))
_COMMON = {name: name for name in (*_FRAMING, b"content-type", b"cache-control", b"mcp-session-id")}
"""Names whose characters need no check."""
_LINES = {status.value: b"HTTP/1.1 %d %b" % (status.value, status.phrase.encode()) for status in HTTPStatus}
_BODILESS = (204, 304)


class ResponseWriter(msgspec.Struct, eq=False):
    """Encoder of one response."""

    method: str
    """The method of the request."""
    version: str
    """The HTTP version of the request."""
    keep_alive: bool
    """Whether the connection stays open after it."""
    started: bool = False
    over: bool = False
    _silent: bool = False  # whether no body is sent, although the head may announce one
    _chunked: bool = False
    _left: int | None = None  # remaining bytes of a body of known length

    def head(self, status: int, headers: Iterable[Header]) -> bytes:
        """Return the head. Raise `LocalProtocolError` for a status or a header that HTTP does not allow."""
        if self.started:
            raise LocalProtocolError("a response has one head, and this one was sent")
        if not 200 <= status <= 599:
            raise LocalProtocolError(f"a response has a status between 200 and 599, not {status!r}")
        lines = [_LINES.get(status) or b"HTTP/1.1 %d " % status]
        closing = False
        for name, value in headers:
            lower = _COMMON.get(name) or _lower(name)
            if lower in _FRAMING:
                closing = self._frame(lower, value) or closing
            lines.append(lower + b": " + value)
        self._silent = self.method == "HEAD" or status in _BODILESS
        if self._left is None and not self._chunked and not self._silent:
            if self.version == "1.1":
                self._chunked = True
                lines.append(b"transfer-encoding: chunked")
            else:
                self.keep_alive = False  # the end of the connection ends the body
        if not self.keep_alive and not closing:
            lines.append(b"connection: close")
        lines += (b"", b"")  # the empty line that ends the head
        head = CRLF.join(lines)
        if len(head.translate(None, CONTROLS)) != len(head) - (len(lines) - 1) * len(CRLF):
            raise LocalProtocolError("a header of the response has a control character in it")
        self.started = True
        return head

    def _frame(self, name: bytes, value: bytes) -> bool:
        """Process a header about the body or the connection; return whether it closes the connection."""
        if name == b"connection":
            closing = b"close" in [token.strip() for token in value.lower().split(b",")]
            self.keep_alive = self.keep_alive and not closing
            return closing
        if name == b"transfer-encoding":
            self._chunked, self._left = value.lower() == b"chunked", None
        elif self._left is None and not self._chunked:
            self._left = int(value)
        return False

    def body(self, data: bytes, *, more: bool) -> bytes:
        """Return a part of the body as it is sent. Raise `LocalProtocolError` if the length differs from the
        Content-Length, or without an open response."""
        if not self.started or self.over:
            raise LocalProtocolError("there is no body before the head of a response, and none behind its end")
        self.over = not more
        if self._silent:
            return b""
        if self._chunked:
            chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            return chunk if more else chunk + b"0\r\n\r\n"
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0 or (self._left and not more):
                self.keep_alive = False
                raise LocalProtocolError("the body of the response is not as long as its Content-Length says")
        return data


def _lower(name: bytes) -> bytes:
    if _NAME.fullmatch(name) is None:
        raise LocalProtocolError(f"{name!r} is not the name of a header")
    return name.lower()
