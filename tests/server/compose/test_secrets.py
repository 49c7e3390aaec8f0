"""What is there for some is there for nobody else: not by a header, not by a change, not through a tool that reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from accord import (
    APIKeys,
    Client,
    Context,
    Depends,
    Header,
    HTTPOptions,
    InvalidParams,
    Principal,
    Provided,
    Provider,
    ResourceNotFound,
    ResourceUpdated,
    Server,
    SQLiteEvents,
)
from accord.messages.content import Resource

from tests.server.compose.reaching import client_of, over_http
from tests.server.http.http_clients import Stateful, site, text

WHO = {"a": Principal("ann", frozenset({"admin"})), "b": Principal("bob")}
BOTH = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


def archive() -> Server:
    made = Server("archive", auth=APIKeys(WHO))
    made.resource("docs://all/")(lambda: "everything")
    made.resource("docs://all/plan", scopes={"admin"})(lambda: "a plan")
    made.resource("docs://all/of/{who}", scopes={"admin"})(lambda who: who)

    @made.tool(scopes={"admin"})
    def wipe(region: Annotated[str, Header("Region")]) -> str:
        return region

    @made.tool
    async def read(uri: str, ctx: Context) -> str:
        return str((await ctx.read_resource(uri))[0].text)

    @made.tool
    def change(uris: list[str]) -> str:
        for uri in uris:
            made.resource_updated(uri)
        return "changed"

    @made.tool
    def hide(name: str, ctx: Context) -> str:
        ctx.disable(name)
        return "hidden"

    return made


@BOTH
async def test_a_missing_header_does_not_reveal_a_tool(revision: str) -> None:
    async with over_http(archive()) as url, client_of(url, "b", revision) as bob:
        for name in ("wipe", "wash"):
            with pytest.raises(InvalidParams, match=f"no tool '{name}'"):
                await bob.call_tool(name, {"region": "eu"})


@BOTH
@pytest.mark.parametrize("secret", ["docs://all/plan", "docs://all/of/ann"])
async def test_a_subscription_above_covers_only_visible_resources(revision: str, secret: str) -> None:
    async with over_http(archive()) as url:
        for key, told in (("a", [secret, "docs://all/"]), ("b", ["docs://all/"])):
            async with client_of(url, key, revision) as client, client.subscribe("docs://all/") as changes:
                await client.call_tool("change", {"uris": [secret, "docs://all/"]})
                async with asyncio.timeout(100):
                    assert [await anext(changes) for _ in told] == [ResourceUpdated(uri) for uri in told]


async def test_a_session_is_not_notified_of_hidden_items() -> None:
    async with Client(archive(), revisions=["2025-11-25"]) as client, client.subscribe("docs://all/") as changes:
        await client.call_tool("hide", {"name": "docs://all/plan"})
        await client.call_tool("change", {"uris": ["docs://all/plan", "docs://all/other"]})
        async with asyncio.timeout(100):
            assert await anext(changes) == ResourceUpdated("docs://all/other")


@BOTH
async def test_a_tool_reads_for_a_client_what_that_may_read(revision: str) -> None:
    async with over_http(archive()) as url:
        async with client_of(url, "a", revision) as ann:
            assert (await ann.call_tool("read", {"uri": "docs://all/plan"})).text == "a plan"
        async with client_of(url, "b", revision) as bob:
            assert (await bob.call_tool("read", {"uri": "docs://all/"})).text == "everything"
            for uri in ("docs://all/plan", "docs://all/of/ann", "docs://all/nothing"):
                with pytest.raises((ResourceNotFound, InvalidParams), match=f"no resource '{uri}'"):
                    await bob.call_tool("read", {"uri": uri})


async def test_what_a_session_hides_is_hidden_after_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "events.db"
    made = Server("desk")
    made.resource("docs://one")(lambda: "one")

    @made.tool
    def hide(ctx: Context) -> str:
        ctx.disable("docs://one")
        return "hidden"

    async with site(made, options=HTTPOptions(events=SQLiteEvents(store))) as here:
        client = await Stateful(here.raw).open()
        assert text(await (await client.call("hide")).result()) == "hidden"
    async with site(made, options=HTTPOptions(events=SQLiteEvents(store))) as here:
        client = Stateful(here.raw).join(client.id)
        assert (await (await client.ask("resources/list")).json())["result"]["resources"] == []


class Shelf(Provider):
    async def resource(self, uri: str) -> Provided | None:
        return Provided(Resource(uri=uri, name="book"), lambda: "a book") if uri == "book://1" else None


@pytest.mark.parametrize(("where", "tool", "uri"), [("inner", "in_read", "w://x"), ("outer", "read", "w://in/x")])
async def test_a_resource_of_a_mounted_server_is_read_with_what_that_server_has(
    where: str, tool: str, uri: str
) -> None:
    async def lifespan(server: Server) -> AsyncIterator[str]:
        yield f"that of {server.name}"

    servers: dict[str, Any] = {name: Server(name, lifespan=lifespan) for name in ("inner", "outer")}

    async def table() -> str:
        return "a table"

    @servers["inner"].resource("w://x")  # type: ignore[untyped-decorator]
    async def seen(ctx: Context, at: Annotated[str, Depends(table, scope="lifespan")]) -> str:
        return f"{ctx.server.name}, {ctx.lifespan}, {at}"

    @servers[where].tool  # type: ignore[untyped-decorator]
    async def read(ctx: Context) -> str:
        return str((await ctx.read_resource(uri))[0].text)

    servers["outer"].mount(servers["inner"], "in")
    async with Client(servers["outer"]) as client:
        assert (await client.call_tool(tool)).text == "inner, that of inner, a table"


async def test_a_tool_reads_what_a_provider_has() -> None:
    made = archive()
    made.add_provider(Shelf())
    async with Client(made) as client:
        assert (await client.call_tool("read", {"uri": "book://1"})).text == "a book"
