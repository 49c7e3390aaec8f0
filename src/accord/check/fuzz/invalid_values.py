"""Invalid values with one defect each, which a server must reject; always the same values, in the same order."""

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
"""The defect: a required member is missing; a value is of another kind, not in `enum`, out of range, too long or short,
or does not match the pattern; a member is forbidden."""

_OTHERS: dict[str, Any] = {
    "null": None, "boolean": True, "integer": 7, "fraction": 7.5, "string": "text", "array": [], "object": {},
}  # fmt: skip
_LONGEST = 100_000
"""The maximum number of characters or items of a value that is too long."""

_DefectiveValue = tuple[Defect, Any, str]


class InvalidVariant(Variant, frozen=True, kw_only=True):
    """A value with one defect."""

    wrong: Defect


def invalid_variants(schema: Any, value: Any = msgspec.UNSET) -> Iterator[InvalidVariant]:
    """Yield every invalid variant of a valid value, by default the fullest small one.

    Raises `GenerationError` for a schema without a value.
    """
    document = SchemaDocument(schema)
    base = fullest_value(document) if value is msgspec.UNSET else value
    for location in value_locations(document, base):
        for wrong, invalid, what in _variants_at(base, location):
            if not document.matches(invalid):
                yield InvalidVariant(value=invalid, path=format_path(location.path), what=what, wrong=wrong)


def _variants_at(base: Any, location: ValueLocation) -> Iterator[_DefectiveValue]:
    for name in location.shape.required if isinstance(location.value, dict) else ():
        yield "missing", remove_at(base, (*location.path, name)), f"{name!r} is missing"
    for wrong, value, what in _defective_values(location.shape, location.value):
        yield wrong, replace_at(base, location.path, value), what


def _defective_values(shape: ValueShape, value: Any) -> Iterator[_DefectiveValue]:
    for kind, other in _OTHERS.items():
        if kind not in shape.kinds:
            yield "kind", other, f"{_article(kind)} instead of {_article(kind_of(value))}"
    if shape.is_enumerated:
        yield "value", _value_not_in_enum(value), "a value that is not listed"
    elif isinstance(value, str):
        yield from _texts(shape, value)
    elif isinstance(value, list):
        yield from _arrays(shape, value)
    elif isinstance(value, dict):
        yield "extra", {**value, "noSuchMember": 1}, "a forbidden member"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _numbers(shape, value)


def _numbers(shape: ValueShape, value: float) -> Iterator[_DefectiveValue]:
    low, high = shape.bounds()
    for bound, sign, word in ((low, -1, "small"), (high, 1, "large")):
        if bound is not None:
            yield "range", _number(bound + sign), f"a number that is too {word}"
            yield "range", _number(bound), "an excluded bound"
    if step := shape.multiple_of():
        yield "range", _number(Fraction(str(value)) + step / 2), f"a number that is not a multiple of {_number(step)}"


def _texts(shape: ValueShape, value: str) -> Iterator[_DefectiveValue]:
    least, most = shape.length_bounds("minLength", "maxLength")
    yield "length", value[: max(0, least - 1)], "a text that is too short"
    if most is not None and most < _LONGEST:
        yield "length", value + "a" * (most + 1 - len(value)), "a text that is too long"
    for text in (f"\u0001{value}\u0001", "", "\u0001") if shape.keyword_values("pattern") else ():
        yield "form", text, "a text that does not match the pattern"


def _arrays(shape: ValueShape, value: list[Any]) -> Iterator[_DefectiveValue]:
    least, most = shape.size_bounds()
    if value:
        yield "length", value[: max(0, least - 1)], "an array with too few items"
        yield "form", [*value, value[0]], "an array with a repeated item"
    if most is not None and most < _LONGEST:
        more = value[-1] if value else None
        yield "length", [*value, *[more] * (most + 1 - len(value))], "an array with too many items"


def _value_not_in_enum(value: Any) -> Any:
    return f"{value}, not listed" if isinstance(value, str) else -987_654_321


def _number(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)


def _article(kind: str) -> str:
    return {"null": "null", "integer": "an integer", "array": "an array", "object": "an object"}.get(kind, f"a {kind}")
