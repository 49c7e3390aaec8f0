"""The commands of the screen Model view: the catalogue of tools as a model reads it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal
from weakref import WeakKeyDictionary

import msgspec

from accord.client.client import Client
from accord.inspector.commands import InspectorError, PageCommand, ServerParams
from accord.inspector.similar_names import similar_names
from accord.inspector.tool_definition_views import FieldTokens, ToolDetail, ToolSummary, describe, summarize
from accord.inspector.workspace import Workspace
from accord.messages.tools import Tool
from accord.visible_text import visible

MOST_TOOLS = 5_000
"""Tools that are analyzed: the first ones."""
MOST_ROWS = 500
_MOST_NAMES = 20
"""Names of one group that look alike."""
_NAME = 200

_Count = Annotated[int, msgspec.Meta(ge=0)]


class CatalogueParams(ServerParams, frozen=True):
    """A range of the tools of a server, sorted; `fresh`: request the list from the server again."""

    sort: Literal["tokens", "name", "hidden", "order"] = "tokens"
    fresh: bool = False
    start: _Count = 0
    count: _Count = MOST_ROWS


class ToolNumberParams(ServerParams, frozen=True):
    """A tool by its number in the catalogue."""

    number: int


class AlikeGroup(msgspec.Struct, frozen=True):
    """Names that look alike, with hidden characters escaped."""

    names: list[str]
    numbers: list[int]
    reason: str


class CatalogueView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The catalogue of a server: totals, and a range of its tools."""

    total: int
    analyzed: int
    tokens: int
    """Of all definitions, as `search_tools` counts."""
    sent_tokens: int
    """Of the fields that hosts send to a model."""
    hidden: int
    fields: list[FieldTokens]
    """Of all tools, by field."""
    alike: list[AlikeGroup]
    rows: list[ToolSummary]


class ToolCatalogue(msgspec.Struct, frozen=True):
    """The tools of a connection, analyzed."""

    tools: Sequence[Tool]
    summaries: list[ToolSummary]
    alike: list[AlikeGroup]


_catalogues: WeakKeyDictionary[Client, ToolCatalogue] = WeakKeyDictionary()
"""The last catalogue of each connection."""


async def catalogue(workspace: Workspace, params: CatalogueParams) -> CatalogueView:
    """Return the totals of a catalogue, and a range of its tools. Raises `InspectorError`, `AccordError`."""
    found = await _catalogue(workspace.server(params.server).client, fresh=params.fresh)
    rows = _sorted(found.summaries, params.sort)
    by_field: Counter[str] = Counter()
    is_sent = {each.name: each.is_sent for row in rows for each in row.fields}
    for row in rows:
        by_field.update({each.name: each.tokens for each in row.fields})
    return CatalogueView(
        total=len(found.tools),
        analyzed=len(rows),
        tokens=sum(row.tokens for row in rows),
        sent_tokens=sum(row.sent_tokens for row in rows),
        hidden=sum(row.hidden for row in rows),
        fields=[FieldTokens(name, count, is_sent[name]) for name, count in by_field.most_common()],
        alike=found.alike,
        rows=rows[params.start : params.start + min(params.count, MOST_ROWS)],
    )


async def tool(workspace: Workspace, params: ToolNumberParams) -> ToolDetail:
    """Return the definition of a tool as a model reads it. Raises `InspectorError`, `AccordError`."""
    found = await _catalogue(workspace.server(params.server).client)
    if not 0 <= params.number < len(found.tools):
        raise InspectorError(
            f"there is no tool with the number {params.number}", "load the catalogue again", status=404
        )
    return await asyncio.to_thread(describe, found.tools[params.number])


async def _catalogue(client: Client, *, fresh: bool = False) -> ToolCatalogue:
    """Return the catalogue of a connection, which is requested once, and again if it must be `fresh`."""
    found = _catalogues.get(client)
    if found is None or fresh:
        found = _catalogues[client] = await asyncio.to_thread(_analyze, await client.list_tools(fresh=fresh))
    return found


def _analyze(tools: Sequence[Tool]) -> ToolCatalogue:
    analyzed = tools[:MOST_TOOLS]
    names = [each.name for each in analyzed]
    alike = [
        AlikeGroup(
            [visible(names[number][:_NAME]) for number in group.numbers[:_MOST_NAMES]],
            list(group.numbers[:_MOST_NAMES]),
            group.reason,
        )
        for group in similar_names(names)
    ]
    return ToolCatalogue(tools, [summarize(number, each) for number, each in enumerate(analyzed)], alike)


def _sorted(rows: Sequence[ToolSummary], by: str) -> list[ToolSummary]:
    if by == "name":
        return sorted(rows, key=lambda row: row.name)
    if by == "order":
        return list(rows)
    return sorted(rows, key=lambda row: (-(row.hidden if by == "hidden" else row.tokens), row.name))


COMMANDS: Mapping[str, PageCommand] = {
    "model/catalogue": PageCommand(CatalogueParams, catalogue),
    "model/tool": PageCommand(ToolNumberParams, tool),
}
