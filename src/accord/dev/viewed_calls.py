"""The calls that a view shows: the newest, those that match a filter, paused or not."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

import msgspec

from accord.dev.view_messages import Dropped, EndedCall, Hello, Line, StartedCall, ToView, ViewEvent, size_of

_MOST_CALLS = 1_000
_MOST_CHARACTERS = 1 << 26
"""Limit of the messages of these calls, and of what has happened since the pause."""


class Call(msgspec.Struct):
    """One call, and what is known of it."""

    number: int
    at: float
    title: str
    request: str
    size: int
    """About how many characters it takes."""
    seconds: float | None = None
    """The duration; None while it is in progress."""
    outcome: str = "in progress"
    response: str = ""

    @property
    def is_failure(self) -> bool:
        """Return whether it has ended without success."""
        return self.seconds is not None and self.outcome != "ok"

    def columns(self) -> tuple[str, str, str]:
        """Return time, duration, and title with outcome."""
        duration = "" if self.seconds is None else f"{self.seconds * 1000:,.0f} ms"
        return time.strftime("%H:%M:%S", time.localtime(self.at)), duration, f"{self.title}: {self.outcome}"


class ViewedCalls:
    """The state of a view."""

    def __init__(self) -> None:
        self.last_line: str = ""
        """The last line that the developer was shown."""
        self.dropped: int = 0
        """The number of messages that this view was too slow for."""
        self.filter: str = ""
        self._calls: dict[int, Call] = {}
        self._size = 0
        self._paused: deque[ViewEvent] | None = None
        self._paused_size = 0

    @property
    def is_paused(self) -> bool:
        """Return whether the list stands still."""
        return self._paused is not None

    @property
    def waiting(self) -> int:
        """Return the number of calls that have started since the pause."""
        return sum(isinstance(each, StartedCall) for each in self._paused or ())

    def toggle_pause(self) -> None:
        """Let the list stand still, or show what has happened since."""
        paused, self._paused = self._paused, None
        if paused is None:
            self._paused, self._paused_size = deque(), 0
        else:
            self.apply(paused)

    def apply(self, messages: Iterable[ToView]) -> None:
        """Add what has happened."""
        for each in messages:
            if isinstance(each, Dropped):
                self.dropped += each.count
            elif isinstance(each, Hello):
                continue
            elif self._paused is not None:
                self._keep(self._paused, each)
            elif isinstance(each, StartedCall):
                self._start(each)
            elif isinstance(each, EndedCall):
                self._end(each)
            elif isinstance(each, Line):
                self.last_line = each.text

    def _keep(self, paused: deque[ViewEvent], event: ViewEvent) -> None:
        paused.append(event)
        self._paused_size += size_of(event)
        while len(paused) > 2 * _MOST_CALLS or self._paused_size > _MOST_CHARACTERS:
            self._paused_size -= size_of(paused.popleft())

    def _start(self, started: StartedCall) -> None:
        size = size_of(started)
        self._calls[started.number] = Call(started.number, started.at, started.title, started.request, size)
        self._size += size
        self._remove_oldest()

    def _end(self, ended: EndedCall) -> None:
        if (call := self._calls.get(ended.number)) is not None:
            call.seconds, call.outcome, call.response = ended.seconds, ended.outcome, ended.response
            size = size_of(ended)
            call.size += size
            self._size += size
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        while len(self._calls) > _MOST_CALLS or self._size > _MOST_CHARACTERS:
            call = self._calls.pop(next(iter(self._calls)))
            self._size -= call.size

    def matching(self) -> list[Call]:
        """Return the calls whose title or outcome contains the words of the filter."""
        words = self.filter.lower().split()
        calls = self._calls.values()
        return [each for each in calls if all(word in f"{each.title} {each.outcome}".lower() for word in words)]
