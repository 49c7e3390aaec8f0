"""Limits on the size of the compiled patterns of a schema, before they are compiled.

The engine compiles each part between look-around by itself, each up to its limit, and look-behind without any limit:
a pattern of 20 KB could take gigabytes. So the size of all patterns together is estimated: a set of characters takes
35 bytes to 50 KB, as often as its repetitions are written out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Any

import msgspec

from accord.errors import SchemaError
from accord.schema.pattern_engine import PATTERN_BYTES, fits, goes_back
from accord.schema.pattern_parser import PROPERTY, TOKEN, UnknownStatesError, most_repeated, parse_ecma, parts

_MAX_LOOK_BEHIND = 500
"""Limit of `_check_look_behind`: 0.1 s."""

_COUNT = re.compile(r"[{,](\d+)(?=[,}])")

_CHARACTER = 40
_ASCII_SET = 110
_ASCII_RANGE = 8
_SHORT_RANGE, _RANGE = 150, 600
"""Bytes of a range of characters beyond ASCII, of up to 64 characters or more."""
_ANY = 1_100
"""Bytes of any character but a few."""
_ANY_IN_LINE = 1_400
"""Bytes of any character but those that end a line, of which two are beyond ASCII (jsonschema-rs 0.61)."""
_CATEGORIES = {"DIGIT": 0, "NOT_DIGIT": _ANY, "WORD": 0, "NOT_WORD": _ANY, "SPACE": 1_150, "NOT_SPACE": 2_200}
_UNICODE_CATEGORIES = _CATEGORIES | {"DIGIT": 5_400, "NOT_DIGIT": 13_500, "WORD": 51_000, "NOT_WORD": 48_000}
"""The same in the engine that backtracks: all digits and letters of Unicode."""
_PROPERTY = 50_000
"""Bytes of a property of Unicode, or several in one set."""
_BOTH_CASES = 4
"""The most forms of a letter, where case does not matter."""
_IGNORES_CASE = re.compile(r"\(\?[a-z]*i")
_STEP = 100
"""Bytes of a group, a repetition, or an arm."""
_NANOSECONDS = 40
"""Nanoseconds for a character at a position of the pattern, and for a step to the next position."""
_UNPARSED = ((1 << 10, 200), (1 << 14, 3_000), (1 << 18, 50_000), (PATTERN_BYTES, 2_000_000))
"""Bytes and nanoseconds of a pattern that Python cannot parse: it is compiled to know its size."""


class PatternSize(msgspec.Struct, frozen=True):
    """About the size of a compiled pattern."""

    bytes: int
    nanoseconds: int
    """The longest time for a character, where the engine follows all positions."""

    def __add__(self, other: PatternSize) -> PatternSize:
        return PatternSize(self.bytes + other.bytes, self.nanoseconds + other.nanoseconds)

    def __mul__(self, times: int) -> PatternSize:
        return PatternSize(self.bytes * times, self.nanoseconds * times)


def check_sizes(patterns: Collection[str]) -> int:
    """Return the longest time of a pattern for a character, in nanoseconds.

    Raises `SchemaError` for patterns that are too large, all of them together.
    """
    _check_look_behind(patterns)
    slowest = _check_total(patterns, backtracks=False)
    if any(map(goes_back, patterns)):  # then all of them run on that engine
        _check_total(patterns, backtracks=True)
    return slowest


def _check_total(patterns: Iterable[str], *, backtracks: bool) -> int:
    total = slowest = 0
    for pattern in patterns:
        size = pattern_size(pattern, backtracks)
        total, slowest = total + size.bytes, max(slowest, size.nanoseconds)
        if total > PATTERN_BYTES:
            raise SchemaError(
                f"its patterns take more than {PATTERN_BYTES:,} bytes to compile, repetitions written out: "
                f"{pattern[:100]!r} takes about {size.bytes:,}"
            )
    return slowest


@lru_cache(1_000)
def pattern_size(pattern: str, backtracks: bool = False) -> PatternSize:
    """Return about the size of a pattern, compiled for the engine that backtracks or for the other one."""
    cases = _BOTH_CASES if _IGNORES_CASE.search(pattern) else 1
    try:
        return _size(parse_ecma(pattern), _Sets(cases, _UNICODE_CATEGORIES if backtracks else _CATEGORIES))
    except (UnknownStatesError, RecursionError):
        backtracks = backtracks or goes_back(pattern)
        alone = 1 + 2 * len(TOKEN.findall(pattern)) + pattern.count("|") + pattern.count("(")
        size, time = next((row for row in _UNPARSED if fits(pattern, row[0], backtracks)), _UNPARSED[-1])
        return PatternSize(size, time) * (alone if backtracks else 1)


class _Sets(msgspec.Struct, frozen=True):
    """The values that the size of a set of characters depends on."""

    cases: int
    categories: Mapping[str, int]


def _size(parsed: Any, sets: _Sets) -> PatternSize:
    return sum((_item_size(str(op), value, sets) for op, value in parsed), PatternSize(0, 0))


def _item_size(op: str, value: Any, sets: _Sets) -> PatternSize:
    if inside := parts(op, value):
        step = PatternSize(_STEP, _NANOSECONDS)
        whole = sum((step + _size(part, sets) for part in inside), PatternSize(0, 0))
        return whole * (most_repeated(value) if "REPEAT" in op else 1)
    return PatternSize(_item_bytes(op, value, sets), _NANOSECONDS)


def _item_bytes(op: str, value: Any, sets: _Sets) -> int:
    match op:
        case "ANY":
            return _ANY_IN_LINE
        case "LITERAL":
            return _set_bytes([(op, value)], sets, _CHARACTER)
        case "NOT_LITERAL":
            return _ANY + _set_bytes([(op, value)], sets, _CHARACTER)
        case "IN":
            return _ASCII_SET + _set_bytes([(str(kind), each) for kind, each in value], sets, _ASCII_RANGE)
    return _STEP


def _set_bytes(items: list[tuple[str, Any]], sets: _Sets, ascii_bytes: int) -> int:
    """Return the size of a set of characters, where one of ASCII takes `ascii_bytes`."""
    size, cases = 0, sets.cases
    once = {_CHARACTER * (cases - 1)}
    for kind, item in items:
        if kind == "CATEGORY":
            once.add(sets.categories[str(item).removeprefix("CATEGORY_")])
        elif kind == "NEGATE":
            once.add(_ANY)
        elif item == ord(PROPERTY):
            once.add(_PROPERTY)
        else:
            low, high = item if kind == "RANGE" else (item, item)
            beyond = cases * (_RANGE if high - low > 64 else _SHORT_RANGE)
            size += ascii_bytes if high < 128 else beyond
    return size + sum(once)


def _check_look_behind(patterns: Iterable[str]) -> None:
    """Raise `SchemaError` for patterns whose look-behind is too large, all of them together: the engine compiles it
    without a limit, each repetition as often as it may occur."""
    size = sum(_look_behind_size(each) for each in patterns if "(?<=" in each or "(?<!" in each)
    if size > _MAX_LOOK_BEHIND:
        raise SchemaError(f"the look-behind of its patterns has more than {_MAX_LOOK_BEHIND} characters, repeated")


def _look_behind_size(pattern: str) -> int:
    try:
        return _look_behind(parse_ecma(pattern))
    except (UnknownStatesError, RecursionError):
        counts = (int(count) for count in _COUNT.findall(pattern))
        return len(pattern) * prod(max(count, 1) for count in counts)


def _look_behind(parsed: Any) -> int:
    """Return the size of the look-behind in a part."""
    return sum(
        _expanded(part) if "ASSERT" in str(op) and value[0] < 0 else _look_behind(part)
        for op, value in parsed
        for part in parts(str(op), value)
    )


def _expanded(parsed: Any) -> int:
    """Return the number of characters of a part with its repetitions written out."""
    size = 0
    for op, value in parsed:
        inside = sum(map(_expanded, parts(str(op), value)))
        size += max(inside, 1) * (most_repeated(value) if "REPEAT" in str(op) else 1)
    return size
