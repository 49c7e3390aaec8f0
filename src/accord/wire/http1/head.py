"""Parser of the head of a request: its request line and header fields (RFC 9112, 3 and 5), and the length of its body
(6).

A head that two parsers could understand differently is refused: another version, a repeated Content-Length, a
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
"""Limit of the digits of a Content-Length."""
_KNOWN_LINES, _KNOWN_BYTES = 50, 200
"""Number of lines in the cache of a connection, and the limit of each in bytes."""
_KNOWN_HEAD_BYTES = 1 << 12
"""Limit of a cached head in bytes, of which an access token often has 1,000 to 2,000: mostly the next head differs only
in its Content-Length.
"""


class HeadReceived(msgspec.Struct, frozen=True):
    """A request has begun: its head is complete and final."""

    method: str
    target: bytes
    """The path and the query, unchanged."""
    version: str
    """`1.1` or `1.0`."""
    headers: list[Header]
    """In the order of arrival; names are in lower case."""
    length: int | None
    """Bytes of the body; None if it is chunked."""
    keep_alive: bool
    """Whether the connection may serve another request."""
    expects_continue: bool


class _CachedHead(msgspec.Struct):
    """A cached head, split at the number of its Content-Length."""

    before: bytes
    after: bytes
    head: HeadReceived
    headers: tuple[Header, ...]
    """Those of the head, whose list its owner may have changed."""
    at: int
    """The index of the Content-Length."""

    def again(self, block: bytes) -> HeadReceived | None:
        """Return the same head with the number in this block; None if anything else differs, or it is not a number."""
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


def _cache_head(head: HeadReceived, block: bytes, lines: list[bytes]) -> _CachedHead | None:
    """Return the cache entry of a head; None if its Content-Length is absent, or not written in the usual form."""
    if head.length is None:
        return None
    number = b"%d" % head.length
    header = _LENGTH, number
    if header not in head.headers:
        return None
    at = head.headers.index(header)
    if not lines[at].endswith(number):
        return None
    before, _, after = block.partition(CRLF + lines[at])  # there is one, otherwise `_interpret` would have refused it
    name = lines[at].removesuffix(number)
    return _CachedHead(before + CRLF + name, after, head, tuple(head.headers), at)


class HeadReader:
    """Parser of successive heads. A head has at most `most_bytes` bytes, line ends included, and `most_fields`
    fields."""

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
        self._known: dict[bytes, Header] = {}  # parsed lines: most are the same in the next head
        self._first = b""  # the last request line
        self._request = ("", b"", "")
        self._last: _CachedHead | None = None
        self._empty = 0  # bytes of empty lines before the head
        self._line = 0  # start of the first unfinished line, from the first byte of the head
        self._lines = 0  # number of finished lines
        self._seen = 0  # end of the checked bytes
        self.fields: int = 0
        """Fields of the last head."""
        self.size: int = 0
        """Bytes of the last head."""

    def read(self, data: bytes, at: int) -> HeadReceived | None:
        """Return the head that begins at `at`, or None if it is not complete. Raises `UnacceptableRequest`.

        Whether and why a head is refused does not depend on how its bytes are split.
        """
        stop = at + self._most_bytes
        start = at + self._empty
        while data.startswith(CRLF, start) and start < stop:
            start += 2  # "SHOULD ignore at least one empty line (CRLF) received prior to the request-line"
        end = data.find(b"\r\n\r\n", start, stop)
        head = None
        if end >= 0:
            block = data[start:end]
            head = (None if self._last is None else self._last.again(block)) or self._parse(block)
        if head is None:
            self._empty = start - at
            self._check(data, at, start)
            return None
        self.size = end + 4 - at
        self.fields = len(head.headers)
        self._empty = self._line = self._lines = self._seen = 0
        return head

    def _parse(self, block: bytes) -> HeadReceived | None:
        """Parse a complete head; return None if a line is not acceptable: `_check` raises the error."""
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
            match = _REQUEST_LINE.fullmatch(first)
            if match is None:
                return None
            request = match[1].decode(), match[2], f"1.{match[3].decode()}"
            if len(first) <= _KNOWN_BYTES:
                self._first, self._request = first, request
        head = _interpret(request, headers)
        self._last = _cache_head(head, block, lines) if len(block) <= _KNOWN_HEAD_BYTES else None
        return head

    def _field(self, line: bytes) -> Header | None:
        """Return the lower-case name and the value of a field; None for an invalid line."""
        match = _FIELD.fullmatch(line)
        if match is None:
            return None
        header = match[1].lower(), match[2].strip(b" \t")
        if len(line) <= _KNOWN_BYTES:
            if len(self._known) >= _KNOWN_LINES:
                self._known.clear()
            self._known[line] = header
        return header

    def _check(self, data: bytes, at: int, start: int) -> None:
        """Check the new lines, in order."""
        stop = at + self._most_bytes
        line, seen = max(start, at + self._line), at + self._seen
        while (end := end_of_line(data, line, seen, stop)) > line:
            self._check_line(data[line:end])
            line = seen = end + 2
        if len(data) >= stop:
            raise UnacceptableRequest(
                431, f"the head of a request is at most {self._most_bytes:,} bytes here (HTTPLimits.head_bytes)"
            )
        self._line, self._seen = line - at, max(line, len(data) - 1) - at

    def _check_line(self, line: bytes) -> None:
        self._lines += 1
        if self._lines == 1:
            if _REQUEST_LINE.fullmatch(line) is None:
                raise UnacceptableRequest(400, "not HTTP/1.1: a request must begin with METHOD /PATH HTTP/1.1")
        else:
            check_field(line, self._lines - 1, self._most_fields)


def check_field(line: bytes, number: int, limit: int) -> None:
    """Check the line of header or trailer field `number`. Raises `UnacceptableRequest`."""
    if number > limit:
        raise UnacceptableRequest(
            431, f"a request has at most {limit:,} header and trailer fields here (HTTPLimits.head_fields)"
        )
    if _FIELD.fullmatch(line) is None:
        raise UnacceptableRequest(400, "a header field must be `name: value`, on one line")


def _interpret(request: tuple[str, bytes, str], headers: list[Header]) -> HeadReceived:
    """Return the head of this request line and these fields. Raises `UnacceptableRequest`."""
    method, target, version = request
    fields = dict(headers)
    if len(fields) != len(headers):
        fields = _combine_fields(headers)
    keep_alive = is_1_1 = version == "1.1"
    if is_1_1 and b"host" not in fields:
        raise UnacceptableRequest(400, "a request needs a Host header")  # RFC 9112, 3.2
    if target[0] != 0x2F:
        target = _path(method, target, fields.get(b"host"))
    if b"connection" in fields:
        tokens = [token.strip() for token in fields[b"connection"].lower().split(b",")]
        keep_alive = is_1_1 and b"close" not in tokens and not (b"upgrade" in tokens and b"upgrade" in fields)
    length: int | None = 0
    if b"content-length" in fields or b"transfer-encoding" in fields:
        length = _length(fields.get(b"content-length"), fields.get(b"transfer-encoding"), is_1_1)
    expects_continue = is_1_1 and b"expect" in fields and fields[b"expect"].lower() == b"100-continue"
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
    """Return the path of a target that does not begin with one (RFC 9112, 3.2.2 and 3.2.4)."""
    if target == b"*" and method == "OPTIONS":
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise UnacceptableRequest(400, "the target of a request must be a path that begins with /")
    if host is not None and absolute[1].lower() != host.lower():
        raise UnacceptableRequest(400, "the target of the request names another host than its Host header")
    return absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]


def _length(length: bytes | None, encoding: bytes | None, is_1_1: bool) -> int | None:
    """Return the length of the body in bytes, or None for a chunked one (RFC 9112, 6.3)."""
    if encoding is not None:
        if length is not None or not is_1_1:
            raise UnacceptableRequest(
                400, "a request has a Content-Length or a Transfer-Encoding, and in HTTP/1.0 no encoding"
            )
        if encoding.lower() != b"chunked":
            raise UnacceptableRequest(400, "the only Transfer-Encoding here is chunked")
        return None
    if length is None or not length.isdigit() or len(length) > _DIGITS:
        raise UnacceptableRequest(400, "Content-Length must be a number of bytes")
    return int(length)
