"""The head of a request: its request line and header fields (RFC 9112, 3 and 5), and what they say of its body (6).

Whatever two readers could understand in different ways is refused: another version, a repeated Content-Length, a
Transfer-Encoding beside a Content-Length or other than `chunked`, a space before a colon, a folded line, two hosts.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from accord.wire.http1.lines import CRLF, UnacceptableRequest, end_of_line

Header = tuple[bytes, bytes]

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_FIELD = re.compile(b"(" + TOKEN + rb"):([^\x00-\x08\x0a-\x1f\x7f]*)")
"""A header field: "No whitespace is allowed between the field name and colon" (RFC 9112, 5.1)."""
_REQUEST_LINE = re.compile(b"(" + TOKEN + rb") ([\x21\x22\x24-\x7e]+) HTTP/1\.([01])")
"""The method, the target (a fragment is not sent) and the version."""
_ABSOLUTE = re.compile(rb"https?://([^/?]*)(.*)", re.IGNORECASE)
_LENGTH = b"content-length"
_SINGLETON_FIELDS = (b"host", _LENGTH, b"transfer-encoding")
_DIGITS = 18
"""Digits of a Content-Length."""
_KNOWN_LINES, _KNOWN_BYTES = 50, 200
"""Lines that a connection remembers, and bytes of each."""
_KNOWN_HEAD_BYTES = 1 << 10
"""Bytes of a head that a connection remembers, to know the next one if only its Content-Length differs."""


class HeadReceived(msgspec.Struct, frozen=True):
    """A request has begun: its head is complete, and does not change any more."""

    method: str
    target: bytes
    """The path and the query, as they were sent."""
    version: str
    """`1.1` or `1.0`."""
    headers: list[Header]
    """In the order in which they came; names are in lower case."""
    length: int | None
    """Bytes of the body; None where it is chunked."""
    keep_alive: bool
    """Whether the connection may serve another request."""
    expects_continue: bool


class _Remembered(msgspec.Struct):
    """A head, cut where the number of its Content-Length stands."""

    before: bytes
    after: bytes
    head: HeadReceived
    headers: tuple[Header, ...]
    """Those of the head, of which its owner may have changed the list."""
    at: int
    """Which of them is the Content-Length."""

    def again(self, block: bytes) -> HeadReceived | None:
        """The same head with the number that this block has; None if more is different, or it is no number."""
        number = block[len(self.before) : len(block) - len(self.after)]
        if not number.isdigit() or len(number) > _DIGITS:
            return None
        if not block.startswith(self.before) or not block.endswith(self.after):
            return None
        head, headers = self.head, list(self.headers)
        headers[self.at] = _LENGTH, number
        return HeadReceived(
            head.method, head.target, head.version, headers, int(number), head.keep_alive, head.expects_continue
        )


def _remembered(head: HeadReceived, block: bytes, lines: list[bytes]) -> _Remembered | None:
    """None for a head whose Content-Length is absent, or not written as it usually is."""
    if head.length is None:
        return None
    number = b"%d" % head.length
    header = _LENGTH, number
    if header not in head.headers:
        return None
    at = head.headers.index(header)
    if not lines[at].endswith(number):
        return None
    before, _, after = block.partition(CRLF + lines[at])  # there is one, or `_interpret` had refused it
    name = lines[at].removesuffix(number)
    return _Remembered(before + CRLF + name, after, head, tuple(head.headers), at)


class HeadReader:
    """Reads one head after the other. A head has at most `most_bytes` bytes, line ends included, and `most_fields`
    fields.
    """

    __slots__ = (
        "_empty",
        "_first",
        "_known",
        "_last",
        "_line",
        "_lines",
        "_most_bytes",
        "_most_fields",
        "_request",
        "_seen",
        "fields",
        "size",
    )

    def __init__(self, most_bytes: int, most_fields: int) -> None:
        self._most_bytes = most_bytes
        self._most_fields = most_fields
        self._known: dict[bytes, Header] = {}  # lines that were read: most are the same in the next head
        self._first = b""  # the last request line, and what it says
        self._request = ("", b"", "")
        self._last: _Remembered | None = None
        self._empty = 0  # bytes of empty lines before the head
        self._line = 0  # where the first unfinished line begins, counted from the first byte of the head
        self._lines = 0  # those that are finished
        self._seen = 0  # up to where the bytes were checked
        self.fields: int = 0
        """Fields of the last head."""
        self.size: int = 0
        """Bytes of the last head."""

    def read(self, data: bytes, at: int) -> HeadReceived | None:
        """Return the head that begins at `at`, or None if it is not complete. Raises `UnacceptableRequest`.

        What is refused, and why, does not depend on the pieces in which it came.
        """
        stop = at + self._most_bytes
        start = at + self._empty
        while data.startswith(CRLF, start) and start < stop:
            start += 2  # "SHOULD ignore at least one empty line (CRLF) received prior to the request-line"
        end = data.find(b"\r\n\r\n", start, stop)
        head = self._complete(data[start:end]) if end >= 0 else None
        if head is None:
            self._empty = start - at
            self._check(data, at, start)
            return None
        self.size = end + 4 - at
        self.fields = len(head.headers)
        self._empty = self._line = self._lines = self._seen = 0
        return head

    def _complete(self, block: bytes) -> HeadReceived | None:
        again = None if self._last is None else self._last.again(block)
        return again or self._parse(block)

    def _parse(self, block: bytes) -> HeadReceived | None:
        """Return None if one of the lines is not acceptable: `_check` says which, and why."""
        lines = block.split(CRLF)
        first = lines.pop(0)
        if len(lines) > self._most_fields:
            return None
        headers: list[Any] = list(map(self._known.get, lines))
        if None in headers:
            headers = [known or self._field(line) for line, known in zip(lines, headers, strict=True)]
            if None in headers:
                return None
        request = self._request
        if first != self._first:
            found = _REQUEST_LINE.fullmatch(first)
            if found is None:
                return None
            request = found[1].decode(), found[2], f"1.{found[3].decode()}"
            if len(first) <= _KNOWN_BYTES:
                self._first, self._request = first, request
        head = _interpret(request, headers)
        self._last = _remembered(head, block, lines) if len(block) <= _KNOWN_HEAD_BYTES else None
        return head

    def _field(self, line: bytes) -> Header | None:
        """The name, in lower case, and the value of a field; None for a line that is not one."""
        found = _FIELD.fullmatch(line)
        if found is None:
            return None
        header = found[1].lower(), found[2].strip(b" \t")
        if len(line) <= _KNOWN_BYTES:
            if len(self._known) >= _KNOWN_LINES:
                self._known.clear()
            self._known[line] = header
        return header

    def _check(self, data: bytes, at: int, start: int) -> None:
        """Check the lines that are new, in their order."""
        stop = at + self._most_bytes
        line, seen = max(start, at + self._line), at + self._seen
        while (end := end_of_line(data, line, seen, stop)) > line:
            self._check_line(data[line:end])
            line = seen = end + 2
        if len(data) >= stop:
            raise UnacceptableRequest(431, f"the head of a request is at most {self._most_bytes} bytes here")
        self._line, self._seen = line - at, max(line, len(data) - 1) - at

    def _check_line(self, line: bytes) -> None:
        self._lines += 1
        if self._lines == 1:
            if _REQUEST_LINE.fullmatch(line) is None:
                raise UnacceptableRequest(400, "not HTTP/1.1: a request must begin with METHOD /PATH HTTP/1.1")
        else:
            check_field(line, self._lines - 1, self._most_fields)


def check_field(line: bytes, number: int, most: int) -> None:
    """Check the line of a header or trailer field, the one with this number. Raises `UnacceptableRequest`."""
    if number > most:
        raise UnacceptableRequest(431, f"a request has at most {most} header and trailer fields here")
    if _FIELD.fullmatch(line) is None:
        raise UnacceptableRequest(400, "a header field must be `name: value`, on one line")


def _interpret(request: tuple[str, bytes, str], headers: list[Header]) -> HeadReceived:
    """The head of this request line and these fields. Raises `UnacceptableRequest`."""
    method, target, version = request
    fields = dict(headers)
    if len(fields) != len(headers):
        fields = _combine_fields(headers)
    keep_alive = recent = version == "1.1"
    if recent and b"host" not in fields:
        raise UnacceptableRequest(400, "a request needs a Host header")  # RFC 9112, 3.2
    if target[0] != 0x2F:
        target = _path(method, target, fields.get(b"host"))
    if b"connection" in fields:
        tokens = [token.strip() for token in fields[b"connection"].lower().split(b",")]
        keep_alive = recent and b"close" not in tokens and not (b"upgrade" in tokens and b"upgrade" in fields)
    length: int | None = 0
    if b"content-length" in fields or b"transfer-encoding" in fields:
        length = _length(fields.get(b"content-length"), fields.get(b"transfer-encoding"), recent)
    expects_continue = recent and b"expect" in fields and fields[b"expect"].lower() == b"100-continue"
    return HeadReceived(method, target, version, headers, length, keep_alive, expects_continue)


def _combine_fields(headers: list[Header]) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in fields:
            if name in _SINGLETON_FIELDS:
                raise UnacceptableRequest(400, f"a request has one {name.decode()} header")
            value = fields[name] + b", " + value  # noqa: PLW2901
        fields[name] = value
    return fields


def _path(method: str, target: bytes, host: bytes | None) -> bytes:
    """The path of a target that does not begin with one (RFC 9112, 3.2.2 and 3.2.4)."""
    if target == b"*" and method == "OPTIONS":
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise UnacceptableRequest(400, "the target of a request must be a path that begins with /")
    if host is not None and absolute[1].lower() != host.lower():
        raise UnacceptableRequest(400, "the target of the request names another host than its Host header")
    return absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]


def _length(length: bytes | None, encoding: bytes | None, recent: bool) -> int | None:
    """Bytes of the body that these headers announce, None for chunks (RFC 9112, 6.3)."""
    if encoding is not None:
        if length is not None or not recent:
            raise UnacceptableRequest(
                400, "a request has a Content-Length or a Transfer-Encoding, and in HTTP/1.0 no encoding"
            )
        if encoding.lower() != b"chunked":
            raise UnacceptableRequest(400, "the only Transfer-Encoding here is chunked")
        return None
    if length is None or not length.isdigit() or len(length) > _DIGITS:
        raise UnacceptableRequest(400, "Content-Length must be a number of bytes")
    return int(length)
