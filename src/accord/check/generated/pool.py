"""What a server gave, to be given back to it: ids, names, cursors and links from results become arguments later.

A value is kept under the name it had, without case and signs: `userId` of a result fits the argument `user_id`, and the
`id` inside of `user` does, too. Lists of a server (its resources) are sources as well as results of its tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from accord.check.blocks import blocks
from accord.messages.base import JSONObject

_KEPT = 20
"""Values under one name; the first ones stay."""
_NAMES = 500
_LONGEST = 500
_LEVELS = 8
_SIGNS = re.compile(r"[^a-z0-9]")


class Pool:
    """Values by the name they had."""

    def __init__(self) -> None:
        self._values: dict[str, list[Any]] = {}
        self.links: list[str] = []
        """URIs that were given as links, in order."""

    def learn(self, result: Any) -> None:
        """Keep what stands in a result: structured, in blocks of text that are JSON, in links."""
        if not isinstance(result, dict):
            return
        self._walk("", result.get("structuredContent"), 0)
        for block in blocks(result):
            self._block(block)

    def known(self, name: str) -> list[Any]:
        """What was seen under a name, or at the end of it."""
        wanted = _plain(name)
        return list(dict.fromkeys(value for key, kept in self._values.items() if _alike(wanted, key) for value in kept))

    def keep(self, name: str, value: Any) -> None:
        """Keep one value, if it is an id, a name or a text of ordinary length."""
        key = _plain(name)
        if not isinstance(value, str | int) or isinstance(value, bool) or len(str(value)) > _LONGEST or not key:
            return
        if key in self._values or len(self._values) < _NAMES:
            found = self._values.setdefault(key, [])
            if value not in found and len(found) < _KEPT:
                found.append(value)

    def _block(self, block: JSONObject) -> None:
        uri = block.get("uri") or (block.get("resource") or {}).get("uri")
        if isinstance(uri, str) and uri not in self.links and len(self.links) < _NAMES:
            self.links.append(uri)
            self.keep("uri", uri)
        text = block.get("text")
        if isinstance(text, str) and text[:1] in ("{", "["):
            try:
                self._walk("", msgspec.json.decode(text), 0)
            except (msgspec.DecodeError, RecursionError):
                return

    def _walk(self, name: str, value: Any, level: int) -> None:
        for key, inner in _members(value) if level < _LEVELS else ():
            self.keep(key or name, inner)
            if name and key:
                self.keep(name + key, inner)
            self._walk(key or name, inner, level + 1)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from (("", each) for each in value[:_KEPT])


def _plain(name: str) -> str:
    return _SIGNS.sub("", name.lower()).removeprefix("next")


def _alike(wanted: str, key: str) -> bool:
    return wanted == key or (len(key) > 1 and wanted.endswith(key)) or (len(wanted) > 1 and key.endswith(wanted))
