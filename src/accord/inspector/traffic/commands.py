"""Commands about traffic: rows, entries, spans, latencies and the comparison of two messages."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path

import msgspec

from accord.inspector.commands import CommandParams, Download, InspectorError, PageCommand
from accord.inspector.traffic.comparison import MessageComparison, compare_messages
from accord.inspector.traffic.filter import FilterError
from accord.inspector.traffic.index import HTTP, KINDS
from accord.inspector.traffic.latencies import MethodLatency, latencies
from accord.inspector.traffic.row_summaries import RowSummary, SpanSummary, summarize_rows, summarize_span
from accord.inspector.traffic.sessions import LIVE
from accord.inspector.traffic.source import TrafficSource
from accord.inspector.traffic.text_search import SearchCancelled
from accord.inspector.traffic.timeline import Timeline, timeline
from accord.inspector.transfers import new_file
from accord.inspector.workspace import Workspace
from accord.visible_text import indented, truncate, visible
from accord.wire.session_file import HTTPEntry

MAX_ROWS = 500
"""The maximum number of rows in one answer."""
_CHARACTERS = 200_000
_MOST_INDENTED = 20 * _CHARACTERS


class SessionParams(CommandParams, frozen=True, kw_only=True):
    """The id of a session; by default the live one."""

    session: str = LIVE


class RowsParams(SessionParams, frozen=True, kw_only=True):
    """A range of the rows that match a filter. `view` names the place that shows them: a later search of the same view
    replaces an earlier one. `near` is a row: the range begins with the first match from there on."""

    filter: str = ""
    first: int = 0
    count: int = 100
    near: int | None = None
    view: str = ""


class RowParams(SessionParams, frozen=True, kw_only=True):
    """One row."""

    row: int


class TimelineParams(SessionParams, frozen=True, kw_only=True):
    """A part of the time in seconds; `end` 0 is the end of the session."""

    begin: float = 0.0
    end: float = 0.0
    most: int = 300
    parts: int = 200


class SpanParams(SessionParams, frozen=True, kw_only=True):
    """One span."""

    span: int


class LatencyParams(SessionParams, frozen=True, kw_only=True):
    """The requests that match a filter; `by_name`: for each tool or prompt on its own."""

    filter: str = ""
    by_name: bool = False


class CompareParams(CommandParams, frozen=True, kw_only=True):
    """Two rows, of one session or of two."""

    left_session: str = LIVE
    left: int
    right_session: str = LIVE
    right: int


class TrafficRows(msgspec.Struct, frozen=True):
    """A range of rows: `total` rows match, of `all`. A filter with an `error` has none, and a `cure`; one that a later
    search of the same view replaced has none either.
    """

    total: int
    all: int
    first: int = 0
    rows: list[RowSummary] = []
    remark: str = ""
    error: str = ""
    cure: str = ""
    replaced: bool = False


class EntryDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One entry with its content, in which hidden characters are escaped. A content that is not `complete` is a part;
    `traffic/download` has all of it.
    """

    summary: RowSummary
    raw: str
    """The bytes as they are in the file; those that are no text as escapes."""
    pretty: str
    """JSON with line breaks, and numbers as they are; empty if it is no JSON."""
    complete: bool
    heads: list[HTTPHead]
    """Over HTTP, the heads of the request and the response that carried it."""


class HTTPHead(msgspec.Struct, frozen=True):
    """The head of an HTTP request or response."""

    row: int
    direction: str
    line: str
    """Method and URL, or the status."""
    headers: list[tuple[str, str]]


class SpanDetail(msgspec.Struct, frozen=True):
    """One span with its rows, at most as many as one answer has."""

    span: SpanSummary
    rows: list[RowSummary]


class Latencies(msgspec.Struct, frozen=True):
    """The latencies by method."""

    methods: list[MethodLatency]


def source_of(workspace: Workspace, session: str) -> TrafficSource:
    """Return a session. Raises `InspectorError`."""
    return workspace.sessions.find(session)


async def matching(source: TrafficSource, text: str, view: str) -> array[int] | range:
    """Return the rows that match a filter. Raises `FilterError`, `SearchCancelled`, `InspectorError`."""
    if not text.strip():
        return range(len(source.index))
    try:
        return await source.rows(text, view)
    except OSError as exc:
        raise InspectorError(f"the session file cannot be read: {exc.strerror}") from exc


async def read_rows(workspace: Workspace, params: RowsParams) -> TrafficRows:
    """Return a range of the rows that match a filter. Raises `InspectorError`."""
    source = source_of(workspace, params.session)
    all = len(source.index)
    try:
        rows = await matching(source, params.filter, params.view)
    except FilterError as exc:
        return TrafficRows(0, all, error=str(exc), cure=exc.cure)
    except SearchCancelled:
        return TrafficRows(0, all, replaced=True)
    first = max(0, params.first if params.near is None else bisect_left(rows, params.near))
    part = rows[first : first + max(0, min(params.count, MAX_ROWS))]
    summaries = await asyncio.to_thread(summarize_rows, source, part)
    return TrafficRows(len(rows), all, first, summaries, workspace.sessions.remark(source))


async def read_entry(workspace: Workspace, params: RowParams) -> EntryDetail:
    """Return one entry with its content. Raises `InspectorError`."""
    source = source_of(workspace, params.session)
    row = _checked(source, params.row)
    return await asyncio.to_thread(_detail, source, row)


