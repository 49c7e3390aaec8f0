"""Detect growth of the server's memory over many calls. Without /proc, the result is inconclusive."""

from __future__ import annotations

from pathlib import Path

import msgspec

MEMORY = "generated/memory"

_EVERY = 25
"""The number of calls between two samples."""
_WARM_UP_CALLS = 100
"""The number of calls until caches are filled and lazily loaded code is loaded."""
_CALLS = 150
"""The number of calls after the warm-up that a verdict needs."""
_PER_CALL = 256 << 10
_MIN_GROWTH = 96 << 20
"""Bytes: smaller growth, in total or per call, may be uncollected garbage."""


class _MemorySample(msgspec.Struct, frozen=True):
    pid: int
    calls: int
    size: int


class MemoryGrowth:
    """Samples of the memory of one process."""

    def __init__(self) -> None:
        self._first: _MemorySample | None = None
        self._last: _MemorySample | None = None

    def sample(self, pid: int, calls: int) -> None:
        """Take a sample if it is due after `calls` calls; a new process starts a new series."""
        if calls < _WARM_UP_CALLS or calls % _EVERY:
            return
        size = resident_memory(pid)
        if size:
            taken = _MemorySample(pid, calls, size)
            self._first = taken if self._first is None or self._first.pid != pid else self._first
            self._last = taken

    @property
    def is_conclusive(self) -> bool:
        """Return whether one process answered enough calls for a verdict."""
        return self._calls >= _CALLS

    @property
    def problem(self) -> str:
        """Describe the growth, or return an empty text."""
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
    """Return the bytes of memory of a process and its children, or 0 if unknown."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
            continue
        if int(fields[2]) == pid:  # the process group: includes the server that a wrapper such as npx starts
            total += int(fields[21]) * 4096
    return total
