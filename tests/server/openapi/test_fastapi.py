"""A FastAPI application as tools: in this process, and over a socket; what a caller sees is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import Client, DeclarationError, HTTPSettings, ImageContent, Server
from accord.messages.revision import REVISIONS

from tests.server.http.raw import served
from tests.server.openapi import shop
from tests.server.openapi.loopback import on_loopback

ways = pytest.mark.parametrize("way", ["in process", "socket"])


@asynccontextmanager
async def shopping(way: str, **options: Any) -> AsyncIterator[Client]:
    """A client of a server of the shop."""
    app, server = shop.make(), Server("mcp")
    if way == "in process":
        server.add_fastapi(app, **options)
        async with Client(server) as client:
            yield client
    else:
        async with on_loopback(app) as url:
            server.add_openapi(app.openapi(), base_url=url, **options)
            async with Client(server) as client:
                yield client


@ways
async def test_arguments_stand_where_they_belong_and_answers_are_structured(way: str) -> None:
    async with shopping(way) as client:
        item = await client.call_tool("read_item", {"item_id": 7, "q": "a/b?c&d=ü#é"})
        assert item.data == {"name": "7 a/b?c&d=ü#é", "price": None, "tags": ["stock 3"]}
        found = await client.call_tool("find_items", {"tag": ["x y", "z"], "most": 1})
        assert [one["name"] for one in found.data] == ["x y"]
        changed = await client.call_tool("change_item", {"item_id": "a b?ü", "name": "n", "price": 2.5})
        assert changed.data == {"name": "a b?ü: n", "price": 2.5, "tags": []}
        deleted = await client.call_tool("delete_item", {"item_id": 1})
        assert deleted.text == "HTTP 204 No Content"
        (picture,) = (await client.call_tool("picture")).content
        assert picture == ImageContent(data="iVBORw==", mime_type="image/png")


@ways
async def test_what_is_recursive_stays_so(way: str) -> None:
    async with shopping(way) as client:
        part = {"name": "car", "parts": [{"name": "wheel", "parts": []}]}
        assert (await client.call_tool("assemble", part)).data == part
        (tool,) = [tool for tool in await client.list_tools() if tool.name == "assemble"]
        assert tool.input_schema["properties"]["parts"]["items"] == {"$ref": "#/$defs/Part-Input"}
        assert tool.input_schema["$defs"].keys() == {"Part-Input"}
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"


@ways
async def test_a_refusal_is_an_error_with_the_status_and_no_secret(way: str) -> None:
    async with shopping(way, headers={"X-Api-Key": "k-123456789"}) as client:
        refused = await client.call_tool("read_item", {"item_id": 404})
        assert refused.is_error
        assert refused.text == (
            'GET /items/{item_id}: HTTP 404 Not Found; it says {"detail":"no item; you sent [redacted]"}'
        )
        unfit = await client.call_tool("read_item", {"item_id": "seven"})
        assert unfit.is_error
        assert "item_id" in unfit.text
        assert (await client.call_tool("read_item", {"item_id": "7"})).data["name"] == "7 None"
        extra = await client.call_tool("read_item", {"item_id": 7, "id": 7})
        assert extra.is_error
        assert "'id' was unexpected" in extra.text


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_revision_lists_and_calls(revision: str) -> None:
    server = Server("mcp")
    server.add_fastapi(shop.make())
    async with Client(server, revisions=[revision]) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert set(tools) == {
            "read_item",
            "find_items",
            "change_item",
            "delete_item",
            "assemble",
            "who",
            "picture",
            "by_name",
        }
        found = await client.call_tool("find_items", {"tag": ["a"]})
        assert found.text == '[{"name":"a","price":null,"tags":[]}]'
        if tools["find_items"].output_schema is not None:
            assert found.data == [{"name": "a", "price": None, "tags": []}]


async def test_methods_say_how_a_tool_behaves() -> None:
    async with shopping("in process") as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        hints = {name: tool.annotations for name, tool in tools.items()}
        assert hints["read_item"] is not None
        assert hints["read_item"].read_only_hint is True
        assert hints["delete_item"] is not None
        assert (hints["delete_item"].destructive_hint, hints["delete_item"].idempotent_hint) == (True, True)
        assert hints["change_item"] is not None
        assert (hints["change_item"].read_only_hint, hints["change_item"].idempotent_hint) == (False, None)
        assert tools["read_item"].title == "Read Item"
        assert tools["by_name"].description == "An old one.\n\nDeprecated."


async def test_the_lifespan_of_the_application_is_that_of_the_server() -> None:
    log: list[str] = []
    server = Server("mcp")
    server.add_fastapi(shop.make(log))
    async with Client(server) as client:
        assert log == []
        await client.call_tool("read_item", {"item_id": 1})
        await client.call_tool("read_item", {"item_id": 1})
        assert log == ["up"]
    assert log == ["up", "down"]


async def test_a_lifespan_that_somebody_else_runs_is_left_alone() -> None:
    log: list[str] = []
    server = Server("mcp")
    server.add_fastapi(shop.make(log), lifespan=False)
    async with Client(server) as client:
        assert (await client.call_tool("read_item", {"item_id": 1})).data["tags"] == ["stock None"]
    assert log == []


async def test_a_server_of_nothing_but_an_application_has_its_name() -> None:
    server = Server.from_fastapi(shop.make())
    assert (server.name, server.info.version) == ("shop", "2.0")
    other = Server.from_openapi(shop.make().openapi(), name="other", base_url="http://127.0.0.1:1", prefix="shop")
    async with Client(other) as client:
        assert "shop_read_item" in {tool.name for tool in await client.list_tools()}
        failed = await client.call_tool("shop_read_item", {"item_id": 1})
        assert failed.is_error
        assert "no connection to 127.0.0.1:1" in failed.text


async def test_what_cannot_describe_itself_is_refused() -> None:
    with pytest.raises(DeclarationError, match="no openapi"):
        Server("mcp").add_fastapi(object())


async def test_where_no_http_request_brought_a_call_nothing_is_passed_on() -> None:
    async with shopping("in process", forward=["Authorization", "Cookie"]) as client:
        assert set((await client.call_tool("who")).data.values()) == {None}


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_over_http_only_the_headers_that_are_named_are_passed_on(revision: str) -> None:
    server = Server("mcp")
    server.add_fastapi(shop.make(), forward=["X-Team"])
    server.add_fastapi(shop.make(), prefix="own", forward=["Authorization"], headers={"X-Team": "ours"})
    ours = HTTPSettings(headers={"X-Team": "blue", "X-Api-Key": "k"})
    async with served(server.app) as socket:
        url = f"http://127.0.0.1:{socket.port}/mcp"
        async with Client(url, http=ours, auth="token-1234", revisions=[revision]) as client:
            told = (await client.call_tool("who")).data
            assert told == {"key": None, "authorization": None, "team": "blue", "seen": None}
            told = (await client.call_tool("own_who", {"seen": "a; b", "x-api-key": "mine"})).data
            assert told["authorization"] == "Bearer token-1234"
            assert (told["team"], told["key"]) == ("ours", "mine")
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert set(tools["who"].input_schema["properties"]) == {"x-api-key", "seen"}
