"""The response to one request, as bytes: its head, and the framing of its body (RFC 9112, 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from accord.errors import LocalProtocolError
from accord.wire.http1.head import TOKEN, Header
from accord.wire.http1.lines import CONTROLS, CRLF

_NAMES = re.compile(b"(?:" + TOKEN + b":)*")
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
        fields = [(name.lower(), value) for name, value in headers]
        _check(fields)
        self._silent = self._silent or status in _BODILESS
        closing = self._read(fields)
        if self._left is None and not self._chunked and not self._silent:
            if self._version == "1.1":
                self._chunked = True
                fields.append((b"transfer-encoding", b"chunked"))
            else:
                self.keep_alive = False  # its end is that of the connection
        if not self.keep_alive and not closing:
            fields.append((b"connection", b"close"))
        self.started = True
        line = _LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
        return line + b"".join([b"%b: %b\r\n" % field for field in fields]) + CRLF

    def _read(self, fields: list[Header]) -> bool:
        """Take over what the headers say of the body and of the connection; return whether they close it."""
        closing = False
        for name, value in fields:
            if name == b"content-length" and self._left is None and not self._chunked:
                self._left = int(value)
            elif name == b"transfer-encoding":
                self._chunked, self._left = value.lower() == b"chunked", None
            elif name == b"connection" and b"close" in [token.strip() for token in value.lower().split(b",")]:
                self.keep_alive, closing = False, True
        return closing

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


def _check(fields: list[Header]) -> None:
    names = b"".join([name + b":" for name, _ in fields])
    values = b"".join([value for _, value in fields])
    if len(values.translate(None, CONTROLS)) != len(values) or _NAMES.fullmatch(names) is None:
        raise LocalProtocolError("a header of the response has a character that HTTP does not allow there")
