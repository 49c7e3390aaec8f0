"""Limits at their exact value: what is as large as the limit is accepted, and what is larger by one is refused."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from accord import Client, Server
from accord.errors import AccordError
from accord.messages.revision import HANDSHAKE, REVISIONS

from tests.limits import limits_of
from tests.server.http.http_clients import Legacy, Modern, Stateful, site
from tests.server.raw import RawPeer, raw_peer

JSON = dict[str, Any]
Ask = Callable[..., Awaitable[JSON]]
MOST = 10
"""The limit, in the unit of each."""
HELLO: JSON = {"capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def sized(params: JSON, field: str, size: int) -> JSON:
    """Return params whose JSON has this many bytes, by the length of one text in them."""
    length = size - len(json.dumps({**params, field: ""}))
    return {**params, field: "x" * length}


def shop(**limits: Any) -> Server:
    server = Server("shop", version="1", limits=limits_of(**limits))
    server.resource("shop://{+name}")(lambda name: name)
    server.tool(name="echo")(lambda text="": text)
    return server


def is_refused(answer: JSON) -> bool:
    return "error" in answer or answer.get("result", {}).get("isError", False)


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("over", ["memory", "http"])
async def test_the_params_of_initialize(revision: str, over: str) -> None:
    server = shop(hello_bytes=500)
    for extra, refused in ((0, False), (1, True)):
        params = sized({**HELLO, "protocolVersion": revision}, "x", 500 + extra)
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        if over == "memory":
            async with raw_peer(server, None) as peer:
                peer.say(message)
                answer = await peer.hear()
        else:
            async with site(server) as here:
                if revision == "2024-11-05":
                    legacy = await Legacy.connect(here.raw)
                    answer = await legacy.ask("initialize", params)
                    await legacy.stream.leave()
                else:
                    answer = await (await Stateful(here.raw, revision).post(message)).json()
        assert is_refused(answer) == refused, answer


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_uri_of_a_subscription(revision: str) -> None:
    async with raw_peer(shop(uri_bytes=100), revision) as peer:
        for extra, refused in ((0, False), (1, True)):
            uri = "shop://".ljust(100 + extra, "x")
            assert is_refused(await peer.ask("resources/subscribe", {"uri": uri})) == refused


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_number_of_subscriptions(revision: str) -> None:
    async with raw_peer(shop(subscriptions=MOST), revision) as peer:
        answers = [await peer.ask("resources/subscribe", {"uri": f"shop://{number}"}) for number in range(MOST + 1)]
    assert [is_refused(each) for each in answers] == [False] * MOST + [True]


@pytest.mark.parametrize("size", [MOST, MOST + 1])
async def test_the_messages_of_a_batch(size: int) -> None:
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(size)]
    async with raw_peer(shop(batch_items=MOST), "2025-03-26") as peer:
        peer.say(batch)
        answer = await peer.hear()
    assert (type(answer) is list and len(answer) == MOST) == (size == MOST)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_items_of_a_page(revision: str) -> None:
    server = shop(page_size=MOST)
    for number in range(MOST - 1):
        server.tool(name=f"tool{number}")(lambda: "")
    async with raw_peer(server, revision) as peer:
        assert "nextCursor" not in (await peer.ask("tools/list"))["result"]
        server.tool(name="further")(lambda: "")
        page = (await next_answer(peer, "tools/list"))["result"]
    assert len(page["tools"]) == MOST
    assert "nextCursor" in page


async def next_answer(peer: RawPeer, method: str) -> JSON:
    """Return the answer of a request, without notifications before it."""
    id = peer.send(method)
    while (message := await peer.hear()).get("id") != id:
        pass
    return dict(message)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("limits", "tools", "page"),
    [({"client_pages": MOST}, MOST, 1), ({"client_items": MOST}, MOST, 3), ({"client_items": MOST}, MOST, 100)],
)
async def test_the_pages_and_items_of_a_list_for_a_client(revision: str, limits: JSON, tools: int, page: int) -> None:
    server = Server("shop", version="1", limits=limits_of(page_size=page))
    for number in range(tools):
        server.tool(name=f"tool{number}")(lambda: "")
    async with Client(server, revisions=[revision], limits=limits_of(**limits)) as client:
        assert len(await client.list_tools()) == tools
    server.tool(name="further")(lambda: "")
    async with Client(server, revisions=[revision], limits=limits_of(**limits)) as client:
        with pytest.raises(AccordError):
            await client.list_tools()


@pytest.mark.parametrize("revision", ["2026-07-28", *HANDSHAKE[1:]])
@pytest.mark.parametrize("what", ["items", "arrays"])
async def test_the_structure_of_a_body(revision: str, what: str) -> None:
    nodes = 30_000
    async with site(shop(http_body_nodes=nodes)) as here:
        client: Any = Modern(here.raw) if revision == "2026-07-28" else await Stateful(here.raw, revision).open()
        empty = json.dumps(client.calling("echo", {"text": []}))
        others = sum(map(empty.count, "," if what == "items" else "[{:"))
        for extra, refused in ((0, False), (1, True)):
            if what == "items":
                value: list[Any] = [0] * (2 * nodes + 1 - others + extra)  # commas are counted
            else:
                value = [[[]] * 100] * ((nodes - others) // 101) + [[]] * ((nodes - others) % 101 + extra)
            answer = await client.post(client.calling("echo", {"text": value}))
            found = await answer.json()
            assert ("body_nodes" in json.dumps(found)) == refused
