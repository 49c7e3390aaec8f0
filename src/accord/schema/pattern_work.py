"""The time that the patterns of a schema take for a value.

A pattern takes time in proportion to the text that it reads. Other parts of a value do not count: a long text may be
beside a short name. A place stands for all subschemas that check it, whether they apply or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from accord.schema.cost import UNEVALUATED, Anchors, Cost, is_resource, looks_again, patterns, subschemas

_STEPS = 100_000
"""Limit of subschemas that are added to places; beyond it, every text counts for all patterns of the schema."""

_SHORTEST = 10
"""Characters that an empty text counts as: the start of a pattern takes time too."""

_Key = tuple[int, int]


class _Place(msgspec.Struct):
    """The patterns that check one place of a value."""

    texts: int = 0
    """Time per character of a text at this place."""
    names: int = 0
    """Time per character of the names of members of an object at this place."""
    inside: dict[str, Counter[_Key]] = msgspec.field(default_factory=dict)
    """The subschemas that check the places inside, by step (`cost.subschemas`)."""
    below: dict[str, _Place] = msgspec.field(default_factory=dict)

    def add(self, other: _Place, times: int) -> int:
        """Add the patterns of the same place; return how many subschemas were added."""
        self.texts += times * other.texts
        self.names += times * other.names
        for step, group in other.inside.items():
            counter = self.inside.setdefault(step, Counter())
            for key, count in group.items():
                counter[key] += count * times
        return 1 + sum(map(len, other.inside.values()))


class PatternWork:
    """The work of the patterns of a schema, which was measured; `time` returns the time per character of a pattern, 0
    for one that does not count."""

    def __init__(self, schema: Any, cost: Cost, time: Callable[[str], int]) -> None:
        self._nodes = cost.nodes
        self._time = time
        self.slowest: int = max(map(time, cost.patterns), default=0)
        """Time per character of the slowest pattern."""
        self._anchors: Anchors = {}
        self._known: dict[_Key, tuple[dict[str, Any], Any]] = {}
        self._alone: dict[_Key, _Place] = {}
        self._places: dict[frozenset[Any], _Place] = {}
        self._steps = 0
        self._root = self._place(Counter([self._key(schema, schema)]))

    def time(self, value: Any) -> int:
        """Return the time for a value."""
        total = 0
        pending = [(value, self._root)]
        while pending and self._steps <= _STEPS:
            inner, place = pending.pop()
            if isinstance(inner, str):
                total += place.texts * (_SHORTEST + len(inner))
            elif isinstance(inner, dict):
                if place.names:
                    total += place.names * count_characters(list(inner))
                if place.inside:
                    pending += ((item, self._below(place, f".{name}", "*")) for name, item in inner.items())
            elif isinstance(inner, list) and place.inside:
                pending += ((item, self._below(place, f"[{at}]", "[]")) for at, item in enumerate(inner))
        return total if self._steps <= _STEPS else self._nodes * self.slowest * count_characters(value)

    def _below(self, place: _Place, step: str, wild: str) -> _Place:
        step = step if step in place.inside else wild
        if step not in place.below:
            place.below[step] = self._place(place.inside.get(step, Counter()) + place.inside.get(wild, Counter()))
        return place.below[step]

    def _place(self, group: Counter[_Key]) -> _Place:
        known = frozenset(group.items())
        if known not in self._places:
            self._places[known] = place = _Place()
            for key, times in group.items():
                self._steps += place.add(self._closure(key), times)
        return self._places[known]

    def _closure(self, key: _Key) -> _Place:
        """Return the patterns for the place of a subschema, with those of other subschemas at the same place."""
        if key not in self._alone and self._steps <= _STEPS:
            schema, base = self._known[key]
            place = _Place(self._count(schema, "pattern"), self._count(schema, "patternProperties"))
            factor = UNEVALUATED if looks_again(schema) else 1
            for step, inner in subschemas(schema, base, self._anchors):
                if not isinstance(inner, dict):
                    continue
                other = self._key(inner, base)
                if step == "key":
                    place.names += self._closure(other).texts
                elif step:
                    place.inside.setdefault(step, Counter())[other] += 1
                else:
                    self._steps += place.add(self._closure(other), factor)
            self._alone[key] = place
        return self._alone.get(key) or _Place()

    def _count(self, schema: dict[str, Any], keyword: str) -> int:
        return sum(map(self._time, patterns({keyword: schema[keyword]}))) if keyword in schema else 0

    def _key(self, schema: Any, base: Any) -> _Key:
        schema = schema if isinstance(schema, dict) else {}
        base = schema if is_resource(schema) else base
        key = id(schema), id(base)
        self._known[key] = schema, base
        return key


def count_characters(value: Any) -> int:
    """Return the number of characters of all texts in a value, names of members included."""
    return sum(_SHORTEST + len(text) for text in _texts(value))


def max_characters(value: Any) -> int:
    """Return an upper bound of `count_characters`, faster: a text has at least two quotes and a comma."""
    try:
        return 4 * len(msgspec.json.encode(value)) + 4
    except (TypeError, ValueError, RecursionError):
        return count_characters(value)


def _texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value
            pending += value.values()
        elif isinstance(value, list):
            pending += value
