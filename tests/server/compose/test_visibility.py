"""Who sees what: hidden by the server, by a session, and by what somebody was granted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import (
    APIKeys,
    Client,
    Context,
    DeclarationError,
    InvalidParams,
    Limits,
    ListChanged,
    Principal,
    ResourceNotFound,
    Server,
    ToolChange,
)
from accord.messages.revision import HANDSHAKE, REVISIONS

from tests.server.compose.reaching import client_of, over_http, tools_of
from tests.server.raw import raw_peer

SCOPES = {"a": Principal("ann", frozenset({"admin", "audit"})), "b": Principal("bob", frozenset({"audit"}))}


def server(**options: Any) -> Server:
    made = Server("visible", **options)
    made.tool("read", tags={"safe"})(lambda: "read")
    made.tool("write", tags={"unsafe"})(lambda: "written")
    made.tool("wipe", tags={"unsafe", "rare"})(lambda: "wiped")
    made.prompt("plan", tags={"unsafe"})(lambda: "a plan")
    made.resource("data://first", tags={"safe"})(lambda: "first")
    made.resource("data://items/{id}", tags={"rare"})(lambda id: id)

    @made.tool
    def hide(names: list[str], tags: list[str], ctx: Context) -> str:
        ctx.disable(*names, tags=tags)
        return "hidden"

    @made.tool
    def show(names: list[str], ctx: Context, only: bool = False) -> str:
        ctx.enable(*names, only=only)
        return "shown"

    return made


async def everything(client: Client) -> list[str]:
    return [
        *[name for name in await tools_of(client) if name not in ("hide", "show")],
        *[prompt.name for prompt in await client.list_prompts(fresh=True)],
        *[resource.uri for resource in await client.list_resources(fresh=True)],
        *[template.uri_template for template in await client.list_resource_templates(fresh=True)],
    ]


ALL = ["read", "write", "wipe", "plan", "data://first", "data://items/{id}"]


# --- by the server ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_is_disabled_is_neither_listed_nor_served_until_it_is_enabled(revision: str) -> None:
    made = server()
    async with Client(made, revisions=[revision]) as client:
        assert await everything(client) == ALL
        made.disable("write", "data://items/{id}", tags={"safe"})
        assert await everything(client) == ["wipe", "plan"]
        for name in ("read", "write"):
            with pytest.raises(InvalidParams, match=f"no tool '{name}'"):
                await client.call_tool(name)
        for uri in ("data://first", "data://items/1"):
            with pytest.raises(ResourceNotFound):
                await client.read_resource(uri)
        made.enable("write", tags={"safe"})
        assert await everything(client) == [each for each in ALL if each != "data://items/{id}"]
        assert (await client.call_tool("write")).text == "written"


async def test_the_last_word_holds() -> None:
    made = server()
    async with Client(made) as client:
        made.disable(tags={"unsafe"})
        made.enable("wipe")
        assert await everything(client) == ["read", "wipe", "data://first", "data://items/{id}"]
        made.disable(tags={"rare"})
        assert await everything(client) == ["read", "data://first"]
        made.enable("data://first", tags={"unsafe"}, only=True)
        assert await everything(client) == ["write", "wipe", "plan", "data://first"]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_clients_are_notified(revision: str) -> None:
    made = server()
    async with Client(made, revisions=[revision]) as client, client.subscribe(tools=True) as told, asyncio.timeout(100):
        made.disable("write")
        assert await anext(told) == ListChanged("tools")


async def test_what_comes_later_is_hidden_too() -> None:
    made = server()
    made.disable("later", tags={"beta"})
    made.tool("later")(lambda: "")
    made.tool("new", tags={"beta"})(lambda: "")
    async with Client(made) as client:
        assert not {"later", "new"} & set(await everything(client))


async def test_what_a_mounted_server_hides_is_hidden_and_its_parent_hides_more() -> None:
    inner, outer = server(), Server("outer")
    outer.mount(inner, "a")
    inner.disable("write")
    outer.disable("a_read", tags={"rare"})
    async with Client(outer) as client, Client(inner) as other:
        assert await tools_of(client) == ["a_hide", "a_show"]
        assert await tools_of(other) == ["read", "wipe", "hide", "show"]


def test_somebody_has_to_say_what() -> None:
    made = server()
    for wrong in (made.enable, made.disable):
        with pytest.raises(DeclarationError, match="need a name or tags"):
            wrong()
    with pytest.raises(DeclarationError, match="a set of strings"):
        made.disable(tags="unsafe")


# --- by a session ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_session_hides_items_from_itself_alone_and_is_notified_alone(revision: str) -> None:
    made = server()
    async with raw_peer(made, revision) as one, raw_peer(made, revision) as other:

        async def names(peer: Any) -> list[str]:
            return [tool["name"] for tool in (await peer.ask("tools/list"))["result"]["tools"]]

        one.send("tools/call", {"name": "hide", "arguments": {"names": ["write"], "tags": ["rare"]}})
        said = [await one.hear() for _ in range(4)]
        told = [each["method"] for each in said if "method" in each]
        assert told == [f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")]
        assert await names(one) == ["read", "hide", "show"]
        assert await names(other) == ["read", "write", "wipe", "hide", "show"]  # the first that it hears
        refused = await one.ask("tools/call", {"name": "write"})
        assert refused["error"]["code"] == -32602
        assert (await other.call("write"))["content"][0]["text"] == "written"


async def test_a_session_shows_things_again_but_none_that_the_server_hides() -> None:
    made = server()
    made.disable("wipe")
    async with Client(made, revisions=["2025-11-25"]) as client:
        await client.call_tool("hide", {"names": ["write", "data://items/{id}"], "tags": []})
        assert await everything(client) == ["read", "plan", "data://first"]
        with pytest.raises(ResourceNotFound):
            await client.read_resource("data://items/1")
        await client.call_tool("show", {"names": ["write", "wipe"]})
        assert await everything(client) == ["read", "write", "plan", "data://first"]
        await client.call_tool("show", {"names": ["show", "read"], "only": True})
        assert await tools_of(client) == ["read", "show"]


async def test_a_session_over_http_hides_things_from_itself_alone() -> None:
    async with (
        over_http(server()) as url,
        Client(url, revisions=["2025-11-25"]) as one,
        Client(url, revisions=["2025-11-25"]) as other,
        Client(url, revisions=["2026-07-28"]) as third,
    ):
        await one.call_tool("hide", {"names": ["write"], "tags": []})
        assert "write" not in await tools_of(one)
        assert "write" in await tools_of(other)
        assert "write" in await tools_of(third)


@pytest.mark.parametrize("prefix", ["a", ""])
async def test_a_mounted_server_hides_its_own_things_from_a_session_by_its_own_names(prefix: str) -> None:
    inner, outer = server(), Server("outer")
    outer.mount(inner, prefix)
    if prefix:
        outer.tool("write")(lambda: "of the outer server")
        outer.resource("data://first")(lambda: "of the outer server")
        outer.change_tool("a_wipe", ToolChange(name="erase"))
    start, way = (f"{prefix}_", f"{prefix}/") if prefix else ("", "")
    names = ["write", "wipe", "plan", "data://first", "data://items/{id}"]
    async with Client(outer, revisions=["2025-11-25"]) as client:
        await client.call_tool(f"{start}hide", {"names": names, "tags": []})
        seen = [each for each in await everything(client) if each not in ("a_hide", "a_show")]
        assert seen == (["write", "a_read", "data://first"] if prefix else ["read"])
        for uri in ("first", "items/1"):
            with pytest.raises(ResourceNotFound):
                await client.read_resource(f"data://{way}{uri}")
        await client.call_tool(f"{start}show", {"names": ["wipe", "data://first"]})
        seen = [each for each in await everything(client) if each not in ("a_hide", "a_show")]
        assert len(seen) == (5 if prefix else 3)


async def test_without_sessions_nothing_is_hidden_from_one() -> None:
    async with Client(server(), revisions=["2026-07-28"]) as client:
        for tool, arguments in (
            ("hide", {"names": ["write"], "tags": []}),
            ("show", {"names": ["read"], "only": True}),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert "knows no sessions" in result.text
        assert await everything(client) == ALL


# --- by what somebody was granted ------------------------------------------------------------------------------


def guarded() -> Server:
    made = Server("guarded", auth=APIKeys(SCOPES), limits=Limits(page_size=2))
    for number in range(5):
        made.tool(f"open_{number}")(lambda: "open")
    made.tool("reset", scopes={"admin"})(lambda: "reset")
    made.tool("report", scopes={"admin", "audit"})(lambda: "report")
    made.tool("look", scopes={"audit"})(lambda: "look")
    made.prompt("plan", scopes={"admin"})(lambda: "a plan")
    made.resource("data://secret", scopes={"admin"})(lambda: "secret")
    made.resource("data://items/{id}", scopes={"admin"})(lambda id: id)
    return made


@pytest.mark.parametrize("revision", REVISIONS[1:])
@pytest.mark.parametrize("mounted", [False, True])
async def test_lists_and_calls_depend_on_the_principal(revision: str, mounted: bool) -> None:
    made = guarded()
    if mounted:
        made = Server("outer", auth=APIKeys(SCOPES), limits=Limits(page_size=2))
        made.mount(guarded())
    async with over_http(made) as url, client_of(url, "a", revision) as ann, client_of(url, "b", revision) as bob:
        everybodys = [f"open_{number}" for number in range(5)]
        assert await tools_of(ann) == [*everybodys, "reset", "report", "look"]
        assert await tools_of(bob) == [*everybodys, "look"]
        for name in ("reset", "report"):
            assert (await ann.call_tool(name)).text == name
            with pytest.raises(InvalidParams, match=f"no tool '{name}'"):
                await bob.call_tool(name)
        assert (await bob.call_tool("look")).text == "look"
        assert len(await ann.list_resources()) == len(await ann.list_prompts()) == 1
        assert await bob.list_resources() == await bob.list_prompts() == await bob.list_resource_templates() == []
        for uri in ("data://secret", "data://items/1"):
            assert (await ann.read_resource(uri)).contents
            with pytest.raises(ResourceNotFound):
                await bob.read_resource(uri)
        with pytest.raises(InvalidParams, match="no prompt 'plan'"):
            await bob.get_prompt("plan")


async def test_what_differs_by_principal_is_not_cached_for_others_and_cursors_are_valid_for_each() -> None:
    async with over_http(guarded()) as url, client_of(url, "a") as ann, client_of(url, "b") as bob:
        for client, counts in ((ann, [2, 2, 2, 2]), (bob, [2, 2, 2])):
            cursor, pages = None, []
            while cursor is not None or not pages:
                page = await client.request("tools/list", {} if cursor is None else {"cursor": cursor}, result=dict)
                assert page["cacheScope"] == "private"
                pages.append(len(page["tools"]))
                cursor = page.get("nextCursor")
            assert pages == counts
        first = await ann.request("tools/list", {}, result=dict)
        assert (await bob.request("tools/list", {"cursor": first["nextCursor"]}, result=dict))["tools"]
        with pytest.raises(InvalidParams):
            await bob.request("tools/list", {"cursor": "00"}, result=dict)


async def test_whoever_started_the_server_may_do_all_that_it_can() -> None:
    async with Client(guarded()) as client:
        assert len(await tools_of(client)) == 8
        assert (await client.call_tool("report")).text == "report"


async def test_what_is_hidden_by_its_query_hides_no_other_query() -> None:
    made = Server("lists")
    uris = ["docs://list", *(f"docs://list{more}" for more in ("?tag=a", "?tag=b", "#top", ";v=1"))]
    for uri in uris:
        made.resource(uri)(lambda: "a list")
    made.resource("find://items{?q}")(lambda q="": q)
    for hidden in ("docs://list?tag=a", "docs://list#top", "docs://list;v=1", "find://items?q=a"):
        made.disable(hidden)
        async with Client(made) as client:
            assert [each.uri for each in await client.list_resources()] == [uri for uri in uris if uri != hidden]
            for uri in (*uris, "find://items", "find://items?q=a", "find://items?q=b", "docs://./list?tag=%61"):
                if uri == hidden or hidden in uri.replace("./", "").replace("%61", "a"):
                    with pytest.raises(ResourceNotFound):
                        await client.read_resource(uri)
                elif "./" not in uri:
                    assert (await client.read_resource(uri)).contents
        made.enable(hidden)
