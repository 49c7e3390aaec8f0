"""Memory of bodies: bounded together and by address, from the first byte until the request is answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import Context, HTTPLimits, Limits, Server
from accord.server.http import quotas
from accord.server.http.quotas import SMALL_BYTES, BodyBudget
from accord.transport.asgi.request import RequestRejected

from tests.server.http.http_clients import (
    BASIC,
    Here,
    Legacy,
    Modern,
    Stateful,
    encode,
    quick,
    request,
    site,
    text,
    until,
)
from tests.server.http.raw import Socket

LARGE = "x" * 30_000  # and once more in its text


def store(**limits: Any) -> tuple[Server, asyncio.Event]:
    server, done = Server("store", "1", limits=quick(**limits)), asyncio.Event()

    @server.tool
    async def keep(value: str | list[Any]) -> int:
        await done.wait()
        return len(value)

    return server, done


def taken(here: Here) -> int:
    (endpoint,) = here.app._endpoints.values()
    return endpoint.context.body_budget.total


@pytest.mark.parametrize("form", ["modern", "stateful", "oldest"])
async def test_a_large_request_counts_until_it_is_answered(form: str) -> None:
    server, done = store(http_bodies_bytes=100_000)
    async with site(server) as here:
        if form == "oldest":
            client: Any = await (await Legacy.connect(here.raw)).open()
        else:
            client = Modern(here.raw) if form == "modern" else await Stateful(here.raw).open()
        arguments = {"value": LARGE}
        first = asyncio.ensure_future(
            client.ask("tools/call", {"name": "keep", "arguments": arguments}, id=1)
            if form == "oldest"
            else client.call("keep", arguments, id=1)
        )
        await until(lambda: here.app._endpoints and taken(here) > 2 * len(LARGE))
        refused = await Modern(here.raw).call("keep", {"value": LARGE}, id=2)
        assert refused.status == 503
        assert b"too many large requests" in await refused.body()
        done.set()
        await first
        assert (await Modern(here.raw).call("keep", {"value": LARGE}, id=3)).status == 200
        await until(lambda: taken(here) == 0)
        if form == "oldest":
            await client.stream.leave()


async def test_a_small_request_is_served_though_large_ones_are_refused() -> None:
    server, done = store(http_bodies_bytes=1)
    done.set()
    async with site(server) as here:
        assert (await Modern(here.raw).call("keep", {"value": "x" * (SMALL_BYTES // 2)})).status == 200
        assert (await Modern(here.raw).call("keep", {"value": LARGE})).status == 503
        assert taken(here) == 0


async def test_a_body_counts_from_its_first_byte() -> None:
    server, _ = store(http_bodies_bytes=300_000)
    async with site(server, "sockets") as here:
        assert isinstance(here.raw, Socket)
        client = Modern(here.raw)
        message = client.calling("keep", {})
        head = [f"{name}: {value}" for name, value in client.head(message).items()]
        begun = "\r\n".join(["POST /mcp HTTP/1.1", *head, "content-length: 1000000", "", ""]).encode()
        answers = [await here.raw.connect() for _ in range(2)]
        for _, writer in answers:
            writer.write(begun + b" " * 200_000)
        async with asyncio.timeout(100):
            over = [asyncio.create_task(reader.readuntil(b"\r\n")) for reader, _ in answers]
            (first,), _ = await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        assert b" 503 " in await first
        for task, (_, writer) in zip(over, answers, strict=True):
            task.cancel()
            writer.transport.abort()
        await until(lambda: taken(here) == 0)


async def test_what_sessions_keep_of_initialize_is_bounded() -> None:
    def hello(members: int) -> Any:
        capabilities = {"experimental": {"x": {"y": [{}] * members}}}
        info = {"name": "raw", "version": "1"}
        return request(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
        )

    server, _ = store(http_bodies_bytes=1_200_000)
    async with site(server) as here:
        opened = [await here.raw.send("POST", "/mcp", BASIC, encode(hello(4_000))) for _ in range(5)]
        assert [answer.status for answer in opened] == [200] * 2 + [503] * 3
        small = await Stateful(here.raw).open()
        ids = {**BASIC, "mcp-session-id": opened[0].headers["mcp-session-id"]}
        again = await here.raw.send("POST", "/mcp", ids, encode(hello(5_000)))
        assert again.status == 503, "a repeated initialize counts as well"
        assert (await here.raw.send("POST", "/mcp", ids, encode(hello(1)))).status == 200
        hellos = here.endpoint.context.handshake_budget
        assert hellos.total > 1_000_000
        for each in list(here.endpoint.sessions):
            await here.endpoint.sessions.end(each, "the test ends")
        assert hellos.total == 0
        assert small.revision == "2025-11-25"


async def test_what_many_sessions_keep_of_small_initialize_requests_is_bounded() -> None:
    server, _ = store(http_bodies_bytes=100_000)
    async with site(server) as here:
        client = Stateful(here.raw, capabilities={"experimental": {"x": {"y": [{"": 0}] * 60}}})
        assert 1 << 8 < len(encode(client.hello())) < SMALL_BYTES
        opened = [await client.post(client.hello()) for _ in range(12)]
        assert 503 in [answer.status for answer in opened]
        assert (await Stateful(here.raw, capabilities={}).initialize()).status == 200


async def test_a_body_of_a_few_kilobytes_counts_for_what_it_is_decoded_to_once_there_are_many() -> None:
    server, done = store(http_bodies_bytes_per_address=200_000)
    async with site(server) as here:
        client, lists = Modern(here.raw), {"value": [[]] * 1_000}
        calls = [asyncio.create_task(client.call("keep", lists, id=number)) for number in range(quotas._FEW_REQUESTS)]
        await until(lambda: here.app._endpoints and here.endpoint.context.body_budget.requests == len(calls))
        assert taken(here) == 0
        calls.append(asyncio.create_task(client.call("keep", lists, id="counted")))
        await until(lambda: taken(here) > 80_000)
        assert (await client.call("keep", lists, id="refused")).status == 503
        done.set()
        assert {(await call).status for call in calls} == {200}
        await until(lambda: taken(here) == here.endpoint.context.body_budget.requests == 0)


async def test_a_long_text_of_commas_is_no_large_structure() -> None:
    server, done = store()
    done.set()
    async with site(server) as here:
        assert (await Modern(here.raw).call("keep", {"value": "," * 3_000_000})).status == 200


async def test_many_headers_count_until_their_request_is_answered() -> None:
    server, done = store()
    async with site(server) as here:
        many = Modern(here.raw, **{f"x-{number}": "" for number in range(150)})
        call = asyncio.ensure_future(many.call("keep", {"value": ""}))
        await until(lambda: here.app._endpoints and taken(here) > 150 * 200)
        done.set()
        await call
        await until(lambda: taken(here) == 0)


def asker() -> tuple[Server, list[int]]:
    """A server whose tool holds the first answer while it waits for the second, and the lengths of roots that others
    saw.
    """
    server, seen = Server("asker", "1", limits=quick(http_bodies_bytes=400_000)), []

    @server.tool
    async def ask(ctx: Context) -> str:
        first = await ctx.sample("one")
        return first.text[:1] + (await ctx.sample("two")).text

    @server.tool
    async def folders(ctx: Context) -> int:
        seen.append(len(await ctx.list_roots()))
        return seen[-1]

    return server, seen


def sampled(question: Any, text: str) -> Any:
    content = {"type": "text", "text": text}
    return {"jsonrpc": "2.0", "id": question["id"], "result": {"role": "assistant", "model": "m", "content": content}}


@pytest.mark.parametrize("ends", ["answered", "cancelled", "deleted"])
async def test_an_answer_counts_until_its_handler_has_ended(ends: str) -> None:
    server, _ = asker()
    async with site(server) as here:
        client = await Stateful(here.raw, "2025-06-18").open()
        call = await client.call("ask", id=7)
        first = await call.message()
        assert (await client.post(sampled(first, LARGE))).status == 202
        second = await call.message()
        assert taken(here) > 2 * len(LARGE)
        refused = await client.post(sampled(second, "x" * 200_000))
        assert refused.status == 503, "others wait while it is held"
        if ends == "answered":
            assert (await client.post(sampled(second, "!"))).status == 202
            assert text(await call.message()) == "x!"
        elif ends == "cancelled":
            await client.tell("notifications/cancelled", {"requestId": 7})
        else:
            await client.delete()
        await until(lambda: taken(here) == 0)


async def test_an_answer_counts_over_the_oldest_transport_too() -> None:
    server, _ = asker()
    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open(capabilities={"sampling": {}})
        await client.post(request("tools/call", {"name": "ask", "arguments": {}}, 7))
        first = await client.stream.message()
        assert (await client.post(sampled(first, LARGE))).status == 202
        await client.stream.message()
        assert taken(here) > 2 * len(LARGE)
        await client.stream.leave()
        await until(lambda: taken(here) == 0)


async def test_roots_are_cached_as_far_as_there_is_room_and_requested_again_beyond_it() -> None:
    server, seen = asker()
    async with site(server) as here:
        roots = {"roots": [{"uri": f"file:///{number}"} for number in range(500)]}

        async def folders(client: Stateful) -> bool:
            """Whether the client was asked."""
            call = await client.call("folders")
            if call.headers["content-type"] == "application/json":
                return False
            question = await call.message()
            assert await client.answer(question["id"], roots) == 202
            await call.result()
            return True

        kept = 0
        for _ in range(5):
            client = await Stateful(here.raw, "2025-06-18", {"roots": {"listChanged": True}}).open()
            assert await folders(client)
            kept += not await folders(client)
        assert 0 < kept < 5
        assert set(seen) == {500}
        budget = here.endpoint.context.handshake_budget
        assert 100_000 < budget.total <= 400_000
        for each in list(here.endpoint.sessions):
            await here.endpoint.sessions.end(each, "the test ends")
        assert budget.total == 0


def test_who_has_little_goes_on_where_others_have_used_up_the_whole() -> None:
    budget = BodyBudget(Limits(http=HTTPLimits(bodies_bytes=256_000, bodies_bytes_per_address=128_000)))
    for attacker in "ab":
        budget.charge(attacker, 128_000)
    budget.charge("honest", 1_000)
    with pytest.raises(RequestRejected, match="too many large requests are"):
        budget.charge("honest", 1)


def test_many_accounts_that_have_little_each_do_not_exceed_the_whole_without_limit() -> None:
    most = 256 << 20
    budget = BodyBudget(Limits(http=HTTPLimits(bodies_bytes=most)))
    refused = 0
    for account in range(2_000):
        try:
            budget.charge(f"{account}", most // 256)
        except RequestRejected:
            refused += 1
    assert refused
    assert budget.total <= 2 * most
    budget.charge("honest", 16 << 10)


def test_one_address_does_not_take_it_all() -> None:
    budget = BodyBudget(Limits(http=HTTPLimits(bodies_bytes=100, bodies_bytes_per_address=60)))
    budget.charge("\0a", 60)
    with pytest.raises(RequestRejected, match="of this address"):
        budget.charge("\0a", 1)
    budget.charge("b", 40)
    with pytest.raises(RequestRejected, match="too many large requests are"):
        budget.charge("b", 1)
    budget.release("\0a", 60)
    budget.charge("b", 20)
    with pytest.raises(RequestRejected, match="of yours"):
        budget.charge("b", 1)
    budget.release("b", 60)
    assert (budget.total, budget._memory.by_account) == (0, {})
