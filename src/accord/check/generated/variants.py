"""The places of a value, with what holds at each, and the value with one place changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from accord.check.generated.arms import arms
from accord.check.generated.document import Conjunction, Document, Unserved
from accord.check.generated.shape import Shape
from accord.check.generated.smallest import smallest_at

Steps: TypeAlias = tuple[str | int, ...]

_LEVELS = 6
"""Levels of a value that are walked."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A value with one place changed on purpose."""

    value: Any
    path: str
    """Where: `$.days[0]`."""
    what: str
    """What was done there, in words: `a text of the greatest length`."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place of a value, and the alternative of its schema that the value follows."""

    steps: Steps
    value: Any
    shape: Shape


def places(document: Document, value: Any) -> Iterator[Place]:
    """Every place of a value that fits, the outermost first."""
    yield from _below(document, (document.root,), value, ())


def _below(document: Document, conjunction: Conjunction, value: Any, steps: Steps) -> Iterator[Place]:
    shape = _followed(document, conjunction, value)
    if shape is None or len(steps) > _LEVELS:
        return
    yield Place(steps=steps, value=value, shape=shape)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _below(document, shape.member(name), inner, (*steps, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _below(document, shape.item(index), inner, (*steps, index))


def _followed(document: Document, conjunction: Conjunction, value: Any) -> Shape | None:
    try:
        shapes = arms(document, conjunction)
    except Unserved:
        return None
    return next((shape for shape in shapes if document.fits(value, shape.flat)), None)


def fullest(document: Document) -> Any:
    """The smallest value, with every member that may be there."""
    value = smallest_at(document, (document.root,))
    for _ in range(_LEVELS):
        before = value
        for place in list(places(document, value)):
            if isinstance(place.value, dict):
                value = _filled(document, value, place)
        if value == before:
            break
    return value


def _filled(document: Document, value: Any, place: Place) -> Any:
    for name in place.shape.declared:
        if name in place.value or not place.shape.member(name) or len(place.steps) >= _LEVELS - 2:
            continue
        try:
            more = changed(value, (*place.steps, name), smallest_at(document, place.shape.member(name)))
        except Unserved:
            continue
        value = more if document.fits(more) else value
    return value


def changed(value: Any, steps: Steps, new: Any) -> Any:
    """A copy of the value, with something else at one place."""
    if not steps:
        return new
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        return {**value, first: changed(value.get(first), rest, new)}
    return [changed(inner, rest, new) if index == first else inner for index, inner in enumerate(value)]


def without(value: Any, steps: Steps) -> Any:
    """A copy of the value, without one member or item."""
    *outer, last = steps
    inner = at(value, tuple(outer))
    kept = (
        {name: each for name, each in inner.items() if name != last}
        if isinstance(inner, dict)
        else [each for index, each in enumerate(inner) if index != last]
    )
    return changed(value, tuple(outer), kept)


def at(value: Any, steps: Steps) -> Any:
    """What stands at a place."""
    for step in steps:
        value = value[step]
    return value


def path(steps: Steps) -> str:
    """As in every message of accord: `$.days[0]`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
