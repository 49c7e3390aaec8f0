"""The response to one request, as bytes: its head, and the framing of its body (RFC 9112, 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from accord.errors import LocalProtocolError
from accord.wire.http1.head import TOKEN, Header
from accord.wire.http1.lines import CONTROLS, CRLF

_NAME = re.compile(TOKEN)
_FRAMING = frozenset((b"content-length", b"transfer-encoding", b"connection"))
_COMMON = {name: name for name in (*_FRAMING, b"content-type", b"cache-control", b"mcp-session-id")}
"""Names that need no look at their characters."""
_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}
_BODILESS = (204, 304)


class ResponseWriter:
    """Writes one response. `version` and `method` are those of the request."""

    __slots__ = ("_chunked", "_left", "_silent", "_version", "keep_alive", "over", "started")

    def __init__(self, method: str, version: str, *, keep_alive: bool) -> None:
        self._version = version
        self._silent = method == "HEAD"  # no body is sent, whatever the head says of one
        self._chunked = False
        self._left: int | None = None  # bytes of a body of known length
        self.keep_alive: bool = keep_alive
        """Whether the connection stays open behind it."""
        self.started: bool = False
        self.over: bool = False

    def head(self, status: int, headers: Iterable[Header]) -> bytes:
        """Return the head. Raises `LocalProtocolError` for a status or a header that HTTP does not have."""
        if self.started:
            raise LocalProtocolError("a response has one head, and this one was sent")
        if not 200 <= status <= 599:
            raise LocalProtocolError(f"a response has a status between 200 and 599, not {status!r}")
        lines = [_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        closing = False
        for name, value in headers:
            lower = _COMMON.get(name) or _lower(name)
            if lower in _FRAMING:
                closing = self._frame(lower, value) or closing
            lines.append(b"%b: %b\r\n" % (lower, value))
        self._silent = self._silent or status in _BODILESS
        if self._left is None and not self._chunked and not self._silent:
            if self._version == "1.1":
                self._chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self.keep_alive = False  # its end is that of the connection
        if not self.keep_alive and not closing:
            lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        if len(head.translate(None, CONTROLS)) != len(head) - 2 * len(lines):
            raise LocalProtocolError("a header of the response has a control character in it")
        self.started = True
        return head + CRLF

    def _frame(self, name: bytes, value: bytes) -> bool:
        """Take over what a header says of the body and of the connection; return whether it closes that."""
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
        """Return this part of the body as it is sent. Raises `LocalProtocolError` for more or less than was announced,
        and outside of a response.
        """
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