def _checked(source: TrafficSource, row: int) -> int:
    if not 0 <= row < len(source.index):
        raise InspectorError(f"there is no entry {row}", "reload the page", status=404)
    return row


def _detail(source: TrafficSource, row: int) -> EntryDetail:
    content = _content(source, row)
    raw = content[:_CHARACTERS].decode("utf-8", "backslashreplace")
    pretty = (indented(content, _MOST_INDENTED) or "") if len(content) <= 4 * _CHARACTERS else ""
    return EntryDetail(
        summary=summarize_rows(source, [row])[0],
        raw=visible(raw),
        pretty=visible(truncate(pretty, _CHARACTERS)),
        complete=len(content) <= _CHARACTERS and len(pretty) <= _CHARACTERS,
        heads=_heads(source, row),
    )


def _content(source: TrafficSource, row: int) -> bytes:
    """Return the bytes of a message; of another entry, its line."""
    return source.reader.message(row) if source.index.kinds[row] < HTTP else source.reader.line(row).rstrip()


def _heads(source: TrafficSource, row: int) -> list[HTTPHead]:
    """Return the heads of the exchange of a row, which stand near it."""
    index = source.index
    exchange = index.exchanges[row]
    if not exchange:
        return []
    same = [
        near
        for near in range(max(0, row - 2_000), min(len(index), row + 2_000))
        if index.exchanges[near] == exchange
        and index.kinds[near] == HTTP
        and index.connections[near] == index.connections[row]
    ]
    return [_head(source, near) for near in same[:4]]


def _head(source: TrafficSource, row: int) -> HTTPHead:
    try:
        entry = source.reader.entry(row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the index reads less of a line
        return HTTPHead(row, "", "this line is not valid", [])
    assert isinstance(entry, HTTPEntry), "its kind is http"
    line = f"{entry.method} {entry.url}" if entry.method else str(entry.status)
    headers = [
        (visible(name[:200]), visible(truncate(value, 4_000))) for name, value in list(entry.headers.items())[:200]
    ]
    return HTTPHead(row, entry.direction, visible(truncate(line, 4_000)), headers)


async def download(workspace: Workspace, params: RowParams) -> Download:
    """Return the content of one entry as a file. Raises `InspectorError`."""
    source = source_of(workspace, params.session)
    row = _checked(source, params.row)
    file = await asyncio.to_thread(_store, source, row, workspace.folder)
    is_json = source.index.kinds[row] < KINDS.index("other")
    return Download(f"entry-{row}.{'json' if is_json else 'txt'}", file, delete=True)


def _store(source: TrafficSource, row: int, folder: Path) -> Path:
    with new_file(folder) as stream:
        stream.write(_content(source, row))
    return Path(stream.name)


async def read_timeline(workspace: Workspace, params: TimelineParams) -> Timeline:
    """Return the spans of a part of the time. Raises `InspectorError`."""
    index = source_of(workspace, params.session).index
    return await asyncio.to_thread(timeline, index, max(0.0, params.begin), params.end, params.most, params.parts)


async def read_span(workspace: Workspace, params: SpanParams) -> SpanDetail:
    """Return one span with its rows. Raises `InspectorError`."""
    source = source_of(workspace, params.session)
    if not 0 <= params.span < len(source.index.spans):
        raise InspectorError(f"there is no span {params.span}", "reload the page", status=404)
    return await asyncio.to_thread(_span_detail, source, params.span)


def _span_detail(source: TrafficSource, span: int) -> SpanDetail:
    rows = [row for row, _ in zip(source.index.rows_of_span(span), range(MAX_ROWS), strict=False)]
    return SpanDetail(summarize_span(source.index, span), summarize_rows(source, rows))


async def read_latencies(workspace: Workspace, params: LatencyParams) -> Latencies:
    """Return the latencies of the requests that match a filter. Raises `InspectorError`."""
    source = source_of(workspace, params.session)
    try:
        rows = await matching(source, params.filter, "latencies")
    except FilterError as exc:
        raise InspectorError(str(exc), exc.cure, status=400) from exc
    except SearchCancelled as exc:
        raise InspectorError("another search replaced this one") from exc
    return Latencies(await asyncio.to_thread(latencies, source.index, rows, by_name=params.by_name))


async def compare(workspace: Workspace, params: CompareParams) -> MessageComparison:
    """Return the difference of two messages. Raises `InspectorError`."""
    left, right = source_of(workspace, params.left_session), source_of(workspace, params.right_session)
    rows = _checked(left, params.left), _checked(right, params.right)
    return await asyncio.to_thread(_compare, left, right, rows)


def _compare(left: TrafficSource, right: TrafficSource, rows: tuple[int, int]) -> MessageComparison:
    methods = {left.index.methods.text(rows[0]), right.index.methods.text(rows[1])}
    method = methods.pop() if len(methods) == 1 else ""
    return compare_messages(_content(left, rows[0]), _content(right, rows[1]), method)


COMMANDS: Mapping[str, PageCommand] = {
    "traffic/rows": PageCommand(RowsParams, read_rows),
    "traffic/entry": PageCommand(RowParams, read_entry),
    "traffic/download": PageCommand(RowParams, download),
    "traffic/timeline": PageCommand(TimelineParams, read_timeline),
    "traffic/span": PageCommand(SpanParams, read_span),
    "traffic/latencies": PageCommand(LatencyParams, read_latencies),
    "traffic/compare": PageCommand(CompareParams, compare),
}
