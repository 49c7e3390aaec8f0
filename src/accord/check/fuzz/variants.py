"""The places of a value, with what holds at each, and the value with one place changed."""

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
"""Levels of a value that are walked."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A value with one place changed on purpose."""

    value: Any
    path: str
    """Where: `$.days[0]`."""
    what: str
    """What was done there, in words: `a text of the greatest length`."""


class ValueLocation(msgspec.Struct, frozen=True, kw_only=True):
    """A place of a value, and the alternative of its schema that the value follows."""

    steps: ValuePath
    value: Any
    shape: ValueShape


def value_locations(document: SchemaDocument, value: Any) -> Iterator[ValueLocation]:
    """Every place of a value that fits, the outermost first."""
    yield from _locations_below(document, (document.root,), value, ())


def _locations_below(
    document: SchemaDocument, conjunction: Conjunction, value: Any, steps: ValuePath
) -> Iterator[ValueLocation]:
    shape = _matching_shape(document, conjunction, value)
    if shape is None or len(steps) > _LEVELS:
        return
    yield ValueLocation(steps=steps, value=value, shape=shape)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _locations_below(document, shape.member_schemas(name), inner, (*steps, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _locations_below(document, shape.item_schemas(index), inner, (*steps, index))


def _matching_shape(document: SchemaDocument, conjunction: Conjunction, value: Any) -> ValueShape | None:
    try:
        shapes = alternatives(document, conjunction)
    except GenerationError:
        return None
    return next((shape for shape in shapes if document.matches(value, shape.schemas)), None)


def fullest_value(document: SchemaDocument) -> Any:
    """The smallest value, with every member that may be there."""
    value = smallest_at(document, (document.root,))
    for _ in range(_LEVELS):
        before = value
        for place in list(value_locations(document, value)):
            if isinstance(place.value, dict):
                value = _add_members(document, value, place)
        if value == before:
            break
    return value


def _add_members(document: SchemaDocument, value: Any, place: ValueLocation) -> Any:
    for name in place.shape.declared:
        if name in place.value or not place.shape.member_schemas(name) or len(place.steps) >= _LEVELS - 2:
            continue
        try:
            more = replace_at(value, (*place.steps, name), smallest_at(document, place.shape.member_schemas(name)))
        except GenerationError:
            continue
        value = more if document.matches(more) else value
    return value


def replace_at(value: Any, steps: ValuePath, new: Any) -> Any:
    """A copy of the value, with something else at one place."""
    if not steps:
        return new
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        return {**value, first: replace_at(value.get(first), rest, new)}
    return [replace_at(inner, rest, new) if index == first else inner for index, inner in enumerate(value)]


def remove_at(value: Any, steps: ValuePath) -> Any:
    """A copy of the value, without one member or item."""
    *outer, last = steps
    inner = value_at(value, tuple(outer))
    kept = (
        {name: each for name, each in inner.items() if name != last}
        if isinstance(inner, dict)
        else [each for index, each in enumerate(inner) if index != last]
    )
    return replace_at(value, tuple(outer), kept)


def value_at(value: Any, steps: ValuePath) -> Any:
    """What stands at a place."""
    for step in steps:
        value = value[step]
    return value


def format_path(steps: ValuePath) -> str:
    """As in every message of accord: `$.days[0]`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
