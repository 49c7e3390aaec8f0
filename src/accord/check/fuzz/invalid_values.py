"""A value that fits, with one thing made wrong: what a server must notice. Always the same ones, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import msgspec

from accord.check.fuzz.schema_document import SchemaDocument
from accord.check.fuzz.shape import ValueShape, kind_of
from accord.check.fuzz.variants import (
    ValueLocation,
    Variant,
    format_path,
    fullest_value,
    remove_at,
    replace_at,
    value_locations,
)

Defect: TypeAlias = Literal["missing", "kind", "value", "range", "length", "form", "extra"]
"""What is wrong: a required member is missing; another kind of value; not one of those listed; outside the bounds; too
long or short; not of the pattern; a member that is forbidden."""

_OTHERS: dict[str, Any] = {
    "null": None, "boolean": True, "integer": 7, "fraction": 7.5, "string": "text", "array": [], "object": {},
}  # fmt: skip
_LONGEST = 100_000
"""Characters or items of what is too long, at most."""

_DefectiveValue = tuple[Defect, Any, str]


class InvalidVariant(Variant, frozen=True, kw_only=True):
    """A value that does not fit, for one reason."""

    wrong: Defect


def invalid_variants(schema: Any, value: Any = msgspec.UNSET) -> Iterator[InvalidVariant]:
    """Every way in which a value can be made wrong: the one that is given, which fits, or the fullest small one.
    Raises `GenerationError` for a schema of which no value can be made.
    """
    document = SchemaDocument(schema)
    base = fullest_value(document) if value is msgspec.UNSET else value
    for place in value_locations(document, base):
        for wrong, broken, what in _variants_at(base, place):
            if not document.matches(broken):
                yield InvalidVariant(value=broken, path=format_path(place.steps), what=what, wrong=wrong)


def _variants_at(base: Any, place: ValueLocation) -> Iterator[_DefectiveValue]:
    for name in place.shape.required if isinstance(place.value, dict) else ():
        yield "missing", remove_at(base, (*place.steps, name)), f"{name!r} is missing"
    for wrong, value, what in _defective_values(place.shape, place.value):
        yield wrong, replace_at(base, place.steps, value), what


def _defective_values(shape: ValueShape, value: Any) -> Iterator[_DefectiveValue]:
    for kind, other in _OTHERS.items():
        if kind not in shape.kinds:
            yield "kind", other, f"{_article(kind)} instead of {_article(kind_of(value))}"
    if shape.is_enumerated:
        yield "value", _value_not_in_enum(value), "not one of the values that are listed"
    elif isinstance(value, str):
        yield from _texts(shape, value)
    elif isinstance(value, list):
        yield from _arrays(shape, value)
    elif isinstance(value, dict):
        yield "extra", {**value, "noSuchMember": 1}, "a member that is forbidden"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _numbers(shape, value)


def _numbers(shape: ValueShape, value: float) -> Iterator[_DefectiveValue]:
    low, high = shape.bounds()
    for bound, sign, word in ((low, -1, "less"), (high, 1, "more")):
        if bound is not None:
            yield "range", _number(bound + sign), f"a number that is {word} than it may be"
            yield "range", _number(bound), "a bound that is itself excluded"
    if step := shape.multiple_of():
        yield "range", _number(Fraction(str(value)) + step / 2), "no multiple of what it must be one of"


def _texts(shape: ValueShape, value: str) -> Iterator[_DefectiveValue]:
    least, most = shape.length_bounds("minLength", "maxLength")
    yield "length", value[: max(0, least - 1)], "a text that is too short"
    if most is not None and most < _LONGEST:
        yield "length", value + "a" * (most + 1 - len(value)), "a text that is too long"
    for text in (f"\u0001{value}\u0001", "", "\u0001") if shape.keyword_values("pattern") else ():
        yield "form", text, "a text that the pattern does not match"


def _arrays(shape: ValueShape, value: list[Any]) -> Iterator[_DefectiveValue]:
    least, most = shape.size_bounds()
    if value:
        yield "length", value[: max(0, least - 1)], "an array with too few items"
        yield "form", [*value, value[0]], "an array with an item twice, or one too many"
    if most is not None and most < _LONGEST:
        more = value[-1] if value else None
        yield "length", [*value, *[more] * (most + 1 - len(value))], "an array with too many items"


def _value_not_in_enum(value: Any) -> Any:
    return f"{value}, not listed" if isinstance(value, str) else -987_654_321


def _number(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)


def _article(kind: str) -> str:
    return {"null": "null", "integer": "an integer", "array": "an array", "object": "an object"}.get(kind, f"a {kind}")
