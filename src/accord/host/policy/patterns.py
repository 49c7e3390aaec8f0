"""Patterns of names: `*` stands for any characters, also for none; all other characters stand for themselves.

Case matters. Matching takes time linear in the text: no pattern is compiled to a regular expression, and each part
between two `*` is searched once, from where the part before it ended.
"""

from __future__ import annotations

from collections.abc import Iterable


def matches(pattern: str, text: str) -> bool:
    """Return whether the whole text matches the pattern."""
    first, *parts = pattern.split("*")
    if not parts:
        return text == first
    last = parts.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    start, end = len(first), len(text) - len(last)
    for part in parts:
        found = text.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True


def matches_any(patterns: Iterable[str], text: str) -> bool:
    """Return whether the whole text matches one of the patterns."""
    return any(matches(pattern, text) for pattern in patterns)
