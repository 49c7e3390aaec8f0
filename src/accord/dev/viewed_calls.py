"""The calls that a view shows: the newest 1,000, those that match a filter, paused or not."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from accord.dev.view_messages import Dropped, EndedCall, Line, StartedCall, ToView

_MOST_CALLS = 1_000


class Call(msgspec.Struct):
    """One call, and what is known of it."""

    number: int
    at: float
    title: str
    request: str
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
        self._paused: list[ToView] | None = None

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
            self._paused = []
        else:
            self.apply(paused)

    def apply(self, messages: Iterable[ToView]) -> None:
        """Add what has happened."""
        for each in messages:
            if isinstance(each, Dropped):
                self.dropped += each.count
            elif self._paused is not None:
                self._paused.append(each)
                del self._paused[: -2 * _MOST_CALLS]
            elif isinstance(each, StartedCall):
                self._calls[each.number] = Call(each.number, each.at, each.title, each.request)
                if len(self._calls) > _MOST_CALLS:
                    del self._calls[next(iter(self._calls))]
            elif isinstance(each, EndedCall):
                self._end(each)
            elif isinstance(each, Line):
                self.last_line = each.text

    def _end(self, ended: EndedCall) -> None:
        if (call := self._calls.get(ended.number)) is not None:
            call.seconds, call.outcome, call.response = ended.seconds, ended.outcome, ended.response

    def matching(self) -> list[Call]:
        """Return the calls whose title or outcome contains the words of the filter."""
        words = self.filter.lower().split()
        calls = self._calls.values()
        return [each for each in calls if all(word in f"{each.title} {each.outcome}".lower() for word in words)]
