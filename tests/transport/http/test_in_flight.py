"""Several requests in flight: whose turn it is, whose answer it is, and what becomes of them when something ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import Client, Limits
from accord.errors import ConnectionLost, HTTPError, InvalidParams, NotConnected, ProtocolError
from accord.transport.http.settings import HTTPSettings

from .site import INFO, OFFERS, Visit, modern, older, quiet, runs_out_of_time, site

QUESTION = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


def error_for(id: Any, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": text}}


def asks(id: Any = "q") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": QUESTION}


# --- the end of a connection -----------------------------------------------------------------------------------


async def test_what_is_held_for_initialized_is_not_sent_after_the_end() -> None:
    taken = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "notifications/initialized":
            await taken.wait()
            await visit.respond(202)
        elif visit.verb in ("server/discover", "initialize"):
            await older(quiet)(visit)
        else:
            await quiet(visit)

    async with site(play) as server:
        client = Client(server.url)
        await client.connect()
        call = asyncio.create_task(client.call_tool("pay"))
        await server.seen("notifications/initialized")
        closing = asyncio.create_task(client.close())
        with pytest.raises(NotConnected):
            await call
        taken.set()
        await closing
        assert server.of("tools/call") == []


@pytest.mark.parametrize("connections", [1, 2])
async def test_requests_that_wait_for_their_turn_when_the_session_ends_were_not_executed(connections: int) -> None:
    sessions: list[str] = []
    all_asked = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "server/discover":
            await visit.respond(400)
        elif visit.verb == "initialize":
            sessions.append(f"s{len(sessions) + 1}")
            said = {"protocolVersion": "2025-11-25", "capabilities": OFFERS, "serverInfo": INFO}
            await visit.result({"Mcp_Session_Id": sessions[-1]}, **said)
        elif visit.verb == "tools/call" and visit.headers["mcp-session-id"] == "s1":
            await all_asked.wait()
            await visit.respond(404)
        else:
            await quiet(visit)

    settings = HTTPSettings(connections=connections)
    async with site(play) as server, Client(server.url, http=settings) as client:
        calls = [asyncio.create_task(client.call_tool("echo")) for _ in range(6)]
        await server.seen("tools/call", connections)
        all_asked.set()
        assert [(await call).text for call in calls] == ["done"] * 6
        in_the_first = [visit for visit in server.of("tools/call") if visit.headers["mcp-session-id"] == "s1"]
        assert len(in_the_first) == connections


# --- whose answer it is ----------------------------------------------------------------------------------------


async def test_an_answer_in_a_404_is_no_end_of_the_session() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.error(-32602, "order 7 was booked, its invoice is not found", 404)
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        with pytest.raises(InvalidParams, match="order 7 was booked"):
            await client.call_tool("order")
        assert len(server.of("tools/call")) == 1


async def test_a_404_for_our_id_that_names_the_session_is_its_end() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.error(-32001, "Session not found", 404)
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        with pytest.raises(ConnectionLost, match="the session has ended"):
            await client.call_tool("order")
        assert len(server.of("initialize")) == 2


@pytest.mark.parametrize("id", [99, "server-error"])
@pytest.mark.parametrize("era", [older, modern])
async def test_an_error_for_another_request_in_a_stream_does_not_end_this_one(era: Any, id: object) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.event(error_for(id, "of another request"))
            await visit.event(visit.done_message())
            await visit.end()
        else:
            await quiet(visit)

    async with site(era(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("echo")).text == "done"


@pytest.mark.parametrize("streams", [True, False])
async def test_an_error_for_a_request_in_flight_ends_that_one_wherever_it_comes(streams: bool) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb != "tools/call":
            await quiet(visit)
        elif visit.message["params"]["name"] == "b":
            await visit.gone.wait()
        else:
            b = await server.seen("tools/call", 1)
            if streams:
                await visit.stream()
                await visit.event(error_for(b.message["id"], "b failed"))
                await visit.event(visit.done_message("a"))
                await visit.end()
            else:
                await visit.json(error_for(b.message["id"], "b failed"))

    async with site(older(play)) as server, Client(server.url) as client:
        b = asyncio.create_task(client.call_tool("b"))
        await server.seen("tools/call")
        if streams:
            assert (await client.call_tool("a")).text == "a"
        else:
            with pytest.raises(HTTPError):
                await client.call_tool("a")
        with pytest.raises(ProtocolError, match="b failed"):
            async with asyncio.timeout(100):
                await b


async def test_an_answer_that_came_by_another_stream_ends_its_request() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await (await server.seen("GET")).event(visit.done_message())
            await visit.gone.wait()
        elif visit.verb == "GET":
            await visit.stream()
            await visit.gone.wait()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("echo")).text == "done"
        await asyncio.wait_for(server.of("tools/call")[0].gone.wait(), 100)


# --- turns -----------------------------------------------------------------------------------------------------


async def test_a_stream_that_stays_open_after_its_answer_keeps_no_turn() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        await visit.event(visit.done_message())
        await visit.gone.wait()

    async with site(modern(play)) as server, Client(server.url, http=HTTPSettings(connections=1)) as client:
        async with asyncio.timeout(100):
            for _ in range(8):
                await client.call_tool("echo")


async def test_what_comes_after_the_answer_is_passed_on() -> None:
    answered = asyncio.Event()
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            params = {"level": "info", "data": "late"}
            await visit.stream()
            await visit.event(visit.done_message())
            await answered.wait()
            await visit.event({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
            await visit.end()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url, on_log=heard.put_nowait) as client:
        await client.call_tool("echo")
        answered.set()
        assert (await asyncio.wait_for(heard.get(), 100)).data == "late"


@pytest.mark.parametrize("given_up", [0, 3])
async def test_a_turn_is_that_of_the_next_whether_a_call_is_answered_or_given_up(given_up: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.message["params"]["name"] == "hangs":
            await visit.gone.wait()
        else:
            await visit.done()

    async with site(modern(play)) as server, Client(server.url, http=HTTPSettings(connections=1)) as client:
        hanging = [asyncio.create_task(client.call_tool("hangs")) for _ in range(1 + given_up)]
        await server.seen("tools/call")
        waiting = [asyncio.create_task(client.call_tool("echo")) for _ in range(3)]
        for call in reversed(hanging):
            call.cancel()
        async with asyncio.timeout(100):
            assert [(await call).text for call in waiting] == ["done"] * 3
        assert len(server.of("tools/call")) == 1 + 3


# --- what hangs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_an_error_whose_body_never_comes_is_an_error_all_the_same(status: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
            await visit.raw(head.encode())
            await visit.gone.wait()
        else:
            await quiet(visit)

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(HTTPError, match=f"HTTP {status}"):
            async with asyncio.timeout(100):
                await client.call_tool("echo")


async def test_an_answer_of_ours_that_is_not_taken_is_sent_again() -> None:
    answers: list[Visit] = []
    taken = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.event(asks())
            await taken.wait()
            await visit.event(visit.done_message())
            await visit.end()
        elif visit.method == "POST" and "result" in visit.message:
            answers.append(visit)
            await visit.respond(503 if len(answers) == 1 else 202)
            if len(answers) == 2:
                taken.set()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url, elicitation=lambda params: {"name": "Ada"}) as client:
        async with asyncio.timeout(100):
            assert (await client.call_tool("ask")).text == "done"
    assert answers[0].message == answers[1].message


@pytest.mark.parametrize("status", [400, 503])
async def test_an_answer_of_ours_that_is_never_taken_fails_the_request_that_waits_for_it(status: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.event(asks())
            await visit.gone.wait()
        elif visit.method == "POST" and "result" in visit.message:
            await visit.respond(status)
        else:
            await quiet(visit)

    async with (
        site(older(play)) as server,
        Client(server.url, elicitation=lambda params: {"name": "Ada"}, reconnect=None) as client,
    ):
        with pytest.raises(ConnectionLost, match=f"did not accept the response.*HTTP {status}"):
            async with asyncio.timeout(100):
                await client.call_tool("ask")
        await asyncio.wait_for(server.of("tools/call")[0].gone.wait(), 100)


async def test_that_a_call_is_given_up_waits_for_no_other_notification() -> None:
    hangs = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "notifications/roots/list_changed":
            await hangs.wait()
        elif visit.verb == "tools/call":
            await visit.stream()
            await visit.gone.wait()
        else:
            await quiet(visit)

    limits = Limits(close_seconds=0.5)
    async with site(older(play)) as server, Client(server.url, roots=["/tmp"], limits=limits) as client:
        client.set_roots(["/"])
        await server.seen("notifications/roots/list_changed")
        await runs_out_of_time(client, "slow", server.seen("tools/call"))
        await server.seen("notifications/cancelled")
        hangs.set()


async def test_in_2026_a_server_request_on_a_stream_gets_no_answer() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        await visit.event({"jsonrpc": "2.0", "id": 5, "method": "ping"})
        await visit.event(asks(6))
        await visit.event(visit.done_message())
        await visit.end()

    async with site(modern(play)) as server:
        async with Client(server.url, elicitation=lambda params: {"name": "Ada"}) as client:
            assert (await client.call_tool("echo")).text == "done"
        assert {visit.verb for visit in server.visits} == {"server/discover", "tools/call"}


# --- a server that asks and takes no answers ---------------------------------------------------------------------


async def test_questions_without_end_make_no_answers_without_end() -> None:
    asked = 20_000
    sent = 0

    async def play(visit: Visit) -> None:
        nonlocal sent
        if visit.verb == "tools/call":
            await visit.stream()
            for number in range(0, asked, 100):
                for each in range(number, number + 100):
                    await visit.event({"jsonrpc": "2.0", "id": each, "method": "ping"})
                sent = number
                await asyncio.sleep(0)
            await visit.gone.wait()
        elif visit.method == "POST" and "method" not in visit.message:
            await visit.gone.wait()  # it does not take our answers
        else:
            await quiet(visit)

    limits = Limits(line_bytes=8 << 20)  # a flood is what owes as much
    async with site(older(play)) as server, Client(server.url, limits=limits) as client:
        before = len(asyncio.all_tasks())
        call = asyncio.create_task(client.call_tool("slow", timeout=60))
        most = 0
        for _ in range(3_000):
            await asyncio.sleep(0)
            most = max(most, len(asyncio.all_tasks()) - before)
        call.cancel()
        assert most < asked / 5, (most, sent)  # two tasks for each question, if nothing stops it


async def test_answers_take_no_more_connections_than_requests_may() -> None:
    asked, most = 12, 3
    sending: list[Visit] = []
    counts: list[int] = []
    all_taken = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            for number in range(asked):
                await visit.event({"jsonrpc": "2.0", "id": number, "method": "ping"})
            await all_taken.wait()
            await visit.event(visit.done_message())
            await visit.end()
        elif visit.method == "POST" and "method" not in visit.message:
            sending.append(visit)
            for _ in range(20):  # further answers have time to arrive
                await asyncio.sleep(0)
            counts.append(len(sending))
            sending.remove(visit)
            await visit.respond(202)
            if len(counts) == asked:
                all_taken.set()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url, http=HTTPSettings(connections=most)) as client:
        async with asyncio.timeout(100):
            assert (await client.call_tool("slow")).text == "done"
    assert max(counts) <= most, counts
