"""HTTP+SSE of 2024-11-05: one stream for what comes, posts for what goes, and only on one origin."""

from __future__ import annotations

import asyncio
import json

import pytest

from accord import Client, ClientLimits, Limits
from accord.errors import ConnectError, ConnectionLost, HTTPError, NotConnected, RequestTimeout
from accord.transport.http.settings import HTTPSettings

from .site import INFO, OFFERS, Play, Site, Visit, site


class Old:
    """A server of HTTP+SSE; `play` answers calls, on `say`."""

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        self.endpoint = endpoint
        self.stream: Visit | None = None

    async def __call__(self, visit: Visit) -> None:
        if visit.method == "GET":
            self.stream = visit
            await visit.stream()
            await visit.chunk(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
            await visit.gone.wait()
        elif visit.path.startswith("/messages"):
            await self.posted(visit)
        else:
            await visit.respond(405)

    async def posted(self, visit: Visit) -> None:
        await visit.respond(202, b"Accepted")
        if visit.verb == "server/discover":
            await self.say({"jsonrpc": "2.0", "id": visit.message["id"], "error": {"code": -32601, "message": "?"}})
        elif visit.verb == "initialize":
            await self.say(visit.answer(protocolVersion="2024-11-05", capabilities=OFFERS, serverInfo=INFO))
        elif visit.verb == "tools/call":
            await self.say(visit.done_message(str(visit.message["params"].get("arguments", {}))))

    async def say(self, message: object) -> None:
        assert self.stream is not None
        await self.stream.event(message, event="message")


def config(server: Site) -> dict[str, str]:
    return {"url": server.url, "type": "sse"}


async def test_messages_go_where_the_stream_says_and_answers_come_on_it() -> None:
    async with site(Old(), path="/sse") as server:
        async with Client(config(server)) as client:
            results = await asyncio.gather(*(client.call_tool("echo", {"n": n}) for n in range(20)))
            assert [result.text for result in results] == [str({"n": n}) for n in range(20)]
            assert client.revision == "2024-11-05"
        assert server.visits[0].method == "GET"
        assert {visit.path for visit in server.visits[1:]} == {"/messages?session=1"}
        order = [visit.verb for visit in server.visits]
        assert order.index("notifications/initialized") < order.index("tools/call")


@pytest.mark.parametrize(
    "endpoint",
    ["http://evil.example/messages", "//evil.example/m", "https://127.0.0.1/m", "http://127.0.0.1:1/m", "javascript:x"],
)
async def test_an_endpoint_on_another_origin_is_refused(endpoint: str) -> None:
    async with site(Old(endpoint), path="/sse") as server:
        with pytest.raises(ConnectError, match="not on its own origin"):
            await Client(config(server)).connect()
        assert [visit.method for visit in server.visits] == ["GET"]


@pytest.mark.parametrize("endpoint", ["messages", "./messages", "{origin}/messages", "?session=2"])
async def test_an_endpoint_is_resolved_against_the_url(endpoint: str) -> None:
    old = Old(endpoint)

    async def play(visit: Visit) -> None:
        await (old.posted(visit) if visit.method == "POST" else old(visit))

    async with site(play, path="/sse") as server:
        old.endpoint = endpoint.format(origin=server.url.removesuffix("/sse"))
        async with Client(config(server)):
            expected = "/sse?session=2" if endpoint.startswith("?") else "/messages"
            assert server.visits[1].path == expected


async def first(data: bytes) -> Play:
    async def play(visit: Visit) -> None:
        await visit.stream()
        await visit.chunk(data)
        await visit.gone.wait()

    return play


async def test_a_stream_that_begins_with_anything_else_is_no_such_server() -> None:
    async with site(await first(b"event: message\ndata: {}\n\n"), path="/sse") as server:
        with pytest.raises(ConnectError, match="does not begin its stream with an event `endpoint`"):
            await Client(config(server)).connect()


async def test_a_stream_that_says_nothing_is_given_up_in_time() -> None:
    async with site(await first(b": hello\n\n"), path="/sse") as server:
        with pytest.raises(ConnectError, match=r"sent no endpoint event in 0\.2 s"):
            await Client(config(server), limits=Limits(client=ClientLimits(connect_seconds=0.2))).connect()


@pytest.mark.parametrize("part", ["x/../", "é", "?a&"])
async def test_an_endpoint_has_the_length_of_a_uri_at_most(part: str) -> None:
    """A URL of 64 MB took minutes to resolve."""
    beginning = "http://" if part == "é" else "/messages/"
    async with site(Old(beginning + part * (9_000 // len(part))), path="/sse") as server:
        with pytest.raises(ConnectError, match=r"posted to a URL of [89],\d{3} characters, expected at most 8,192"):
            await Client(config(server)).connect()
        assert [visit.method for visit in server.visits] == ["GET"]


async def test_the_end_of_the_stream_is_the_end_of_the_connection() -> None:
    old = Old()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.respond(202)
            assert old.stream is not None
            old.stream.reset()
        else:
            await old(visit)

    async with site(play, path="/sse") as server, Client(config(server)) as client:
        with pytest.raises(ConnectionLost, match=r"the connection broke|the stream has ended"):
            await client.call_tool("echo")
        with pytest.raises(ConnectionLost):
            await client.call_tool("echo")


async def test_a_post_that_is_refused_fails_its_request_alone() -> None:
    old = Old()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call" and visit.message["params"]["name"] == "bad":
            await visit.respond(500, b"oh no")
        else:
            await old(visit)

    async with site(play, path="/sse") as server, Client(config(server)) as client:
        with pytest.raises(HTTPError, match="oh no"):
            await client.call_tool("bad")
        assert (await client.call_tool("good", {})).text == "{}"


async def test_an_event_over_the_limit_fails_the_request_that_it_answers() -> None:
    old = Old()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call" and visit.message["params"]["name"] == "large":
            await visit.respond(202)
            await old.say(json.loads(json.dumps(visit.done_message("x" * 200_000))))
        else:
            await old(visit)

    async with site(play, path="/sse") as server, Client(config(server), limits=Limits(line_bytes=50_000)) as client:
        with pytest.raises(Exception, match="more than 50,000 bytes"):
            await client.call_tool("large")
        assert (await client.call_tool("good", {})).text == "{}"


@pytest.mark.parametrize("reply", [b"SSH-2.0-OpenSSH_9\r\n\r\n", b"HTTP/1.1 200 OK\r\nno header\r\n\r\n"])
async def test_a_server_that_does_not_use_http_is_an_error_that_says_so(reply: bytes) -> None:
    async def play(visit: Visit) -> None:
        await (visit.raw(reply) if visit.method == "GET" else visit.respond(405))
        visit.close()

    async with site(play, path="/sse") as server:
        for target in (config(server), server.url):
            with pytest.raises(ConnectError, match="does not answer in HTTP"):
                await Client(target).connect()


async def test_what_a_request_waits_for_needs_no_turn_of_its_own() -> None:
    answered = asyncio.Event()
    old = Old()

    async def play(visit: Visit) -> None:
        if visit.method == "GET":
            await old(visit)
        elif visit.verb == "tools/call":  # taken when it is done, and not before
            await old.say({"jsonrpc": "2.0", "id": 77, "method": "roots/list"})
            await answered.wait()
            await old.posted(visit)
        else:
            if "result" in visit.message:
                answered.set()
            await old(visit)

    alone = HTTPSettings(connections=1)
    async with site(play, path="/sse") as server, Client(config(server), roots=["/tmp"], http=alone) as client:
        assert (await asyncio.wait_for(client.call_tool("echo", {"n": 1}), 100)).text == str({"n": 1})


async def test_a_call_that_is_given_up_before_it_was_sent_is_not_sent() -> None:
    old = Old()
    goes_on = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "notifications/initialized":
            await goes_on.wait()
        await old(visit)

    async with site(play, path="/sse") as server, Client(config(server)) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("pay", timeout=0.1)
        goes_on.set()
        await client.call_tool("echo")
        assert [visit.message["params"]["name"] for visit in server.of("tools/call")] == ["echo"]
        assert not server.of("notifications/cancelled")


async def test_a_call_that_waits_when_the_client_is_closed_is_not_sent() -> None:
    old, closed = Old(), asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "notifications/initialized":
            await closed.wait()
        await old(visit)

    async with site(play, path="/sse") as server:
        async with Client(config(server)) as client:
            call = asyncio.create_task(client.call_tool("pay"))
            await server.seen("notifications/initialized")
        with pytest.raises(NotConnected):
            await call
        closed.set()
        assert not server.of("tools/call")


async def test_answers_that_the_server_refuses_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    old, calls, refused = Old(), list[Visit](), list[Visit]()

    async def play(visit: Visit) -> None:
        if visit.method == "POST" and "result" in visit.message:
            refused.append(visit)
            await visit.respond(400, b"no")
            if len(refused) == 50:
                await old.say(calls[0].done_message())
        elif visit.verb == "tools/call":
            calls.append(visit)
            await visit.respond(202)
            for number in range(50):
                await old.say({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
        else:
            await old(visit)

    async with site(play, path="/sse") as server, Client(config(server)) as client:
        await client.call_tool("echo")
    assert sum("an answer to" in message for message in caplog.messages) == 1


async def test_answers_take_no_more_connections_than_requests_may() -> None:
    asked, most = 12, 3
    sending: list[Visit] = []
    counts: list[int] = []
    call: list[Visit] = []

    class Asks(Old):
        async def posted(self, visit: Visit) -> None:
            if "method" in visit.message and visit.verb != "tools/call":
                await super().posted(visit)
            elif "method" in visit.message:
                call.append(visit)
                await visit.respond(202)
                for number in range(asked):
                    await self.say({"jsonrpc": "2.0", "id": number, "method": "ping"})
            else:
                sending.append(visit)
                for _ in range(20):  # further answers have time to arrive
                    await asyncio.sleep(0)
                counts.append(len(sending))
                sending.remove(visit)
                await visit.respond(202)
                if len(counts) == asked:
                    await self.say(call[0].done_message())

    settings = HTTPSettings(connections=most)
    async with site(Asks(), path="/sse") as server, Client(config(server), http=settings) as client:
        async with asyncio.timeout(100):
            assert (await client.call_tool("slow")).text == "done"
    assert max(counts) <= most, counts
