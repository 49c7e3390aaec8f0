"""The surface of a server in a file: a change of it affects every client and model, so that a review should see it."""

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
from accord.testing.files import differences_by_path, read_expected, write_expected

_KIND = max(map(len, KINDS))


def assert_surface(
    target: Target | Client, file: str | Path, *, update: bool = False, ignore: Sequence[str] = (), **options: Any
) -> None:
    """Raise `AssertionError` if a server offers something other than `file` says, or the file is missing.

    Each difference is reported with its effect on clients: breaking, risky, safe. `update` writes the file instead.
    `ignore` are paths that may differ, `*` for any text: `tools.*.description`. `options` are those of `Client`:
    `revisions=["2025-06-18"]` compares what that revision shows.
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
    changes = differences_by_path(was, now, ignore)
    if changes:
        lines = "\n".join(f"  {line}" for line in _describe_changes(changes, was, now))
        raise AssertionError(
            f"the server differs from {file} (differences: {len(changes)}; --accord-update, or "
            f"update=True, accepts them):\n{lines}"
        )


def surface(client: Client) -> JSONObject:
    """Return the tools, prompts, resources and templates of a server by name, in the negotiated revision."""
    lists: dict[str, Sequence[Any]] = {}
    for kind in offered_lists(client.server_capabilities):
        try:
            lists[kind] = getattr(client, LISTS[kind].client_method)()
        except MethodNotFound:  # `accord.check.surface.surface` does the same
            continue
    return build_surface(client.revision, client.instructions, client.server_capabilities, lists)


def _describe_changes(lines: Sequence[tuple[str, str]], was: Any, now: JSONObject) -> Iterator[str]:
    """Yield the differences with their kind and effect, the worst first."""
    try:
        changes = surface_changes(was, now)
    except ValueError:  # the file contains another kind of JSON
        yield from (line for _, line in lines)
        return
    judged = [(_change_at(path.split("."), changes), path, line) for path, line in lines]
    for change, path, line in sorted(judged, key=lambda item: KINDS.index(item[0].kind if item[0] else "safe")):
        effect = f" ({change.why})" if change and _within(path, change.place) else ""
        yield f"{change.kind if change else 'safe':{_KIND}}  {line}{effect}"


def _change_at(path: list[str], changes: Sequence[Change]) -> Change | None:
    """Return the change that a difference belongs to, or None if it has no effect.

    That is the change with the longest common path in the same field of the same object; of several, the worst.
    """
    shared = [(_common_prefix(path, change.place.split(".")), change) for change in changes]
    closest = max((count for count, _ in shared), default=0)
    return next((change for count, change in shared if count == closest >= min(len(path), 3)), None)


def _common_prefix(path: list[str], other_path: list[str]) -> int:
    """Return the number of leading keys that two paths share."""
    return next(
        (index for index, (key, other_key) in enumerate(zip(path, other_path, strict=False)) if key != other_key),
        min(len(path), len(other_path)),
    )


def _within(path: str, other_path: str) -> bool:
    """Return whether one path is the other or below it."""
    return f"{path}.".startswith(f"{other_path}.") or f"{other_path}.".startswith(f"{path}.")


def _read(file: Path) -> Any:
    __tracebackhide__ = True
    try:
        return msgspec.json.decode(read_expected(file))
    except msgspec.DecodeError as exc:
        raise AssertionError(
            f"{file} is not JSON ({exc}); write it again with --accord-update, or update=True"
        ) from exc
