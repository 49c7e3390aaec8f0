"""The lines that the developer reads on stderr: one per reload, and one per call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.surface.schema_changes import Change
from accord.dev.actions import TookOver
from accord.visible_text import single_line

LIST_SECONDS = 5.0
"""How long a host has to request the lists that have changed."""

_NOT_ANNOUNCED = ("instructions", "capabilities")


def reload_lines(target: str, took_over: TookOver, seconds: float) -> Iterator[str]:
    """Yield the line of a reload, its changes, and what a session cannot be notified of."""
    announced = f"; announced: {', '.join(took_over.announced)}" if took_over.announced else "; nothing to announce"
    yield f"{target} reloaded in {seconds * 1000:.0f} ms{announced}"
    for change in took_over.changes:
        yield "  " + single_line(f"{change.kind}: {change.place}: {change.what}")
    if hidden := _hidden(took_over.changes):
        yield f"  the host still has the old {' and '.join(hidden)}: reconnect it to update them"


def _hidden(changes: Sequence[Change]) -> list[str]:
    places = {change.place.partition(".")[0] for change in changes}
    return [name for name in _NOT_ANNOUNCED if name in places]


def failed_line(target: str, reason: str, *, runs: bool) -> str:
    """Return the line for a version that does not start; its stderr has been shown."""
    effect = "the last good version continues" if runs else "calls fail with this reason until it is repaired"
    return f"{target} could not be started: {reason.partition('; last lines of stderr')[0]}; {effect}"


def call_line(what: str, outcome: str, seconds: float) -> str:
    """Return the line of one call."""
    return single_line(f"{what}: {outcome}, {seconds * 1000:.0f} ms")


def not_listed_line(kinds: Sequence[str]) -> str:
    """Return the line for a host that ignores `list_changed`."""
    return (
        f"the host has not requested the changed lists ({', '.join(kinds)}) within {LIST_SECONDS:g} s: it probably "
        "ignores list_changed; reconnect it, or use `accord dev --search`"
    )
