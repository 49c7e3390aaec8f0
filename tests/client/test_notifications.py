"""What a server tells its client: log messages, callbacks, streams; slow, failing and hostile ones."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from accord.client.notifications import Notice, NotificationBuffer
from accord.errors import ConnectionLost, LocalProtocolError, NotConnected, NotSupported
from accord.limits import ClientLimits, Limits
from accord.messages.revision import REVISIONS

from tests.client.raw import OFFERS, Message, RawServer, raw_server

S26 = "2026-07-28"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
LOGS = {**OFFERS, "logging": {}}
MESSAGE = "notifications/message"
TOOLS_CHANGED = "notifications/tools/list_changed"


def log(server: RawServer, data: Any, level: str = "info") -> None:
    server.say({"method": MESSAGE, "params": {"level": level, "data": data}})


async def heard_all(server: RawServer, client: Any) -> None:
    """Return when the client has heard all that the server has said so far."""
    pinging = asyncio.create_task(client.ping())
    request = await server.hear()
    found = {"supportedVersions": [S26], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}
    server.answer(request, **(found if server.revision == S26 else {}))
    await pinging


@pytest.mark.parametrize("revision", REVISIONS)
async def test_log_messages_come_typed_and_in_order(revision: str) -> None:
    told: list[Any] = []
    async with raw_server(revision, offers=OFFERS, on_log=told.append) as (server, client):
        for number in range(3):
            log(server, {"n": number}, "warning")
        await heard_all(server, client)
    assert [(message.level, message.data) for message in told] == [("warning", {"n": number}) for number in range(3)]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_log_messages_before_the_connection_is_open_are_delivered(revision: str) -> None:
    told: list[Any] = []
    starting = {"method": MESSAGE, "params": {"level": "info", "data": "starting"}}
    async with raw_server(revision, offers=OFFERS, early=[starting], on_log=told.append) as (server, client):
        log(server, "started")
        await heard_all(server, client)
    assert [message.data for message in told] == ["starting", "started"]


@pytest.mark.parametrize("revision", REVISIONS[:-1])
async def test_a_log_level_is_set_once_through_2025(revision: str) -> None:
    async with raw_server(revision, offers=LOGS) as (server, client):
        setting = asyncio.create_task(client.set_log_level("warning"))
        request = await server.hear()
        assert (request["method"], request["params"]) == ("logging/setLevel", {"level": "warning"})
        server.answer(request)
        await setting
        calling = asyncio.create_task(client.call_tool("x"))
        request = await server.hear()
        assert "_meta" not in request["params"]
        server.done(request)
        await calling


async def test_a_log_level_goes_with_each_request_in_2026() -> None:
    async with raw_server(S26, log_level="info") as (server, client):  # not offered: many send them all the same
        await level_of_the_next_call(server, client, "info")
        await client.set_log_level("warning")
        await level_of_the_next_call(server, client, "warning")
        await level_of_the_next_call(server, client, "debug", meta={LOG_LEVEL: "debug"})
        await client.set_log_level("error")
        await level_of_the_next_call(server, client, "error")


async def level_of_the_next_call(server: RawServer, client: Any, level: str, **options: Any) -> None:
    calling = asyncio.create_task(client.call_tool("x", **options))
    request = await server.hear()
    assert request["params"]["_meta"][LOG_LEVEL] == level
    server.done(request)
    await calling


async def test_trace_context_of_the_caller_passes_untouched() -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "tracestate": "a=1"}
    async with raw_server(S26) as (server, client):
        calling = asyncio.create_task(client.call_tool("x", meta={**trace, "baggage": "b=2"}))
        request = await server.hear()
        assert {**trace, "baggage": "b=2"}.items() <= request["params"]["_meta"].items()
        server.done(request)
        await calling


async def test_a_server_without_log_messages_gets_no_level_through_2025() -> None:
    async with raw_server("2025-11-25", log_level="info") as (server, client):
        with pytest.raises(NotSupported, match="'logging'"):
            await client.set_log_level("debug")
        calling = asyncio.create_task(client.call_tool("x"))
        request = await server.hear()
        assert request["method"] == "tools/call"
        assert "_meta" not in request["params"]
        server.done(request)
        await calling


async def test_an_unknown_log_level_is_refused_here() -> None:
    level: Any = "verbose"
    async with raw_server(S26, offers=LOGS) as (_, client):
        with pytest.raises(LocalProtocolError, match="'verbose' is not a log level; use one of debug, info"):
            await client.set_log_level(level)


async def test_a_callback_receives_its_method_until_it_is_removed() -> None:
    told: list[Notice] = []
    async with raw_server("2025-11-25") as (server, client):
        remove = client.on(TOOLS_CHANGED, told.append)
        server.say({"method": TOOLS_CHANGED})
        server.say({"method": "notifications/prompts/list_changed"})
        await heard_all(server, client)
        assert [notice.method for notice in told] == [TOOLS_CHANGED]
        remove()
        remove()
        server.say({"method": TOOLS_CHANGED})
        await heard_all(server, client)
        assert len(told) == 1


async def test_on_notification_receives_everything() -> None:
    told: list[Notice] = []
    async with raw_server("2025-11-25", on_notification=told.append) as (server, client):
        server.say({"method": TOOLS_CHANGED})
        log(server, "text")
        await heard_all(server, client)
    assert [notice.method for notice in told] == [TOOLS_CHANGED, MESSAGE]
    assert told[1].params.data == "text"


async def test_a_slow_async_callback_holds_up_nobody_and_keeps_the_order() -> None:
    go_on = asyncio.Event()
    told: list[Any] = []

    async def slow(notice: Notice) -> None:
        await go_on.wait()
        told.append(notice.params.data)

    async with raw_server("2025-11-25") as (server, client):
        client.on(MESSAGE, slow)
        for number in range(5):
            log(server, number)
        await heard_all(server, client)
        assert told == []
        go_on.set()
    assert told == [0, 1, 2, 3, 4]  # closing lets it finish


async def test_a_callback_that_was_removed_while_it_ran_is_ended_with_the_client() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(notice: Notice) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with raw_server("2025-11-25", limits=Limits(client=ClientLimits(callback_seconds=0.05))) as (server, client):
        remove = client.on(TOOLS_CHANGED, wait)
        server.say({"method": TOOLS_CHANGED})
        await begun.wait()
        remove()
        assert not ended.is_set(), "it may finish what it has begun"
    async with asyncio.timeout(100):
        await ended.wait()


async def test_an_exception_of_a_callback_affects_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []

    def fails(notice: Notice) -> None:
        raise RuntimeError("the callback broke")

    async def fails_later(notice: Notice) -> None:
        raise RuntimeError("the other callback broke")

    async with raw_server("2025-11-25") as (server, client):
        for callback in (fails, fails_later, told.append):
            client.on(MESSAGE, callback)
        log(server, 1)
        log(server, 2)
        await heard_all(server, client)
    assert len(told) == 2
    assert "the callback broke" in caplog.text
    assert "the other callback broke" in caplog.text


async def test_a_stream_gives_what_came_since_it_was_entered() -> None:
    async with raw_server("2025-11-25") as (server, client):
        log(server, "before")
        await heard_all(server, client)
        async with client.notifications(MESSAGE) as stream, client.notifications() as everything:
            server.say({"method": TOOLS_CHANGED})
            log(server, "in")
            assert (await anext(stream)).params.data == "in"
            assert [(await anext(everything)).method for _ in range(2)] == [TOOLS_CHANGED, MESSAGE]
        log(server, "after")
        await heard_all(server, client)


async def test_a_stream_that_is_read_too_slowly_loses_the_oldest_and_says_how_many() -> None:
    limits = Limits(notices=3)
    async with raw_server("2025-11-25", limits=limits) as (server, client), client.notifications(MESSAGE) as stream:
        for number in range(10):
            log(server, number)
        await heard_all(server, client)
        assert stream.dropped == 7
        assert [(await anext(stream)).params.data for _ in range(3)] == [7, 8, 9]


async def test_a_stream_ends_when_the_client_is_closed() -> None:
    async with raw_server("2025-11-25") as (server, client), client.notifications() as stream:
        log(server, "last")
        await heard_all(server, client)
        await client.close()
        assert [notice.params.data async for notice in stream] == ["last"]


async def test_a_stream_says_so_when_the_connection_is_lost() -> None:
    async with raw_server("2025-11-25") as (server, client):
        async with client.notifications() as stream:
            log(server, "last")
            await server.transport.close()
            assert (await anext(stream)).params.data == "last"
            with pytest.raises(ConnectionLost):
                await anext(stream)
        with pytest.raises(NotConnected):
            async with client.notifications():
                pass


async def test_malformed_notifications_are_dropped_and_one_of_them_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[Any] = []
    async with raw_server("2025-11-25", on_notification=told.append) as (server, client):
        for params in (5, {"level": "loud", "data": 1}, {"level": "info"}):
            server.say({"method": MESSAGE, "params": params})
        await heard_all(server, client)
    assert told == []
    assert caplog.text.count("dropped a malformed notifications/message") == 1


async def test_tools_that_have_changed_are_listed_again_for_their_schemas() -> None:
    async with raw_server("2025-11-25", strict=True) as (server, client):
        for type_ in ("integer", "string"):
            calling = asyncio.create_task(client.call_tool("x"))
            value = {"integer": 1, "string": "s"}[type_]
            server.answer(await server.hear(), content=[], structuredContent={"v": value})
            listing = await server.hear()
            assert listing["method"] == "tools/list"
            schema = {"type": "object", "properties": {"v": {"type": type_}}}
            tool = {"name": "x", "inputSchema": {"type": "object"}, "outputSchema": schema}
            server.answer(listing, tools=[tool])
            assert (await calling).data == {"v": value}
            server.say({"method": TOOLS_CHANGED})


async def test_a_list_that_was_stale_when_it_came_is_not_believed_for_long() -> None:
    async with raw_server("2025-11-25") as (server, client):
        listing = asyncio.create_task(client.list_tools())
        request = await server.hear()
        server.say({"method": TOOLS_CHANGED})
        server.answer(request, tools=[])
        await listing
        calling = asyncio.create_task(client.call_tool("x"))
        server.answer(await server.hear(), content=[], structuredContent={"v": 1})
        again = await server.hear()
        assert again["method"] == "tools/list"
        server.answer(again, tools=[])
        await calling


@pytest.mark.parametrize("revision", ["2025-11-25", S26])
async def test_only_a_schema_that_is_marked_as_a_wrapper_is_unwrapped(revision: str) -> None:
    own: Message = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    marked = {**own, "x-fastmcp-wrap-result": True}
    by_sdk = {**own, "title": "get_sumOutput"}
    a_class = {**own, "title": "SumOutput"}
    async with raw_server(revision) as (server, client):
        calling = asyncio.create_task(client.list_tools())
        schemas = {"own": own, "marked": marked, "by the official SDK": by_sdk, "a class": a_class}
        tools = [{"name": name, "inputSchema": {}, "outputSchema": schema} for name, schema in schemas.items()]
        server.answer(await server.hear(), tools=tools, ttlMs=0, cacheScope="private")
        await calling
        for name, data in {
            "own": {"result": 1},
            "marked": 1,
            "by the official SDK": 1,
            "a class": {"result": 1},
        }.items():
            call = asyncio.create_task(client.call_tool(name))
            request = await server.hear()
            server.answer(request, content=[], structuredContent={"result": 1}, outputSchema=marked)
            assert (await call).data == data


async def test_the_limits_hold_for_the_schemas_of_a_server(caplog: pytest.LogCaptureFixture) -> None:
    deep: Message = {"type": "object"}
    for _ in range(10):
        deep = {"type": "object", "properties": {"in": deep}}
    async with raw_server("2025-11-25", limits=Limits(schema_depth=5)) as (server, client):
        listing = asyncio.create_task(client.list_tools())
        server.answer(await server.hear(), tools=[{"name": "x", "inputSchema": {}, "outputSchema": deep}])
        await listing
        calling = asyncio.create_task(client.call_tool("x"))
        with caplog.at_level(logging.WARNING):
            server.answer(await server.hear(), content=[], structuredContent={})
            await calling
    assert "has an output schema that cannot be used" in caplog.text


def test_what_waits_for_a_reader_is_bounded_in_bytes_too() -> None:
    queue: NotificationBuffer[int] = NotificationBuffer(100, 1_000)
    assert all(queue.put(n, 300) for n in range(3))
    assert not queue.put(3, 900)
    assert queue.dropped == 3
    assert not queue.put(4, 5_000), "the newest is kept, however large"
    assert queue.dropped == 4
    queue.clear()
    assert queue.put(5, 1_000)


async def test_what_a_server_says_is_logged_in_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    said = "\x1b[31m\n\u202e" * 30_000
    async with raw_server("2025-11-25", offers=OFFERS) as (server, client):
        server.say({"method": said[:1_000]})
        calling = asyncio.create_task(client.call_tool("echo"))
        server.answer(await server.hear(), content=[], structuredContent={})
        server.refuse(await server.hear(), -32603, said)  # tools/list
        await calling
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert all(line.isprintable() and r"\x1b[31m\n\u202e" in line and len(line) < 10_000 for line in lines)
