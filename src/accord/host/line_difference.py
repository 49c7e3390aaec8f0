"""The difference between two texts, line by line, in time that grows with their length.

Lines at both ends that are equal match, and lines that both texts have once, in the same order (the longest such
sequence); then the lines between two matches, likewise. `difflib` takes seconds for some texts of 100 KB.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

_ROUNDS = 8
"""How often the lines between two matches are compared again."""
_MAX_REMOVED = 50
"""Removed lines of a difference that are shown."""

_Match = tuple[int, int]
"""The places of a line in the old and in the new text."""


def difference(old: Sequence[str], new: Sequence[str], context: int) -> list[str]:
    """Return the difference as lines with `+`, `-` or a space in front, with `context` lines around each change."""
    lines = list(_marked_lines(old, new))
    changed = [at for at, line in enumerate(lines) if line[0] != " "]
    shown: list[str] = []
    end = 0
    for at in changed:
        start, end = max(end, at - context), max(end, at + context + 1)
        shown += lines[start:end]
    return shown


def with_few_removed(lines: Sequence[str]) -> list[str]:
    """Return a difference with at most `_MAX_REMOVED` removed lines, and the number of the others at its end: they take
    no room from the new text.
    """
    left_out = set([at for at, line in enumerate(lines) if line[0] == "-"][_MAX_REMOVED:])
    shown = [line for at, line in enumerate(lines) if at not in left_out]
    return [*shown, f"-… {len(left_out):,} more removed lines"] if left_out else shown


def _marked_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    left = right = 0
    for match in [*_matches(old, new), (len(old), len(new))]:
        yield from (f"-{line}" for line in old[left : match[0]])
        yield from (f"+{line}" for line in new[right : match[1]])
        if match[0] < len(old):
            yield f" {old[match[0]]}"
        left, right = match[0] + 1, match[1] + 1


def _matches(old: Sequence[str], new: Sequence[str]) -> list[_Match]:
    """Return the places of equal lines, in order."""
    found: list[_Match] = []
    spans = [(range(len(old)), range(len(new)))]
    for _ in range(_ROUNDS):
        gaps: list[tuple[range, range]] = []
        for left, right in spans:
            matches, middle = _equal_ends(old, new, left, right)
            unique = _unique_matches(old, new, *middle)
            found += matches + unique
            if unique:
                gaps += _gaps(*middle, unique)
        spans = gaps
    return sorted(found)


def _equal_ends(
    old: Sequence[str], new: Sequence[str], left: range, right: range
) -> tuple[list[_Match], tuple[range, range]]:
    """Return the matches at the ends of two spans, and what is between."""
    begin = _common(old, new, left, right)
    left_rest, right_rest = left[begin:], right[begin:]
    end = _common(old, new, left_rest[::-1], right_rest[::-1])
    matches = [*zip(left[:begin], right[:begin], strict=True)]
    if end:
        matches += zip(left_rest[-end:], right_rest[-end:], strict=True)
    return matches, (left_rest[: len(left_rest) - end], right_rest[: len(right_rest) - end])


def _common(old: Sequence[str], new: Sequence[str], left: range, right: range) -> int:
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: old[pair[0]] == new[pair[1]], pairs))


def _unique_matches(old: Sequence[str], new: Sequence[str], left: range, right: range) -> list[_Match]:
    """Return the longest sequence of lines that occur once in each span, in the same order in both."""
    at_right = _unique(new, right)
    matches = [(at, at_right[line]) for line, at in _unique(old, left).items() if line in at_right]
    ends: list[int] = []  # for each length of a sequence, the least end of one
    last: list[int] = []
    before = [-1] * len(matches)
    for number, (_, at) in enumerate(matches):
        length = bisect(ends, at)
        before[number] = last[length - 1] if length else -1
        ends[length : length + 1] = [at]
        last[length : length + 1] = [number]
    sequence: list[_Match] = []
    number = last[-1] if last else -1
    while number >= 0:
        sequence.append(matches[number])
        number = before[number]
    return sequence[::-1]


def _unique(lines: Sequence[str], span: range) -> dict[str, int]:
    """Return the lines that occur once, with their places, in order."""
    counts = Counter(lines[at] for at in span)
    return {lines[at]: at for at in span if counts[lines[at]] == 1}


def _gaps(left: range, right: range, matches: Sequence[_Match]) -> Iterator[tuple[range, range]]:
    """Yield the spans between matches that have lines on both sides."""
    starts = [(left.start, right.start), *((old + 1, new + 1) for old, new in matches)]
    for start, end in zip(starts, [*matches, (left.stop, right.stop)], strict=True):
        if start[0] < end[0] and start[1] < end[1]:
            yield range(start[0], end[0]), range(start[1], end[1])
