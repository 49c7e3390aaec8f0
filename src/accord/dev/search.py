"""The tools of `accord dev --search`, for hosts that do not request a changed list: they reach new tools at once."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from accord.messages.base import JSONObject

SEARCH = "search_tools"
CALL = "call_tool"

_MOST = 20

_TOOLS: list[JSONObject] = [
    {
        "name": SEARCH,
        "description": "Search the current tools of this server, which may be newer than its list. Returns names, "
        f"descriptions and input schemas. Call what you find with {CALL}.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words; empty for all tools."}},
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": CALL,
        "description": f"Call a tool of this server that {SEARCH} has found.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name"],
        },
    },
]


def with_search_tools(result: JSONObject) -> JSONObject:
    """Return the last page of a list of tools with both tools."""
    tools = result.get("tools")
    if result.get("nextCursor") is not None or not isinstance(tools, list):
        return result
    return {**result, "tools": [*tools, *_TOOLS]}


def answer(params: JSONObject, tools: Mapping[str, JSONObject]) -> JSONObject | None:
    """Return the result of `search_tools`: the tools with the most words of the query, at most 20.

    Return None for a call of any other tool.
    """
    if params.get("name") != SEARCH:
        return None
    arguments = params.get("arguments")
    query = arguments.get("query") if isinstance(arguments, dict) else None
    words = query.lower().split() if isinstance(query, str) else []

    def matches(tool: JSONObject) -> int:
        text = f"{tool['name']} {tool.get('description', '')}".lower()
        return sum(word in text for word in words)

    found = sorted((each for each in tools.values() if not words or matches(each)), key=matches, reverse=True)
    shown = [{key: each[key] for key in ("name", "description", "inputSchema") if key in each} for each in found]
    return {"content": [{"type": "text", "text": msgspec.json.encode(shown[:_MOST]).decode()}]}


def called(params: JSONObject) -> JSONObject | None:
    """Return the params of the call that `call_tool` asks for, or None for any other call."""
    arguments = params.get("arguments") if params.get("name") == CALL else None
    name = arguments.get("name") if isinstance(arguments, dict) else None
    if not isinstance(arguments, dict) or not isinstance(name, str):
        return None
    inner = arguments.get("arguments")
    return {**params, "name": name, "arguments": inner if isinstance(inner, dict) else {}}
