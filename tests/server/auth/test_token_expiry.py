"""Streams end when the token that opened them expires; running calls finish, and sessions continue."""

from __future__ import annotations

import asyncio
import time

import pytest

from accord import Client, Principal, Server
from accord.client.subscription import Missed
from accord.server.auth.authentication import AuthRequest
from accord.server.core import principal
from accord.server.http import base_session
from accord.testing.http import served_over_http
from accord.transport.http.settings import HTTPSettings

from tests.clock import Clock
from tests.server.http.http_clients import Legacy, Modern, Stateful, both_ways, quick, request, site, text
from tests.server.http.raw import Ended

SHORT = {"authorization": "Bearer short"}
MINUTE = {"authorization": "Bearer minute"}
LONG = {"authorization": "Bearer long"}


class Tokens:
    """One user with tokens that expire 0.2 s, a minute or an hour after each use."""

    async def authenticate(self, request: AuthRequest) -> Principal:
        left = {b"Bearer short": 0.2, b"Bearer minute": 60.0, b"Bearer long": 3_600.0}
        return Principal("ann", expires_at=time.time() + left[request.headers[b"authorization"]])


class Desk(Server):
    """A server with a tool that waits."""

    def __init__(self) -> None:
        super().__init__("desk", "1", auth=Tokens(), limits=quick())
        self.running = asyncio.Event()
        self.release = asyncio.Event()

        @self.tool
        async def waits() -> str:
            self.running.set()
            await self.release.wait()
            return "done"


@pytest.fixture(autouse=True)
def no_leeway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that opens late on a slow machine then ends at once."""
    monkeypatch.setattr(principal, "LEEWAY_SECONDS", 0.0)


@both_ways
async def test_the_stream_of_a_session_ends_with_its_token_and_the_session_continues(way: str) -> None:
    async with site(Desk(), way) as here:
        client = await Stateful(here.raw, **LONG).open()
        stream = await client.send("GET", **SHORT)
        assert stream.status == 200
        await asyncio.wait_for(stream.end(), 10)
        assert stream.whole
        again = await client.send("GET", **LONG)
        assert again.status == 200
        await again.leave()


@both_ways
async def test_a_newer_stream_of_the_session_outlives_the_older_one(way: str) -> None:
    async with site(Desk(), way) as here:
        client = await Stateful(here.raw, **LONG).open()
        older = await client.send("GET", **SHORT)
        newer = await client.send("GET", **LONG)
        await asyncio.wait_for(older.end(), 10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(newer.end(), 0.4)
        await newer.leave()


async def test_a_running_call_finishes_on_its_own_stream() -> None:
    desk = Desk()
    async with site(desk, "socket") as here:
        client = await Stateful(here.raw, **LONG).open()
        call = asyncio.create_task(client.post(client.calling("waits"), **SHORT))
        await desk.running.wait()
        await asyncio.sleep(0.3)
        desk.release.set()
        assert text(await (await call).result()) == "done"


@both_ways
async def test_a_subscription_ends_with_its_token_as_if_its_connection_had_broken(way: str) -> None:
    async with site(Desk(), way) as here:
        client = Modern(here.raw, **SHORT)
        stream = await client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert (await stream.message())["method"] == "notifications/subscriptions/acknowledged"
        with pytest.raises(Ended):
            await asyncio.wait_for(stream.message(), 10)
        assert stream.whole


class Revocable:
    """A user with a token that does not expire, and one with a key."""

    async def authenticate(self, request: AuthRequest) -> Principal:
        is_key = request.headers[b"authorization"] == b"Bearer key"
        return Principal("ann", issuer=None if is_key else "https://login.example")


@both_ways
async def test_the_streams_of_a_token_that_never_expires_are_opened_anew(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been revoked since."""
    monkeypatch.setattr(base_session, "STREAM_SECONDS", 0.1)
    token, key = {"authorization": "Bearer token"}, {"authorization": "Bearer key"}
    async with site(Server("desk", "1", auth=Revocable(), limits=quick()), way) as here:
        for headers, ends in ((token, True), (key, False)):
            client = await Stateful(here.raw, **headers).open()
            listening = Modern(here.raw, **headers)
            changes = {"notifications": {"toolsListChanged": True}}
            for stream in (await client.listen(), await listening.ask("subscriptions/listen", changes)):
                if ends:
                    await asyncio.wait_for(stream.end(), 10)
                    assert stream.whole
                else:
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(stream.end(), 0.4)
                    await stream.leave()


async def test_http_sse_ends_with_its_token_after_the_running_calls() -> None:
    desk = Desk()
    async with site(desk, "socket") as here:
        client = await (await Legacy.connect(here.raw, **MINUTE)).open()
        call = request("tools/call", {"name": "waits"}, 5)
        assert (await client.post(call)).status == 202
        await desk.running.wait()
        await Clock().jump(61)
        desk.release.set()
        assert text(await client.stream.message()) == "done"
        await asyncio.wait_for(client.stream.end(), 10)


async def test_a_client_subscribes_again_with_its_next_token() -> None:
    desk, token = Desk(), [SHORT]
    heads = HTTPSettings(headers=lambda: token[0])
    with served_over_http(desk) as url:
        async with Client(url, http=heads) as client, client.subscribe(tools=True) as changes:
            assert isinstance(await asyncio.wait_for(anext(aiter(changes)), 10), Missed)
            token[0] = LONG
            change = asyncio.ensure_future(anext(aiter(changes)))
            for number in range(200):  # until it has subscribed again
                desk.tool(lambda: "x", name=f"tool{number}")
                if (await asyncio.wait([change], timeout=0.05))[0]:
                    break
            assert not isinstance(await change, Missed)
