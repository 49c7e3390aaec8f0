"""`accord check --diff OLD NEW`: the differences of two servers, or two versions of one, and their effect on clients.

Each side is the file of a surface, or a target. A running server is compared in the revisions of the file.
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
"""The maximum length in characters of a text that is wrapped, because wrapping a word of megabytes takes minutes."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The changes, the worst first. `old` and `new` are the targets or files."""

    old: str
    new: str
    revisions: tuple[str, ...]
    """The revisions that were compared; without a common one, the newest of each."""
    changes: tuple[Change, ...]

    @property
    def exit_code(self) -> int:
        """Return 1 if a change is breaking, or else 0."""
        return int(worst_kind(self.changes) == "breaking")


async def compare(old: Target, new: Target, *, every: bool = False, **options: Any) -> Comparison:
    """Compare two surfaces, of files or running servers, in the newest revision of the old one, or in `every` revision.

    `options` are those of `Client`, for running servers. Raises `TargetError` for anything that is neither a surface
    nor a target, `ConnectError` and the other errors of a client.
    """
    from_file = _from_file(new)
    was = _from_file(old) or await _from_server(old, REVISIONS if every else tuple(from_file or ()), options)
    now = from_file or await _from_server(new, REVISIONS if every else tuple(was), options)
    unsupported = [] if from_file else [revision for revision in was if revision not in now]
    return Comparison(
        old=str(old),
        new=str(new),
        revisions=tuple(sorted(was.keys() & now.keys() or {max(was), max(now)})),
        changes=tuple(changes_by_revision(was, now, unsupported)),
    )


def _from_file(where: Target) -> dict[str, JSONObject] | None:
    """Return the surfaces of a file, or None for a target."""
    file = surface_file(where) if isinstance(where, str) else None
    return None if file is None else read_surfaces(file)


async def _from_server(target: Target, revisions: Sequence[str], options: dict[str, Any]) -> dict[str, JSONObject]:
    """Return the surfaces in these revisions, or in the newest one if the server supports none of them."""
    try:
        return await fetch_surfaces(target, revisions, **options)
    except ConnectError:
        if not revisions:
            raise
    return await fetch_surfaces(target, **options)


def comparison_lines(comparison: Comparison, width: int = 100) -> Iterator[str]:
    """Yield the lines of the comparison. Texts of servers are on one line, and not yet escaped for a terminal."""
    counts = {kind: sum(each.kind == kind for each in comparison.changes) for kind in KINDS}
    for each in comparison.changes:
        yield f"{each.kind:{_KIND}}{' '.join(each.place[:_MAX_LENGTH].split())}"
        yield from _wrapped(each.what, width)
        yield from _wrapped(each.why, width)
    if comparison.changes:
        yield ""
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    yield f"{summary} ({', '.join(comparison.revisions)})" if comparison.changes else "no changes"


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * _KIND
    return textwrap.wrap(
        text[:_MAX_LENGTH], width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
