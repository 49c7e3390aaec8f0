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

from accord.check.fuzz.sequences import CallStep, ResultPath, Steps
from accord.check.probes.content import get_object, get_objects

_MAX_VALUES = 20
"""Sources under one name; the first ones stay."""
_MAX_SAME_ORIGIN = 5
"""Of those, the ones that stood in the same place of the results of the same tool."""
_NAMES = 500
_LONGEST = 500
_LEVELS = 8
_MOST_STEPS = 5
"""A sequence does not grow beyond this, so no value is kept that takes more to come by, less one."""
_SIGNS = re.compile(r"[^a-z0-9]")


class PooledValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value, and how to come by it."""

    value: str | int
    steps: Steps
    path: ResultPath
    """Into the result of the last step."""


_NamedValue: TypeAlias = tuple[str, Any, ResultPath]


class ValuePool:
    """Values by the name they had."""

    def __init__(self) -> None:
        self._values: dict[str, list[PooledValue]] = {}

    def add_result(self, steps: Steps, result: Any) -> None:
        """Keep what stands in the result of the last of these steps."""
        if not isinstance(result, dict) or len(steps) >= _MOST_STEPS:
            return
        for name, value, way in _named_values(steps[-1], result):
            if (
                _is_poolable(value)
                and (key := _normalized_name(name))
                and (key in self._values or len(self._values) < _NAMES)
            ):
                self._add(key, PooledValue(value=value, steps=steps, path=way))

    def get_values(self, name: str) -> list[PooledValue]:
        """What was seen under a name, or at the end of it; each value once."""
        wanted = _normalized_name(name)
        found = [source for key, kept in self._values.items() if _names_match(wanted, key) for source in kept]
        return list({source.value: source for source in reversed(found)}.values())[::-1]

    def _add(self, key: str, source: PooledValue) -> None:
        kept = self._values.setdefault(key, [])
        alike = [each for each in kept if _origin(each) == _origin(source)]
        is_known = any(each.value == source.value for each in kept)
        if not is_known and len(kept) < _MAX_VALUES and len(alike) < _MAX_SAME_ORIGIN:
            kept.append(source)


def _is_poolable(value: Any) -> bool:
    """Whether it is an id, a name or a text of ordinary length."""
    return isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= _LONGEST


def _origin(source: PooledValue) -> tuple[object, ...]:
    last = source.steps[-1]
    return last.kind, last.name, *("#" if isinstance(key, int) else key for key in source.path)


def _named_values(step: CallStep, result: dict[str, Any]) -> Iterator[_NamedValue]:
    match step.kind:
        case "list":
            yield "cursor", result.get("nextCursor"), ("nextCursor",)
            for number, each in enumerate(get_objects(result, "resources")):
                yield "uri", each.get("uri"), ("resources", number, "uri")
        case "completion":
            values = get_object(result, "completion").get("values")
            for number, value in enumerate(values[:_MAX_VALUES] if isinstance(values, list) else ()):
                yield step.name.rpartition(" ")[2], value, ("completion", "values", number)
        case _:
            yield from _walk("", result.get("structuredContent"), ("structuredContent",), 0)
            yield from _values_in_blocks(result)


def _values_in_blocks(result: dict[str, Any]) -> Iterator[_NamedValue]:
    """Links, and what stands in texts that are JSON: of tools and prompts, and of resources that were read."""
    for key in ("content", "contents", "messages"):
        listed = result.get(key)
        for number, each in enumerate(listed[:_MAX_VALUES] if isinstance(listed, list) else ()):
            way: ResultPath = (key, number, "content") if key == "messages" else (key, number)
            yield from _values_in_block(get_object(each, "content") if key == "messages" else get_object(each), way)


def _values_in_block(block: dict[str, Any], way: ResultPath) -> Iterator[_NamedValue]:
    yield "uri", block.get("uri"), (*way, "uri")
    yield "uri", get_object(block, "resource").get("uri"), (*way, "resource", "uri")
    text = block.get("text")
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            yield from _walk("", msgspec.json.decode(text), (*way, "text", None), 0)
        except (msgspec.DecodeError, RecursionError):
            return


def _walk(name: str, value: Any, way: ResultPath, level: int) -> Iterator[_NamedValue]:
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
        yield from enumerate(value[:_MAX_VALUES])


def _normalized_name(name: str) -> str:
    return _SIGNS.sub("", name.lower()).removeprefix("next")


def _names_match(wanted: str, key: str) -> bool:
    return wanted == key or (len(key) > 1 and wanted.endswith(key)) or (len(wanted) > 1 and key.endswith(wanted))
