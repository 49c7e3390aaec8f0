"""Framing by lines: bytes in, whole messages out, however the bytes are split.

A message ends only at `\\n` (not at U+2028, not at a lone CR). A `\\r` before it stays in place: it is whitespace in
JSON. Blank lines are ignored. The bytes after the last newline at the end of the input are a message.

A line over the limit is skipped, and reported as soon as it exceeds the limit, so that the peer of an endless line gets
an error too. Every byte is read a bounded number of times, also when bytes arrive one by one.
"""

from __future__ import annotations

import msgspec

_SMALL = 4096
_EXCERPT_BYTES = 256
"""Number of bytes that are kept of the beginning and of the end of a skipped line."""


class SkippedMessage(msgspec.Struct, frozen=True):
    """A message that was skipped: the reason, the size so far, and its first bytes.

    It is reported again when the message has ended, with its last bytes.
    """

    reason: str
    size: int
    head: bytes = b""
    tail: bytes = b""


class LineReader:
    """Splits a stream of bytes into lines of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes | bytearray] = []
        self._size = 0  # of the unfinished line
        self._skipped: SkippedMessage | None = None  # the line that is being skipped
        self._tail = b""  # of that line, so far

    def feed(self, data: bytes) -> list[bytes | SkippedMessage]:
        """Return the messages that `data` completes."""
        lines = data.split(b"\n")
        rest = lines.pop()
        messages: list[bytes | SkippedMessage] = []
        if lines and self._size:
            messages += self._finish(lines.pop(0))
        if len(data) <= self._limit:
            for line in lines:
                if line and not line.isspace():
                    messages.append(line)
        else:
            for line in lines:
                messages += self._finish(line)
        if rest:
            messages += self._append(rest)
        return messages

    def end(self) -> list[bytes | SkippedMessage]:
        """Return the last message, if it has no newline at the end of the input."""
        return self._finish(b"")

    def _finish(self, part: bytes) -> list[bytes | SkippedMessage]:
        skipped_messages = self._append(part)
        size, self._size = self._size, 0
        if self._skipped is not None:
            skipped, self._skipped = self._skipped, None
            return [*skipped_messages, SkippedMessage(skipped.reason, size, skipped.head, self._tail)]
        line = b"".join(self._parts)
        self._parts.clear()
        return [] if not line or line.isspace() else [line]

    def _append(self, part: bytes) -> list[bytes | SkippedMessage]:
        self._size += len(part)
        if self._skipped is not None:
            self._tail = (self._tail + part[-_EXCERPT_BYTES:])[-_EXCERPT_BYTES:]
            return []
        if self._size > self._limit:
            return [self._skip(part)]
        # Small pieces share one buffer: a list of them would cost forty times their size.
        if len(part) >= _SMALL:
            self._parts.append(part)
        elif self._parts and isinstance(self._parts[-1], bytearray):
            self._parts[-1] += part
        else:
            self._parts.append(bytearray(part))
        return []

    def _skip(self, part: bytes) -> SkippedMessage:
        """Start to skip the line."""
        parts = [*self._parts, part]
        self._parts.clear()
        head, self._tail = b"", b""
        for each in parts:
            head = (head + each[:_EXCERPT_BYTES])[:_EXCERPT_BYTES]
            self._tail = (self._tail + each[-_EXCERPT_BYTES:])[-_EXCERPT_BYTES:]
        self._skipped = SkippedMessage(f"a line of more than {self._limit:,} bytes was skipped", self._size, head)
        return self._skipped
