"""A record of the messages between two peers, as text that people and programs can read: the short form of a session
file.

One line per message, `→` for sent and `←` for received:

    → {"jsonrpc":"2.0","id":1,"method":"ping"}
    ← {"jsonrpc":"2.0","id":1,"result":{}}

A message that is not one line of text (invalid UTF-8, or control characters, which a terminal would execute) is written
as a Python literal, `← b'\\xff'`. Lines with `#` are comments.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from accord.wire.lines import SkippedMessage
from accord.wire.session_file import Entry, MessageDirection, MessageEntry, SkippedEntry, UnansweredEntry

Direction = Literal["→", "←"]
SENT: Direction = "→"
RECEIVED: Direction = "←"
_DIRECTIONS: dict[str, Direction] = {SENT: SENT, RECEIVED: RECEIVED}
ARROWS: dict[MessageDirection, Direction] = {"sent": SENT, "received": RECEIVED}
"""The arrow of each direction in a session file."""

# Control characters, line and paragraph separators, and characters that change the direction of writing.
_NOT_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_OVERHEAD = 128  # bytes of memory of an entry in addition to its message
_SHORTENED = re.compile(r" … \([\d,]+ bytes\)$")


class TranscriptEntry(msgspec.Struct, frozen=True):
    """One message, its direction, and its time (seconds of any one clock)."""

    direction: Direction
    message: bytes | SkippedMessage
    at: float = 0.0

    def render(self, width: int | None = None) -> str:
        """Return one line of text; a message of more than `width` characters is shortened, with its size."""
        if isinstance(self.message, SkippedMessage):
            return f"# {self.direction} {self.message.reason}"
        text = _as_line(self.message)
        if width is not None and len(text) > width:
            text = f"{text[:width]} … ({len(self.message):,} bytes)"
        return f"{self.direction} {text}"


class Transcript:
    """A collection of entries; beyond `limit` bytes, the oldest are dropped and counted in `dropped`."""

    def __init__(self, entries: Iterable[TranscriptEntry] = (), *, limit: int = 64 << 20) -> None:
        self._entries: deque[TranscriptEntry] = deque()
        self._limit = limit
        self._size = 0
        self.dropped: int = 0
        for entry in entries:
            self.add(entry)

    def __iter__(self) -> Iterator[TranscriptEntry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: TranscriptEntry) -> None:
        """Record one message; the newest is always kept."""
        self._entries.append(entry)
        self._size += _size(entry)
        while self._size > self._limit and len(self._entries) > 1:
            self._size -= _size(self._entries.popleft())
            self.dropped += 1

    def write(self, entry: Entry) -> None:
        """Record the message of an entry of a session file; other entries have no short form."""
        if (short := shortened(entry)) is not None:
            self.add(short)

    def render(self, width: int | None = None) -> str:
        """Return the transcript as text, one line per message; without `width` it can be parsed again."""
        lines = [entry.render(width) for entry in self._entries]
        if self.dropped:
            lines.insert(0, f"# {self.dropped:,} earlier messages were dropped")
        return "".join(f"{line}\n" for line in lines)


def shortened(entry: Entry) -> TranscriptEntry | None:
    """Return the short form of an entry of a session file, or None if it has none."""
    match entry:
        case MessageEntry():
            return TranscriptEntry(ARROWS[entry.direction], entry.data, entry.at)
        case SkippedEntry():
            return TranscriptEntry(ARROWS[entry.direction], SkippedMessage(entry.reason, entry.size), entry.at)
        case UnansweredEntry():
            reason = f"no answer to {entry.request!r}: {entry.reason}"
            return TranscriptEntry(RECEIVED, SkippedMessage(reason, 0), entry.at)
    return None


def parse(text: str) -> Transcript:
    """Parse the output of `render`, or a transcript written by hand. Raises `ValueError` with the line."""
    numbered = enumerate(text.split("\n"), 1)
    return Transcript(_entry(line, number) for number, line in numbered if line.strip() and line[0] != "#")


def _entry(line: str, number: int) -> TranscriptEntry:
    arrow, _, message = line.partition(" ")
    if arrow not in _DIRECTIONS:
        raise ValueError(f"line {number} begins with neither {SENT} nor {RECEIVED}: {line[:40]!r}")
    if _SHORTENED.search(message):
        raise ValueError(f"line {number} was shortened when it was written")
    if not message.startswith(("b'", 'b"')):
        return TranscriptEntry(_DIRECTIONS[arrow], message.encode())
    try:
        literal = ast.literal_eval(message)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last for one that is nested too deep
        literal = None
    if not isinstance(literal, bytes):
        raise ValueError(f"line {number} is not a bytes literal: {message[:40]!r}")
    return TranscriptEntry(_DIRECTIONS[arrow], literal)


def _as_line(message: bytes) -> str:
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return repr(message)
    is_plain = text == text.strip() and not text.startswith(("b'", 'b"')) and not _SHORTENED.search(text)
    return text if is_plain and text and not _NOT_A_LINE.search(text) else repr(message)


def _size(entry: TranscriptEntry) -> int:
    return _OVERHEAD + (len(entry.message) if isinstance(entry.message, bytes) else 0)
