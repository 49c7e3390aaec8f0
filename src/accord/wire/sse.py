"""Server-sent events: encoding of one event, and a parser for bytes, however they are split.

    encode(b'{"jsonrpc":"2.0",...}', id="4-1")      b'id: 4-1\\ndata: {"jsonrpc":"2.0",...}\\n\\n'
    parser.feed(chunk)                              [ServerSentEvent(data=b'{"jsonrpc":"2.0",...}', id="4-1")]

The parser follows the HTML standard (9.2.6, Interpreting an event stream): lines end at LF, CR or CRLF, a BOM may come
first, comments and unknown fields are ignored, and an event without a blank line at its end is discarded.

An event over the limit is skipped, and reported in the same way as a line of `lines.LineReader`: as soon as it exceeds
the limit, and again when it has ended. Every byte is read a bounded number of times, also when bytes arrive one by one.
"""

from __future__ import annotations

import re

import msgspec

from accord.wire.lines import SkippedMessage

KEEP_ALIVE = b":\n\n"
"""A comment, which shows that the stream is alive."""

_LF, _CR = b"\n\r"
"""As numbers: the search for them takes a fifth of the time."""
_BOM = b"\xef\xbb\xbf"
_DATA = b"data:"
_FIELD_BYTES = 8 << 10
"""Limit of a line without data; a longer one is ignored, because no header could carry such an id."""
_RETRY_DIGITS = 15
_EXCERPT_BYTES = 256
"""Number of bytes that are kept of the beginning and of the end of a skipped event."""
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f]")


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event. `data` is UTF-8, its lines joined by LF; `retry` is in milliseconds.

    `id` is that of the event itself: "" clears the previous one, None leaves it. An event with empty `data` is not a
    message: with an `id` or a `retry`, it prepares the client for resumption.
    """

    data: bytes = b""
    event: str = "message"
    id: str | None = None
    retry: int | None = None


def encode(data: bytes, *, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """Encode one event; lines of `data` may have any line ends, `retry` is in milliseconds.

    Raises `ValueError` for an `event` or `id` with control characters: it would end the field, or be ignored.
    """
    if _LF in data or _CR in data:
        data = _normalize_newlines(data).replace(b"\n", b"\ndata: ")
    fields = b"" if event is None else _field("event", event)
    if id is not None:
        fields += _field("id", id)
    if retry is not None:
        fields += b"retry: %d\n" % retry
    return b"%bdata: %b\n\n" % (fields, data)


def _field(name: str, value: str) -> bytes:
    if not value.isprintable() and _CONTROLS.search(value):
        raise ValueError(f"the {name} of a server-sent event cannot have control characters: {value!r}")
    return f"{name}: {value}\n".encode()


def _normalize_newlines(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class SSEParser:
    """Parser of one event stream with at most `max_bytes` of data per event. A resumed stream needs a new parser."""

    def __init__(self, max_bytes: int) -> None:
        self._limit = max_bytes
        self._head: bytes | None = b""  # first bytes of the stream, until it is known whether they are a BOM
        self._after_cr = False  # an LF that follows belongs to it
        self._line = bytearray()  # the unfinished line, unless it is a long one
        self._long: bool | None = None  # of an unfinished long line: whether its rest is data
        self._data: bytearray | None = None  # of the unfinished event, as the next three fields
        self._name = ""
        self._id: str | None = None
        self._retry: int | None = None
        self._skipped: SkippedMessage | None = None
        self._size = 0  # of the skipped event
        self._tail = b""
        self._events: list[ServerSentEvent | SkippedMessage] = []
        self.last_id: str | None = None
        """The id for resumption: of the last complete event that had one."""
        self.retry: int | None = None
        """Milliseconds to wait before a reconnect, as last set by the server."""

    def feed(self, chunk: bytes) -> list[ServerSentEvent | SkippedMessage]:
        """Return the events that `chunk` completes, and reports of skipped ones."""
        lines = self._normalize(chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            self._end_line(line)
        if rest:
            self._append(rest)
        events, self._events = self._events, []
        return events

    def _normalize(self, chunk: bytes) -> bytes:
        """Return the chunk with LF as line ends, and without a BOM."""
        if self._head is not None and chunk:
            chunk = self._head + chunk
            undecided = len(chunk) < len(_BOM) and _BOM.startswith(chunk)
            self._head = chunk if undecided else None
            chunk = b"" if undecided else chunk.removeprefix(_BOM)
        if self._after_cr and chunk:
            chunk, self._after_cr = chunk.removeprefix(b"\n"), False
        if _CR in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = _normalize_newlines(chunk)
        return chunk

    # --- lines -------------------------------------------------------------------------------------------------

    def _append(self, part: bytes) -> None:
        """Add a part of an unfinished line. Only short lines are buffered."""
        if self._long is not None:
            self._add(part)
            return
        self._line += part
        if len(self._line) > _FIELD_BYTES:
            line, self._line = bytes(self._line), bytearray()
            self._long = line.startswith(_DATA)
            if self._long:
                self._begin_data()
                self._add(_value(line))

    def _end_line(self, part: bytes) -> None:
        if self._long is not None:
            self._add(part)
            self._long = None
            return
        if self._line:
            part, self._line = bytes(self._line) + part, bytearray()
        if not part:
            self._end_event()
        elif part.startswith(_DATA) or part == b"data":
            self._begin_data()
            self._add(_value(part))
        elif len(part) <= _FIELD_BYTES:
            self._read_field(part)

    def _read_field(self, line: bytes) -> None:
        """Process a field other than data. Comments and unknown fields are ignored."""
        name, value = line.partition(b":")[0], _value(line)
        if name == b"event":
            self._name = value.decode(errors="replace")
        elif name == b"id":
            id = value.decode(errors="replace")
            if not _CONTROLS.search(
                id
            ):  # "If the field value does not contain U+0000 NULL"; no header takes the others
                self._id = id
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self._retry = self.retry = int(value)

    # --- data --------------------------------------------------------------------------------------------------

    def _begin_data(self) -> None:
        if self._data is None:
            self._data = bytearray()
        else:
            self._add(b"\n")

    def _add(self, part: bytes) -> None:
        if self._long is False:  # the rest of a long line without data
            return
        if self._skipped is not None:
            self._size += len(part)
            self._tail = (self._tail + part[-_EXCERPT_BYTES:])[-_EXCERPT_BYTES:]
            return
        assert self._data is not None, "data was begun"
        self._data += part
        if len(self._data) > self._limit:
            self._skip(self._data)

    def _skip(self, data: bytearray) -> None:
        """Start to skip the event."""
        self._size, self._tail, self._data = len(data), bytes(data[-_EXCERPT_BYTES:]), bytearray()
        reason = f"a server-sent event of more than {self._limit:,} bytes was skipped"
        self._skipped = SkippedMessage(reason, self._size, bytes(data[:_EXCERPT_BYTES]))
        self._events.append(self._skipped)

    # --- events ------------------------------------------------------------------------------------------------

    def _end_event(self) -> None:
        if self._id is not None:  # only now: a stream must not be resumed after an incomplete event
            self.last_id = self._id or None
        if self._skipped is not None:
            self._events.append(SkippedMessage(self._skipped.reason, self._size, self._skipped.head, self._tail))
            self._skipped = None
        elif self._data is not None or self._id is not None or self._retry is not None:
            self._events.append(
                ServerSentEvent(bytes(self._data or b""), self._name or "message", self._id, self._retry)
            )
        self._data, self._name, self._id, self._retry = None, "", None, None


def _value(line: bytes) -> bytes:
    """Return the text after the colon, without one leading space."""
    return line.partition(b":")[2].removeprefix(b" ")
