"""Whether all that one JSON Schema lets pass is let pass by another one, as far as that can be decided.

jsonschema-rs decides most of it, by canonical forms; where it cannot, a value is looked for that tells them apart. Such
a value is what people want to see, too, so it is looked for whenever the answer is no.

The two ways of a schema: clients fill in what a tool takes, and read what it gives. What changes mean to them.
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
"""Values that are tried, at most."""
_LONGEST = 10_000
"""Characters of a text that is tried, and items of an array."""

_ORDINARY: tuple[Any, ...] = (None, False, True, 0, 1, -1, 0.5, 1_000_000, "", "a", "text", [], [""], [0], {})


class Containment(msgspec.Struct, frozen=True):
    """`holds` is None where it cannot be told. `example` passes the first schema and not the second; UNSET if none is
    known.
    """

    holds: bool | None
    example: Any = msgspec.UNSET


def check_containment(inner: JSONObject, outer: JSONObject) -> Containment:
    """Whether every value that fits `inner` fits `outer`."""
    inner, outer = _in_one_dialect(inner, outer)
    if _covers(outer, inner, formats=True) == "yes":
        return Containment(True)
    example = _example(inner, outer)
    if example is not msgspec.UNSET:
        return Containment(False, example)
    return Containment(False if _covers(outer, inner, formats=False) == "no" else None)


def _covers(outer: JSONObject, inner: JSONObject, *, formats: bool) -> str:
    """ "yes", "no" or "unknown". Dialects do not agree on whether `format` refuses anything: `formats` says it does."""
    import jsonschema_rs

    try:
        one, other = (
            jsonschema_rs.canonicalize(schema, offline=True, validate_formats=formats) for schema in (outer, inner)
        )
        return str(one.covers(other))
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.canonical.UnsupportedOperand):
        return "unknown"


def _in_one_dialect(one: JSONObject, other: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Without their dialects, where these differ and say the same of all that is there."""
    if one.get("$schema") == other.get("$schema") or _is_old(one) or _is_old(other):
        return one, other
    return tuple({key: schema[key] for key in schema if key != "$schema"} for schema in (one, other))  # type: ignore[return-value]


def _is_old(schema: JSONObject) -> bool:
    """Whether it may use what another dialect reads in another way."""
    text = msgspec.json.encode({key: schema[key] for key in schema if key != "$schema"})
    return any(word in text for word in (b'"$ref"', b'"items":[', b'"dependencies"', b'"exclusiveM', b'"$recursive'))


def _example(inner: JSONObject, outer: JSONObject) -> Any:
    """A value that fits the first and not the second, UNSET if none is found."""
    try:
        passes, refuses = SchemaDocument(inner), SchemaDocument(outer)
    except GenerationError:
        return msgspec.UNSET
    for value in islice(_candidates(inner, outer), _TRIES):
        if value is not msgspec.UNSET and passes.matches(value) and not refuses.matches(value):
            return value
    return msgspec.UNSET


def _candidates(inner: JSONObject, outer: JSONObject) -> Iterator[Any]:
    yield from _edges(outer)
    yield from _edges(inner)
    yield from _ORDINARY
    yield from _members(inner, _smallest(inner))
    yield _smallest({"allOf": [inner, {"not": outer}]})


def _smallest(schema: JSONObject) -> Any:
    """A small value that fits; UNSET if none is found."""
    try:
        return smallest(schema)
    except GenerationError:
        return msgspec.UNSET


def _members(schema: Any, base: Any) -> Iterator[Any]:
    """Objects with one member that is like something ordinary, or at the edge of what its schema says."""
    if not isinstance(schema, dict):
        return
    base = base if isinstance(base, dict) else {}
    properties = schema.get("properties")
    for name, member in properties.items() if isinstance(properties, dict) else ():
        yield from ({**base, name: value} for value in (*_ORDINARY, *_edges(member)))
    yield from ({**base, "other": value} for value in _ORDINARY)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for arm in schema.get(keyword, ()):
            yield from _members(arm, base)


def _edges(schema: Any) -> Iterator[Any]:
    """Values that a schema names, and those around its bounds."""
    if isinstance(schema, list):
        for each in schema:
            yield from _edges(each)
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
        yield from _edges(schema.get(key))


def _around(bound: Any) -> tuple[Any, ...]:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
        return ()
    return bound, bound - 1, bound + 1, bound * 2


def _lengths(bound: Any) -> Iterator[int]:
    if isinstance(bound, int) and 0 <= bound <= _LONGEST:
        yield from (length for length in (bound - 1, bound, bound + 1) if length >= 0)


_T = TypeVar("_T")


class Direction(NamedTuple):
    """Who keeps to which schema, and what is said of it."""

    is_input: bool
    """Whether old clients send values, that the new schema judges; otherwise new values come, judged by the old one."""
    wider: str
    """Nothing is refused that was not refused before."""
    narrower: str
    """Something is, and this is an example."""
    some: str
    """The same, without an example."""
    unclear: str
    types: str
    """Types that are not let pass any more follow."""
    taken: str
    """A new member was something else before."""
    more: str
    """Members that are not named, of which nothing was said, are forbidden now or may come now."""

    def writer_and_reader(self, old: _T, new: _T) -> tuple[_T, _T]:
        """The schema by which values are made, and the one that judges them."""
        return (old, new) if self.is_input else (new, old)


INPUT = Direction(
    is_input=True,
    wider="all that was accepted still is",
    narrower="was accepted, and is refused now",
    some="not all that was accepted still is",
    unclear="it cannot be told whether all that was accepted still is",
    types="old clients may send",
    taken="old clients were free to use the name for something else",
    more="who sends more than is named is refused now",
)

OUTPUT = Direction(
    is_input=False,
    wider="all that may come was expected before",
    narrower="may come now, and was ruled out",
    some="what old clients do not expect may come",
    unclear="it cannot be told whether all that may come was expected before",
    types="old clients do not expect",
    taken="old clients expect something else under that name",
    more="more than is named may come now",
)
