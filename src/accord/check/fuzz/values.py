"""A hypothesis strategy for the valid values of a JSON Schema 2020-12.

Alternatives, members, items and scalars are drawn. Constraints that these do not express (`not`, only one of `oneOf`,
unique items) are validated afterwards, and an invalid value is replaced by the smallest valid one. So every drawn value
is valid.

`draw_values` draws from the strategy without a test: the same values for the same seed. Hypothesis sometimes uses
constants from the source of loaded modules, which depend on the program and not on the server; `SeedOnlyProvider`
disables that.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings, strategies as st

from accord.check.fuzz.alternatives import alternatives
from accord.check.fuzz.pattern_texts import FORMATS, compile_pattern
from accord.check.fuzz.schema_document import Conjunction, GenerationError, SchemaDocument
from accord.check.fuzz.shape import KINDS, ValueShape
from accord.check.fuzz.smallest import integers as least_integers, member_names, smallest_at, texts as least_texts

_MAX_INTEGER = (1 << 53) - 1
"""The largest integer that every language reads exactly; `boundaries` uses larger ones."""
_LONG = 40
"""The number of characters beyond the minimum length; `boundaries` uses more."""
_MOST_DRAWN = 4_000
"""The maximum number of characters to draw one by one, about half of hypothesis's buffer."""

_CHARACTERS = st.one_of(st.characters(codec="ascii"), st.characters(codec="utf-8"))


@lru_cache(maxsize=1_000)
def integers(shape: ValueShape) -> st.SearchStrategy[int]:
    """Return a strategy for integers within the bounds, often small ones."""
    low, high = shape.integer_bounds()
    unit = (shape.multiple_of() or Fraction(1)).numerator
    least = min(-_MAX_INTEGER if low is None else low, _MAX_INTEGER if high is None else high)
    most = max(-_MAX_INTEGER if low is None else low, _MAX_INTEGER if high is None else high)
    lowest, highest = -(-least // unit), most // unit
    if lowest > highest:
        return st.sampled_from(list(least_integers(shape)) or [0])
    near = max(lowest, min(0, highest))
    small = st.integers(max(lowest, near - 100), min(highest, near + 100))
    return st.one_of(small, st.integers(lowest, highest)).map(lambda each: each * unit)


@lru_cache(maxsize=1_000)
def fractions(shape: ValueShape) -> st.SearchStrategy[float]:
    """Return a strategy for finite numbers within the bounds that are multiples of `multipleOf`."""
    low, high = shape.bounds()
    if step := shape.multiple_of():
        first = 0 if low is None else -(-low // step)
        last = first + 1000 if high is None else high // step
        return st.integers(int(first), int(max(first, last))).map(lambda each: float(step * each))
    if low is not None and high is not None and low > high:
        return st.just(0.5)  # no valid number exists; the caller's validation rejects this one
    return st.floats(
        min_value=None if low is None else _within(float(low)),
        max_value=None if high is None else _within(float(high)),
        allow_nan=False,
        allow_infinity=False,
    )


@lru_cache(maxsize=1_000)
def texts(shape: ValueShape) -> st.SearchStrategy[str]:
    """Return a strategy for texts of the format, of the pattern, or of any characters."""
    least, most = shape.length_bounds("minLength", "maxLength")
    forms = [form for form in shape.keyword_values("format") if form in FORMATS]
    if forms:
        return st.sampled_from(list(FORMATS[forms[0]]))
    patterns = [_of_pattern(pattern) for pattern in shape.keyword_values("pattern") if compile_pattern(pattern)]
    if patterns:
        return st.one_of(*patterns, *([st.sampled_from(known)] if (known := list(least_texts(shape))) else []))
    if least > _MOST_DRAWN:
        return st.sampled_from(list(least_texts(shape)) or [""])
    longest = least + _LONG if most is None else min(most, least + _LONG)
    return st.text(_CHARACTERS, min_size=least, max_size=max(least, longest))


def _within(bound: float) -> float:
    return max(-1.7e308, min(1.7e308, bound))


def _of_pattern(pattern: str) -> st.SearchStrategy[str]:
    """Return a strategy for texts that match, without the final newline that `$` accepts in Python but not ECMA-262."""
    return st.from_regex(pattern, alphabet=st.characters(codec="utf-8")).map(lambda text: text.removesuffix("\n"))


_LEVELS = 5
"""The number of levels that are drawn; deeper values are the smallest ones."""
_MORE = 4
"""The maximum number of items and members beyond the minimum."""
_TRIES = 3


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for valid values. Raises `GenerationError` for a schema without a value."""
    document = SchemaDocument(schema)
    smallest_at(document, (document.root,))
    return _draw_value(document)


@st.composite
def _draw_value(draw: st.DrawFn, document: SchemaDocument) -> Any:
    return _ValueDraw(draw, document).value((document.root,), _LEVELS)


class _ValueDraw:
    """The drawing of one value."""

    def __init__(self, draw: st.DrawFn, document: SchemaDocument) -> None:
        self._draw = draw
        self._document = document

    def value(self, conjunction: Conjunction, levels: int) -> Any:
        """Draw a valid value with at most `levels` drawn levels. Raises `GenerationError` if none exists."""
        for _ in range(_TRIES if levels else 0):
            shape = self._draw(st.sampled_from(alternatives(self._document, conjunction)))
            try:
                drawn = self._draw_shape(shape, levels)
            except GenerationError:  # the alternative has no valid value
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
                return self._draw(integers(shape))
            case "fraction":
                return self._draw(fractions(shape))
            case "string":
                return self._draw(texts(shape))
            case "array":
                return self._items(shape, levels)
        return self._members(shape, levels)

    def _items(self, shape: ValueShape, levels: int) -> list[Any]:
        low, high = shape.size_bounds()
        size = self._draw(st.integers(low, max(low, low + _MORE if high is None else min(high, low + _MORE))))
        contained = [schema for schema, least in shape.contains_minimums() for _ in range(least)]
        return [
            self.value((*shape.item_schemas(index), *contained[index : index + 1]), levels - 1) for index in range(size)
        ]

    def _members(self, shape: ValueShape, levels: int) -> dict[str, Any]:
        drawn = {name: self.value(shape.member_schemas(name), levels - 1) for name in shape.required}
        _, most = shape.length_bounds("minProperties", "maxProperties")
        for name in self._draw_optional_names(shape):
            if name not in drawn and (most is None or len(drawn) < most):
                drawn |= self._optional(name, shape, levels)
        return drawn

    def _draw_optional_names(self, shape: ValueShape) -> list[str]:
        """Draw the names of optional members to include."""
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
        """Draw a member, or nothing if no value is valid for it."""
        try:
            return {name: self.value(shape.member_schemas(name), levels - 1)}
        except GenerationError:
            return {}


try:
    from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
except ImportError:  # releases before 6.131 take no values from modules
    _BACKEND = "hypothesis"
else:
    _BACKEND = "accord"

    class SeedOnlyProvider(HypothesisProvider):
        """A provider whose values depend only on the seed."""

        def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
            return None

    AVAILABLE_PROVIDERS[_BACKEND] = f"{__name__}.{SeedOnlyProvider.__name__}"


def draw_values(schema: Any, count: int, seed: int) -> list[Any]:
    """Return at most `count` valid values. Raises `GenerationError` for a schema without a value."""
    found: list[Any] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        backend=_BACKEND,
    )
    @given(values(schema))
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found
