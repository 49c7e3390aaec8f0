"""The surface of a server: all that a client sees of it before it calls anything.

It is JSON, by the names of things, so that two of them can be compared: `surface_changes`. In one revision, or in
several:

    {"revision": "2026-07-28", "tools": {"forecast": {...}}, ...}
    {"revisions": {"2025-11-25": {"revision": "2025-11-25", ...}, "2026-07-28": {...}}}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from accord.client.client import Client
from accord.client.target import Target
from accord.errors import ConnectError, MethodNotFound, TargetError
from accord.messages.base import JSONObject
from accord.messages.capabilities import ServerCapabilities
from accord.messages.codec import encode
from accord.messages.revision import REVISIONS


class SurfaceList(NamedTuple):
    """A list that a server may have."""

    key: str
    """What its things are told apart by."""
    capability: str
    """The capability."""
    client_method: str
    """The method of a client that gives it."""


LISTS = {
    "tools": SurfaceList("name", "tools", "list_tools"),
    "prompts": SurfaceList("name", "prompts", "list_prompts"),
    "resources": SurfaceList("uri", "resources", "list_resources"),
    "resourceTemplates": SurfaceList("uriTemplate", "resources", "list_resource_templates"),
}


async def surface(client: Client) -> JSONObject:
    """What a server offers, in the revision that is spoken: tools, prompts, resources and templates, by their names."""
    found: dict[str, Sequence[Any]] = {}
    for kind in offered_lists(client.server_capabilities):
        try:
            found[kind] = await getattr(client, LISTS[kind].client_method)()
        except MethodNotFound:  # it has resources and no templates, say
            continue
    return build_surface(client.revision, client.instructions, client.server_capabilities, found)


def offered_lists(capabilities: ServerCapabilities | None) -> list[str]:
    """The lists that a server has, by its capabilities."""
    return [kind for kind, each in LISTS.items() if getattr(capabilities, each.capability, None) is not None]


def build_surface(
    revision: str,
    instructions: str | None,
    capabilities: ServerCapabilities | None,
    lists: Mapping[str, Sequence[Any]],
) -> JSONObject:
    """The surface that these are."""
    return {
        "revision": revision,
        "instructions": instructions,
        "capabilities": msgspec.to_builtins(capabilities),
        **{kind: _index_by(each.key, lists.get(kind, ())) for kind, each in LISTS.items()},
    }


async def fetch_surfaces(target: Target, revisions: Sequence[str] = (), **options: Any) -> dict[str, JSONObject]:
    """The surface in each of these revisions that the server speaks; without any, in the newest one that it speaks.

    `options` are those of `Client`. Raises `ConnectError` when it speaks none of them, or cannot be reached.
    """
    found: dict[str, JSONObject] = {}
    failed: ConnectError | None = None
    choices: list[tuple[str, ...]] = [(each,) for each in revisions]
    for wanted in choices or [REVISIONS]:
        try:
            async with Client(target, revisions=wanted, **options) as client:
                found[client.revision] = await surface(client)
        except ConnectError as exc:
            failed = exc
    if failed is not None and not found:
        raise failed
    return found


def by_revision(content: JSONObject) -> dict[str, JSONObject]:
    """The surfaces in the content of a file, by their revisions. Raises `ValueError` for what is no surface."""
    found = content.get("revisions", {content.get("revision"): content}) if isinstance(content, dict) else None
    if not isinstance(found, dict) or not all(_is_surface(revision, each) for revision, each in found.items()):
        raise ValueError('a surface is an object with "revision" and "tools", or with "revisions"')
    return found


def surface_file(text: str) -> Path | None:
    """The file of a surface that a text names; None for what is a target."""
    file = Path(text)
    if file.suffix != ".json" or not file.is_file():
        return None
    try:
        content = msgspec.json.decode(file.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise TargetError(f"{file} is no JSON: {exc}") from exc
    return None if isinstance(content, dict) and ("mcpServers" in content or "servers" in content) else file


def read_surfaces(file: Path) -> dict[str, JSONObject]:
    """The surfaces in a file, by their revisions. Raises `TargetError`."""
    try:
        return by_revision(msgspec.json.decode(file.read_bytes()))
    except OSError as exc:
        raise TargetError(f"{file}: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:
        raise TargetError(f"{file} holds no surface: {exc}") from exc


def encode_surface(content: JSONObject) -> str:
    """A surface as it stands in its file: sorted, so that it changes only where the surface does."""
    return msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=2).decode() + "\n"


def _is_surface(revision: object, content: Any) -> bool:
    """Whether all in it is where `surface_changes` looks for it."""
    if not isinstance(content, dict) or content.get("revision") != revision or not isinstance(revision, str):
        return False
    if not isinstance(content.get("capabilities"), dict | None):
        return False
    things = [content.get(kind) for kind in LISTS]
    return all(isinstance(each, dict) and all(map(_is_listed_item, each.values())) for each in things)


def _is_listed_item(item: Any) -> bool:
    """Whether the fields of a tool, a prompt or a resource that are compared in parts have these parts."""
    if not isinstance(item, dict) or not isinstance(item.get("arguments"), list | None):
        return False
    parts = (item.get("annotations"), item.get("execution"))
    named = (isinstance(each, dict) and isinstance(each.get("name"), str) for each in item.get("arguments") or ())
    return all(isinstance(each, dict | None) for each in parts) and all(named)


def _index_by(key: str, listed: Sequence[Any]) -> JSONObject:
    """The things by their names. One that is listed again has a name of its own, since clients have both."""
    each: list[JSONObject] = msgspec.json.decode(encode(list(listed)))
    found: JSONObject = {}
    times: Counter[str] = Counter()
    for one in each:
        name = one[key]
        while name in found:
            times[one[key]] += 1
            name = f"{one[key]} (listed {times[one[key]] + 1} times)"
        found[name] = one
    return found
