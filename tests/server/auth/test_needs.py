"""Scopes of calls: a tool with `needs=` is visible to all, and a call without its scopes runs nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import APIKeys, Client, Context, HTTPOptions, Principal, Server
from accord.auth.challenge import parse_challenges
from accord.errors import DeclarationError
from accord.server.auth.jwt import JWT
from accord.server.compose.change import ToolChange

from tests.server.auth.issuer import AUDIENCE, Issuer, issuing
from tests.server.http.http_clients import Legacy, Modern, Stateful, quick, request, site, text
from tests.server.http.raw import Answer

READER = {"authorization": "Bearer reader"}
WRITER = {"authorization": "Bearer writer"}
KEYS = {
    "reader": Principal("ann", frozenset({"read"})),
    "writer": Principal("ann", frozenset({"read", "write", "publish"})),
}


class Shop(Server):
    """A server that counts its calls."""

    def __init__(self, **options: Any) -> None:
        super().__init__("shop", "1", **{"limits": quick(), "auth": APIKeys(KEYS), **options})
        self.calls: list[str] = []

        @self.tool
        async def look() -> str:
            self.calls.append("look")
            return "looked"

        @self.tool(scopes={"read"}, needs={"write", "publish"})
        async def change(ctx: Context) -> str:
            await ctx.info("changing")
            self.calls.append("change")
            return "changed"

        @self.tool
        async def part(ctx: Context) -> str:
            self.calls.append("before")
            ctx.need("write", "publish")
            self.calls.append("after")
            return "done"


async def refused(answer: Answer, scopes: str = "publish read write") -> None:
    assert answer.status == 403
    assert answer.headers["content-type"] == "application/json"
    (challenge,) = parse_challenges([answer.headers["www-authenticate"]])
    assert (challenge.error, challenge.parameters["scope"]) == ("insufficient_scope", scopes)
    assert "publish" in (await answer.json())["error"]["message"]


@asynccontextmanager
async def serving(server: Server, **options: Any) -> AsyncIterator[Any]:
    async with site(server, "socket", HTTPOptions(**options)) as here:
        yield here.raw


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("stateless", [False, True])
async def test_a_call_without_its_scopes_gets_403_and_all_of_them(revision: str, stateless: bool) -> None:
    shop = Shop()
    async with serving(shop, stateless=stateless) as raw:
        client = Stateful(raw, revision, **READER)
        if stateless:
            client.headers["mcp-protocol-version"] = revision
        else:
            await client.open()
        listed = await (await client.ask("tools/list")).result()
        assert {each["name"] for each in listed["result"]["tools"]} == {"look", "change", "part"}
        await refused(await client.call("change"))
        assert shop.calls == []
        answer = await client.post(client.calling("change"), **WRITER)  # the session belongs to the principal
        assert text(await answer.result()) == "changed"


async def test_a_call_of_2026_07_28_without_its_scopes_gets_403() -> None:
    shop = Shop()
    async with serving(shop) as raw:
        await refused(await Modern(raw, **READER).call("change"))
        assert shop.calls == []
        assert text(await (await Modern(raw, **WRITER).call("change")).result()) == "changed"


async def test_a_call_over_http_sse_without_its_scopes_gets_403() -> None:
    shop = Shop()
    async with serving(shop) as raw:
        client = await (await Legacy.connect(raw, **READER)).open()
        call = request("tools/call", {"name": "change", "arguments": {}}, 2)
        await refused(await client.post(call))
        assert shop.calls == []
        client.headers |= WRITER
        assert (await client.post(call)).status == 202
        await client.stream.leave()


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_batch_with_one_such_call_runs_none_of_its_calls(stateless: bool) -> None:
    shop = Shop()
    async with serving(shop, stateless=stateless) as raw:
        client = Stateful(raw, "2025-03-26", **READER)
        if stateless:
            client.headers["mcp-protocol-version"] = "2025-03-26"
        else:
            await client.open()
        batch = [client.calling("look", id=1), client.calling("change", id=2)]
        await refused(await client.post(batch))
        assert shop.calls == []
        answer = await client.post(batch, **WRITER)  # its ids are free again
        assert answer.status == 200, await answer.body()
        await answer.end()
        assert sorted(shop.calls) == ["change", "look"]


@pytest.mark.parametrize("version", ["modern", "session"])
async def test_need_in_a_handler_is_an_error_of_the_tool(version: str) -> None:
    shop = Shop()
    async with serving(shop) as raw:
        client = Modern(raw, **READER) if version == "modern" else await Stateful(raw, **READER).open()
        answer = await client.call("part")
        assert answer.status == 200
        result = (await answer.result())["result"]
        assert result["isError"]
        assert result["content"][0]["text"] == "the token lacks a scope: this needs publish, write"
        assert shop.calls == ["before"]


async def test_clients_of_a_local_server_have_all_scopes() -> None:
    shop = Shop()
    async with Client(shop) as client:
        assert (await client.call_tool("change")).text == "changed"
        assert (await client.call_tool("part")).text == "done"


async def test_a_client_in_memory_with_a_principal_gets_an_error_of_the_tool() -> None:
    shop = Shop()
    async with Client(shop, principal=KEYS["reader"]) as client:
        result = await client.call_tool("change", raise_on_error=False)
        assert result.is_error
        assert result.text == "the token lacks a scope: this needs publish, write"
    assert shop.calls == []


async def test_the_challenge_names_the_scopes_that_every_request_needs() -> None:
    async with issuing() as issuer:
        shop = Shop(auth=JWT(issuer.url, AUDIENCE, required_scopes={"shop"}, implies={"admin": {"write", "publish"}}))
        async with serving(shop) as raw:
            await refused(await Modern(raw, **bearing(issuer, "shop read")).call("change"), "publish read shop write")
            answer = await Modern(raw, **bearing(issuer, "shop read admin")).call("change")
            assert text(await answer.result()) == "changed"


def bearing(issuer: Issuer, scopes: str) -> dict[str, str]:
    return {"authorization": f"Bearer {issuer.token(scope=scopes)}"}


async def test_needs_hold_through_mounts_changes_and_versions() -> None:
    inner = Shop(auth=None)
    inner.change_tool("change", ToolChange(name="edit"))
    outer = Server("outer", "1", auth=APIKeys(KEYS), limits=quick())
    outer.mount(inner, "a")

    @outer.tool("twice", version="1")
    async def first() -> str:
        return "first"

    @outer.tool("twice", version="2", needs={"write", "publish", "read"})
    async def second() -> str:
        return "second"

    async with serving(outer) as raw:
        client = Modern(raw, **READER)
        await refused(await client.call("a_edit"))
        await refused(await client.call("twice"))
        assert inner.calls == []


async def test_needs_hold_for_a_tool_that_search_calls() -> None:
    shop = Shop()
    shop.search_tools(1)
    async with serving(shop) as raw:
        client = Modern(raw, **READER)
        listed = await (await client.ask("tools/list")).result()
        (caller,) = (each["name"] for each in listed["result"]["tools"] if "call" in each["name"])
        await refused(await client.call(caller, {"name": "change", "arguments": {}}))
        assert shop.calls == []


async def test_hidden_tools_stay_unknown_where_they_need_scopes_too() -> None:
    shop = Shop()
    shop.tool(lambda: "x", name="secret", scopes={"admin"}, needs={"write"})
    async with serving(shop) as raw:
        hidden = await (await Modern(raw, **READER).call("secret")).result()
        unknown = await (await Modern(raw, **READER).call("socket")).result()
        assert hidden["error"]["message"].replace("secret", "socket") == unknown["error"]["message"]


@pytest.mark.parametrize("option", ["scopes", "needs"])
@pytest.mark.parametrize("scopes", ["write", {"two words"}, {'"'}, {"offline_access"}])
def test_invalid_scopes_are_errors_of_the_declaration(option: str, scopes: Any) -> None:
    server = Server("shop")
    options: Any = {option: scopes}
    with pytest.raises(DeclarationError, match=option):
        server.tool(lambda: 1, name="x", **options)


async def test_a_server_without_authentication_warns_that_no_client_can_call(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("shop", "1")
    server.tool(lambda: "x", name="change", needs={"write"})
    async with serving(server) as raw:
        answer = await Modern(raw).call("change")
        assert answer.status == 403
        assert "items that need scopes" in caplog.text
