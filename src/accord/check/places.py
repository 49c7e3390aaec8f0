"""Places in the specification: `server/tools#error-handling` of a revision, as a URL."""

from __future__ import annotations

_SITE = "https://modelcontextprotocol.io/specification"


def url(place: str, revision: str) -> str:
    """Where a place is in a revision; a place that is a URL already is left as it is."""
    return place if "://" in place else f"{_SITE}/{revision}/{place}"
