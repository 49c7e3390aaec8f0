"""What a visit may cost: time in all, time that is waited in vain, and room for what the server says.

A server that is slow and right is given much time; one that falls silent again and again is not waited for each time.
What is not tried for it is not observed, and the visit says why.
"""

from __future__ import annotations

import time

from accord.check.message_log import MemoryBudget

_WHOLE = 60
"""A visit may take this many times as long as one answer."""
_ORDINARY = 12
"""Ordinary traffic may take this many times as long: a server may have many slow tools."""
_WASTED = 15
"""All waits for answers that do not come may take this many times as long together."""
_CONFIRMATION = 12
"""Trying failures again may take this many times as long."""


class VisitBudget:
    """The budget of a visit that begins now; `timeout` is the one of an answer, in seconds."""

    def __init__(self, timeout: float, room: MemoryBudget, whole: float = _WHOLE) -> None:
        self._whole = whole * timeout
        self._ordinary = _ORDINARY * timeout
        self._timeout = timeout
        self._end = time.monotonic() + self._whole
        self._wasted_left = _WASTED * timeout
        self._memory = room

    @classmethod
    def for_confirmation(cls, timeout: float, room: MemoryBudget) -> VisitBudget:
        """Return a budget that begins now, for trying failures again."""
        return cls(timeout, room, _CONFIRMATION)

    @property
    def remaining(self) -> float:
        """Seconds until the visit has to end."""
        return max(0.0, self._end - time.monotonic())

    @property
    def traffic_seconds(self) -> float:
        """Seconds for ordinary traffic."""
        return min(self.remaining, self._ordinary)

    def extend(self, seconds: float) -> None:
        """Add seconds that were spent on work with a limit of its own."""
        self._end += seconds

    def charge_failure(self, seconds: float) -> None:
        """Charge the seconds of a failed case, if they are at least those that an answer may take."""
        if seconds >= self._timeout:
            self._wasted_left -= seconds

    @property
    def exhausted(self) -> str:
        """Why nothing more is tried, in words; empty while there is something left."""
        if self._memory.exhausted:
            return self._memory.exhausted
        if self._wasted_left <= 0:
            return f"the server did not answer too often: {_WASTED * self._timeout:g} s were waited in vain"
        if not self.remaining:
            return f"it took longer than {self._whole:g} s in all; --timeout gives more"
        return ""
