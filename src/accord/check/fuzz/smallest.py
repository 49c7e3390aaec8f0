"""Generate one small valid value for a schema, always the same, without hypothesis.

The values in the schema come first (`const`, `enum`, `examples`, `default`), then the smallest of each kind. Optional
members are left out, and recursive schemas are followed for as few levels as possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from accord.check.fuzz.alternatives import alternatives
from accord.check.fuzz.pattern_texts import FORMATS, matching_texts
from accord.check.fuzz.schema_document import Conjunction, GenerationError, SchemaDocument
from accord.check.fuzz.shape import KINDS, ValueShape

_NONE = object()
_LEVELS = 12
"""The maximum number of levels below a location."""
_TRIES = 64
"""The maximum number of values to try for one alternative."""
_TURNS = 20
"""The number of names of one length to try for one pattern."""


def smallest(schema: Any) -> Any:
    """Return a small valid value. Raises `GenerationError` if none is found."""
    document = SchemaDocument(schema)
    return smallest_at(document, (document.root,))


def smallest_at(document: SchemaDocument, conjunction: Conjunction) -> Any:
    """Return a small valid value for one location. Raises `GenerationError` if none is found."""
    for levels in range(_LEVELS):
        value = document.cached(_first_value, conjunction, levels)
        if value is not _NONE:
            return value
    raise GenerationError("no value was found that matches all the schemas at one location")


def _first_value(document: SchemaDocument, conjunction: Conjunction, levels: int) -> Any:
    """Return the first value with at most `levels` levels, or `_NONE`."""
    return next(_ValueSearch(document, levels).values(conjunction), _NONE)


class _ValueSearch:
    """A search for values with at most `levels` levels."""

    def __init__(self, document: SchemaDocument, levels: int) -> None:
        self._document = document
        self._levels = levels

    def values(self, conjunction: Conjunction) -> Iterator[Any]:
        """Yield valid values, the smallest of each alternative first."""
        try:
            shapes = alternatives(self._document, conjunction)
        except GenerationError:
            return
        for shape in shapes:
            for value in islice(self._shape_values(shape), _TRIES):
                if self._document.matches(value, conjunction):
                    yield value

    def _shape_values(self, shape: ValueShape) -> Iterator[Any]:
        yield from shape.candidates()
        if shape.is_enumerated:
            return
        likely = shape.likely_kinds
        for kind in (*(_KIND_PREFERENCE if likely == KINDS else likely), *shape.kinds):
            yield from self._kind_values(kind, shape)

    def _kind_values(self, kind: str, shape: ValueShape) -> Iterator[Any]:
        match kind:
            case "null":
                yield None
            case "boolean":
                yield from (False, True)
            case "integer":
                yield from islice(integers(shape), 8)
            case "fraction":
                yield from fractions(shape)
            case "string":
                yield from islice(texts(shape), 16)
            case "array":
                yield from self._arrays(shape)
            case "object":
                yield from self._objects(shape)

    def _nested_value(self, conjunction: Conjunction) -> Any:
        """Return the smallest value one level below, or `_NONE` without a level left."""
        return self._document.cached(_first_value, conjunction, self._levels - 1) if self._levels else _NONE

    def _arrays(self, shape: ValueShape) -> Iterator[list[Any]]:
        low, high = shape.size_bounds()
        for size in range(low, low + 4 if high is None else min(low + 4, high + 1)):
            items = self._items(shape, size)
            if items is not None:
                yield items

    def _items(self, shape: ValueShape, size: int) -> list[Any] | None:
        contained = [schema for schema, least in shape.contains_minimums() for _ in range(least)]
        unique = True in shape.keyword_values("uniqueItems")
        items: list[Any] = []
        for index in range(size):
            conjunction = (*shape.item_schemas(index), *contained[index : index + 1])
            found = self._distinct_value(conjunction, items) if unique and items else self._nested_value(conjunction)
            if found is _NONE:
                return None
            items.append(found)
        return items

    def _distinct_value(self, conjunction: Conjunction, items: list[Any]) -> Any:
        """Return a value one level below that is not in `items`."""
        return self._nested_value((*conjunction, {"not": {"enum": list(items)}}))

    def _objects(self, shape: ValueShape) -> Iterator[dict[str, Any]]:
        first = self._members(shape, shape.required)
        if first is None:
            return
        yield first
        optional = [name for name in shape.declared if name not in shape.required]
        for name in optional:
            more = self._members(shape, [name])
            if more:
                yield {**first, **more}
        everything = dict(first)
        for name in (*optional, *member_names(self._document, shape)):
            everything |= self._members(shape, [name]) or {}
            yield dict(everything)

    def _members(self, shape: ValueShape, names: list[str]) -> dict[str, Any] | None:
        found = {name: self._nested_value(shape.member_schemas(name)) for name in names}
        return None if any(value is _NONE for value in found.values()) else found


_KIND_PREFERENCE = ("string", "integer", "boolean", "object", "array", "fraction", "null")
"""The kinds in order of preference if all are allowed."""


def integers(shape: ValueShape) -> Iterator[int]:
    """Yield integers within the bounds, those near zero first."""
    low, high = shape.integer_bounds()
    step = shape.multiple_of() or Fraction(1)
    unit = step.numerator  # the least integer that is a multiple
    start = low if low is not None and low > 0 else high if high is not None and high < 0 else 0
    first = -(-start // unit) * unit if start >= 0 else start // unit * unit
    for offset in range(_TRIES):
        for value in sorted({first + offset * unit, first - offset * unit}, key=abs):
            if (low is None or value >= low) and (high is None or value <= high):
                yield value


def fractions(shape: ValueShape) -> Iterator[float]:
    """Yield numbers within the bounds, not integers if possible, near the lower bound or zero."""
    low, high = shape.bounds()
    step = shape.multiple_of()
    if step is not None:
        start = Fraction(0) if low is None else low // step * step
        yield from (float(start + step * each) for each in range(4))
    if low is None and high is None:
        yield 0.5
    elif low is None or high is None:
        bound = high if low is None else low
        yield from (float((bound or 0) + Fraction(sign, 2)) for sign in (1, -1))
    else:
        yield from (float(low + (high - low) * part) for part in (Fraction(1, 2), Fraction(1, 3)))
        yield from (float(low), float(high))


def texts(shape: ValueShape) -> Iterator[str]:
    """Yield texts of the format or the pattern, or of the minimum length."""
    least, most = shape.length_bounds("minLength", "maxLength")
    for form in shape.keyword_values("format"):
        yield from FORMATS.get(form, ())
    for pattern in shape.keyword_values("pattern"):
        yield from (
            text for text in matching_texts(pattern) if least <= len(text) and (most is None or len(text) <= most)
        )
    yield from ("a" * length for length in (max(1, least), least, least + 1) if most is None or length <= most)
    if least <= 4 and (most is None or most >= 4):
        yield "text"  # for a pattern that rejects "a"


@lru_cache(maxsize=1_000)
def member_names(document: SchemaDocument, shape: ValueShape) -> tuple[str, ...]:
    """Return names for additional members, a few more than the minimum number of members."""
    rules = tuple(shape.keyword_values("propertyNames"))
    return tuple(name for name in _candidate_names(shape) if not rules or document.matches(name, rules))


def _candidate_names(shape: ValueShape) -> Iterator[str]:
    rules = [rule for rule in shape.keyword_values("propertyNames") if isinstance(rule, dict)]
    yield from (name for rule in rules for name in rule.get("enum", ()) if isinstance(name, str))
    patterns = [*(each for rule in rules for each in [rule.get("pattern")] if each), *_patterns(shape)]
    count = 4 + shape.length_bounds("minProperties", "maxProperties")[0]
    for name in (
        *(text for pattern in patterns for text in islice(matching_texts(pattern, _TURNS), count)),
        "more",
        "m",
    ):
        yield from (name + end for end in ("", *map(str, range(1, count))))


def _patterns(shape: ValueShape) -> list[str]:
    return [pattern for each in shape.keyword_values("patternProperties") for pattern in each]
