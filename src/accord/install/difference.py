"""The difference between two texts of a file, for the user: the changed lines with three lines around them."""

from __future__ import annotations

import difflib
from itertools import takewhile

from accord.redaction import redact

_CONTEXT = 3


def difference(old: str, new: str, *, is_new_secret: bool) -> list[str]:
    """Return the lines of the difference, each after "+", "-" or a space; "..." is between changes far apart.

    What looks secret is replaced: the lines around a change may be of another server. New lines are shown as they are,
    unless `is_new_secret`.
    """
    before, after = old.splitlines(), new.splitlines()
    begin = _common(before, after)
    end = _common(before[begin:][::-1], after[begin:][::-1])
    start, rest = max(begin - _CONTEXT, 0), max(end - _CONTEXT, 0)  # files of hosts are long: the rest is equal
    window = before[start : len(before) - rest], after[start : len(after) - rest]
    lines = list(difflib.unified_diff(window[0], window[1], lineterm="", n=_CONTEXT))[3:]
    return [_visible_line(each, is_new_secret) for each in lines]


def _visible_line(line: str, is_new_secret: bool) -> str:
    if line.startswith("@@"):
        return "..."
    return line if line.startswith("+") and not is_new_secret else line[:1] + str(redact(line[1:]))


def _common(one: list[str], other: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
