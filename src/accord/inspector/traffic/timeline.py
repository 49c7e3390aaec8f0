"""The spans of a part of the time, and how many rows each small part has, so that the page draws a bounded number."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from itertools import pairwise
from math import isnan

import msgspec

from accord.inspector.traffic.index import ERROR, LOST, TrafficIndex
from accord.inspector.traffic.row_summaries import SpanSummary, summarize_span
from accord.inspector.traffic.spans import CONNECTION

MAX_SPANS = 1_000
"""The maximum number of spans in one answer."""
MAX_PARTS = 400
"""The maximum number of parts of the time axis."""


class TimePart(msgspec.Struct, frozen=True):
    """A part of the time: how many rows it has, and how many of them are errors."""

    rows: int
    errors: int


class Timeline(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the time. `hidden` spans are shorter than those in `spans`."""

    begin: float
    end: float
    seconds: float
    """The length of the whole session."""
    spans: list[SpanSummary]
    hidden: int
    parts: list[TimePart]
    first_row: int
    """The first row in this part of the time."""


def timeline(index: TrafficIndex, begin: float, end: float, most: int, parts: int) -> Timeline:
    """Return the longest spans between two times, at most `most`, and the rows in each of `parts` parts."""
    seconds = index.seconds
    end = max(begin, min(end, seconds) if end > 0 else seconds)
    found, hidden = _longest(index, begin, end, min(most, MAX_SPANS))
    counted = _count(index, begin, end, max(1, min(parts, MAX_PARTS)))
    first_row = bisect_left(index.times, begin, 0, len(index))
    return Timeline(begin, end, seconds, [summarize_span(index, span) for span in found], hidden, counted, first_row)


def _longest(index: TrafficIndex, begin: float, end: float, most: int) -> tuple[list[int], int]:
    """Return the spans that are in a part of the time, in order, and the number of those that are left out."""
    spans = index.spans
    last = bisect_right(spans.begins, end, 0, len(spans))
    ends, begins, kinds = spans.ends, spans.begins, spans.kinds
    inside = [span for span in range(last) if not ends[span] < begin]

    def length(span: int) -> float:
        if kinds[span] == CONNECTION or isnan(ends[span]):
            return float("inf")
        return ends[span] - begins[span]

    if len(inside) <= most:
        return inside, 0
    return sorted(heapq.nlargest(most, inside, key=length)), len(inside) - most


def _count(index: TrafficIndex, begin: float, end: float, parts: int) -> list[TimePart]:
    """Return the number of rows and errors of each part; times do not decrease."""
    count = len(index)
    width = (end - begin) / parts
    edges = [bisect_left(index.times, begin + width * part, 0, count) for part in range(parts)]
    edges.append(bisect_right(index.times, end, 0, count))
    outcomes = index.outcomes
    return [
        TimePart(last - first, sum(outcomes[row] in (ERROR, LOST) for row in range(first, last)))
        for first, last in pairwise(edges)
    ]
