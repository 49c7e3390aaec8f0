"""A hypothesis strategy for the values that fit a JSON Schema 2020-12.

Alternatives, members, items and scalars are drawn; where the schema says more than that (`not`, only one of `oneOf`,
unique items, ...), the validator is asked, and what does not fit becomes the smallest value that does. So there is
always a value, and always one that fits.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from accord.check.generated import scalars
from accord.check.generated.arms import arms
from accord.check.generated.document import Conjunction, Document, Unserved
from accord.check.generated.shape import KINDS, Shape
from accord.check.generated.smallest import names, smallest_at

_LEVELS = 5
"""Levels that are drawn; what is deeper is as small as it can be."""
_MORE = 4
"""Items and members beyond the least."""
_TRIES = 3


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that fit. Raises `Unserved` for a schema of which none can be made."""
    document = Document(schema)
    smallest_at(document, (document.root,))
    return _drawn(document)


@st.composite
def _drawn(draw: st.DrawFn, document: Document) -> Any:
    return _Drawing(draw, document).value((document.root,), _LEVELS)


class _Drawing:
    """One value, being drawn."""

    def __init__(self, draw: st.DrawFn, document: Document) -> None:
        self._draw = draw
        self._document = document

    def value(self, conjunction: Conjunction, levels: int) -> Any:
        """One that fits, of so many levels. Raises `Unserved` where nothing can."""
        for _ in range(_TRIES if levels else 0):
            shape = self._draw(st.sampled_from(arms(self._document, conjunction)))
            try:
                drawn = self._tried(shape, levels)
            except Unserved:  # an alternative that looked possible, and is not
                continue
            if self._document.fits(drawn, conjunction):
                return drawn
        return smallest_at(self._document, conjunction)

    def _tried(self, shape: Shape, levels: int) -> Any:
        candidates = shape.candidates()
        if candidates and (shape.listed or self._draw(st.integers(0, 3)) == 0):
            return self._draw(st.sampled_from(candidates))
        kind = self._draw(st.sampled_from(shape.likely))
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

    def _items(self, shape: Shape, levels: int) -> list[Any]:
        low, high = shape.sizes()
        size = self._draw(st.integers(low, max(low, low + _MORE if high is None else min(high, low + _MORE))))
        wanted = [schema for schema, least in shape.contained() for _ in range(least)]
        return [self.value((*shape.item(at), *wanted[at : at + 1]), levels - 1) for at in range(size)]

    def _members(self, shape: Shape, levels: int) -> dict[str, Any]:
        drawn = {name: self.value(shape.member(name), levels - 1) for name in shape.required}
        _, most = shape.span("minProperties", "maxProperties")
        for name in self._chosen(shape):
            if name not in drawn and (most is None or len(drawn) < most):
                drawn |= self._optional(name, shape, levels)
        return drawn

    def _chosen(self, shape: Shape) -> list[str]:
        """Members that need not be there, and are."""
        chosen = [name for name in shape.declared if self._draw(st.booleans())]
        least, _ = shape.span("minProperties", "maxProperties")
        if shape.kinds != KINDS and shape.more_members:
            chosen += self._draw(st.lists(self._names(shape), max_size=_MORE))
        if len({*shape.required, *chosen}) < least:
            chosen += [*shape.declared, *names(self._document, shape)][: least + len(shape.declared)]
        return chosen

    def _names(self, shape: Shape) -> st.SearchStrategy[str]:
        known = list(names(self._document, shape))
        free = [] if shape.all("propertyNames") else [st.text(max_size=8)]
        return st.one_of(*([st.sampled_from(known)] if known else []), *free) if known or free else st.nothing()

    def _optional(self, name: str, shape: Shape, levels: int) -> dict[str, Any]:
        """A member, unless nothing can stand there."""
        try:
            return {name: self.value(shape.member(name), levels - 1)}
        except Unserved:
            return {}
