"""Valid values at the boundaries of a schema: each is the fullest small value with one location changed.

The values and their order are always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from accord.check.fuzz.schema_document import GenerationError, SchemaDocument
from accord.check.fuzz.shape import ValueShape
from accord.check.fuzz.smallest import smallest_at
from accord.check.fuzz.variants import (
    ValueLocation,
    Variant,
    format_path,
    fullest_value,
    remove_at,
    replace_at,
    value_locations,
)

_LONG = 10_000
"""The length in characters of a long text without `maxLength`."""
_MANY = 200
"""The number of items of a long array."""

_Boundary = tuple[Any, str]

_UNUSUAL: tuple[_Boundary, ...] = (
    (" ", "a space"),
    ("\n", "a line break"),
    ("\u0000", "a NUL character"),
    ("\U0001f600\u202e\u0301\u2028", "an emoji, a direction override, a combining character without a base"),
    ("'\";--<>&$(){}\\`%s../", "characters with a meaning in SQL, HTML, shells and paths"),
    ("\ufeff\u00e9e\u0301", "a byte order mark, and one letter in two normalization forms"),
)
_INTEGERS: tuple[int, ...] = (0, 1, -1, 1 << 31, (1 << 53) - 1, -((1 << 53) - 1), 1 << 53, 1 << 63, -(1 << 63) - 1)
_NUMBERS: tuple[float, ...] = (0.1, -0.5, 1e-308, 1.7e308, -1.7e308)


def boundaries(schema: Any) -> Iterator[Variant]:
    """Yield every valid boundary value. Raises `GenerationError` for a schema without a value."""
    document = SchemaDocument(schema)
    base = fullest_value(document)
    yield Variant(value=base, path="$", what="all optional members")
    for location in list(value_locations(document, base)):
        for value, what in _boundaries_at(document, base, location):
            if value != base and document.matches(value):
                yield Variant(value=value, path=format_path(location.path), what=what)


def _boundaries_at(document: SchemaDocument, base: Any, location: ValueLocation) -> Iterator[_Boundary]:
    if location.path and isinstance(location.path[-1], str):
        yield remove_at(base, location.path), "absent"
    for value, what in _shape_boundaries(document, location):
        yield replace_at(base, location.path, value), what


def _shape_boundaries(document: SchemaDocument, location: ValueLocation) -> Iterator[_Boundary]:
    shape = location.shape
    if shape.is_enumerated:
        yield from ((value, f"one of the listed values: {value!r}") for value in shape.candidates())
    for kind in shape.likely_kinds if not shape.is_enumerated else ():
        match kind:
            case "null":
                yield None, "null"
            case "boolean":
                yield from ((value, f"{value}") for value in (False, True))
            case "integer":
                yield from _integers(shape)
            case "fraction":
                yield from _fractions(shape)
            case "string":
                yield from _texts(shape)
            case "array":
                yield from _arrays(document, shape)


def _integers(shape: ValueShape) -> Iterator[_Boundary]:
    low, high = shape.integer_bounds()
    unit = int(shape.multiple_of() or 1) or 1
    if low is not None:
        yield from ((-(-low // unit) * unit + more * unit, "the smallest integer, or the next") for more in (0, 1))
    if high is not None:
        yield from ((high // unit * unit - less * unit, "the largest integer, or the one before") for less in (0, 1))
    yield from ((value * unit, "an integer at a limit of some languages") for value in _INTEGERS)


def _fractions(shape: ValueShape) -> Iterator[_Boundary]:
    for bound in shape.bounds():
        if bound is not None:
            near = (bound, bound + Fraction(1, 1000), bound - Fraction(1, 1000))
            yield from ((float(value), "a number at a bound, or next to it") for value in near)
    yield from ((value, "a number near zero, or near the limit of a double") for value in _NUMBERS)


def _texts(shape: ValueShape) -> Iterator[_Boundary]:
    least, most = shape.length_bounds("minLength", "maxLength")
    fixed = shape.keyword_values("pattern") or shape.keyword_values("format")
    if fixed:
        return
    yield "a" * min(least, _LONG), "a text of the minimum length" if least else "an empty text"
    longest = _LONG if most is None else min(most, _LONG)
    yield "a" * longest, "a long text" if most is None else "a text of the maximum length"
    for text, what in _UNUSUAL:
        yield (text * (least // len(text) + 1))[: max(least, len(text))] if least else text, what


def _arrays(document: SchemaDocument, shape: ValueShape) -> Iterator[_Boundary]:
    least, most = shape.size_bounds()
    for size, what in ((least, "the minimum of items"), (_MANY if most is None else min(most, _MANY), "many items")):
        try:
            yield [smallest_at(document, shape.item_schemas(index)) for index in range(min(size, _MANY))], what
        except GenerationError:
            continue
