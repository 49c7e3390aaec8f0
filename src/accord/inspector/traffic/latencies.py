"""Latencies by method: how long requests took, from the request to its response."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import ceil

import msgspec

from accord.inspector.traffic.index import ERROR, LOST, PENDING, REQUEST, TrafficIndex
from accord.visible_text import single_line

MAX_METHODS = 500
"""The maximum number of lines in one answer."""


class MethodLatency(msgspec.Struct, frozen=True):
    """The requests of one method; times in seconds, None without a response."""

    method: str
    count: int
    errors: int
    pending: int
    p50: float | None
    p95: float | None
    max: float | None


def latencies(index: TrafficIndex, rows: Iterable[int], *, by_name: bool = False) -> list[MethodLatency]:
    """Return the latencies of the requests among the rows by method, or by method and name; the slowest first."""
    found: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    kinds, methods, names = index.kinds, index.methods.numbers, index.names.numbers
    for row in rows:
        if kinds[row] == REQUEST:
            found[methods[row], names[row] if by_name else 0].append(row)
    lines = [_line(index, requests, by_name) for requests in found.values()]
    return sorted(lines, key=lambda line: -(line.p95 or 0.0))[:MAX_METHODS]


def _line(index: TrafficIndex, requests: list[int], by_name: bool) -> MethodLatency:
    times = sorted(seconds for row in requests if (seconds := index.duration(row)) is not None)
    outcomes = [index.outcomes[row] for row in requests]
    name = f" {index.names.text(requests[0])}".rstrip() if by_name else ""
    return MethodLatency(
        method=single_line(f"{index.methods.text(requests[0])}{name}"),
        count=len(requests),
        errors=sum(outcome in (ERROR, LOST) for outcome in outcomes),
        pending=outcomes.count(PENDING),
        p50=_percentile(times, 0.5),
        p95=_percentile(times, 0.95),
        max=times[-1] if times else None,
    )


def _percentile(times: list[float], share: float) -> float | None:
    """Return the least time that this share of the requests does not exceed."""
    return times[max(0, ceil(share * len(times)) - 1)] if times else None
