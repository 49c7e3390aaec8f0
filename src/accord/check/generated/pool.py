"""What a server gave, to be given back to it: ids, names, cursors and links from results become arguments later.

A value is kept under the name it had, without case and signs: `userId` of a result fits the argument `user_id`, and the
`id` inside of `user` does, too. With it is kept how to come by it: the calls that led there, and where it stood in the
last result; so what is fed may have been fed itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from accord.check.blocks import inside, items
from accord.check.generated.sequences import Step, Steps, Way

_KEPT = 20
"""Sources under one name; the first ones stay."""
_ALIKE = 5
"""Of those, the ones that stood in the same place of the results of the same tool."""
_NAMES = 500
_LONGEST = 500
_LEVELS = 8
_MOST_STEPS = 5
"""A sequence does not grow beyond this, so no value is kept that takes more to come by, less one."""
_SIGNS = re.compile(r"[^a-z0-9]")


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A value, and how to come by it."""

    value: str | int
    steps: Steps
    way: Way
    """Into the result of the last step."""


_Found: TypeAlias = tuple[str, Any, Way]


class Pool:
    """Values by the name they had."""

    def __init__(self) -> None:
        self._sources: dict[str, list[Source]] = {}

    def learn(self, steps: Steps, result: Any) -> None:
        """Keep what stands in the result of the last of these steps."""
        if not isinstance(result, dict) or len(steps) >= _MOST_STEPS:
            return
        for name, value, way in _found(steps[-1], result):
            if _is_kept(value) and (key := _plain(name)) and (key in self._sources or len(self._sources) < _NAMES):
                self._keep(key, Source(value=value, steps=steps, way=way))

    def known(self, name: str) -> list[Source]:
        """What was seen under a name, or at the end of it; each value once."""
        wanted = _plain(name)
        found = [source for key, kept in self._sources.items() if _alike(wanted, key) for source in kept]
        return list({source.value: source for source in reversed(found)}.values())[::-1]

    def _keep(self, key: str, source: Source) -> None:
        kept = self._sources.setdefault(key, [])
        alike = [each for each in kept if _shape(each) == _shape(source)]
        is_known = any(each.value == source.value for each in kept)
        if not is_known and len(kept) < _KEPT and len(alike) < _ALIKE:
            kept.append(source)


def _is_kept(value: Any) -> bool:
    """Whether it is an id, a name or a text of ordinary length."""
    return isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= _LONGEST


def _shape(source: Source) -> tuple[object, ...]:
    last = source.steps[-1]
    return last.kind, last.name, *("#" if isinstance(key, int) else key for key in source.way)


def _found(step: Step, result: dict[str, Any]) -> Iterator[_Found]:
    match step.kind:
        case "list":
            yield "cursor", result.get("nextCursor"), ("nextCursor",)
            for number, each in enumerate(items(result, "resources")):
                yield "uri", each.get("uri"), ("resources", number, "uri")
        case "completion":
            values = inside(result, "completion").get("values")
            for number, value in enumerate(values[:_KEPT] if isinstance(values, list) else ()):
                yield step.name.rpartition(" ")[2], value, ("completion", "values", number)
        case _:
            yield from _walk("", result.get("structuredContent"), ("structuredContent",), 0)
            yield from _of_blocks(result)


def _of_blocks(result: dict[str, Any]) -> Iterator[_Found]:
    """Links, and what stands in texts that are JSON: of tools and prompts, and of resources that were read."""
    for key in ("content", "contents", "messages"):
        listed = result.get(key)
        for number, each in enumerate(listed[:_KEPT] if isinstance(listed, list) else ()):
            way: Way = (key, number, "content") if key == "messages" else (key, number)
            yield from _of_block(inside(each, "content") if key == "messages" else inside(each), way)


def _of_block(block: dict[str, Any], way: Way) -> Iterator[_Found]:
    yield "uri", block.get("uri"), (*way, "uri")
    yield "uri", inside(block, "resource").get("uri"), (*way, "resource", "uri")
    text = block.get("text")
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            yield from _walk("", msgspec.json.decode(text), (*way, "text", None), 0)
        except (msgspec.DecodeError, RecursionError):
            return


def _walk(name: str, value: Any, way: Way, level: int) -> Iterator[_Found]:
    for key, inner in _members(value) if level < _LEVELS else ():
        known = key if isinstance(key, str) else name
        yield known, inner, (*way, key)
        if name and isinstance(key, str):
            yield name + key, inner, (*way, key)
        yield from _walk(known, inner, (*way, key), level + 1)


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value[:_KEPT])


def _plain(name: str) -> str:
    return _SIGNS.sub("", name.lower()).removeprefix("next")


def _alike(wanted: str, key: str) -> bool:
    return wanted == key or (len(key) > 1 and wanted.endswith(key)) or (len(wanted) > 1 and key.endswith(wanted))
