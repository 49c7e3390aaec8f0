"""`_meta` of ours: keys by the rules of the specification, or a refusal that says which."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accord import CallToolResult, DeclarationError, Server, TextContent, Tool
from accord.messages.revision import REVISIONS

from tests.server.raw import META, raw_peer


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


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("member", "name"),
    [('"com.example/a":1,"com.example/a":2', "com.example/a"), ('"com.example/a":{"b":[{"c":1,"c":2}]}', "c")],
)
async def test_a_member_that_occurs_twice_in_the_meta_of_a_call_is_refused(
    revision: str, member: str, name: str
) -> None:
    meta = {"progressToken": 1, **(META if revision == "2026-07-28" else {})}
    called = b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"it","arguments":{},"_meta":%b}}'
    written = json.dumps(meta, separators=(",", ":"))
    async with raw_peer(answering({}), revision) as peer:
        for _ in range(2):
            peer.say(called % f"{written[:-1]},{member}}}".encode())
            error = (await peer.hear())["error"]
            assert error["code"] == -32602
            assert error["message"] == f"params have the member {name!r} twice"
            peer.say(called % written.encode())
            assert "result" in await peer.hear()
