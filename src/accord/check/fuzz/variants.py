"""The locations of a value with the schemas at each, and copies of the value with one location changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from accord.check.fuzz.alternatives import alternatives
from accord.check.fuzz.schema_document import Conjunction, GenerationError, SchemaDocument
from accord.check.fuzz.shape import ValueShape
from accord.check.fuzz.smallest import smallest_at

ValuePath: TypeAlias = tuple[str | int, ...]

_LEVELS = 6
"""The maximum number of levels of a value."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A value with one location changed."""

    value: Any
    path: str
    """The changed location: `$.days[0]`."""
    what: str
    """A description of the change: `a text of the maximum length`."""


class ValueLocation(msgspec.Struct, frozen=True, kw_only=True):
    """A location of a value, and the alternative of its schema that the value matches."""

    path: ValuePath
    value: Any
    shape: ValueShape


def value_locations(document: SchemaDocument, value: Any) -> Iterator[ValueLocation]:
    """Yield every location of a valid value, the outermost first."""
    yield from _locations_below(document, (document.root,), value, ())


def _locations_below(
    document: SchemaDocument, conjunction: Conjunction, value: Any, path: ValuePath
) -> Iterator[ValueLocation]:
    shape = _matching_shape(document, conjunction, value)
    if shape is None or len(path) > _LEVELS:
        return
    yield ValueLocation(path=path, value=value, shape=shape)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _locations_below(document, shape.member_schemas(name), inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _locations_below(document, shape.item_schemas(index), inner, (*path, index))


def _matching_shape(document: SchemaDocument, conjunction: Conjunction, value: Any) -> ValueShape | None:
    try:
        shapes = alternatives(document, conjunction)
    except GenerationError:
        return None
    return next((shape for shape in shapes if document.matches(value, shape.schemas)), None)


def fullest_value(document: SchemaDocument) -> Any:
    """Return the smallest value with all its optional members."""
    value = smallest_at(document, (document.root,))
    for _ in range(_LEVELS):
        before = value
        for location in list(value_locations(document, value)):
            if isinstance(location.value, dict):
                value = _add_members(document, value, location)
        if value == before:
            break
    return value


def _add_members(document: SchemaDocument, value: Any, location: ValueLocation) -> Any:
    shape = location.shape
    for name in shape.declared:
        if name in location.value or not shape.member_schemas(name) or len(location.path) >= _LEVELS - 2:
            continue
        try:
            more = replace_at(value, (*location.path, name), smallest_at(document, shape.member_schemas(name)))
        except GenerationError:
            continue
        value = more if document.matches(more) else value
    return value


def replace_at(value: Any, path: ValuePath, new: Any) -> Any:
    """Return a copy of the value with one location replaced."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, first: replace_at(value.get(first), rest, new)}
    return [replace_at(inner, rest, new) if index == first else inner for index, inner in enumerate(value)]


def remove_at(value: Any, path: ValuePath) -> Any:
    """Return a copy of the value without one member or item."""
    *outer, last = path
    inner = value_at(value, tuple(outer))
    rest = (
        {name: each for name, each in inner.items() if name != last}
        if isinstance(inner, dict)
        else [each for index, each in enumerate(inner) if index != last]
    )
    return replace_at(value, tuple(outer), rest)


def value_at(value: Any, path: ValuePath) -> Any:
    """Return the value at a location."""
    for key in path:
        value = value[key]
    return value


def format_path(path: ValuePath) -> str:
    """Return the path as in accord's messages: `$.days[0]`."""
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
