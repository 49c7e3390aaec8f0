"""The surface of a server: everything that a client sees before its first call.

It is JSON with tools, prompts and resources by name, so that `surface_changes` can compare two of them; in one revision
or in several:

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
from accord.visible_text import readable


class SurfaceList(NamedTuple):
    """A list that a server may offer."""

    key: str
    """The field that identifies an item."""
    capability: str
    """The capability that the list requires."""
    client_method: str
    """The method of `Client` that returns the list."""


LISTS = {
    "tools": SurfaceList("name", "tools", "list_tools"),
    "prompts": SurfaceList("name", "prompts", "list_prompts"),
    "resources": SurfaceList("uri", "resources", "list_resources"),
    "resourceTemplates": SurfaceList("uriTemplate", "resources", "list_resource_templates"),
}


async def surface(client: Client) -> JSONObject:
    """Return the surface of a server in the negotiated revision."""
    found: dict[str, Sequence[Any]] = {}
    for kind in offered_lists(client.server_capabilities):
        try:
            found[kind] = await getattr(client, LISTS[kind].client_method)()
        except MethodNotFound:  # such as a server with resources and without templates
            continue
    return build_surface(client.revision, client.instructions, client.server_capabilities, found)


def offered_lists(capabilities: ServerCapabilities | None) -> list[str]:
    """Return the lists that a server offers, by its capabilities."""
    return [kind for kind, each in LISTS.items() if getattr(capabilities, each.capability, None) is not None]


def build_surface(
    revision: str,
    instructions: str | None,
    capabilities: ServerCapabilities | None,
    lists: Mapping[str, Sequence[Any]],
) -> JSONObject:
    """Return the surface with these parts."""
    return {
        "revision": revision,
        "instructions": instructions,
        "capabilities": msgspec.to_builtins(capabilities),
        **{kind: _index_by(each.key, lists.get(kind, ())) for kind, each in LISTS.items()},
    }


async def fetch_surfaces(target: Target, revisions: Sequence[str] = (), **options: Any) -> dict[str, JSONObject]:
    """Return the surface in each of these revisions that the server supports; by default, in its newest one.

    `options` are those of `Client`. Raises `ConnectError` if it supports none of them, or cannot be reached.
    """
    found: dict[str, JSONObject] = {}
    error: ConnectError | None = None
    choices: list[tuple[str, ...]] = [(each,) for each in revisions]
    for allowed in choices or [REVISIONS]:
        try:
            async with Client(target, revisions=allowed, **options) as client:
                found[client.revision] = await surface(client)
        except ConnectError as exc:
            error = exc
    if error is not None and not found:
        raise error
    return found


def by_revision(content: JSONObject) -> dict[str, JSONObject]:
    """Return the surfaces in the content of a file by revision. Raises `ValueError` for an invalid surface."""
    found = content.get("revisions", {content.get("revision"): content}) if isinstance(content, dict) else None
    if not isinstance(found, dict) or not all(_is_surface(revision, each) for revision, each in found.items()):
        raise ValueError('a surface is an object with "revision" and "tools", or with "revisions"')
    return found


def surface_file(text: str) -> Path | None:
    """Return the file of a surface that a text names, or None for a target."""
    file = Path(text)
    if file.suffix != ".json" or not file.is_file():
        return None
    try:
        content = msgspec.json.decode(file.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise TargetError(f"{file} is not JSON: {exc}") from exc
    return None if isinstance(content, dict) and ("mcpServers" in content or "servers" in content) else file


def read_surfaces(file: Path) -> dict[str, JSONObject]:
    """Return the surfaces in a file by revision. Raises `TargetError` for an unreadable or invalid file."""
    try:
        return by_revision(msgspec.json.decode(file.read_bytes()))
    except OSError as exc:
        raise TargetError(f"{file}: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:
        raise TargetError(f"{file} is not a surface: {exc}") from exc


def encode_surface(content: JSONObject) -> str:
    """Return the text of a surface's file, sorted, so that the text changes only where the surface does."""
    return readable(msgspec.json.encode(content, order="sorted")) + "\n"


def _is_surface(revision: object, content: Any) -> bool:
    """Return whether a value has the structure that `surface_changes` expects."""
    if not isinstance(content, dict) or content.get("revision") != revision or not isinstance(revision, str):
        return False
    if not isinstance(content.get("capabilities"), dict | None):
        return False
    lists = [content.get(kind) for kind in LISTS]
    return all(isinstance(each, dict) and all(map(_is_listed_item, each.values())) for each in lists)


def _is_listed_item(item: Any) -> bool:
    """Return whether the fields of a tool, prompt or resource have the types that the comparison expects."""
    if not isinstance(item, dict) or not isinstance(item.get("arguments"), list | None):
        return False
    parts = (item.get("annotations"), item.get("execution"))
    named = (isinstance(each, dict) and isinstance(each.get("name"), str) for each in item.get("arguments") or ())
    return all(isinstance(each, dict | None) for each in parts) and all(named)


def _index_by(key: str, listed: Sequence[Any]) -> JSONObject:
    """Return the items by name. A duplicate gets a distinct name, because clients receive both items."""
    items: list[JSONObject] = msgspec.json.decode(encode(list(listed)))
    found: JSONObject = {}
    times: Counter[str] = Counter()
    for item in items:
        name = item[key]
        while name in found:
            times[item[key]] += 1
            name = f"{item[key]} (listed {times[item[key]] + 1} times)"
        found[name] = item
    return found
