"""`_meta` of ours: keys by the rules of the specification, or a refusal that says which."""

from __future__ import annotations

from typing import Any

import pytest

from accord import CallToolResult, DeclarationError, Server, TextContent, Tool
from accord.messages.revision import REVISIONS

from tests.server.raw import raw_peer


def answering(meta: dict[str, Any]) -> Server:
    server = Server("test", "1")

    @server.tool(meta={"com.example/of-the-tool": 1})
    async def it() -> CallToolResult:
        return CallToolResult(content=[TextContent(text="x")], meta=meta)

    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_meta_of_a_result_goes_out_as_it_is(revision: str) -> None:
    async with raw_peer(answering({"com.example/a": {"b": [1, None]}}), revision) as peer:
        result = await peer.call("it")
        assert result["_meta"]["com.example/a"] == {"b": [1, None]}
        assert ("io.modelcontextprotocol/serverInfo" in result["_meta"]) == (revision == "2026-07-28")


async def test_a_reserved_key_in_a_result_is_an_error_of_that_call() -> None:
    async with raw_peer(answering({"dev.mcp/mine": 1})) as peer:
        result = await peer.call("it")
        assert result["isError"] is True
        assert "'dev.mcp/' is reserved" in result["content"][0]["text"]


@pytest.mark.parametrize("key", ["dev.mcp/mine", "-x", "com..example/a"])
def test_a_key_that_may_not_be_is_refused_when_declared(key: str) -> None:
    server = Server("test", "1")
    with pytest.raises(DeclarationError, match="_meta key"):
        server.tool(meta={key: 1})(lambda: "x")
    with pytest.raises(DeclarationError, match="_meta key"):
        server.resource("a:b", meta={key: 1})


@pytest.mark.parametrize("value", [object(), float("nan"), [{"deep": float("inf")}], {"a": {1j}}, "\ud800"])
def test_a_value_that_json_cannot_hold_is_refused_when_declared(value: Any) -> None:
    server, meta = Server("test", "1"), {"com.example/x": value}
    for declare in (
        lambda: server.tool(meta=meta)(lambda: "x"),
        lambda: server.prompt(meta=meta)(lambda: "x"),
        lambda: server.resource("a:b", meta=meta),
        lambda: server.add_tool(Tool(name="x", input_schema={"type": "object"}, meta=meta), lambda arguments: "x"),
    ):
        with pytest.raises(DeclarationError, match="meta"):
            declare()
