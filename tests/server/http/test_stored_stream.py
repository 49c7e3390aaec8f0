"""What is kept of clients is bounded: what they say of themselves, and what they subscribe to."""

from __future__ import annotations

from typing import Any

import pytest

from accord import Server
from accord.server.auth.api_keys import APIKeys

from tests.server.http.http_clients import Modern, Stateful, quick, site, until
from tests.server.http.raw import JSON

KEYS = {"k-ann": "ann", "k-bob": "bob"}
ANN, BOB = ({"authorization": f"Bearer k-{name}"} for name in ("ann", "bob"))
TOO_MANY = "too many subscriptions"


def desk(*, known: bool = False, **limits: Any) -> Server:
    server = Server("desk", "1", limits=quick(**limits), auth=APIKeys(KEYS) if known else None)
    server.resource("test://{name}")(lambda name: name)
    return server


def uri(number: int, size: int = 1_000) -> str:
    return f"test://{number}".ljust(size, "x")


async def subscribed(client: Stateful, *numbers: int) -> str:
    """How many were, and why no more."""
    for count, number in enumerate(numbers):
        said = await (await client.ask("resources/subscribe", {"uri": uri(number)})).json()
        if "error" in said:
            return f"{count}: {said['error']['message']}"
    return str(len(numbers))


async def listened(client: Modern, *numbers: int, **more: Any) -> Any:
    """The stream, and the first message of it."""
    wanted = {"notifications": {"resourceSubscriptions": [uri(number) for number in numbers]}, **more}
    stream = await client.ask("subscriptions/listen", wanted)
    if not stream.streams:
        return stream, (await stream.json())["error"]["message"]
    return stream, (await stream.message())["method"]


@pytest.mark.parametrize(
    "more",
    [
        {"capabilities": {"experimental": {f"k{number}": {} for number in range(10_000)}}},
        {"clientInfo": {"name": "x" * 70_000, "version": "1"}},
    ],
)
async def test_a_client_whose_description_is_too_large_is_refused_and_nothing_is_stored(more: JSON) -> None:
    async with site(desk()) as here:
        client = Stateful(here.raw)
        hello = client.hello()
        hello["params"] |= more
        answer = await client.post(hello)
        said = await answer.json()
        assert (answer.status, said["error"]["code"]) == (400, -32602)
        assert "65,536 bytes" in said["error"]["message"]
        assert len(here.endpoint.sessions) == 0


async def test_a_client_that_says_much_of_itself_is_served() -> None:
    async with site(desk()) as here:
        client = Stateful(here.raw, capabilities={"experimental": {"icon": {"src": "x" * 60_000}}})
        assert (await (await client.open()).ask("ping")).status == 200


async def test_the_memory_for_the_subscriptions_of_a_session_is_bounded_and_comes_back() -> None:
    async with site(desk(subscribed_bytes=5_000)) as here:
        client, other = await Stateful(here.raw).open(), await Stateful(here.raw).open()
        assert (await subscribed(client, 1, 2, 3, 4)).startswith(f"3: {TOO_MANY}")
        assert await subscribed(client, 1) == "1"
        await client.ask("resources/unsubscribe", {"uri": uri(1)})
        assert (await subscribed(client, 4, 5)).startswith(f"1: {TOO_MANY}")
        assert await subscribed(other, 1, 2, 3) == "3"


async def test_it_is_bounded_for_all_connections_of_a_principal_together() -> None:
    async with site(desk(known=True, subscribed_bytes=5_000)) as here:
        ann, again = await Stateful(here.raw, **ANN).open(), await Stateful(here.raw, **ANN).open()
        bob = await Stateful(here.raw, **BOB).open()
        assert await subscribed(ann, 1, 2) == "2"
        assert (await subscribed(again, 1, 2)).startswith(f"1: {TOO_MANY}")
        _, said = await listened(Modern(here.raw, **ANN), 1)
        assert TOO_MANY in said
        assert await subscribed(bob, 1, 2, 3) == "3"
        await ann.delete()
        assert await subscribed(again, 2, 3) == "2"


async def test_it_is_bounded_for_all_anonymous_clients_together() -> None:
    async with site(desk(subscribed_total_bytes=8_000)) as here:
        client, modern = await Stateful(here.raw).open(), Modern(here.raw)
        assert await subscribed(client, 1, 2) == "2"
        stream, said = await listened(modern, 1)
        assert "acknowledged" in said
        _, said = await listened(modern, 1, 2)
        assert TOO_MANY in said
        await stream.leave()
        await until(lambda: not here.endpoint._stateless._listening)
        stream, said = await listened(modern, 1)
        assert "acknowledged" in said
        await stream.leave()


async def test_a_request_that_stays_open_counts_with_its_whole_body() -> None:
    async with site(desk(subscribed_bytes=10_000)) as here:
        _, said = await listened(Modern(here.raw), 1, junk="x" * 10_000)
        assert TOO_MANY in said
        stream, said = await listened(Modern(here.raw), 1)
        assert "acknowledged" in said
        await stream.leave()
        await until(lambda: not here.endpoint._stateless._listening)
        assert not here.endpoint.context.subscription_index._bytes
