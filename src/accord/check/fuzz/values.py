"""A hypothesis strategy for the values that fit a JSON Schema 2020-12.

Alternatives, members, items and scalars are drawn; where the schema says more than that (`not`, only one of `oneOf`,
unique items, ...), the validator is asked, and what does not fit becomes the smallest value that does. So there is
always a value, and always one that fits.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from accord.check.fuzz import scalars
from accord.check.fuzz.alternatives import alternatives
from accord.check.fuzz.schema_document import Conjunction, GenerationError, SchemaDocument
from accord.check.fuzz.shape import KINDS, ValueShape
from accord.check.fuzz.smallest import member_names, smallest_at

_LEVELS = 5
"""Levels that are drawn; what is deeper is as small as it can be."""
_MORE = 4
"""Items and members beyond the least."""
_TRIES = 3


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that fit. Raises `GenerationError` for a schema of which none can be made."""
    document = SchemaDocument(schema)
    smallest_at(document, (document.root,))
    return _draw_value(document)


@st.composite
def _draw_value(draw: st.DrawFn, document: SchemaDocument) -> Any:
    return _ValueDraw(draw, document).value((document.root,), _LEVELS)


class _ValueDraw:
    """One value, being drawn."""

    def __init__(self, draw: st.DrawFn, document: SchemaDocument) -> None:
        self._draw = draw
        self._document = document

    def value(self, conjunction: Conjunction, levels: int) -> Any:
        """One that fits, of so many levels. Raises `GenerationError` where nothing can."""
        for _ in range(_TRIES if levels else 0):
            shape = self._draw(st.sampled_from(alternatives(self._document, conjunction)))
            try:
                drawn = self._draw_shape(shape, levels)
            except GenerationError:  # an alternative that looked possible, and is not
                continue
            if self._document.matches(drawn, conjunction):
                return drawn
        return smallest_at(self._document, conjunction)

    def _draw_shape(self, shape: ValueShape, levels: int) -> Any:
        candidates = shape.candidates()
        if candidates and (shape.is_enumerated or self._draw(st.integers(0, 3)) == 0):
            return self._draw(st.sampled_from(candidates))
        kind = self._draw(st.sampled_from(shape.likely_kinds))
        match kind:
            case "null":
                return None
            case "boolean":
                return self._draw(st.booleans())
            case "integer":
                return self._draw(scalars.integers(shape))
            case "fraction":
                return self._draw(scalars.fractions(shape))
            case "string":
                return self._draw(scalars.texts(shape))
            case "array":
                return self._items(shape, levels)
        return self._members(shape, levels)

    def _items(self, shape: ValueShape, levels: int) -> list[Any]:
        low, high = shape.size_bounds()
        size = self._draw(st.integers(low, max(low, low + _MORE if high is None else min(high, low + _MORE))))
        wanted = [schema for schema, least in shape.contains_minimums() for _ in range(least)]
        return [self.value((*shape.item_schemas(at), *wanted[at : at + 1]), levels - 1) for at in range(size)]

    def _members(self, shape: ValueShape, levels: int) -> dict[str, Any]:
        drawn = {name: self.value(shape.member_schemas(name), levels - 1) for name in shape.required}
        _, most = shape.length_bounds("minProperties", "maxProperties")
        for name in self._draw_optional_names(shape):
            if name not in drawn and (most is None or len(drawn) < most):
                drawn |= self._optional(name, shape, levels)
        return drawn

    def _draw_optional_names(self, shape: ValueShape) -> list[str]:
        """Members that need not be there, and are."""
        chosen = [name for name in shape.declared if self._draw(st.booleans())]
        least, _ = shape.length_bounds("minProperties", "maxProperties")
        if shape.kinds != KINDS and shape.allows_more_members:
            chosen += self._draw(st.lists(self._names(shape), max_size=_MORE))
        if len({*shape.required, *chosen}) < least:
            chosen += [*shape.declared, *member_names(self._document, shape)][: least + len(shape.declared)]
        return chosen

    def _names(self, shape: ValueShape) -> st.SearchStrategy[str]:
        known = list(member_names(self._document, shape))
        free = [] if shape.keyword_values("propertyNames") else [st.text(max_size=8)]
        return st.one_of(*([st.sampled_from(known)] if known else []), *free) if known or free else st.nothing()

    def _optional(self, name: str, shape: ValueShape, levels: int) -> dict[str, Any]:
        """A member, unless nothing can stand there."""
        try:
            return {name: self.value(shape.member_schemas(name), levels - 1)}
        except GenerationError:
            return {}
