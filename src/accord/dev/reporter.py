"""What the developer sees: a line on stderr for each reload and each call, and the records for attached views."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from accord.check.surface.schema_changes import Change
from accord.dev.actions import TookOver
from accord.dev.view_messages import EndedCall, Line, StartedCall, ViewEvent
from accord.visible_text import single_line
from accord.wire.session_redaction import SessionRedaction

LIST_SECONDS = 5.0
"""How long a host has to request the lists that have changed."""

_MESSAGE_BYTES = 1 << 18
"""Limit of a message that a view can open."""

_TEXT_CHARACTERS = 300
"""Limit of the title and of the outcome of a call."""

_NOT_ANNOUNCED = ("instructions", "capabilities")


class Reporter:
    """Reports on the program `target`: `show` receives each line, `publish` each line and each call."""

    def __init__(
        self, target: str, show: Callable[[str], None], publish: Callable[[ViewEvent], None] = lambda event: None
    ) -> None:
        self._target = target
        self._show = show
        self._publish = publish
        self._redaction = SessionRedaction()
        self._calls: dict[object, tuple[StartedCall, float]] = {}
        self._numbers = count(1)
        self._timer: asyncio.TimerHandle | None = None  # of the last reload

    def line(self, text: str) -> None:
        """Show a line."""
        self._show(text)
        self._publish(Line(time.time(), text))

    def close(self) -> None:
        """Report nothing more later."""
        if self._timer is not None:
            self._timer.cancel()

    # --- calls ----------------------------------------------------------------------------------------------------

    def call_started(self, key: object, title: str, request: bytes) -> None:
        """Note a call; `key` identifies it until it ends. Title and outcome are shown without secrets: a URI may have
        some.
        """
        started = StartedCall(next(self._numbers), time.time(), self._short(title), _text(request))
        self._calls[key] = started, time.perf_counter()
        self._publish(started)

    def call_ended(self, key: object, outcome: str, response: bytes) -> None:
        """Show the line of a call; nothing if it is no call."""
        if (found := self._calls.pop(key, None)) is None:
            return
        started, began = found
        seconds = time.perf_counter() - began
        outcome = self._short(outcome)
        self._show(single_line(f"{started.title}: {outcome}, {seconds * 1000:.0f} ms"))
        self._publish(EndedCall(started.number, seconds, outcome, _text(response)))

    def _short(self, text: str) -> str:
        """Return a text without secrets; a long one is cut, so that no message of a host makes a long line."""
        start = self._redaction.text(text[: 4 * _TEXT_CHARACTERS])
        if len(text) <= 4 * _TEXT_CHARACTERS and len(start) <= _TEXT_CHARACTERS:
            return start
        return f"{start[:_TEXT_CHARACTERS]} … ({len(text):,} characters)"

    # --- reloads --------------------------------------------------------------------------------------------------

    def reloaded(self, took_over: TookOver, seconds: float, list_requests: Callable[[], int]) -> None:
        """Show the line of a reload, its changes, and what a session cannot be notified of."""
        for line in _reload_lines(self._target, took_over, seconds):
            self.line(line)
        if took_over.announced:
            self.close()
            check = (list_requests(), list_requests, took_over.announced)
            self._timer = asyncio.get_running_loop().call_later(LIST_SECONDS, self._check_listed, *check)

    def _check_listed(self, before: int, list_requests: Callable[[], int], kinds: Sequence[str]) -> None:
        if list_requests() == before:
            self.line(
                f"the host has not requested the changed lists ({', '.join(kinds)}) within {LIST_SECONDS:g} s: it "
                "probably ignores list_changed; reconnect it, or use `accord dev --search`"
            )

    def start_failed(self, reason: str, *, runs: bool) -> None:
        """Show that a version does not start; its stderr has been shown. `runs` is whether an earlier one does."""
        effect = "the last good version continues" if runs else "calls fail with this reason until it is repaired"
        short = reason.partition("; last lines of stderr")[0]
        self.line(f"{self._target} could not be started: {short}; {effect}")

    def restarts(self, reason: str) -> None:
        """Show that the program has ended and starts again."""
        self.line(f"{self._target} ended and starts again: {reason}")


def _text(message: bytes) -> str:
    if len(message) > _MESSAGE_BYTES:
        return f"{len(message):,} bytes: too large to show"
    return message.decode(errors="replace")


def _reload_lines(target: str, took_over: TookOver, seconds: float) -> Iterator[str]:
    announced = f"; announced: {', '.join(took_over.announced)}" if took_over.announced else "; nothing to announce"
    yield f"{target} reloaded in {seconds * 1000:.0f} ms{announced}"
    for change in took_over.changes:
        yield "  " + single_line(f"{change.kind}: {change.place}: {change.what}")
    if hidden := _not_announced(took_over.changes):
        yield f"  the host still has the old {' and '.join(hidden)}: reconnect it to update them"


def _not_announced(changes: Sequence[Change]) -> list[str]:
    places = {change.place.partition(".")[0] for change in changes}
    return [name for name in _NOT_ANNOUNCED if name in places]
