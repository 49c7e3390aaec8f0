"""A client and a server that both have an extension, and those of which only one has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from accord import CallToolResult, Client, Context, Extension, Method, Server
from accord.client.notifications import Notice
from accord.client.results import ToolResult
from accord.errors import InvalidResult, NotSupported
from accord.messages.meta import Result
from accord.messages.tools import CallToolParams

from tests.client.raw import raw_server

S26 = "2026-07-28"


class Word(msgspec.Struct):
    word: str


class Echoed(msgspec.Struct):
    echo: str


class Ticket(Result):
    """What a tool answers instead of its result."""

    ticket: str = ""


ECHO = Extension(
    name="com.example/echo",
    settings={"volume": 3},
    methods=(
        Method("echo/say", "client", Word, Echoed),
        Method("notifications/echo/told", "client", Word),
        Method("notifications/echo/heard", "server", Word),
    ),
    results={"ticket": Ticket},
)


def server_of(*extensions: Extension) -> tuple[Server, list[str]]:
    server, told = Server("echo", extensions=extensions), []

    @server.tool
    async def greet(name: str) -> str:
        return f"Hello, {name}."

    if extensions:

        @server.method("echo/say")
        async def say(params: Word) -> Echoed:
            return Echoed(params.word * 2)

        @server.method("notifications/echo/told")
        def hear(params: Word) -> None:
            told.append(params.word)

    return server, told


@asynccontextmanager
async def connected(server: Server, *extensions: Extension) -> AsyncIterator[Client]:
    async with asyncio.timeout(100), Client(server, extensions=extensions, revisions=[S26]) as client:
        yield client


async def test_a_method_of_an_extension_is_requested_with_its_own_types() -> None:
    server, told = server_of(ECHO)
    async with connected(server, ECHO) as client:
        assert client.server_capabilities is not None
        assert client.server_capabilities.extensions == {"com.example/echo": {"volume": 3}}
        assert await client.request("echo/say", Word("na"), result=Echoed) == Echoed("nana")
        await client.notify("notifications/echo/told", Word("psst"))
        await client.ping()
        assert told == ["psst"]


async def test_a_server_without_the_extension_gets_no_request() -> None:
    server, _ = server_of()
    async with connected(server, ECHO) as client:
        with pytest.raises(NotSupported, match=r"com\.example/echo"):
            await client.request("echo/say", Word("x"), result=Echoed)
        with pytest.raises(NotSupported):
            await client.notify("notifications/echo/told", Word("x"))
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada."  # the core goes on


async def test_a_client_without_the_extension_knows_no_such_method() -> None:
    server, _ = server_of(ECHO)
    async with connected(server) as client:
        with pytest.raises(NotSupported, match="echo/say is not part of"):
            await client.request("echo/say", Word("x"), result=Echoed)


async def test_notifications_of_an_extension_come_with_their_own_type() -> None:
    told: list[Notice] = []
    offers = {"extensions": {"com.example/echo": {}}}
    async with raw_server(S26, offers=offers, extensions=[ECHO]) as (server, client):
        client.on("notifications/echo/heard", told.append)
        async with client.notifications("notifications/echo/heard") as stream:
            server.say({"method": "notifications/echo/heard", "params": {"word": "ho"}})
            assert (await anext(stream)).params == Word("ho")
    assert [notice.params for notice in told] == [Word("ho")]


async def test_a_kind_of_result_of_an_extension_is_handed_back_typed_and_an_unknown_one_is_invalid() -> None:
    answers: list[Any] = [
        {"resultType": "ticket", "ticket": "7"},
        {"resultType": "complete", "content": []},
        {"content": []},
        {"resultType": "surprise"},
    ]
    async with raw_server(S26, extensions=[ECHO]) as (server, client):

        async def call(answer: Any) -> Any:
            calling = asyncio.create_task(client.request("tools/call", CallToolParams(name="x"), result=ToolResult))
            server.say({"id": (await server.hear())["id"], "result": answer})
            return await calling

        assert (await call(answers[0])).ticket == "7"
        assert isinstance(await call(answers[1]), CallToolResult)
        assert isinstance(await call(answers[2]), CallToolResult)
        with pytest.raises(InvalidResult, match="unknown resultType 'surprise'"):
            await call(answers[3])


async def test_a_verb_takes_no_kind_of_result_that_it_has_no_type_for() -> None:
    async with raw_server(S26, extensions=[ECHO]) as (server, client):
        calling = asyncio.create_task(client.call_tool("x"))
        server.say({"id": (await server.hear())["id"], "result": {"resultType": "ticket", "ticket": "7"}})
        with pytest.raises(InvalidResult, match="unknown resultType 'ticket'"):
            await calling


async def test_what_is_experimental_is_declared() -> None:
    async with raw_server(S26, experimental={"dance": {"steps": 2}}) as (server, client):
        asking = asyncio.create_task(client.ping())
        request = await server.hear()
        assert server.declared["experimental"] == {"dance": {"steps": 2}}
        server.answer(request)
        await asking


async def test_a_handler_may_answer_with_a_result_of_the_extension() -> None:
    server = Server("tickets", extensions=[ECHO])

    @server.tool
    async def later(ctx: Context) -> Ticket:
        return Ticket(result_type="ticket", ticket="12")

    async with connected(server, ECHO) as client:
        ticket = await client.request("tools/call", CallToolParams(name="later"), result=ToolResult)
        assert isinstance(ticket, Ticket)
        assert ticket.ticket == "12"
