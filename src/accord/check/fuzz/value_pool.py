"""Values from the server's results that later calls use as arguments: ids, names, cursors and links.

A value is stored under its name without case and punctuation: `userId` of a result matches the argument `user_id`, and
so does the `id` inside of `user`. With it are stored the calls that returned it and its path in the last result, so
that a sequence can build on another sequence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from accord.check.fuzz.sequences import CallStep, ResultPath, Steps
from accord.check.probes.content import get_object, get_objects

_MAX_VALUES = 20
"""The maximum number of values under one name; later ones are dropped."""
_MAX_SAME_ORIGIN = 5
"""The maximum number of those from the same path of results of the same target."""
_NAMES = 500
_LONGEST = 500
_LEVELS = 8
_MOST_STEPS = 5
"""The maximum number of calls in a sequence; a value that already needs this many calls is not stored."""
_PUNCTUATION = re.compile(r"[^a-z0-9]")


class PooledValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value, and the calls that returned it."""

    value: str | int
    steps: Steps
    path: ResultPath
    """Its path in the result of the last step."""


_NamedValue: TypeAlias = tuple[str, Any, ResultPath]


class ValuePool:
    """The values by name."""

    def __init__(self) -> None:
        self._values: dict[str, list[PooledValue]] = {}

    def add_result(self, steps: Steps, result: Any) -> None:
        """Store the values in the result of the last of these steps."""
        if not isinstance(result, dict) or len(steps) >= _MOST_STEPS:
            return
        for name, value, path in _named_values(steps[-1], result):
            if (
                _is_poolable(value)
                and (key := _normalized_name(name))
                and (key in self._values or len(self._values) < _NAMES)
            ):
                self._add(key, PooledValue(value=value, steps=steps, path=path))

    def get_values(self, name: str) -> list[PooledValue]:
        """Return the values under a name, or a name that ends with it; each value once."""
        wanted = _normalized_name(name)
        found = [source for key, sources in self._values.items() if _names_match(wanted, key) for source in sources]
        return list({source.value: source for source in reversed(found)}.values())[::-1]

    def _add(self, key: str, source: PooledValue) -> None:
        sources = self._values.setdefault(key, [])
        same_origin = [each for each in sources if _origin(each) == _origin(source)]
        is_known = any(each.value == source.value for each in sources)
        if not is_known and len(sources) < _MAX_VALUES and len(same_origin) < _MAX_SAME_ORIGIN:
            sources.append(source)


def _is_poolable(value: Any) -> bool:
    """Return whether a value may be an id or a name: a short text, or an integer."""
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
    """Yield links, and values in texts that are JSON, from the content of tools, prompts and resources."""
    for key in ("content", "contents", "messages"):
        listed = result.get(key)
        for number, each in enumerate(listed[:_MAX_VALUES] if isinstance(listed, list) else ()):
            path: ResultPath = (key, number, "content") if key == "messages" else (key, number)
            yield from _values_in_block(get_object(each, "content") if key == "messages" else get_object(each), path)


def _values_in_block(block: dict[str, Any], path: ResultPath) -> Iterator[_NamedValue]:
    yield "uri", block.get("uri"), (*path, "uri")
    yield "uri", get_object(block, "resource").get("uri"), (*path, "resource", "uri")
    text = block.get("text")
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            yield from _walk("", msgspec.json.decode(text), (*path, "text", None), 0)
        except (msgspec.DecodeError, RecursionError):
            return


def _walk(name: str, value: Any, path: ResultPath, level: int) -> Iterator[_NamedValue]:
    for key, inner in _members(value) if level < _LEVELS else ():
        own_name = key if isinstance(key, str) else name
        yield own_name, inner, (*path, key)
        if name and isinstance(key, str):
            yield name + key, inner, (*path, key)
        yield from _walk(own_name, inner, (*path, key), level + 1)


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value[:_MAX_VALUES])


def _normalized_name(name: str) -> str:
    return _PUNCTUATION.sub("", name.lower()).removeprefix("next")


def _names_match(wanted: str, key: str) -> bool:
    return wanted == key or (len(key) > 1 and wanted.endswith(key)) or (len(wanted) > 1 and key.endswith(wanted))
