"""Places in the specification: `server/tools#error-handling` of a revision, as a URL.

Pages were moved, split and joined: a rule names the place of each time, and is shown those that a revision has.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.messages.base import Life
from accord.messages.revision import lives_in

_SITE = "https://modelcontextprotocol.io/specification"

_LIVES: dict[str, Life] = {
    "basic/messages": Life(until="2025-03-26"),
    "basic/lifecycle": Life(until="2026-07-28"),
    "basic/utilities": Life(until="2026-07-28"),
    "basic/versioning": Life(since="2026-07-28"),
    "basic/patterns": Life(since="2026-07-28"),
    "server/discover": Life(since="2026-07-28"),
    "schema": Life(since="2025-06-18"),
}
"""Of pages, and of folders of pages, that not every revision has."""


def url(place: str, revision: str) -> str:
    """Where a place is in a revision; a place that is a URL already is left as it is."""
    page, sign, section = place.partition("#")
    return place if "://" in place else f"{_SITE}/{revision}/{page.removesuffix('/index')}{sign}{section}"


def urls(places: Sequence[str], revision: str) -> tuple[str, ...]:
    """Where a rule stands in a revision: those of its places that the revision has; all, if it has none."""
    return tuple(url(place, revision) for place in [each for each in places if _lives(each, revision)] or places)


def _lives(place: str, revision: str) -> bool:
    page = place.partition("#")[0]
    life = _LIVES.get(page) or _LIVES.get(page.rpartition("/")[0])
    return life is None or lives_in(revision, *life)
