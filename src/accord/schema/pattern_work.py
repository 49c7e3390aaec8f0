"""The time that the patterns and other keywords of a schema take for the texts of a value.

A pattern takes time in proportion to the text that it reads, or to a power of its length (`pattern_degree`). Other
parts of a value do not count: a long text may be beside a short name. A place stands for all subschemas that check it,
whether they apply or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import factorial
from typing import Any

import msgspec

from accord.schema.cost import UNEVALUATED, Cost, subschemas
from accord.schema.pattern_degree import degree
from accord.schema.references import References, is_resource
from accord.schema.subschema_cost import UNIQUE_TIME, has_unique_items, looks_again, patterns, reading_time

_STEPS = 100_000
"""Limit of subschemas that are added to places; beyond it, every text counts for all patterns of the schema."""

_SHORTEST = 10
"""Characters that an empty text counts as: the start of a pattern takes time too."""

_UNIQUE: dict[str, Any] = {}
"""The parts of an array with `uniqueItems`, on all levels: texts and names."""
_UNIQUE.update(items=_UNIQUE, additionalProperties=_UNIQUE, propertyNames={"minLength": 0})

_NAMES = "key"
"""The step to the names of members (`cost.subschemas`)."""

_Key = tuple[int, int]


class _Place(msgspec.Struct):
    """The patterns that check one place of a value."""

    texts: Counter[int] = msgspec.field(default_factory=Counter)
    """Time per character of a text at this place, or per power of its length, by degree."""
    names: Counter[int] = msgspec.field(default_factory=Counter)
    """The same for the names of members of an object at this place, except for `propertyNames`."""
    inside: dict[str, Counter[_Key]] = msgspec.field(default_factory=dict)
    """The subschemas that check the places inside, by step (`cost.subschemas`)."""
    below: dict[str, _Place] = msgspec.field(default_factory=dict)

    def add(self, other: _Place, times: int) -> int:
        """Add the patterns of the same place; return how many subschemas were added."""
        for power in other.texts:
            self.texts[power] += times * other.texts[power]
        for power in other.names:
            self.names[power] += times * other.names[power]
        for step, group in other.inside.items():
            counter = self.inside.setdefault(step, Counter())
            for key, count in group.items():
                counter[key] += count * times
        return 1 + sum(map(len, other.inside.values()))


class PatternWork:
    """The work of the patterns of a schema, which was measured; `time` returns the time per character of a pattern, 0
    for one that does not count."""

    def __init__(self, schema: Any, cost: Cost, time: Callable[[str], int]) -> None:
        self._cost = cost
        self._time = time
        self.slowest: int = max(map(time, cost.patterns), default=0)
        """Time per character of the slowest pattern."""
        self.degree: int = max(map(degree, cost.patterns), default=1)
        """The highest degree of a pattern."""
        self._references = References(schema)
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
                total += _time(place.texts, inner)
            elif isinstance(inner, dict):
                if place.names or _NAMES in place.inside:
                    names = place.names + self._below(place, _NAMES, "").texts
                    total += sum(_time(names, name) for name in inner)
                if place.inside:
                    pending += ((item, self._below(place, f".{name}", "*")) for name, item in inner.items())
            elif isinstance(inner, list) and place.inside:
                pending += ((item, self._below(place, f"[{at}]", "[]")) for at, item in enumerate(inner))
        if self._steps <= _STEPS:
            return total
        whole = self._whole()
        return sum(_time(whole, text) for text in texts_of(value))

    def _whole(self) -> Mapping[int, int]:
        """Return the time if every text is read by the whole schema."""
        return {self.degree: self._cost.nodes * self.slowest}

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
            place = self._own(schema)
            factor = UNEVALUATED if looks_again(schema) else 1
            for step, inner, base_inside in self._subschemas(schema, base):
                if not isinstance(inner, dict):
                    continue
                other = self._key(inner, base_inside)
                if step:
                    place.inside.setdefault(step, Counter())[other] += 1
                else:
                    self._steps += place.add(self._closure(other), factor)
            self._alone[key] = place
        return self._alone.get(key) or _Place()

    def _own(self, schema: dict[str, Any]) -> _Place:
        """Return what a subschema itself reads."""
        return _Place(self._count(schema, "pattern"), self._count(schema, "patternProperties"))

    def _subschemas(self, schema: dict[str, Any], base: Any) -> Iterator[tuple[str, Any, Any]]:
        return subschemas(schema, base, self._references)

    def _count(self, schema: dict[str, Any], keyword: str) -> Counter[int]:
        times = Counter[int]()
        for pattern in patterns({keyword: schema[keyword]}) if keyword in schema else ():
            times[degree(pattern)] += self._time(pattern)
        return times

    def _key(self, schema: Any, base: Any) -> _Key:
        schema = schema if isinstance(schema, dict) else {}
        base = schema if is_resource(schema) else base
        key = id(schema), id(base)
        self._known[key] = schema, base
        return key


class ReadingWork(PatternWork):
    """The work of the keywords that read texts without a pattern, such as `maxLength` and `uniqueItems`."""

    def __init__(self, schema: Any, cost: Cost) -> None:
        super().__init__(schema, cost, lambda _: 0)

    def _whole(self) -> Mapping[int, int]:
        return {1: self._cost.reading}

    def _own(self, schema: dict[str, Any]) -> _Place:
        return _Place(Counter({1: UNIQUE_TIME if schema is _UNIQUE else reading_time(schema)}))

    def _subschemas(self, schema: dict[str, Any], base: Any) -> Iterator[tuple[str, Any, Any]]:
        yield from super()._subschemas(schema, base)
        if has_unique_items(schema):
            yield "[]", _UNIQUE, base


def _time(times: Mapping[int, int], text: str) -> int:
    """Return the time for a text: what reads ahead at each character reads half of it on average."""
    return sum(each * (_SHORTEST + len(text)) ** power // factorial(power) for power, each in times.items())


def count_characters(value: Any) -> int:
    """Return the number of characters of all texts in a value, names of members included."""
    return sum(_SHORTEST + len(text) for text in texts_of(value))


def max_characters(value: Any) -> int:
    """Return an upper bound of `count_characters`, faster: a text has at least two quotes and a comma."""
    try:
        return 4 * len(msgspec.json.encode(value)) + 4
    except (TypeError, ValueError, RecursionError):
        return count_characters(value)


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in a value, names of members included."""
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
