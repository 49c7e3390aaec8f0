"""The surface of a server: all that a client sees of it before it calls anything, kept in a file to be compared.

A change of it is a change for every client and every model, so it should be seen in a review: the file is JSON, sorted,
and changes where the surface does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from accord.client.target import Target
from accord.messages.base import JSONObject
from accord.messages.codec import encode
from accord.sync.client import Client
from accord.testing.differences import differences
from accord.testing.files import read_kept, write_kept


def assert_surface(
    target: Target | Client, file: str | Path, *, update: bool = False, ignore: Sequence[str] = (), **options: Any
) -> None:
    """Raise `AssertionError` when a server offers something else than `file` says, or there is no such file.

    `update` writes the file instead. `ignore` are places that may differ, `*` for any text: `tools.*.description`.
    `options` are those of `Client`: `revisions=["2025-06-18"]` compares what that revision shows.
    """
    __tracebackhide__ = True
    if isinstance(target, Client):
        now = surface(target)
    else:
        with Client(target, **options) as client:
            now = surface(client)
    if update:
        write_kept(Path(file), msgspec.json.format(msgspec.json.encode(now, order="sorted"), indent=2).decode() + "\n")
        return
    found = differences(_read(Path(file)), now, ignore)
    if found:
        listed = "\n".join(f"  {line}" for line in found)
        raise AssertionError(
            f"the server offers something else than {file} says (differences: {len(found)}; --accord-update, or "
            f"update=True, takes them over):\n{listed}"
        )


def surface(client: Client) -> JSONObject:
    """What a server offers, in the revision that is spoken: tools, prompts, resources and templates, by their names."""
    offers = client.server_capabilities
    return {
        "revision": client.revision,
        "instructions": client.instructions,
        "capabilities": msgspec.to_builtins(offers),
        "tools": _by("name", client.list_tools, offers and offers.tools),
        "prompts": _by("name", client.list_prompts, offers and offers.prompts),
        "resources": _by("uri", client.list_resources, offers and offers.resources),
        "resourceTemplates": _by("uriTemplate", client.list_resource_templates, offers and offers.resources),
    }


def _by(key: str, listed: Callable[[], Sequence[Any]], offered: object) -> JSONObject:
    """The list by the names in it; empty where the server has none of it."""
    each: list[JSONObject] = msgspec.json.decode(encode(listed() if offered is not None else []))
    return {one[key]: one for one in each}


def _read(file: Path) -> Any:
    __tracebackhide__ = True
    try:
        return msgspec.json.decode(read_kept(file))
    except msgspec.DecodeError as exc:
        raise AssertionError(f"{file} is no JSON ({exc}); --accord-update, or update=True, writes it anew") from exc
