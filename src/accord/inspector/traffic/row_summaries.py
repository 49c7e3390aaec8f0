"""Rows and spans as the page shows them."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

import msgspec

from accord.inspector.traffic.index import DIRECTIONS, KINDS, OUTCOMES, TrafficIndex
from accord.inspector.traffic.source import TrafficSource
from accord.inspector.traffic.spans import SPAN_KINDS, SpanKind
from accord.visible_text import single_line, visible


class RowSummary(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of a session in a line."""

    row: int
    at: float
    connection: int
    kind: str
    direction: str
    method: str
    name: str
    id_json: str
    """The id as JSON; empty for none."""
    outcome: str
    code: int
    size: int
    duration: float | None
    """The seconds between a request and its response."""
    partner: int | None
    span: int | None
    revision: str
    mismatch: str
    """Why it does not match the exact types of the revision; empty if it does, or is not checked."""
    preview: str


class SpanSummary(msgspec.Struct, frozen=True, rename="camel"):
    """One span on the time axis."""

    span: int
    kind: SpanKind
    connection: int
    method: str
    name: str
    begin: float
    end: float | None
    """None while it is open."""
    outcome: str
    rounds: int
    first_row: int
    last_row: int


def summarize_rows(source: TrafficSource, rows: Iterable[int]) -> list[RowSummary]:
    """Return rows as the page shows them. Raises `OSError`."""
    return [_summarize(source, row) for row in rows]


def _summarize(source: TrafficSource, row: int) -> RowSummary:
    index = source.index
    id = index.ids[row]
    return RowSummary(
        row=row,
        at=index.times[row],
        connection=index.connections[row],
        kind=KINDS[index.kinds[row]],
        direction=DIRECTIONS[index.directions[row]],
        method=single_line(index.methods.text(row)),
        name=single_line(index.names.text(row)),
        id_json="" if id is None else visible(msgspec.json.encode(id).decode()),
        outcome=OUTCOMES[index.outcomes[row]],
        code=index.codes[row],
        size=index.sizes[row],
        duration=index.duration(row),
        partner=_number(index.partners[row]),
        span=_number(index.row_spans[row]),
        revision=index.revisions.text(row),
        mismatch=source.types.mismatch(row),
        preview=source.reader.preview(row),
    )


def summarize_span(index: TrafficIndex, span: int) -> SpanSummary:
    """Return a span as the page shows it."""
    spans = index.spans
    row = next((row for row in _first_rows(index, span) if index.methods.text(row)), spans.first_rows[span])
    return SpanSummary(
        span=span,
        kind=SPAN_KINDS[spans.kinds[span]],
        connection=spans.connections[span],
        method=single_line(index.methods.text(row)),
        name=single_line(index.names.text(row)),
        begin=spans.begins[span],
        end=None if isnan(spans.ends[span]) else spans.ends[span],
        outcome=OUTCOMES[spans.outcomes[span]],
        rounds=spans.rounds[span],
        first_row=spans.first_rows[span],
        last_row=spans.last_rows[span],
    )


def _first_rows(index: TrafficIndex, span: int) -> Iterable[int]:
    """Return the first rows of a span: its request stands after the head of its HTTP request."""
    first = index.spans.first_rows[span]
    near = range(first, min(first + 4, len(index)))
    rows = [row for row in near if index.row_spans[row] == span]
    return sorted(rows, key=lambda row: index.kinds[row] != 0)


def _number(value: int) -> int | None:
    return None if value < 0 else value
