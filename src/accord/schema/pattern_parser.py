"""Patterns as trees, parsed by Python: what it does not support, other modules estimate from the text of a pattern."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from typing import Any

PROPERTY = "\ue000"
"""Stands for a property of Unicode in a pattern that `parse_ecma` has parsed."""
TOKEN = re.compile(r"\(\?<?[=!]|\\[1-9k]")
"""The beginning of look-around, or a back-reference."""

_PROPERTY = re.compile(r"\\[pP]\{[\w=:^]*\}")
_GROUP_NAME = re.compile(r"\(\?<(?=\w)")
_NAMED_REFERENCE = re.compile(r"\\k<(\w+)>")


class UnknownStatesError(Exception):
    """A pattern has too many states, or constructs whose states are unknown."""


def parse(pattern: str) -> Any:
    """Return the pattern as parsed by Python, which does not support constructs that only ECMA-262 has. Raises
    `UnknownStatesError`."""
    parser: Any = import_module("re._parser")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return parser.parse(pattern)
    except (ValueError, RecursionError, OverflowError, Warning, parser.error):
        raise UnknownStatesError from None


def parse_ecma(pattern: str) -> Any:
    """Return the pattern as parsed by Python, with `PROPERTY` for a property of Unicode. Raises
    `UnknownStatesError`."""
    same = _GROUP_NAME.sub("(?P<", _PROPERTY.sub(PROPERTY, pattern))
    return parse(_NAMED_REFERENCE.sub(r"(?P=\1)", same))


def parts(op: str, value: Any) -> list[Any]:
    """Return the parts inside of an item. Raises `UnknownStatesError`."""
    match op:
        case "SUBPATTERN":
            return [value[3]]
        case "BRANCH":
            return list(value[1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [value[2]]
        case "ASSERT" | "ASSERT_NOT":
            return [value[1]]
        case "ATOMIC_GROUP" | "GROUPREF_EXISTS":
            raise UnknownStatesError
    return []


def most_repeated(repeat: Any) -> int:
    """Return how often a repetition occurs in the compiled pattern."""
    low, high, _ = repeat
    return int(low) + 1 if str(high) == "MAXREPEAT" else max(int(high), 1)
