"""Texts that match a pattern, the shortest first and always the same, and examples of JSON Schema's formats.

The texts are derived from the pattern as Python parses it. Look-around, back-references and syntax that only ECMA-262
has are not supported. The examples use names and addresses reserved for documentation (RFC 2606, RFC 5737, RFC 3849).
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
"""The characters to try first."""
_CATEGORIES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_SPACE": " \t\n",
    "CATEGORY_WORD": string.ascii_letters + string.digits + "_",
}
_GROWTH = 40
"""The maximum number of repetitions beyond the minimum."""
LONGEST = 1 << 16
"""The maximum length of a text in characters."""


@lru_cache(maxsize=1_000)
def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern; return None if Python cannot parse it, or will parse it differently in the future."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(pattern)
        except (re.error, RecursionError, OverflowError, FutureWarning):
            return None


def matching_texts(pattern: str, others: int = 0) -> Iterator[str]:
    """Yield texts that match a pattern, the shortest first, and `others` more per length with other characters.

    A pattern that cannot be parsed has none; texts longer than `LONGEST` are skipped.
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
    texts: list[str] = []
    size = 0
    for op, value in parsed:
        text = _node_text(str(op), value, growth, turn)
        size += 0 if text is None else len(text)
        if text is None or size > LONGEST:
            return None
        texts.append(text)
    return "".join(texts)


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
            times = min(low + growth, int(high))
            return None if text is None or len(text) * times > LONGEST else text * times
    return None


def _member(items: Any, turn: int) -> str | None:
    """Return a character that matches a set `[...]`."""
    negated = bool(items) and str(items[0][0]) == "NEGATE"
    members = [item for item in items if str(item[0]) != "NEGATE"]
    matching = [char for char in _PREFERRED if any(_set_contains(item, char) for item in members) != negated]
    if matching:
        return matching[turn % len(matching)]
    firsts = (
        chr(value[0] if str(op) == "RANGE" else value) for op, value in members if str(op) in ("RANGE", "LITERAL")
    )
    return None if negated else next(firsts, None)


def _set_contains(item: Any, char: str) -> bool:
    op, value = str(item[0]), item[1]
    if op == "LITERAL":
        return bool(ord(char) == value)
    if op == "RANGE":
        return bool(value[0] <= ord(char) <= value[1])
    name = str(value)
    known = _CATEGORIES.get(name.replace("CATEGORY_NOT_", "CATEGORY_"), "")
    return (char in known) != name.startswith("CATEGORY_NOT_")


FORMATS: dict[str, tuple[str, ...]] = {
    "date-time": ("2026-01-31T12:00:00Z", "1999-12-31T23:59:59.999+05:30", "2024-02-29T00:00:00Z"),
    "date": ("2026-01-31", "2024-02-29", "1970-01-01"),
    "time": ("12:00:00Z", "23:59:59.999+05:30", "00:00:00Z"),
    "duration": ("PT1S", "P1D", "P1Y2M3DT4H5M6S"),
    "email": ("someone@example.com", "a.b+c@sub.example.org"),
    "idn-email": ("someone@example.com", "jemand@bücher.example"),
    "hostname": ("example.com", "a.example"),
    "idn-hostname": ("example.com", "bücher.example"),
    "ipv4": ("192.0.2.1", "127.0.0.1"),
    "ipv6": ("2001:db8::1", "::1"),
    "uri": ("https://example.com/", "urn:example:a", "https://example.com/a%20b?c=d#e"),
    "uri-reference": ("https://example.com/", "/a", "?b=c"),
    "iri": ("https://example.com/", "https://example.com/ü"),
    "iri-reference": ("https://example.com/", "/ü"),
    "url": ("https://example.com/",),
    "uri-template": ("https://example.com/{id}",),
    "uuid": ("00000000-0000-4000-8000-000000000000", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    "json-pointer": ("/a", "", "/a~1b/0"),
    "relative-json-pointer": ("0", "1/a"),
    "regex": ("^a+$", "."),
    "byte": ("YQ==", ""),
}
