"""A third-party extension on a server: its settings, its methods, its kind of result, and clients without it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import Client, Context, DeclarationError, Extension, Method, Server
from accord.errors import LocalProtocolError
from accord.messages.base import Model
from accord.messages.meta import NotificationParams, Params, Result
from accord.messages.revision import HANDSHAKE

from tests.server.http.http_clients import Modern, quick, site
from tests.server.raw import META, RawPeer, raw_peer

NAME = "com.example/search"


class FindParams(Params):
    words: list[str]


class Hit(Model):
    uri: str
    rank: int = 0


class FindResult(Result):
    hits: list[Hit]


class SeenParams(NotificationParams):
    uri: str


class PartialResult(Result):
    so_far: str


SEARCH = Extension(
    name=NAME,
    settings={"languages": ["en"]},
    methods=(
        Method("com.example/find", "client", FindParams, FindResult),
        Method("notifications/com.example/seen", "client", SeenParams),
        Method("notifications/com.example/indexed", "server", SeenParams),
    ),
    results={"com.example/partial": PartialResult},
)
DECLARED = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {NAME: {}}}}


def searching(seen: list[str]) -> Server:
    server = Server("search", extensions=[SEARCH], experimental={"fast": {}})

    @server.method("com.example/find")
    async def find(params: FindParams, ctx: Context) -> FindResult:
        return FindResult(hits=[Hit(uri=f"{ctx.client.name if ctx.client else '?'}:{word}") for word in params.words])

    @server.method("notifications/com.example/seen")
    def noticed(params: SeenParams) -> None:
        seen.append(params.uri)

    @server.tool
    async def slowly(ctx: Context) -> Any:
        return PartialResult(result_type="com.example/partial", so_far="half")

    return server


async def told(peer: RawPeer, **capabilities: Any) -> dict[str, Any]:
    return await peer.ask("com.example/find", {"words": ["a", "b"], "_meta": capabilities})


async def test_settings_are_declared_under_the_name_in_capabilities() -> None:
    async with raw_peer(searching([]), "2026-07-28") as peer:
        capabilities = (await peer.ask("server/discover"))["result"]["capabilities"]
    assert capabilities["extensions"] == {NAME: {"languages": ["en"]}}
    assert capabilities["experimental"] == {"fast": {}}


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_session_has_extensions_too(revision: str) -> None:
    declared: list[Any] = []
    server = searching([])

    @server.tool
    def capabilities(ctx: Context) -> None:
        declared.append(ctx.client_capabilities.extensions)

    async with Client(server, extensions=[SEARCH], revisions=[revision]) as client:
        await client.call_tool("capabilities")
        assert declared == [{NAME: {"languages": ["en"]}}]
        assert client.server_capabilities is not None
        assert client.server_capabilities.extensions == {NAME: {"languages": ["en"]}}
        found = await client.request("com.example/find", FindParams(words=["a"]), result=FindResult)
    assert found.hits[0].rank == 0


async def test_its_request_is_answered_with_its_own_types() -> None:
    async with raw_peer(searching([]), "2026-07-28") as peer:
        answer = await told(peer, **DECLARED)
    assert answer["result"]["hits"] == [{"uri": "raw:a"}, {"uri": "raw:b"}]
    assert answer["result"]["resultType"] == "complete"


async def test_params_that_do_not_fit_its_types_are_refused() -> None:
    async with raw_peer(searching([]), "2026-07-28") as peer:
        answer = await peer.ask("com.example/find", {"words": "a", "_meta": DECLARED})
    assert answer["error"]["code"] == -32602
    assert "$.words" in answer["error"]["message"]


async def test_a_client_without_it_gets_an_error_that_names_it() -> None:
    async with raw_peer(searching([]), "2026-07-28") as peer:
        error = (await told(peer))["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {NAME: {}}}}


async def test_a_server_without_it_does_not_know_the_method() -> None:
    async with raw_peer(Server("plain"), "2026-07-28") as peer:
        assert (await told(peer, **DECLARED))["error"]["code"] == -32601


async def test_its_notification_is_received() -> None:
    seen: list[str] = []
    async with raw_peer(searching(seen), "2026-07-28") as peer:
        await told(peer, **DECLARED)  # this connection speaks 2026-07-28
        peer.say(
            {"jsonrpc": "2.0", "method": "notifications/com.example/seen", "params": {"uri": "x:1", "_meta": META}}
        )
        await told(peer, **DECLARED)
        await told(peer, **DECLARED)
    assert seen == ["x:1"]


async def test_its_kind_of_result_goes_only_to_clients_that_declared_it() -> None:
    async with raw_peer(searching([]), "2026-07-28") as peer:
        call = {"name": "slowly", "arguments": {}}
        given = await peer.ask("tools/call", {**call, "_meta": DECLARED})
        refused = await peer.ask("tools/call", call)
    assert given["result"]["resultType"] == "com.example/partial"
    assert given["result"]["soFar"] == "half"
    assert refused["error"]["code"] == -32021


async def test_older_revisions_have_no_kinds_of_result() -> None:
    async with raw_peer(searching([]), "2025-11-25") as peer:
        result = await peer.call("slowly")
    assert result["isError"]
    assert "2025-11-25" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda server: server.method("com.example/other")(lambda params: None), "no extension of this server"),
        (lambda server: server.method("com.example/find")(lambda params: None), "declared twice"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_declared(declare: Any, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        declare(searching([]))


@pytest.mark.parametrize("name", ["search", "com.example/", "io.modelcontextprotocol.x/y", "com.mcp/x", "a b/c"])
def test_names_that_may_not_be_used_are_refused(name: str) -> None:
    with pytest.raises((ValueError, LocalProtocolError), match=r"name|prefix|reserved"):
        Extension(name=name)


@pytest.mark.parametrize("over", ["memory", "http"])
async def test_what_one_request_declares_holds_for_no_other(over: str) -> None:
    server, together, arrived = Server("desk", "1", limits=quick()), asyncio.Event(), []

    @server.tool
    async def declared(ctx: Context, number: int) -> str:
        arrived.append(number)
        if len(arrived) == 20:
            together.set()
        await together.wait()
        capabilities = ctx.client_capabilities
        return f"{sorted(capabilities.extensions or {})} {capabilities.elicitation is not None}"

    def message(number: int) -> dict[str, Any]:
        capabilities = {"extensions": {f"com.example/e{number}": {}}} if number % 2 else {"elicitation": {}}
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}
        params = {"name": "declared", "arguments": {"number": number}, "_meta": meta}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    answers: dict[int, str] = {}
    if over == "memory":
        async with raw_peer(server, "2026-07-28") as peer:
            for number in range(20):
                peer.say(message(number))
            for _ in range(20):
                answer = await peer.hear()
                answers[answer["id"]] = answer["result"]["content"][0]["text"]
    else:
        async with site(server) as here:
            client = Modern(here.raw)
            begun = [await client.begin(message(number)) for number in range(20)]
            for number, each in enumerate(begun):
                answers[number] = (await (await each.start()).result())["result"]["content"][0]["text"]
    assert answers == {number: f"['com.example/e{number}'] False" if number % 2 else "[] True" for number in range(20)}
