"""Answers that come in a stream of events: cut, resumed, replayed, and with whatever pause the server asks for."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from accord import Client, Limits
from accord.errors import ConnectionLost, HTTPError, NotConnected, NotExecuted, RemoteProtocolError

from .site import Visit, modern, older, quiet, runs_out_of_time, site


def progress(visit: Visit, value: int) -> dict[str, Any]:
    params = {"progressToken": visit.message["id"], "progress": value}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


async def test_what_comes_before_the_answer_is_reported_before_it() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        for value in range(5):
            await visit.event(progress(visit, value))
        await visit.event(visit.done_message())
        await visit.end()

    told: list[float] = []
    async with site(modern(play)) as server, Client(server.url) as client:
        result = await client.call_tool("slow", on_progress=lambda value, *_: told.append(value))
        assert result.text == "done"
        assert told == [0, 1, 2, 3, 4]
        await client.call_tool("slow")
        assert server.connections == 1


async def test_a_server_that_sends_requests_where_it_may_not_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        for number in range(100):
            await visit.event({"jsonrpc": "2.0", "id": number, "method": "roots/list"})
        await visit.event(visit.done_message())
        await visit.end()

    async with site(modern(play)) as server, Client(server.url) as client:
        for _ in range(3):
            assert (await client.call_tool("slow")).text == "done"
    assert [record.getMessage().count("which is not allowed here") for record in caplog.records] == [1]


async def test_a_stream_that_stays_open_after_the_answer_holds_up_nothing() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        await visit.event(visit.done_message())
        await visit.gone.wait()

    async with site(modern(play)) as server, Client(server.url) as client:
        async with asyncio.timeout(100):
            for _ in range(3):
                assert (await client.call_tool("slow")).text == "done"
        await asyncio.wait_for(server.of("tools/call")[0].gone.wait(), 100)


async def test_comments_other_events_and_empty_ones_are_no_messages() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        await visit.chunk(b"\xef\xbb\xbf: hello\n\nevent: ping\ndata: {}\n\nid: 1\ndata:\n\n:\r\n")
        await visit.event(visit.done_message())
        await visit.end()

    async with site(modern(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("slow")).text == "done"
        assert client.stats.malformed == 0


async def test_a_stream_that_comes_byte_by_byte_is_the_same() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        for byte in b"id: 7\r\ndata: " + json.dumps(visit.done_message("ü")).encode() + b"\r\n\r\n":
            await visit.chunk(bytes([byte]))
        await visit.end()

    async with site(modern(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("slow")).text == "ü"


UNREADABLE = [
    r'{"jsonrpc":"2.0","id":ID,"result":{"text":"cut: \ud83d"}}',
    '{"jsonrpc":"2.0","id":ID,"result":{"value":NaN}}',
    '{"jsonrpc":"2.0","id":ID,"result":{"text":"\udcff"}}',
    '[{"jsonrpc":"2.0","id":ID,"result":{}}]',
    '{"jsonrpc":"2.0","id":ID,"result":' + "[" * 5000 + "]" * 5000 + "}",
    '{"jsonrpc":"2.0","id":ID,"result":{"con',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"result":{}}',
]


@pytest.mark.parametrize("answer", UNREADABLE, ids=lambda answer: repr(answer[:60]))
@pytest.mark.parametrize("as_stream", [True, False])
async def test_an_answer_that_cannot_be_read_ends_its_call_alone_though_the_stream_stays_open(
    answer: str, as_stream: bool
) -> None:
    others = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb != "tools/call":
            await visit.respond(500)
            return
        if visit.message["params"]["name"] == "fine":
            await asyncio.wait_for(others.wait(), 100)
            await visit.json(visit.done_message())
            return
        data = answer.replace("ID", str(visit.message["id"])).encode(errors="surrogateescape")
        if not as_stream:
            await visit.respond(200, data, "application/json")
            return
        await visit.stream()
        await visit.chunk(b"data: " + data + b"\n\n")
        await visit.gone.wait()

    async with site(modern(play)) as server, Client(server.url) as client, asyncio.timeout(60):
        fine = asyncio.create_task(client.call_tool("fine"))
        with pytest.raises(RemoteProtocolError if as_stream else (RemoteProtocolError, HTTPError), match="tools/call"):
            await client.call_tool("slow")
        others.set()
        assert (await fine).text == "done"


async def test_an_event_over_the_limit_fails_its_request() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        while not visit.gone.is_set():
            await visit.chunk(b"data: " + b"x" * 50_000)

    async with site(modern(play)) as server, Client(server.url, limits=Limits(line_bytes=100_000)) as client:
        with pytest.raises(RemoteProtocolError, match="more than 100,000 bytes"):
            await client.call_tool("large")


# --- resumption ------------------------------------------------------------------------------------------------


def resumable(visits: list[Visit], retry: int | None = None, replays: bool = False) -> Any:
    """A server whose stream breaks after one event of progress, and goes on by GET."""

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            visits.append(visit)
            await visit.stream()
            await visit.event(None, id="s-0", **({} if retry is None else {"retry": retry}))
            await visit.event(progress(visit, 1), id="s-1")
            visit.close()
        elif visit.verb == "GET" and "last-event-id" in visit.headers:
            visits.append(visit)
            await visit.stream()
            if replays:
                await visit.event(progress(visits[0], 1), id="s-1")
            await visit.event(progress(visits[0], 2), id="s-2")
            await visit.event(visits[0].done_message(), id="s-3")
            await visit.end()
        else:
            await quiet(visit)

    return play


@pytest.mark.parametrize("replays", [False, True])
async def test_a_stream_that_breaks_is_taken_up_where_it_was(replays: bool) -> None:
    visits: list[Visit] = []
    told: list[float] = []
    async with site(older(resumable(visits, 50, replays))) as server, Client(server.url) as client:
        result = await client.call_tool("slow", on_progress=lambda value, *_: told.append(value))
    assert result.text == "done"
    assert told == [1, 2]
    assert visits[1].headers["last-event-id"] == "s-1"
    assert visits[1].headers["mcp-session-id"] == "session-1"
    assert visits[1].headers["accept"] == "text/event-stream"
    assert len(server.of("tools/call")) == 1


async def test_the_pause_that_the_server_asks_for_is_respected() -> None:
    visits: list[Visit] = []
    longer_than_our_own = 1_300
    async with site(older(resumable(visits, longer_than_our_own))) as server, Client(server.url) as client:
        await client.call_tool("slow")
    assert visits[1].at - visits[0].at >= 1.25


async def test_a_pause_of_nothing_is_not_a_storm() -> None:
    visits: list[Visit] = []

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call" or "last-event-id" in visit.headers:
            visits.append(visit)
            await visit.stream()
            await visit.event(None, id=f"s-{len(visits)}", retry=0)
            if len(visits) == 4:
                await visit.event(visits[0].done_message(), id="last")
            await visit.end()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("slow")).text == "done"
    assert min(later.at - earlier.at for earlier, later in pairwise(visits)) >= 0.09


async def test_a_pause_of_years_is_an_error_at_once() -> None:
    async with site(older(resumable([], 10**12))) as server, Client(server.url) as client:
        with pytest.raises(ConnectionLost, match=r"reconnect in 1e\+09 s; the limit is 300 s"):
            async with asyncio.timeout(100):
                await client.call_tool("slow")


async def test_a_server_polled_many_times_is_polled_until_it_answers() -> None:
    visits: list[Visit] = []

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call" or "last-event-id" in visit.headers:
            visits.append(visit)
            await visit.stream()
            if len(visits) < 8:
                await visit.event(None, id=f"s-{len(visits)}", retry=1)
            else:
                await visit.event(visits[0].done_message())
            await visit.end()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("slow")).text == "done"
    assert [visit.headers.get("last-event-id") for visit in visits] == [None, *(f"s-{n}" for n in range(1, 8))]


async def test_a_stream_without_ids_that_breaks_is_a_lost_answer() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.event(progress(visit, 1))
            visit.reset()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        with pytest.raises(ConnectionLost, match="tools/call to"):
            await client.call_tool("slow")
        assert not [visit for visit in server.of("GET") if "last-event-id" in visit.headers]


async def test_in_2026_a_stream_is_not_resumed_whatever_ids_it_has() -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        await visit.event(progress(visit, 1), id="1", retry=1)
        visit.close()

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("slow")
        assert not server.of("GET")


@pytest.mark.parametrize("status", [400, 405, 410])
async def test_a_server_that_does_not_resume_has_lost_the_answer(status: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.event(None, id="1", retry=1)
            visit.close()
        elif "last-event-id" in visit.headers:
            await visit.respond(status)
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        with pytest.raises(ConnectionLost, match=f"HTTP {status}.*its stream had broken before the answer"):
            await client.call_tool("slow")


async def test_a_stream_cut_at_any_byte_is_resumed_without_loss_and_without_doubles() -> None:
    events: list[tuple[str, bytes]] = []
    cut = 0

    def send(visit: Visit) -> bytes:
        return b"".join(b"id: %b\ndata: %b\n\n" % (id.encode(), data) for id, data in events)

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            messages = [progress(visit, 1), progress(visit, 2), visit.done_message()]
            events[:] = [(str(n), json.dumps(message).encode()) for n, message in enumerate(messages)]
            await visit.stream()
            await visit.chunk(b"retry: 1\nid: begun\ndata:\n\n" + send(visit)[:cut])
            visit.close()
        elif "last-event-id" in visit.headers:
            last = visit.headers["last-event-id"]
            ids = [id for id, _ in events]
            del events[: ids.index(last) + 1 if last in ids else 0]
            await visit.stream()
            await visit.chunk(send(visit))
            await visit.end()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        for cut in range(0, 330, 15):
            told: list[float] = []
            result = await client.call_tool("slow", on_progress=lambda value, *_, told=told: told.append(value))
            assert (cut, result.text, told) == (cut, "done", [1, 2])


async def test_a_call_given_up_after_its_stream_was_resumed_leaves_no_connection_open() -> None:
    resumed: list[Visit] = []
    reached = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.event(None, id="1", retry=1)
            await visit.end()
        elif "last-event-id" in visit.headers:
            resumed.append(visit)
            await visit.stream()
            reached.set()
            await visit.gone.wait()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        await runs_out_of_time(client, "slow", reached.wait())
        await asyncio.wait_for(resumed[0].gone.wait(), 100)


def resumed_at_last(misses: list[Visit], most: int, how: Any) -> Any:
    """A server whose stream breaks, and is taken up again after `most` attempts that end as `how` has it."""
    calls: list[Visit] = []

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            calls.append(visit)
            await visit.stream()
            await visit.event(None, id="1", retry=1)
            visit.close()
        elif "last-event-id" not in visit.headers:
            await quiet(visit)
        elif len(misses) < most:
            misses.append(visit)
            await how(visit)
        else:
            await visit.stream()
            await visit.event(calls[0].done_message())
            await visit.end()

    return play


async def broken(visit: Visit) -> None:
    visit.reset()


async def ill(visit: Visit) -> None:
    await visit.respond(503)


async def empty(visit: Visit) -> None:
    await visit.stream()
    await visit.end()


@pytest.mark.parametrize("how", [broken, ill, empty])
async def test_a_stream_is_taken_up_again_though_that_fails_a_few_times(
    how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.transport.http.event_stream._PAUSE", 0.01)
    misses: list[Visit] = []
    async with site(older(resumed_at_last(misses, 4, how))) as server, Client(server.url) as client:
        assert (await client.call_tool("slow")).text == "done"
    assert len(misses) == 4


@pytest.mark.parametrize("how", [broken, ill, empty])
async def test_a_stream_that_brings_nothing_is_given_up_in_the_end(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.transport.http.event_stream._PAUSE", 0.01)
    misses: list[Visit] = []
    async with (
        site(older(resumed_at_last(misses, 10**6, how))) as server,
        Client(server.url, reconnect=None) as client,
    ):
        with pytest.raises(ConnectionLost, match="stream") as caught:
            async with asyncio.timeout(100):
                await client.call_tool("slow")
        assert not isinstance(caught.value, NotExecuted)
    assert 5 <= len(misses) <= 10  # aiohttp itself asks twice where a connection was used before


@pytest.mark.parametrize("primed", [True, False])
async def test_events_of_one_response_may_all_have_the_same_id(primed: bool) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.event(None if primed else progress(visit, 1), id="7")
            await visit.event(visit.done_message(), id="7")
            await visit.end()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        async with asyncio.timeout(100):
            assert (await client.call_tool("slow")).text == "done"


@pytest.mark.parametrize("status", [404, 410])
async def test_a_stream_that_is_gone_ends_its_own_call_and_not_the_session(status: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call" and visit.message["params"]["name"] == "gone":
            await visit.stream()
            await visit.event(None, id="1", retry=1)
            await visit.end()
        elif visit.verb == "tools/call":
            await visit.stream()
            await finished.wait()
            await visit.event(visit.done_message())
            await visit.end()
        elif "last-event-id" in visit.headers:
            await visit.respond(status, b"events after 1 are gone")
        else:
            await quiet(visit)

    finished = asyncio.Event()
    async with site(older(play)) as server, Client(server.url) as client:
        other = asyncio.create_task(client.call_tool("other"))
        await server.seen("tools/call")
        with pytest.raises(ConnectionLost, match=f"HTTP {status}"):
            await client.call_tool("gone")
        finished.set()
        assert (await other).text == "done"
        assert len(server.of("initialize")) == 1


# --- what comes unasked ----------------------------------------------------------------------------------------


def tells(text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}}


async def test_notifications_of_a_server_arrive_on_the_general_stream_which_is_resumed() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb != "GET":
            await quiet(visit)
        elif "last-event-id" not in visit.headers:
            await visit.stream()
            await visit.event(tells("one"), id="1", retry=20)
            visit.reset()
        else:
            await visit.stream()
            await visit.event(tells("two"), id="2")
            await visit.gone.wait()

    heard: list[Any] = []
    both = asyncio.Event()

    def on_log(message: Any) -> None:
        heard.append(message.data)
        if len(heard) == 2:
            both.set()

    async with site(older(play)) as server, Client(server.url, on_log=on_log) as client:
        await client.call_tool("echo")
        await asyncio.wait_for(both.wait(), 100)
        assert heard == ["one", "two"]
        assert server.of("GET")[1].headers["last-event-id"] == "1"


@pytest.mark.parametrize("status", [404, 410])
async def test_the_general_stream_begins_anew_where_its_events_are_gone(status: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb != "GET":
            await quiet(visit)
        elif "last-event-id" in visit.headers:
            await visit.respond(status)
        else:
            await visit.stream()
            await visit.event(tells("again"), id="1", retry=1)
            if len(server.of("GET")) > 1:
                await visit.gone.wait()
            visit.close()

    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with site(older(play)) as server, Client(server.url, on_log=heard.put_nowait) as client:
        async with asyncio.timeout(100):
            await server.seen("GET", 3)
            assert (await client.call_tool("echo")).text == "done"
        assert len(server.of("initialize")) == 1


@pytest.mark.parametrize("status", [200, 400, 404, 405, 501])
async def test_a_server_that_has_no_such_stream_is_used_all_the_same(status: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "GET":
            await visit.respond(status, b"<html>", "text/html")
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        await server.seen("GET")
        assert (await client.call_tool("echo")).text == "done"
        assert client.connection.session.phase.value == "open"


async def test_a_stream_that_never_answers_holds_up_no_call() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "GET":
            await visit.gone.wait()
        else:
            await quiet(visit)

    async with site(older(play)) as server:
        async with Client(server.url) as client:
            await server.seen("GET")
            assert (await client.call_tool("echo")).text == "done"
        await asyncio.wait_for(server.of("GET")[0].gone.wait(), 100)
        with pytest.raises(NotConnected):
            await client.call_tool("echo")


async def test_a_question_of_the_server_is_answered_by_a_post_of_its_own() -> None:
    answered = asyncio.Event()
    answers: list[Any] = []

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            params = {
                "message": "who?",
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
            }
            await visit.stream()
            await visit.event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
            await answered.wait()
            await visit.event(visit.done_message())
            await visit.end()
        elif visit.method == "POST" and "result" in visit.message:
            answers.append(visit.message)
            await visit.respond(202)
            answered.set()
        else:
            await quiet(visit)

    async with (
        site(older(play)) as server,
        Client(server.url, elicitation=lambda params: {"name": "Ada"}) as client,
    ):
        assert (await client.call_tool("ask")).text == "done"
    assert answers[0]["id"] == "q"
    assert answers[0]["result"] == {"action": "accept", "content": {"name": "Ada"}}


async def test_a_batch_of_the_server_is_answered_and_the_connection_goes_on() -> None:
    answered = asyncio.Event()
    answers: list[Any] = []

    async def ask(visit: Visit) -> None:
        if visit.verb != "tools/call":
            await quiet(visit)
            return
        await visit.stream()
        await visit.event([{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in ("a", "b")])
        await answered.wait()
        await visit.event(visit.done_message())
        await visit.end()

    async def play(visit: Visit) -> None:
        if not visit.body.startswith(b"["):
            await older(ask, revision="2025-03-26")(visit)
            return
        answers.extend(json.loads(visit.body))
        await visit.respond(202)
        answered.set()

    async with site(play) as server, Client(server.url) as client:
        async with asyncio.timeout(100):
            assert (await client.call_tool("ask")).text == "done"
        assert await client.list_tools() == []
    assert [(each["id"], each["result"]) for each in answers] == [("a", {}), ("b", {})]
