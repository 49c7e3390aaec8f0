"""Whether the process of a server grows with the calls that it answers. Where there is no /proc nobody can say."""

from __future__ import annotations

from pathlib import Path

import msgspec

MEMORY = "generated/memory"

_EVERY = 25
"""Calls between two looks."""
_WARM_UP_CALLS = 100
"""Calls until the caches of a server are full, and what it loads when first used is loaded."""
_CALLS = 150
"""So many calls, after those, are enough to judge."""
_PER_CALL = 256 << 10
_MIN_GROWTH = 96 << 20
"""Bytes: less than this, or less than `_PER_CALL` a call, may be garbage that was not collected yet."""


class _MemorySample(msgspec.Struct, frozen=True):
    pid: int
    calls: int
    size: int


class MemoryGrowth:
    """Looks at the memory of one process now and then."""

    def __init__(self) -> None:
        self._first: _MemorySample | None = None
        self._last: _MemorySample | None = None

    def sample(self, pid: int, calls: int) -> None:
        """Once for each so many `calls` that were made so far; a process that is new is looked at anew."""
        if calls < _WARM_UP_CALLS or calls % _EVERY:
            return
        size = resident_memory(pid)
        if size:
            look = _MemorySample(pid, calls, size)
            self._first = look if self._first is None or self._first.pid != pid else self._first
            self._last = look

    @property
    def is_conclusive(self) -> bool:
        """Whether one process was looked at long enough."""
        return self._calls >= _CALLS

    @property
    def problem(self) -> str:
        """What is wrong, in words; empty where nothing is."""
        if not self.is_conclusive or self._first is None or self._last is None:
            return ""
        grown = self._last.size - self._first.size
        if grown < max(_MIN_GROWTH, _PER_CALL * self._calls):
            return ""
        return f"in {self._calls} calls its memory grew by {grown >> 20} MB, to {self._last.size >> 20} MB"

    @property
    def _calls(self) -> int:
        if self._first is None or self._last is None or self._first.pid != self._last.pid:
            return 0
        return self._last.calls - self._first.calls


def resident_memory(pid: int) -> int:
    """Bytes of memory of a process, and of those it started; 0 where that is not known."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[2]) == pid:  # its group: a wrapper (npx, uvx) is small, what it starts is not
            total += int(fields[21]) * 4096
    return total
