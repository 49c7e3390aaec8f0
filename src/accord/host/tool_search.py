"""Search in the catalogue of a host: as `Server.search_tools`, for the tools of all servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from accord.client.results import ToolResult
from accord.errors import DeclarationError, InvalidArguments
from accord.host.catalogue import CataloguedTool
from accord.messages.base import JSONObject
from accord.messages.content import TextContent
from accord.messages.tools import Tool, ToolAnnotations
from accord.server.compose.ranking import Ranking, words
from accord.server.compose.tool_definitions import tokens, within_budget, words_of

SEARCH, CALL = "search_tools", "call_tool"
_MAX_RANKED = 1_000
_MAX_QUERY = 1_000


class CatalogueSearch:
    """The search over the tools of all servers. Raises `DeclarationError` for an invalid budget or limit."""

    def __init__(self, budget: int, limit: int = 20) -> None:
        if budget < 1 or limit < 1:
            raise DeclarationError("search_tools needs a budget of tokens and a limit of at least 1")
        self._budget = budget
        self._limit = limit
        self._tools: tuple[CataloguedTool, ...] = ()
        self._ranking: Ranking | None = None
        self._is_large: bool | None = None

    def update(self, tools: Sequence[CataloguedTool]) -> None:
        """Take the tools of the catalogue; they are indexed at the next search."""
        tools = tuple(tools)
        if tools != self._tools:
            self._tools, self._ranking, self._is_large = tools, None, None

    @property
    def is_active(self) -> bool:
        """Return whether the definitions exceed the budget, so that the two tools are listed instead."""
        if self._is_large is None:
            left = self._budget
            self._is_large = any((left := left - tokens(tool.shown)) < 0 for tool in self._tools)
        return self._is_large

    def search(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Return the definitions that fit a query best. Raises `InvalidArguments`."""
        query, limit = arguments.get("query"), arguments.get("limit", 5)
        if not isinstance(query, str) or len(query) > _MAX_QUERY or not isinstance(limit, int):
            raise InvalidArguments(f'"query" is a text of at most {_MAX_QUERY:,} characters, and "limit" a number')
        by_name = {tool.shown.name: tool.shown for tool in self._tools}
        best = self._ranked(by_name).best(query)[:_MAX_RANKED] if query.strip() else list(by_name)
        limit = max(1, min(limit, self._limit))
        found = list(within_budget([by_name[name] for name in best], self._budget, limit))
        structured: JSONObject = {"tools": found, "left_out": len(best) - len(found)}
        text = TextContent(text=msgspec.json.encode(structured).decode())
        return ToolResult(content=[text], structured_content=structured)

    def _ranked(self, tools: Mapping[str, Tool]) -> Ranking:
        if self._ranking is None:
            texts = {name: list(words_of(name, tool)) for name, tool in tools.items()}
            self._ranking = Ranking(texts, {name: list(words(name)) for name in tools})
        return self._ranking


def called_tool(arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the arguments of the tool that `call_tool` calls. Raises `InvalidArguments`."""
    name, inside = arguments.get("name"), arguments.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(inside, Mapping):
        raise InvalidArguments('"name" is the name of a tool, and "arguments" an object')
    return name, inside


def _schema(required: str, **properties: JSONObject) -> JSONObject:
    return {"type": "object", "properties": properties, "required": [required]}


SEARCH_TOOLS = [
    Tool(
        name=SEARCH,
        description=(
            "There are more tools than are listed. Search them by a few words that say what is to be done, and get the "
            f"definitions of those that fit best; then call one with {CALL}."
        ),
        input_schema=_schema(
            "query",
            query={"type": "string", "description": 'A few words, such as "delete calendar event".'},
            limit={"type": "integer", "description": "How many tools to give at most.", "default": 5},
        ),
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    Tool(
        name=CALL,
        description=f"Call a tool by its name, as {SEARCH} gives it, with arguments that fit its inputSchema.",
        input_schema=_schema("name", name={"type": "string"}, arguments={"type": "object"}),
    ),
]
"""What is listed instead of all tools."""
