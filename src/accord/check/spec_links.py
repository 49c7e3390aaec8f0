"""Places in the specification: `server/tools#error-handling` of a revision, as a URL.

Pages were moved, split and joined: a rule names the place of each time, and is shown those that a revision has.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.messages.base import Life
from accord.messages.revision import is_in_revision

_SITE = "https://modelcontextprotocol.io/specification"

_PAGE_LIVES: dict[str, Life] = {
    "basic/messages": Life(until="2025-03-26"),
    "basic/lifecycle": Life(until="2026-07-28"),
    "basic/utilities": Life(until="2026-07-28"),
    "basic/versioning": Life(since="2026-07-28"),
    "basic/patterns": Life(since="2026-07-28"),
    "server/discover": Life(since="2026-07-28"),
    "schema": Life(since="2025-06-18"),
}
"""Of pages, and of folders of pages, that not every revision has."""


def spec_url(place: str, revision: str) -> str:
    """Where a place is in a revision; a place that is a URL already is left as it is."""
    page, sign, section = place.partition("#")
    return place if "://" in place else f"{_SITE}/{revision}/{page.removesuffix('/index')}{sign}{section}"


def spec_urls(places: Sequence[str], revision: str) -> tuple[str, ...]:
    """Where a rule stands in a revision: those of its places that the revision has; all, if it has none."""
    return tuple(
        spec_url(place, revision) for place in [each for each in places if _exists_in(each, revision)] or places
    )


def _exists_in(place: str, revision: str) -> bool:
    page = place.partition("#")[0]
    life = _PAGE_LIVES.get(page) or _PAGE_LIVES.get(page.rpartition("/")[0])
    return life is None or is_in_revision(revision, *life)
