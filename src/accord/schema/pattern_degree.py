"""The time of a pattern for longer texts: linear, or a power of the length.

A pattern with look-around or back-references runs on an engine that counts how often it goes back, but not what
look-around reads ahead. In a repetition it may read the rest of the text at each character: `^(?:(?=a*)a)*z` takes
quadratic time, and cubic time if its look-around contains such a repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from accord.schema.pattern_engine import goes_back
from accord.schema.pattern_parser import TOKEN, UnknownStatesError, most_repeated, parse_ecma, parts

_SHORT = 16
"""Characters that look-around may read ahead in a repetition: a constant factor."""
_UNBOUNDED = 1 << 32
_MAX_DEGREE = 9
"""At this degree, every text counts for more than a second."""

_GROUP = re.compile(r"\((?!\?)|\(\?P?<\w")


@lru_cache(1_000)
def degree(pattern: str) -> int:
    """Return the power of the length of a text that limits the time of a pattern, without its backtracking: 1 for
    linear time."""
    if not goes_back(pattern):
        return 1
    try:
        power = _reads_ahead(parse_ecma(pattern))[1]
    except (UnknownStatesError, RecursionError):
        power = 1 + len(TOKEN.findall(pattern))
    return min(power, _MAX_DEGREE)


def captures_ahead(pattern: str) -> bool:
    """Return whether there are groups in the look-around of a pattern."""
    try:
        return _captures_ahead(parse_ecma(pattern), is_ahead=False)
    except (UnknownStatesError, RecursionError):
        return TOKEN.search(pattern) is not None and _GROUP.search(pattern) is not None


def _captures_ahead(parsed: Any, *, is_ahead: bool) -> bool:
    return any(
        (is_ahead and str(op) == "SUBPATTERN" and value[0] is not None)
        or any(_captures_ahead(part, is_ahead=is_ahead or "ASSERT" in str(op)) for part in parts(str(op), value))
        for op, value in parsed
    )


def _reads_ahead(parsed: Any) -> tuple[int, int]:
    """Return how many characters look-around and back-references of a part read at most at one place, -1 if there are
    none, and the degree of the part."""
    return _largest(_item(str(op), value) for op, value in parsed)


def _item(op: str, value: Any) -> tuple[int, int]:
    ahead, power = _largest(map(_reads_ahead, parts(op, value)))
    if op == "GROUPREF":
        return _UNBOUNDED, 1
    if "ASSERT" in op:
        return max(ahead, int(value[1].getwidth()[1])), power
    if "REPEAT" in op and ahead >= 0:
        if most_repeated(value) > _SHORT and value[2].getwidth()[0] == 0:  # repeated as often without any text
            return ahead, _MAX_DEGREE
        return ahead, power + (ahead > _SHORT and int(value[1]) > 1)
    return ahead, power


def _largest(found: Iterable[tuple[int, int]]) -> tuple[int, int]:
    pairs = [(-1, 1), *found]
    return max(ahead for ahead, _ in pairs), max(power for _, power in pairs)
