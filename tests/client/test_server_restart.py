"""A server that ends and comes back as another: what was going on between it and its client is not told to the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import Client
from accord.client.retry import Reconnect
from accord.client.subscription import ListChanged, Missed, Subscription
from accord.errors import NotConnected, OutcomeUnknown
from accord.limits import ClientLimits, Limits
from accord.transport.base import Transport

from tests.client.raw import Message, RawServer

S25, S26 = "2025-11-25", "2026-07-28"
ID = "io.modelcontextprotocol/subscriptionId"
OFFERS: Message = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"listChanged": True}}
SOON = Reconnect(attempts=4, first_seconds=0.01, most_seconds=0.05)
LIMITS = Limits(close_seconds=0.5, client=ClientLimits(connect_seconds=1000, probe_seconds=1))
FORM = {"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": {"type": "object"}}}


class Life(RawServer):
    """One start of the server."""

    def __init__(self, transport: Any, revision: str) -> None:
        super().__init__(transport, revision, OFFERS)
        self.over = asyncio.Event()


class Reborn:
    """A server that a test plays, in each of its lives in the next of some revisions; None never opens."""

    name = "reborn"

    def __init__(self, *revisions: str | None) -> None:
        self._revisions = list(revisions)
        self._lives: asyncio.Queue[Life] = asyncio.Queue()

    async def serve(self, transport: Transport) -> None:
        revision = self._revisions.pop(0) if len(self._revisions) > 1 else self._revisions[0]
        life = Life(transport, revision or S26)
        if revision is not None:
            await life.open()
            self._lives.put_nowait(life)
        await life.over.wait()
        await transport.close()

    async def life(self) -> Life:
        """The next life, once it is open."""
        async with asyncio.timeout(100):
            return await self._lives.get()


@asynccontextmanager
async def reborn(
    *revisions: str | None, reconnect: Reconnect | None = SOON, **options: Any
) -> AsyncIterator[tuple[Reborn, Life, Client]]:
    """A server, its first life, and a client of it."""
    server = Reborn(*revisions)
    client = Client(server, reconnect=reconnect, limits=LIMITS, **options)
    async with asyncio.timeout(100), client:
        yield server, await server.life(), client


class Person:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[asyncio.Future[bool]] = asyncio.Queue()

    async def __call__(self, params: Any) -> bool:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait(answer)
        return await answer


CALLS: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "prompts/get": lambda client: client.get_prompt("plan"),
    "resources/read": lambda client: client.read_resource("res://a"),
    "tools/call": lambda client: client.call_tool("pay"),
}
RESULTS: dict[str, Message] = {
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "done"}}]},
    "resources/read": {"contents": [{"uri": "res://a", "text": "done"}], "ttlMs": 0, "cacheScope": "private"},
}
HELD = {"inputResponses", "requestState"}


async def asked(life: Life, person: Person, state: str | None = "of the first") -> asyncio.Future[bool]:
    """Let the server ask the person; how to answer."""
    request = await life.hear()
    assert not HELD & set(request["params"]), "this is the beginning"
    life.require(request, inputRequests={"a": FORM}, **({} if state is None else {"requestState": state}))
    return await person.asked.get()


async def nothing_was_sent(life: Life, client: Client) -> None:
    """The next message is one that is sent just now."""
    call = asyncio.ensure_future(client.call_tool("marker"))
    request = await life.hear()
    assert request["params"].get("name") == "marker"
    life.done(request)
    assert (await call).text == "done"


# --- in the middle of the rounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", [S26, S25])
@pytest.mark.parametrize("state", ["of the first", None])
@pytest.mark.parametrize("method", RESULTS)
async def test_what_may_be_repeated_begins_again_with_nothing_of_the_last_server(
    method: str, state: str | None, then: str
) -> None:
    person = Person()
    async with reborn(S26, then, elicitation=person) as (server, first, client):
        call = asyncio.ensure_future(CALLS[method](client))
        answer = await asked(first, person, state)
        first.over.set()
        second = await server.life()
        answer.set_result(True)
        request = await second.hear()
        assert request["method"] == method
        assert not HELD & set(request["params"])
        second.answer(request, **RESULTS[method])
        assert "done" in str(await call)


async def test_the_next_server_may_request_input_again_and_gets_its_own_state() -> None:
    person = Person()
    async with reborn(S26, elicitation=person) as (server, first, client):
        call = asyncio.ensure_future(client.get_prompt("plan"))
        answer = await asked(first, person)
        first.over.set()
        second = await server.life()
        answer.set_result(True)
        (await asked(second, person, "of the second")).set_result(False)
        request = await second.hear()
        assert request["params"]["requestState"] == "of the second"
        assert request["params"]["inputResponses"] == {"a": {"action": "decline"}}
        second.answer(request, **RESULTS["prompts/get"])
        await call


@pytest.mark.parametrize("in_flight", [False, True], ids=["while the person answers", "while the answer is in flight"])
async def test_a_call_that_may_not_be_repeated_has_an_unknown_outcome(in_flight: bool) -> None:
    person = Person()
    async with reborn(S26, elicitation=person) as (server, first, client):
        call = asyncio.ensure_future(client.call_tool("pay"))
        answer = await asked(first, person)
        if in_flight:
            answer.set_result(True)
            assert (await first.hear())["params"]["requestState"] == "of the first"
        first.over.set()
        second = await server.life()
        if not in_flight:
            answer.set_result(True)
        with pytest.raises(OutcomeUnknown, match="tools/call may or may not have taken effect, and was not sent again"):
            await call
        await nothing_was_sent(second, client)


async def test_without_reconnect_the_answers_do_not_go_to_a_server_that_was_opened_meanwhile() -> None:
    person = Person()
    async with reborn(S26, reconnect=None, elicitation=person) as (server, first, client):
        call = asyncio.ensure_future(client.get_prompt("plan"))
        answer = await asked(first, person)
        ended = client.connection.ended
        first.over.set()
        await ended.wait()
        await client.connect()
        second = await server.life()
        answer.set_result(True)
        with pytest.raises(NotConnected):
            await call
        await nothing_was_sent(second, client)


# --- the time to find out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", [None, S26], ids=["it never opens again", "it never lists its tools"])
@pytest.mark.parametrize("bound", [{"timeout": 0.3}, {"total_timeout": 0.3}], ids=["timeout", "total_timeout"])
async def test_whether_a_call_may_be_repeated_is_found_out_in_the_time_of_the_call(
    bound: dict[str, Any], then: str | None
) -> None:
    async with reborn(S26, then, trusted=True) as (_, first, client):
        call = asyncio.ensure_future(client.call_tool("pay", **bound))
        await first.hear()
        first.over.set()
        with pytest.raises(OutcomeUnknown):
            async with asyncio.timeout(100):
                await call


# --- subscriptions ---------------------------------------------------------------------------------------------------


async def entered(life: Life, subscription: Subscription) -> Any:
    """Be subscribed to; the id of that."""
    entering = asyncio.ensure_future(subscription.__aenter__())
    id = acknowledge(life, await life.hear())
    await entering
    return id


def acknowledge(life: Life, request: Message) -> Any:
    assert request["method"] == "subscriptions/listen"
    params = {"notifications": request["params"]["notifications"], "_meta": {ID: request["id"]}}
    life.say({"method": "notifications/subscriptions/acknowledged", "params": params})
    return request["id"]


async def test_a_subscription_that_the_server_ended_is_not_made_again() -> None:
    async with reborn(S26) as (server, first, client):
        subscription = client.subscribe(tools=True)
        id = await entered(first, subscription)
        first.answer({"id": id}, _meta={ID: id})
        assert [event async for event in subscription] == []
        first.over.set()
        second = await server.life()
        await nothing_was_sent(second, client)
        await subscription.__aexit__(None, None, None)


async def test_who_leaves_while_the_subscriptions_are_made_anew_is_not_subscribed_again() -> None:
    async with reborn(S26) as (server, first, client):
        stays, leaves = client.subscribe(tools=True), client.subscribe(prompts=True)
        for each in (stays, leaves):
            await entered(first, each)
        first.over.set()
        second = await server.life()
        request = await second.hear()
        await leaves.__aexit__(None, None, None)
        id = acknowledge(second, request)
        await nothing_was_sent(second, client)
        second.say({"method": "notifications/tools/list_changed", "params": {"_meta": {ID: id}}})
        assert isinstance(await anext(stays), Missed)
        assert await anext(stays) == ListChanged("tools")
