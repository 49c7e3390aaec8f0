"""How long a client may keep what a resource returned (server, Caching)."""

from __future__ import annotations

from typing import Any

import pytest

from accord import Context, ResourceContents, Server
from accord.messages.resources import ReadResourceResult
from accord.messages.revision import REVISIONS
from accord.server.core.content import CacheHint

from tests.server.raw import META, raw_peer

HINT = CacheHint(ttl=60, scope="public")


def server() -> Server:
    made = Server("test", "1")

    @made.resource("test://plain")
    def plain() -> str:
        return "x"

    @made.resource("test://kept", cache=HINT)
    def kept() -> str:
        return "x"

    @made.resource("test://kept/{n}", cache=HINT)
    def template(n: str) -> str:
        return n

    @made.resource("test://own", cache=HINT)
    def own() -> ReadResourceResult:
        return ReadResourceResult(
            contents=[ResourceContents(uri="test://own", text="x")],
            ttl_ms=-5,
            cache_scope="private",
            meta={"com.example/k": 1},
        )

    @made.resource("test://half", cache=HINT)
    def half() -> ReadResourceResult:
        return ReadResourceResult(contents=[], ttl_ms=7)

    @made.resource("test://wrong")
    def wrong() -> ReadResourceResult:
        return ReadResourceResult(contents=[], meta={"dev.mcp/mine": 1})

    @made.resource("test://asking", cache=HINT)
    async def asking(ctx: Context) -> str:
        return (await ctx.elicit("Which?", str)).action

    return made


TOLD = [
    ("test://plain", 0, "private"),
    ("test://kept", 60_000, "public"),
    ("test://kept/1", 60_000, "public"),
    ("test://own", 0, "private"),
    ("test://half", 7, "public"),
]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("uri", "ttl_ms", "scope"), TOLD)
async def test_a_resource_has_a_cache_hint(revision: str, uri: str, ttl_ms: int, scope: str) -> None:
    async with raw_peer(server(), revision) as peer:
        result = (await peer.ask("resources/read", {"uri": uri}))["result"]
    expected = (ttl_ms, scope) if revision == "2026-07-28" else (None, None)
    assert (result.get("ttlMs"), result.get("cacheScope")) == expected


async def test_what_a_handler_says_itself_arrives() -> None:
    async with raw_peer(server(), "2026-07-28") as peer:
        result = (await peer.ask("resources/read", {"uri": "test://own"}))["result"]
        assert result["_meta"]["com.example/k"] == 1
        assert "io.modelcontextprotocol/serverInfo" in result["_meta"]
        assert "reserved" in (await peer.ask("resources/read", {"uri": "test://wrong"}))["error"]["message"]


async def test_requested_input_is_not_to_be_cached() -> None:
    async with raw_peer(server(), "2026-07-28") as peer:
        params: dict[str, Any] = {
            "uri": "test://asking",
            "_meta": {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}},
        }
        asked = (await peer.ask("resources/read", params))["result"]
        assert "ttlMs" not in asked
        (key,) = asked["inputRequests"]
        params |= {"requestState": asked["requestState"], "inputResponses": {key: {"action": "decline"}}}
        result = (await peer.ask("resources/read", params))["result"]
        assert (result["contents"][0]["text"], result["ttlMs"], result["cacheScope"]) == ("decline", 0, "private")
