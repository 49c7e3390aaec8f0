"""A text that a pattern matches, the shortest first, without chance: read off the pattern as Python parses it.

Look-around and back-references are not read; nor are ECMA-262's own forms, which Python does not parse.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

_PREFERRED = string.ascii_letters + string.digits + string.punctuation + " "
"""Characters that are tried first where several would do."""
_CATEGORIES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_SPACE": " \t\n",
    "CATEGORY_WORD": string.ascii_letters + string.digits + "_",
}
_GROWTH = 40
"""Repeats beyond the least, at most."""


@lru_cache(maxsize=1_000)
def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """The pattern, if it can be read, and will be read so for long."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(pattern)
        except (re.error, RecursionError, OverflowError, FutureWarning):
            return None


def matching_texts(pattern: str, others: int = 0) -> Iterator[str]:
    """Texts that match a pattern, the shortest first; of each length so many others, with other characters. None for a
    pattern that cannot be read.
    """
    if compile_pattern(pattern) is None:
        return
    parser: Any = import_module("re._parser")
    parsed = parser.parse(pattern)
    seen: set[str] = set()
    for growth in range(_GROWTH):
        for turn in range(others + 1):
            text = _text(parsed, growth, turn)
            if text is not None and text not in seen:
                seen.add(text)
                yield text


def _text(parsed: Any, growth: int, turn: int) -> str | None:
    texts = [_node_text(str(op), value, growth, turn) for op, value in parsed]
    return None if None in texts else "".join(text for text in texts if text is not None)


def _node_text(op: str, value: Any, growth: int, turn: int) -> str | None:
    match op:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return next(char for char in _PREFERRED[turn:] if ord(char) != value)
        case "ANY":
            return _PREFERRED[turn]
        case "AT":
            return ""
        case "IN":
            return _member(value, turn)
        case "BRANCH":
            return next((text for each in value[1] if (text := _text(each, growth, turn)) is not None), None)
        case "SUBPATTERN":
            return _text(value[3], growth, turn)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inner = value
            text = _text(inner, 0, turn)
            return None if text is None else text * min(low + growth, int(high))
    return None


def _member(items: Any, turn: int) -> str | None:
    """A character of a set, written `[...]`."""
    denied = bool(items) and str(items[0][0]) == "NEGATE"
    inside = [item for item in items if str(item[0]) != "NEGATE"]
    fitting = [char for char in _PREFERRED if any(_set_contains(item, char) for item in inside) != denied]
    if fitting:
        return fitting[turn % len(fitting)]
    firsts = (chr(value[0] if str(op) == "RANGE" else value) for op, value in inside if str(op) in ("RANGE", "LITERAL"))
    return None if denied else next(firsts, None)


def _set_contains(item: Any, char: str) -> bool:
    op, value = str(item[0]), item[1]
    if op == "LITERAL":
        return bool(ord(char) == value)
    if op == "RANGE":
        return bool(value[0] <= ord(char) <= value[1])
    name = str(value)
    known = _CATEGORIES.get(name.replace("CATEGORY_NOT_", "CATEGORY_"), "")
    return (char in known) != name.startswith("CATEGORY_NOT_")
