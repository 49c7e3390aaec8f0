"""Decide whether every value that one JSON Schema accepts is accepted by another, as far as this is decidable.

jsonschema-rs decides most cases by canonical forms; otherwise, this module searches for a counterexample. It also
searches for one whenever the answer is no, because a report with an example is easier to understand.

`Direction` has the texts of reports for the two uses of a schema: clients send arguments, and receive results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from accord.check.fuzz.schema_document import GenerationError, SchemaDocument
from accord.check.fuzz.smallest import smallest
from accord.messages.base import JSONObject

_TRIES = 400
"""The maximum number of values to try."""
_LONGEST = 10_000
"""The maximum length of a text or an array to try."""

_ORDINARY: tuple[Any, ...] = (None, False, True, 0, 1, -1, 0.5, 1_000_000, "", "a", "text", [], [""], [0], {})


class Containment(msgspec.Struct, frozen=True):
    """`holds` is None if undecided. `example` matches the first schema and not the second; UNSET if none is known."""

    holds: bool | None
    example: Any = msgspec.UNSET


def check_containment(inner: JSONObject, outer: JSONObject) -> Containment:
    """Return whether every value that matches `inner` matches `outer`."""
    inner, outer = _in_one_dialect(inner, outer)
    if _covers(outer, inner, formats=True) == "yes":
        return Containment(True)
    example = _example(inner, outer)
    if example is not msgspec.UNSET:
        return Containment(False, example)
    return Containment(False if _covers(outer, inner, formats=False) == "no" else None)


def _covers(outer: JSONObject, inner: JSONObject, *, formats: bool) -> str:
    """Return "yes", "no" or "unknown". `formats`: `format` validates, which depends on the dialect."""
    import jsonschema_rs

    try:
        one, other = (
            jsonschema_rs.canonicalize(schema, offline=True, validate_formats=formats) for schema in (outer, inner)
        )
        return str(one.covers(other))
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.canonical.UnsupportedOperand):
        return "unknown"


def _in_one_dialect(one: JSONObject, other: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Return the schemas without `$schema` if their dialects differ but have the same meaning for them."""
    if one.get("$schema") == other.get("$schema") or _is_old(one) or _is_old(other):
        return one, other
    return tuple({key: schema[key] for key in schema if key != "$schema"} for schema in (one, other))  # type: ignore[return-value]


def _is_old(schema: JSONObject) -> bool:
    """Return whether a schema may use keywords whose meaning depends on the dialect."""
    text = msgspec.json.encode({key: schema[key] for key in schema if key != "$schema"})
    return any(word in text for word in (b'"$ref"', b'"items":[', b'"dependencies"', b'"exclusiveM', b'"$recursive'))


def _example(inner: JSONObject, outer: JSONObject) -> Any:
    """Return a value that matches the first schema and not the second, or UNSET."""
    try:
        accepts, rejects = SchemaDocument(inner), SchemaDocument(outer)
    except GenerationError:
        return msgspec.UNSET
    for value in islice(_candidates(inner, outer), _TRIES):
        if value is not msgspec.UNSET and accepts.matches(value) and not rejects.matches(value):
            return value
    return msgspec.UNSET


def _candidates(inner: JSONObject, outer: JSONObject) -> Iterator[Any]:
    yield from _boundaries(outer)
    yield from _boundaries(inner)
    yield from _ORDINARY
    yield from _members(inner, _smallest(inner))
    yield _smallest({"allOf": [inner, {"not": outer}]})


def _smallest(schema: JSONObject) -> Any:
    """Return a small value that matches, or UNSET."""
    try:
        return smallest(schema)
    except GenerationError:
        return msgspec.UNSET


def _members(schema: Any, base: Any) -> Iterator[Any]:
    """Yield objects with one member that is an ordinary value or a boundary value of its schema."""
    if not isinstance(schema, dict):
        return
    base = base if isinstance(base, dict) else {}
    properties = schema.get("properties")
    for name, member in properties.items() if isinstance(properties, dict) else ():
        yield from ({**base, name: value} for value in (*_ORDINARY, *_boundaries(member)))
    yield from ({**base, "other": value} for value in _ORDINARY)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(keyword, ()):
            yield from _members(branch, base)


def _boundaries(schema: Any) -> Iterator[Any]:
    """Yield the values that a schema lists, and those around its bounds."""
    if isinstance(schema, list):
        for each in schema:
            yield from _boundaries(each)
    if not isinstance(schema, dict):
        return
    for key in ("enum", "examples"):
        yield from schema.get(key, ()) if isinstance(schema.get(key, ()), list) else ()
    yield from (schema[key] for key in ("const", "default") if key in schema)
    for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
        yield from _around(schema.get(key))
    for key in ("minLength", "maxLength"):
        yield from ("a" * length for length in _lengths(schema.get(key)))
    for key in ("minItems", "maxItems"):
        yield from (list(range(length)) for length in _lengths(schema.get(key)))
    for key in ("anyOf", "oneOf", "allOf"):
        yield from _boundaries(schema.get(key))


def _around(bound: Any) -> tuple[Any, ...]:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
        return ()
    return bound, bound - 1, bound + 1, bound * 2


def _lengths(bound: Any) -> Iterator[int]:
    if isinstance(bound, int) and 0 <= bound <= _LONGEST:
        yield from (length for length in (bound - 1, bound, bound + 1) if length >= 0)


_T = TypeVar("_T")


class Direction(NamedTuple):
    """The direction of values, from clients or from the server, with the texts of reports for it."""

    is_input: bool
    """Whether old clients send values, which the new schema must accept; otherwise the old schema must accept new
    values."""
    wider: str
    """Every value is still accepted."""
    narrower: str
    """An example is no longer accepted; the text follows the example."""
    some: str
    """Some values are no longer accepted."""
    unclear: str
    """It is undecided whether every value is still accepted."""
    types: str
    """Some types are no longer accepted; the types follow the text."""
    taken: str
    """The name of a new member could have another value before."""
    more: str
    """Undeclared members are now forbidden, or now possible."""

    def writer_and_reader(self, old: _T, new: _T) -> tuple[_T, _T]:
        """Return the schema of the side that writes values, and that of the side that reads them."""
        return (old, new) if self.is_input else (new, old)


INPUT = Direction(
    is_input=True,
    wider="all values that were accepted still are",
    narrower="was accepted, and is now rejected",
    some="some values that were accepted are now rejected",
    unclear="it is undecided whether all values that were accepted still are",
    types="old clients may send",
    taken="old clients may use the name for another value",
    more="undeclared members are now rejected",
)

OUTPUT = Direction(
    is_input=False,
    wider="all possible values were allowed before",
    narrower="is now possible, and was not allowed before",
    some="some values that are now possible were not allowed before",
    unclear="it is undecided whether all possible values were allowed before",
    types="old clients do not expect",
    taken="old clients expect another value under the name",
    more="undeclared members are now possible",
)
