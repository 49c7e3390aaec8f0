"""Subscriptions: one way for both eras, against a server that is played by hand and against our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import Client, Context, Server, Tool
from accord.client.subscription import ListChanged, Missed, ResourceUpdated, Subscription
from accord.errors import (
    ConnectionLost,
    InvalidParams,
    LocalProtocolError,
    NotConnected,
    NotSupported,
    RemoteProtocolError,
    RequestTimeout,
)
from accord.limits import Limits
from accord.messages.completion import PromptReference
from accord.messages.revision import REVISIONS

from tests.client.raw import Message, RawServer, raw_server
from tests.clock import Clock
from tests.transport.http.site import Visit, older, quiet, site

S26 = "2026-07-28"
ID = "io.modelcontextprotocol/subscriptionId"
OFFERS: Message = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
}
UPDATED = "notifications/resources/updated"
FILTER = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["res://a", "res://b"],
}


@asynccontextmanager
async def served(revision: str, offers: Message = OFFERS, **options: Any) -> AsyncIterator[tuple[RawServer, Client]]:
    async with raw_server(revision, offers=offers, **options) as (server, client):
        yield server, client


class Subscribed:
    """What the server knows of one subscription: how it tells of something."""

    def __init__(self, server: RawServer, id: Any = None) -> None:
        self.server = server
        self.id = id

    def tell(self, method: str, **params: Any) -> None:
        if self.id is not None:
            params["_meta"] = {ID: self.id}
        self.server.say({"method": method, "params": params})


async def grant(server: RawServer, uris: list[str], granted: Message = FILTER) -> Subscribed:
    """Be subscribed to, in the way of the revision."""
    if server.revision == S26:
        request = await server.hear()
        assert request["method"] == "subscriptions/listen"
        subscribed = Subscribed(server, request["id"])
        subscribed.tell("notifications/subscriptions/acknowledged", notifications=granted)
        return subscribed
    for uri in uris:
        request = await server.hear()
        assert (request["method"], request["params"]) == ("resources/subscribe", {"uri": uri})
        server.answer(request)
    return Subscribed(server)


async def entered(server: RawServer, subscription: Subscription, uris: list[str], **more: Any) -> Subscribed:
    entering = asyncio.create_task(subscription.__aenter__())
    subscribed = await grant(server, uris, **more)
    assert await entering is subscription
    return subscribed


async def leave(server: RawServer, subscription: Subscription, uris: list[str]) -> None:
    """Leave, and see that the server is told."""
    leaving = asyncio.create_task(subscription.__aexit__(None, None, None))
    if server.revision == S26:
        assert (await server.hear())["method"] == "notifications/cancelled"
    for uri in uris if server.revision != S26 else []:
        request = await server.hear()
        assert (request["method"], request["params"]) == ("resources/unsubscribe", {"uri": uri})
        server.answer(request)
    await leaving


@pytest.mark.parametrize("revision", REVISIONS)
async def test_one_way_for_both_eras(revision: str) -> None:
    async with served(revision) as (server, client):
        subscription = client.subscribe("res://a", "res://b", tools=True, prompts=True, resources=True)
        told = await entered(server, subscription, ["res://a", "res://b"])
        assert subscription.granted == subscription.wish
        assert subscription.granted.resource_subscriptions == ["res://a", "res://b"]
        told.tell(UPDATED, uri="res://a")
        told.tell("notifications/tools/list_changed")
        told.tell(UPDATED, uri="res://b/part")
        told.tell("notifications/prompts/list_changed")
        told.tell("notifications/resources/list_changed")
        assert [await anext(subscription) for _ in range(5)] == [
            ResourceUpdated("res://a"),
            ListChanged("tools"),
            ResourceUpdated("res://b/part"),
            ListChanged("prompts"),
            ListChanged("resources"),
        ]
        await leave(server, subscription, ["res://a", "res://b"])
        assert [event async for event in subscription] == []


@pytest.mark.parametrize("revision", ["2025-11-25", S26])
async def test_each_subscription_receives_what_it_asked_for(revision: str) -> None:
    async with served(revision) as (server, client):
        one, two = client.subscribe("res://a"), client.subscribe("res://b", tools=True)
        to_one = await entered(server, one, ["res://a"], granted={"resourceSubscriptions": ["res://a"]})
        granted = {"resourceSubscriptions": ["res://b"], "toolsListChanged": True}
        to_two = await entered(server, two, ["res://b"], granted=granted)
        to_two.tell("notifications/tools/list_changed")
        to_one.tell(UPDATED, uri="res://a/1")
        to_two.tell(UPDATED, uri="res://b")
        assert await anext(one) == ResourceUpdated("res://a/1")
        assert [await anext(two) for _ in range(2)] == [ListChanged("tools"), ResourceUpdated("res://b")]
        await leave(server, one, ["res://a"])
        await leave(server, two, ["res://b"])


@pytest.mark.parametrize("revision", ["2025-11-25", S26])
async def test_what_is_not_offered_is_not_granted_and_nothing_at_all_is_an_error(revision: str) -> None:
    async with served(revision, {"tools": {"listChanged": True}, "resources": {}}) as (server, client):
        subscription = client.subscribe("res://a", tools=True)
        await entered(server, subscription, [], granted={"toolsListChanged": True})
        assert subscription.granted.resource_subscriptions is None
        assert subscription.granted.tools_list_changed
        refused = asyncio.create_task(client.subscribe("res://a", prompts=True).__aenter__())
        if revision == S26:
            await grant(server, [], {})
        with pytest.raises(NotSupported, match="does not support these notifications"):
            await refused


async def test_nothing_to_subscribe_to_is_refused_at_once() -> None:
    with pytest.raises(LocalProtocolError, match="nothing to subscribe to"):
        Client("python server.py").subscribe()


async def test_a_client_that_is_not_connected_cannot_subscribe() -> None:
    with pytest.raises(NotConnected):
        await Client("python server.py").subscribe("res://a").__aenter__()


async def test_a_resource_that_several_want_is_subscribed_to_once() -> None:
    async with served("2025-11-25") as (server, client):
        one, two = client.subscribe("res://a"), client.subscribe("res://a")
        told = await entered(server, one, ["res://a"])
        await two.__aenter__()
        told.tell(UPDATED, uri="res://a")
        assert await anext(one) == await anext(two) == ResourceUpdated("res://a")
        await one.__aexit__(None, None, None)  # the other one still wants it
        told.tell(UPDATED, uri="res://a")
        assert await anext(two) == ResourceUpdated("res://a")
        await leave(server, two, ["res://a"])


async def test_leaving_unsubscribes_from_all_resources_side_by_side() -> None:
    uris = [f"res://{number}" for number in range(100)]
    async with served("2025-11-25") as (server, client):
        subscription = client.subscribe(*uris)
        await entered(server, subscription, uris)
        leaving = asyncio.create_task(subscription.__aexit__(None, None, None))
        first = [await server.hear() for _ in range(64)]
        assert not leaving.done()
        for request in first:
            server.answer(request)
        rest = [await server.hear() for _ in range(36)]
        assert [request["params"]["uri"] for request in first + rest] == uris
        for request in rest:
            server.answer(request)
        await leaving


async def test_a_server_that_does_not_answer_holds_up_who_leaves_once_for_all_resources() -> None:
    uris = [f"res://{number}" for number in range(60)]
    async with served("2025-11-25", limits=Limits(close_seconds=2)) as (server, client):
        subscription = client.subscribe(*uris)
        await entered(server, subscription, uris)
        async with asyncio.timeout(100):  # to wait for each of them takes longer
            await subscription.__aexit__(None, None, None)


async def test_leaving_waits_for_no_other_subscription() -> None:
    async with served("2025-11-25") as (server, client):
        one, two = client.subscribe("res://a"), client.subscribe("res://b")
        await entered(server, one, ["res://a"])
        entering = asyncio.create_task(two.__aenter__())
        unanswered = await server.hear()
        async with asyncio.timeout(100):
            await leave(server, one, ["res://a"])
        server.answer(unanswered)
        await entering
        await leave(server, two, ["res://b"])


async def test_a_resource_is_subscribed_to_again_once_it_is_unsubscribed_from() -> None:
    async with served("2025-11-25") as (server, client):
        one, two = client.subscribe("res://a"), client.subscribe("res://a")
        await entered(server, one, ["res://a"])
        leaving = asyncio.create_task(one.__aexit__(None, None, None))
        unsubscribed = await server.hear()
        entering = asyncio.create_task(two.__aenter__())
        with pytest.raises(TimeoutError):
            await server.hear(0.05)
        server.answer(unsubscribed)
        await leaving
        request = await server.hear()
        assert (request["method"], request["params"]) == ("resources/subscribe", {"uri": "res://a"})
        server.answer(request)
        await entering
        await leave(server, two, ["res://a"])


async def test_a_client_that_leaves_during_a_reconnect_is_unsubscribed() -> None:
    async with served("2025-11-25") as (server, client):
        subscription = client.subscribe("res://a", "res://b")
        await entered(server, subscription, ["res://a", "res://b"])
        renewing = asyncio.create_task(client._subscriptions.use(client.connection))
        unanswered = await server.hear()
        await subscription.__aexit__(None, None, None)
        server.answer(unanswered)
        request = await server.hear()
        assert (request["method"], request["params"]) == ("resources/unsubscribe", {"uri": "res://a"})
        server.answer(request)
        await renewing
        await entered(server, client.subscribe("res://a"), ["res://a"])  # it is asked for again


async def test_an_event_loop_that_is_late_unsubscribes_all_the_same() -> None:
    heard: list[str] = []

    async def play(visit: Visit) -> None:
        heard.append(visit.verb)
        await quiet(visit)

    async with site(older(play, offers={"resources": {"subscribe": True}})) as server, Client(server.url) as client:
        subscription = client.subscribe("res://a")
        await subscription.__aenter__()
        leaving = asyncio.create_task(subscription.__aexit__(None, None, None))
        await asyncio.sleep(0)
        Clock().move(10)
        await leaving
    assert heard.count("resources/unsubscribe") == 1


async def test_an_update_of_an_unknown_resource_is_sent_to_all_who_want_updates() -> None:
    async with served("2025-11-25") as (server, client):
        one, two, three = client.subscribe("res://a"), client.subscribe("res://b"), client.subscribe(tools=True)
        told = await entered(server, one, ["res://a"])
        await entered(server, two, ["res://b"])
        await three.__aenter__()
        told.tell(UPDATED, uri="other://a")
        told.tell("notifications/tools/list_changed")
        assert await anext(one) == await anext(two) == ResourceUpdated("other://a")
        assert await anext(three) == ListChanged("tools")


async def test_a_refusal_undoes_what_was_subscribed_to_before_it() -> None:
    async with served("2025-11-25") as (server, client):
        entering = asyncio.create_task(client.subscribe("res://a", "res://no").__aenter__())
        server.answer(await server.hear())
        server.refuse(await server.hear(), -32602, "no such resource")
        undone = await server.hear()
        assert (undone["method"], undone["params"]) == ("resources/unsubscribe", {"uri": "res://a"})
        server.answer(undone)
        with pytest.raises(InvalidParams, match="no such resource"):
            await entering


async def test_a_subscription_ends_when_the_server_ends_it() -> None:
    async with served(S26) as (server, client):
        subscription = client.subscribe("res://a")
        told = await entered(server, subscription, ["res://a"])
        told.tell(UPDATED, uri="res://a")
        server.say({"id": told.id, "result": {"resultType": "complete", "_meta": {ID: told.id}}})
        assert [event async for event in subscription] == [ResourceUpdated("res://a")]


async def test_a_server_that_only_cancels_ends_it_too() -> None:
    async with served(S26) as (server, client):
        subscription = client.subscribe("res://a")
        told = await entered(server, subscription, ["res://a"])
        server.say({"method": "notifications/cancelled", "params": {"requestId": told.id}})
        assert [event async for event in subscription] == []


async def test_an_error_in_the_middle_is_raised_to_the_reader() -> None:
    async with served(S26) as (server, client):
        subscription = client.subscribe("res://a")
        told = await entered(server, subscription, ["res://a"])
        server.refuse({"id": told.id}, -32602, "no more")
        with pytest.raises(InvalidParams, match="no more"):
            await anext(subscription)


async def test_a_server_that_refuses_or_says_nothing_is_an_error_for_who_subscribes() -> None:
    async with served(S26, timeout=60) as (server, client):
        entering = asyncio.create_task(client.subscribe("res://a").__aenter__())
        server.refuse(await server.hear(), -32602, "not you")
        with pytest.raises(InvalidParams, match="not you"):
            await entering
        entering = asyncio.create_task(client.subscribe("res://a").__aenter__())
        server.answer(await server.hear())
        with pytest.raises(RemoteProtocolError, match="without having acknowledged"):
            await entering
        entering = asyncio.create_task(client.subscribe("res://a").__aenter__())
        assert (await server.hear())["method"] == "subscriptions/listen"
        await Clock().jump(61)
        with pytest.raises(RequestTimeout, match="did not acknowledge subscriptions/listen in 60 s"):
            await entering
        assert (await server.hear())["method"] == "notifications/cancelled"


@pytest.mark.parametrize("revision", ["2025-11-25", S26])
async def test_a_lost_connection_is_reported_to_the_reader_after_what_came_before(revision: str) -> None:
    async with served(revision) as (server, client):
        subscription = client.subscribe("res://a")
        told = await entered(server, subscription, ["res://a"])
        told.tell(UPDATED, uri="res://a")
        await server.transport.close()
        assert await anext(subscription) == ResourceUpdated("res://a")
        with pytest.raises(ConnectionLost):
            await anext(subscription)
        await subscription.__aexit__(None, None, None)


@pytest.mark.parametrize("revision", ["2025-11-25", S26])
async def test_closing_the_client_ends_it_quietly(revision: str) -> None:
    async with served(revision) as (server, client):
        subscription = client.subscribe("res://a")
        await entered(server, subscription, ["res://a"])
        await client.close()
        assert [event async for event in subscription] == []
        await subscription.__aexit__(None, None, None)


async def test_cancelling_who_subscribes_takes_it_back() -> None:
    async with served(S26) as (server, client):
        entering = asyncio.create_task(client.subscribe("res://a").__aenter__())
        request = await server.hear()
        entering.cancel()
        cancelled = await server.hear()
        assert cancelled["params"]["requestId"] == request["id"]
        await asyncio.wait([entering])
        assert entering.cancelled()


async def test_unread_events_give_way_to_one_notice() -> None:
    async with served(S26, limits=Limits(notices=3)) as (server, client):
        subscription = client.subscribe("res://a")
        told = await entered(server, subscription, ["res://a"])
        for number in range(5):
            told.tell(UPDATED, uri=f"res://a/{number}")
        server.say({"id": told.id, "result": {"resultType": "complete"}})
        events = [event async for event in subscription]
        assert events == [Missed("more came than was read in time"), ResourceUpdated("res://a/4")]


async def test_a_resource_that_was_updated_is_read_again() -> None:
    async with served(S26) as (server, client):
        subscription = client.subscribe("res://a")
        told = await entered(server, subscription, ["res://a"])
        for text in ("old", "new"):
            reading = asyncio.create_task(client.read_resource("res://a"))
            contents = [{"uri": "res://a", "text": text}]
            server.answer(await server.hear(), contents=contents, ttlMs=60_000, cacheScope="private")
            assert (await reading).contents[0].text == text
            told.tell(UPDATED, uri="res://a")
            assert await anext(subscription) == ResourceUpdated("res://a")


# Our own server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_our_own_server_notifies_of_changes_in_every_revision(revision: str) -> None:
    server = Server("changing")
    server.resource("res://a")(lambda: "text")
    server.tool(name="old")(lambda: "text")
    async with asyncio.timeout(100), Client(server, revisions=[revision]) as client:
        async with client.subscribe("res://a", tools=True, resources=True) as subscription:
            server.resource_updated("res://a")
            assert await anext(subscription) == ResourceUpdated("res://a")
            server.add_tool(Tool(name="new", input_schema={"type": "object"}), lambda arguments: "x")
            assert await anext(subscription) == ListChanged("tools")
            assert [tool.name for tool in await client.list_tools()] == ["old", "new"]
            server.remove_tool("new")
            assert await anext(subscription) == ListChanged("tools")
            assert [tool.name for tool in await client.list_tools()] == ["old"]
        server.resource_updated("res://a")
        await client.ping()
        assert [event async for event in subscription] == []


@pytest.mark.parametrize("revision", REVISIONS)
async def test_our_own_server_completes_and_logs_in_every_revision(revision: str) -> None:
    server = Server("helpful")
    told: list[str] = []

    @server.prompt
    def plan(city: str) -> str:
        return city

    @server.complete("plan", "city")
    def cities(prefix: str) -> list[str]:
        return [city for city in ("Oslo", "Osaka", "Rome") if city.startswith(prefix)]

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.debug("too fine")
        ctx.info("working")
        return "done"

    def hear(message: Any) -> None:
        told.append(message.data)

    async with asyncio.timeout(100), Client(server, revisions=[revision], on_log=hear) as client:
        found = await client.complete(prompt="plan", argument="city", value="Os", context={"country": "any"})
        assert (found.values, found.has_more) == (["Oslo", "Osaka"], False)
        assert (await client.complete(PromptReference(name="plan"), argument="city", value="R")).values == ["Rome"]
        for arguments in ({}, {"prompt": "plan", "template": "res://{x}"}):
            with pytest.raises(LocalProtocolError, match="needs exactly one of"):
                await client.complete(argument="city", **arguments)
        await client.call_tool("work")
        assert told == ["working"]
        await client.set_log_level("debug")
        await client.call_tool("work")
        assert told == ["working", "too fine", "working"]
