"""Framing by lines: bytes in, whole messages out, whatever way the bytes were cut.

A message ends at `\\n` and nowhere else (not at U+2028, not at a lone CR). A `\\r` before it is left
in place: for JSON it is whitespace. Blank lines are no messages. What stands after the last newline
when the input ends is a message.

A line over the limit is skipped, and told once, as soon as it passes the limit: a peer that sends
an endless line still hears about it. Every byte is looked at a bounded number of times, also when
they come one by one.
"""

from __future__ import annotations

import msgspec

_SMALL = 4096
_EXCERPT_BYTES = 256
"""How much is kept of the beginning and of the end of a line that is skipped."""


class SkippedMessage(msgspec.Struct, frozen=True):
    """In the place of a message that was skipped: why, from which size on, and how it began.

    It comes once more when the message has ended, with how it ended.
    """

    reason: str
    size: int
    head: bytes = b""
    tail: bytes = b""


class LineReader:
    """Cuts a stream of bytes into lines of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes | bytearray] = []
        self._size = 0  # of the unfinished line
        self._skipped: SkippedMessage | None = None  # the line that is being skipped
        self._tail = b""  # of that line, so far

    def feed(self, data: bytes) -> list[bytes | SkippedMessage]:
        """The messages that `data` completes."""
        lines = data.split(b"\n")
        rest = lines.pop()
        found: list[bytes | SkippedMessage] = []
        if lines and self._size:
            found += self._finish(lines.pop(0))
        if len(data) <= self._limit:
            found += [line for line in lines if line and not line.isspace()]
        else:
            for line in lines:
                found += self._finish(line)
        if rest:
            found += self._append(rest)
        return found

    def end(self) -> list[bytes | SkippedMessage]:
        """The input has ended: what was left without a newline."""
        return self._finish(b"")

    def _finish(self, part: bytes) -> list[bytes | SkippedMessage]:
        found = self._append(part)
        size, self._size = self._size, 0
        if self._skipped is not None:
            skipped, self._skipped = self._skipped, None
            return [*found, SkippedMessage(skipped.reason, size, skipped.head, self._tail)]
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
        """From here on the line is skipped."""
        parts = [*self._parts, part]
        self._parts.clear()
        head, self._tail = b"", b""
        for each in parts:
            head = (head + each[:_EXCERPT_BYTES])[:_EXCERPT_BYTES]
            self._tail = (self._tail + each[-_EXCERPT_BYTES:])[-_EXCERPT_BYTES:]
        self._skipped = SkippedMessage(f"a line of more than {self._limit:,} bytes was skipped", self._size, head)
        return self._skipped
