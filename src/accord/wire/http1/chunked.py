"""Parser of chunked bodies (RFC 9112, 7.1): it returns chunks, and counts and drops extensions and trailers.

A trailer field must not become a header field, because proxies and checks of the head have not seen it. "A recipient
that removes the chunked coding from a message MAY selectively retain or discard the received trailer fields" (7.1.2):
all are discarded.
"""

from __future__ import annotations

import re

from accord.wire.http1.head import check_field
from accord.wire.http1.lines import CRLF, UnacceptableRequest, end_of_line

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})([ \t]*;.*)?", re.DOTALL)
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})\r\n")
_MAX_SIZE_LINE = 16 + len(CRLF)
"""Length of the line of a chunk without its extensions."""

SMALL_CHUNKS, LEAST_BYTES = 1 << 12, 64
"""A body may have `SMALL_CHUNKS` chunks of any size; further ones need `LEAST_BYTES` on average, because each costs
time."""

_AT_SIZE, _AT_DATA, _AT_END, _AT_TRAILER = range(4)


class ChunkedReader:
    """Parser of one chunked body. The head, chunk extensions and trailers have at most `most_bytes` bytes together, and
    header and trailer fields are at most `most_fields`; the head has used `used_bytes` and `used_fields` of them."""

    __slots__ = (
        "_at",
        "_bytes",
        "_chunks",
        "_content",
        "_fields",
        "_left",
        "_most_bytes",
        "_most_fields",
        "_seen",
        "over",
    )

    def __init__(self, most_bytes: int, most_fields: int, used_bytes: int, used_fields: int) -> None:
        self._most_bytes = most_bytes
        self._most_fields = most_fields
        self._bytes = used_bytes
        self._fields = used_fields
        self._chunks = 0
        self._content = 0  # bytes of all chunks so far
        self._left = 0  # missing bytes of the chunk
        self._at = _AT_SIZE
        self._seen = 0  # checked bytes of an unfinished line
        self.over: bool = False
        """Whether the body has ended."""

    def read(self, data: bytes, at: int, chunks: list[bytes]) -> int:
        """Parse from `at`, append the chunks, and return the end of the parsed part. Raises `UnacceptableRequest`.

        The rest is an unfinished line, to be parsed again with more data, or it follows the body.
        """
        while at < len(data) and not self.over:
            if self._at == _AT_DATA:
                piece = data[at : at + self._left]
                chunks.append(piece)
                at += len(piece)
                self._left -= len(piece)
                self._content += len(piece)
                if not self._left:
                    self._at = _AT_END
            elif self._at == _AT_END:
                if not CRLF.startswith(data[at : at + 2]):
                    raise UnacceptableRequest(400, "a chunk does not end where its size says")
                if at + 2 > len(data):
                    break
                at += 2
                self._at = _AT_SIZE
            elif (end := self._read_whole(data, at, chunks)) > at:
                at = end
            else:
                end = self._line(data, at)
                if end < 0:
                    break
                self._finish(data[at:end])
                at = end + 2
        return at

    def _read_whole(self, data: bytes, at: int, chunks: list[bytes]) -> int:
        """Parse chunks without extensions that are complete, as most are, and return their end. It takes less than half
        of the time that the states need."""
        count, content = self._chunks, self._content
        while self._at == _AT_SIZE and (line := _SIZE_LINE.match(data, at)) is not None:
            begin = line.end()
            end = begin + int(line[1], 16)
            if begin == end or not data.startswith(CRLF, end) or count >= SMALL_CHUNKS + content // LEAST_BYTES:
                break  # the last chunk, an incomplete one, or an error
            count += 1
            content += end - begin
            chunks.append(data[begin:end])
            at = end + 2
        if count > self._chunks:
            self._chunks, self._content, self._seen = count, content, 0
        return at

    def _line(self, data: bytes, at: int) -> int:
        """Return the end of the line at `at`, or -1 if it is not complete."""
        stop = at + self._most_bytes - self._bytes + _MAX_SIZE_LINE
        end = end_of_line(data, at, at + self._seen, stop)
        if end < 0 and len(data) >= stop:
            raise self._too_much()
        self._seen = 0 if end >= 0 else len(data) - at - 1
        return end

    def _finish(self, line: bytes) -> None:
        if self._at == _AT_SIZE:
            self._begin(line)
        elif line:
            self._charge(len(line) + len(CRLF))
            self._fields += 1
            check_field(line, self._fields, self._most_fields)
        else:
            self.over = True

    def _begin(self, line: bytes) -> None:
        size = _SIZE.fullmatch(line)
        if size is None:
            raise UnacceptableRequest(400, "a chunk must begin with its size in hexadecimal")
        if size[2] is not None:
            self._charge(len(size[2]))
        self._chunks += 1
        if self._chunks > SMALL_CHUNKS + self._content // LEAST_BYTES:
            raise UnacceptableRequest(413, "the body has too many small chunks; send fewer, larger ones")
        self._left = int(size[1], 16)
        self._at = _AT_DATA if self._left else _AT_TRAILER

    def _charge(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise self._too_much()

    def _too_much(self) -> UnacceptableRequest:
        what = f"head, chunk extensions and trailers have at most {self._most_bytes:,} bytes here"
        return UnacceptableRequest(431, f"{what} (HTTPLimits.head_bytes)")
