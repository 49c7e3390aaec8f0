"""Server-sent events: one event as bytes, and bytes, whatever way they were cut, as events.

    encode(b'{"jsonrpc":"2.0",...}', id="4-1")      b'id: 4-1\\ndata: {"jsonrpc":"2.0",...}\\n\\n'
    parser.feed(chunk)                               [Event(data=b'{"jsonrpc":"2.0",...}', id="4-1")]

Read as the HTML standard says (9.2.6, Interpreting an event stream): lines end at LF, CR or CRLF, a BOM may come first,
comments and unknown fields are passed over, and an event that was not ended by a blank line never was one.

An event over the limit is skipped, and told as `lines.LineReader` tells of a line: once as soon as it passes the limit,
and once more when it has ended. Every byte is looked at a bounded number of times, also when they come one by one.
"""

from __future__ import annotations

import re

import msgspec

from accord.wire.lines import SkippedMessage

KEEP_ALIVE = b":\n\n"
"""A comment: it says that the stream is alive, and nothing else."""

_LF, _CR = b"\n\r"
"""As numbers: so they are found in a fifth of the time."""
_BOM = b"\xef\xbb\xbf"
_DATA = b"data:"
_FIELD_BYTES = 8 << 10
"""A longer line that is no data is passed over: no header could carry such an id."""
_RETRY_DIGITS = 15
_EXCERPT_BYTES = 256
"""How much is kept of the beginning and of the end of an event that is skipped."""
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f]")


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event. `data` is UTF-8, its lines joined by LF; `retry` is in milliseconds.

    `id` is the one that stands in the event itself: "" takes back the one before, None says nothing. Where `data` is
    empty the event is no message: with an `id` or a `retry`, it primes the client to come back.
    """

    data: bytes = b""
    event: str = "message"
    id: str | None = None
    retry: int | None = None


def encode(data: bytes, *, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """One event; lines of `data` may end in any way, `retry` is in milliseconds.

    Raises `ValueError` for an `event` or `id` with control characters: it would end the field, or not be taken.
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
    """Reads one stream of events whose data is at most `max_bytes`. A stream that is resumed needs a new one."""

    def __init__(self, max_bytes: int) -> None:
        self._limit = max_bytes
        self._head: bytes | None = b""  # of the stream, until it is known whether it begins with a BOM
        self._after_cr = False  # an LF that comes next belongs to it
        self._line = bytearray()  # the unfinished line, unless it is a long one
        self._long: bool | None = None  # the unfinished line is a long one: whether its rest is data
        self._data: bytearray | None = None  # of the unfinished event, as the fields below
        self._name = ""
        self._id: str | None = None
        self._retry: int | None = None
        self._skipped: SkippedMessage | None = None
        self._size = 0  # of the event that is skipped
        self._tail = b""
        self._events: list[ServerSentEvent | SkippedMessage] = []
        self.last_id: str | None = None
        """The id to resume the stream from: of the last event that ended and had one."""
        self.retry: int | None = None
        """Milliseconds to wait before coming back, as the server last said."""

    def feed(self, chunk: bytes) -> list[ServerSentEvent | SkippedMessage]:
        """The events that `chunk` ends, and what there is to tell of those that are skipped."""
        lines = self._normal(chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            self._end_line(line)
        if rest:
            self._append(rest)
        found, self._events = self._events, []
        return found

    def _normal(self, chunk: bytes) -> bytes:
        """The chunk with LF at the end of its lines, and without a BOM."""
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
        """More of an unfinished line. Only short ones wait for their end."""
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
        """A field other than data. Comments have no name, and other names no meaning."""
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
        if self._long is False:  # the rest of a long line that is no data
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
        """From here on the event is skipped."""
        self._size, self._tail, self._data = len(data), bytes(data[-_EXCERPT_BYTES:]), bytearray()
        reason = f"a server-sent event of more than {self._limit:,} bytes was skipped"
        self._skipped = SkippedMessage(reason, self._size, bytes(data[:_EXCERPT_BYTES]))
        self._events.append(self._skipped)

    # --- events ------------------------------------------------------------------------------------------------

    def _end_event(self) -> None:
        if self._id is not None:  # only now: an event that was cut off is not to be resumed after
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
    """What stands after the colon, without one space."""
    return line.partition(b":")[2].removeprefix(b" ")
