"""The surface of a server, kept in a file to be compared: a change of it is a change for every client and every model,
so it should be seen in a review.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from accord.check.surface.changes import surface_changes
from accord.check.surface.schema_changes import KINDS, Change
from accord.check.surface.surface import LISTS, build_surface, encode_surface, offered_lists
from accord.client.target import Target
from accord.errors import MethodNotFound
from accord.messages.base import JSONObject
from accord.sync.client import Client
from accord.testing.files import placed_differences, read_expected, write_expected

_KIND = max(map(len, KINDS))


def assert_surface(
    target: Target | Client, file: str | Path, *, update: bool = False, ignore: Sequence[str] = (), **options: Any
) -> None:
    """Raise `AssertionError` when a server offers something else than `file` says, or there is no such file.

    Each difference is told with what it means to those who use the server: breaking, risky, safe. `update` writes the
    file instead. `ignore` are places that may differ, `*` for any text: `tools.*.description`. `options` are those of
    `Client`: `revisions=["2025-06-18"]` compares what that revision shows.
    """
    __tracebackhide__ = True
    if isinstance(target, Client):
        now = surface(target)
    else:
        with Client(target, **options) as client:
            now = surface(client)
    if update:
        write_expected(Path(file), encode_surface(now))
        return
    was = _read(Path(file))
    found = placed_differences(was, now, ignore)
    if found:
        listed = "\n".join(f"  {line}" for line in _describe_changes(found, was, now))
        raise AssertionError(
            f"the server differs from {file} (differences: {len(found)}; --accord-update, or "
            f"update=True, takes them over):\n{listed}"
        )


def surface(client: Client) -> JSONObject:
    """What a server offers, in the revision that is spoken: tools, prompts, resources and templates, by their names."""
    found: dict[str, Sequence[Any]] = {}
    for kind in offered_lists(client.server_capabilities):
        try:
            found[kind] = getattr(client, LISTS[kind].client_method)()
        except MethodNotFound:  # as `accord.check.surface.surface` has it
            continue
    return build_surface(client.revision, client.instructions, client.server_capabilities, found)


def _describe_changes(found: Sequence[tuple[str, str]], was: Any, now: JSONObject) -> Iterator[str]:
    """The differences, with the kind of change that each belongs to, and what follows from it; the worst first."""
    try:
        known = surface_changes(was, now)
    except ValueError:  # the file holds something else
        yield from (line for _, line in found)
        return
    judged = [(_change_at(place.split("."), known), place, line) for place, line in found]
    for each, place, line in sorted(judged, key=lambda one: KINDS.index(one[0].kind if one[0] else "safe")):
        why = f" ({each.why})" if each and _within(place, each.place) else ""
        yield f"{each.kind if each else 'safe':{_KIND}}  {line}{why}"


def _change_at(place: list[str], known: Sequence[Change]) -> Change | None:
    """The change that a difference belongs to: the closest to its place in the same field of the same thing, and the
    worst of several. Where there is none, the difference means nothing.
    """
    shared = [(_common_prefix(place, each.place.split(".")), each) for each in known]
    closest = max((count for count, _ in shared), default=0)
    return next((each for count, each in shared if count == closest >= min(len(place), 3)), None)


def _common_prefix(place: list[str], other: list[str]) -> int:
    """How many keys two places begin with alike."""
    return next(
        (index for index, (one, two) in enumerate(zip(place, other, strict=False)) if one != two),
        min(len(place), len(other)),
    )


def _within(place: str, other: str) -> bool:
    """Whether one place is the other, or in it."""
    return f"{place}.".startswith(f"{other}.") or f"{other}.".startswith(f"{place}.")


def _read(file: Path) -> Any:
    __tracebackhide__ = True
    try:
        return msgspec.json.decode(read_expected(file))
    except msgspec.DecodeError as exc:
        raise AssertionError(f"{file} is not JSON ({exc}); --accord-update, or update=True, writes it anew") from exc
