"""hypothesis strategies for numbers and texts, within what a shape allows."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from hypothesis import strategies as st

from accord.check.fuzz.pattern_texts import compile_pattern
from accord.check.fuzz.samples import FORMATS
from accord.check.fuzz.shape import ValueShape
from accord.check.fuzz.smallest import integers as least_integers, texts as least_texts

_MAX_INTEGER = (1 << 53) - 1
"""Integers go as far as every language reads them exactly; `boundaries` goes further."""
_LONG = 40
"""Characters beyond the least; `boundaries` goes further."""

_CHARACTERS = st.one_of(st.characters(codec="ascii"), st.characters(codec="utf-8"))


@lru_cache(maxsize=1_000)
def integers(shape: ValueShape) -> st.SearchStrategy[int]:
    """Integers within the bounds, often small ones."""
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
    """Numbers within the bounds, finite; multiples of its step, if it has one."""
    low, high = shape.bounds()
    if step := shape.multiple_of():
        first = 0 if low is None else -(-low // step)
        last = first + 1000 if high is None else high // step
        return st.integers(int(first), int(max(first, last))).map(lambda each: float(step * each))
    if low is not None and high is not None and low > high:
        return st.just(0.5)  # nothing is between; whoever asks for it sees that it does not fit
    return st.floats(
        min_value=None if low is None else _within(float(low)),
        max_value=None if high is None else _within(float(high)),
        allow_nan=False,
        allow_infinity=False,
    )


@lru_cache(maxsize=1_000)
def texts(shape: ValueShape) -> st.SearchStrategy[str]:
    """Texts of the format, of the pattern, or of any characters."""
    least, most = shape.length_bounds("minLength", "maxLength")
    forms = [form for form in shape.keyword_values("format") if form in FORMATS]
    if forms:
        return st.sampled_from(list(FORMATS[forms[0]]))
    patterns = [_of_pattern(pattern) for pattern in shape.keyword_values("pattern") if compile_pattern(pattern)]
    if patterns:
        return st.one_of(*patterns, *([st.sampled_from(known)] if (known := list(least_texts(shape))) else []))
    longest = least + _LONG if most is None else min(most, least + _LONG)
    return st.text(_CHARACTERS, min_size=least, max_size=max(least, longest))


def _within(bound: float) -> float:
    return max(-1.7e308, min(1.7e308, bound))


def _of_pattern(pattern: str) -> st.SearchStrategy[str]:
    """Texts that match; without the newline that Python's `$` lets pass and ECMA-262's does not."""
    return st.from_regex(pattern, alphabet=st.characters(codec="utf-8")).map(lambda text: text.removesuffix("\n"))
