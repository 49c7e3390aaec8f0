"""`accord check --diff OLD NEW`: two servers, or two versions of one, and what those who use it notice.

Each is the file of a surface or a target. Where one is a file, a live server is asked for the revisions that it holds.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from accord.check.surface.changes import changes_by_revision
from accord.check.surface.schema_changes import KINDS, Change, worst_kind
from accord.check.surface.surface import fetch_surfaces, read_surfaces, surface_file
from accord.client.target import Target
from accord.errors import ConnectError
from accord.messages.base import JSONObject
from accord.messages.revision import REVISIONS

_KIND = max(map(len, KINDS)) + 2
_MAX_LENGTH = 10_000
"""Characters of a place, or of what changed there: to wrap a word of megabytes takes minutes."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What changed, the worst first. `old` and `new` are what was compared, in words."""

    old: str
    new: str
    revisions: tuple[str, ...]
    """Those that were compared; where the two have none in common, that of each."""
    changes: tuple[Change, ...]

    @property
    def exit_code(self) -> int:
        """1 where something breaks."""
        return int(worst_kind(self.changes) == "breaking")


async def compare(old: Target, new: Target, *, every: bool = False, **options: Any) -> Comparison:
    """Compare two surfaces: files, or live servers. In the newest revision of the old one, or in `every` revision.

    `options` are those of `Client`, for those that are live. Raises `TargetError` for what is neither a surface nor a
    target, `ConnectError` and what else a client raises.
    """
    kept = _from_file(new)
    was = _from_file(old) or await _from_server(old, REVISIONS if every else tuple(kept or ()), options)
    now = kept or await _from_server(new, REVISIONS if every else tuple(was), options)
    unspoken = [] if kept else [revision for revision in was if revision not in now]
    return Comparison(
        old=str(old),
        new=str(new),
        revisions=tuple(sorted(was.keys() & now.keys() or {max(was), max(now)})),
        changes=tuple(changes_by_revision(was, now, unspoken)),
    )


def _from_file(where: Target) -> dict[str, JSONObject] | None:
    """What a file holds; None for what is live."""
    file = surface_file(where) if isinstance(where, str) else None
    return None if file is None else read_surfaces(file)


async def _from_server(target: Target, revisions: Sequence[str], options: dict[str, Any]) -> dict[str, JSONObject]:
    """In these revisions, or in the newest one where it speaks none of them."""
    try:
        return await fetch_surfaces(target, revisions, **options)
    except ConnectError:
        if not revisions:
            raise
    return await fetch_surfaces(target, **options)


def comparison_lines(comparison: Comparison, width: int = 100) -> Iterator[str]:
    """The comparison for people; what servers say in it stands in one line, and not yet fit for a terminal."""
    counts = {kind: sum(each.kind == kind for each in comparison.changes) for kind in KINDS}
    for each in comparison.changes:
        yield f"{each.kind:{_KIND}}{' '.join(each.place[:_MAX_LENGTH].split())}"
        yield from _wrapped(each.what, width)
        yield from _wrapped(each.why, width)
    if comparison.changes:
        yield ""
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    yield f"{told} ({', '.join(comparison.revisions)})" if comparison.changes else "nothing changed"


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * _KIND
    return textwrap.wrap(
        text[:_MAX_LENGTH], width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
