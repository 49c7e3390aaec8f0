"""Bodies: too large, too slow, in pieces, or not there; and the next request is served."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import pytest

from accord import Context, Server
from accord.server.auth.api_keys import APIKeys
from accord.server.http.serving.address import bind, parse_address
from accord.server.http.serving.asgi_server import ASGIServer
from accord.server.http.serving.timeouts import ConnectionTimeouts

from tests.server.http.http_clients import Here, Legacy, Modern, Stateful, encode, quick, site, text, until
from tests.server.http.raw import JSON, Answer, Direct, Socket, request_bytes

MOST = 10_000
FORMS = ["modern", "stateful", "oldest"]


def desk(**limits: Any) -> Server:
    server = Server("desk", "1", limits=quick(http_body_bytes=MOST, **limits))

    @server.tool
    async def size(value: str) -> int:
        return len(value)

    return server


class Form:
    """A call of one of the forms, as bytes."""

    def __init__(self, path: str, headers: dict[str, str], message: Any, stream: Answer | None = None) -> None:
        self.path, self.headers, self.message = path, headers, message
        self.stream = stream
        """Where answers go, of the oldest form."""
        self.body = encode(message)

    def of_size(self, size: int) -> bytes:
        """The same, with so many bytes."""
        message = json.loads(self.body)
        message["params"]["arguments"]["value"] = "x" * (size - len(self.body))
        return encode(message)

    def head(self, *more: str) -> bytes:
        """The head of the request without the size of its body."""
        lines = [f"POST {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers.items()), *more]
        return "\r\n".join([*lines, "", ""]).encode()

    async def served(self, socket: Socket) -> None:
        """It is served as it should be."""
        answer = await socket.send("POST", self.path, self.headers, self.body)
        assert answer.status in (200, 202), await answer.body()
        if self.stream is not None:
            await self.stream.leave()


async def form_of(form: str, here: Here) -> Form:
    params = {"name": "size", "arguments": {"value": ""}}
    if form == "oldest":
        oldest = await (await Legacy.connect(here.raw)).open()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return Form(oldest.address, oldest.headers, message, oldest.stream)
    client = Modern(here.raw) if form == "modern" else await Stateful(here.raw).open()
    message = client.calling("size", {"value": ""})
    return Form("/mcp", client.head(message) if isinstance(client, Modern) else client.headers, message)


async def refused(answer: Answer, status: int) -> None:
    await answer.start()
    assert answer.status == status
    assert "error" in await answer.json()
    assert answer.headers.get("connection") == "close"


@pytest.mark.parametrize("form", FORMS)
async def test_a_body_of_just_the_size_is_taken_and_one_byte_more_is_413(form: str) -> None:
    async with site(desk(), "socket") as here:
        assert isinstance(here.raw, Socket)
        it = await form_of(form, here)
        for more, status in ((0, (200, 202)), (1, (413,))):
            answer = await here.raw.send("POST", it.path, it.headers, it.of_size(MOST + more))
            assert answer.status in status
            await answer.end()
        await it.served(here.raw)


@pytest.mark.parametrize("form", FORMS)
async def test_a_body_that_is_declared_too_large_is_413_before_it_comes(form: str) -> None:
    async with site(desk(), "socket") as here:
        assert isinstance(here.raw, Socket)
        it = await form_of(form, here)
        await refused(await here.raw.bytes(it.head(f"content-length: {MOST + 1}")), 413)
        await it.served(here.raw)


@pytest.mark.parametrize("form", FORMS)
async def test_a_body_in_pieces_is_taken_and_413_as_soon_as_it_is_too_large(form: str) -> None:
    async with site(desk(), "socket") as here:
        assert isinstance(here.raw, Socket)
        it = await form_of(form, here)
        pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in it.body) + b"0\r\n\r\n"
        answer = await (await here.raw.bytes(it.head("transfer-encoding: chunked") + pieces)).start()
        assert answer.status in (200, 202)
        await answer.end()
        endless = it.head("transfer-encoding: chunked") + (b"1000\r\n" + b" " * 0x1000 + b"\r\n") * 3
        await refused(await here.raw.bytes(endless), 413)
        await it.served(here.raw)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sent", ["nothing", "half"])
async def test_a_body_that_does_not_come_is_408(sent: str, form: str) -> None:
    async with site(desk(http_body_seconds=0.05), "socket") as here:
        assert isinstance(here.raw, Socket)
        it = await form_of(form, here)
        part = it.body[: len(it.body) // 2] if sent == "half" else b""
        await refused(await here.raw.bytes(it.head(f"content-length: {len(it.body)}") + part), 408)
        await it.served(here.raw)


async def test_a_pause_of_the_whole_process_ends_no_connection() -> None:
    sockets = bind(parse_address("127.0.0.1:0"))
    server = desk()
    listening = ASGIServer(server.app, server.limits)
    await listening.start(sockets)
    reader, writer = await Socket(sockets[0].getsockname()[1]).connect()
    writer.write(b"GET /nowhere HTTP/1.1\r\nhost: loc")
    await until(lambda: listening.connections)
    patrol = ConnectionTimeouts(listening.connections, server.limits)
    patrol.check(0)
    patrol.check(100_000)  # a suspended machine, or a handler that held the loop
    writer.write(b"alhost\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 404 ")
    await reader.readuntil(b"}}")
    for seconds in range(200):
        patrol.check(100_000 + seconds)
    assert await reader.read() == b""  # it was idle
    writer.close()
    await listening.finish(1)
    await server.app.close()


@pytest.mark.parametrize("form", FORMS)
async def test_a_body_that_comes_byte_by_byte_within_the_time_is_taken(form: str) -> None:
    async with site(desk(), "socket") as here:
        assert isinstance(here.raw, Socket)
        it = await form_of(form, here)
        reader, writer = await here.raw.connect()
        for byte in request_bytes("POST", it.path, it.headers, it.body):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        status = (await reader.readline()).split()[1]
        assert status in (b"200", b"202")
        writer.close()
        await it.served(here.raw)


@pytest.mark.parametrize(
    "lines",
    [
        ["content-length: -1"],
        ["content-length: x"],
        ["content-length: 10", "content-length: 20"],
        ["content-length: 10", "transfer-encoding: chunked"],
        ["transfer-encoding: gzip"],
    ],
)
async def test_a_body_of_which_nobody_knows_the_size_is_400(lines: list[str]) -> None:
    async with site(desk(), "socket") as here:
        assert isinstance(here.raw, Socket)
        it = await form_of("modern", here)
        answer = await (await here.raw.bytes(it.head(*lines) + it.body)).start()
        assert 400 <= answer.status < 500
        await answer.end()
        await it.served(here.raw)


async def test_two_requests_on_one_connection_are_answered_in_order() -> None:
    async with site(desk(), "socket") as here:
        assert isinstance(here.raw, Socket)
        client = Modern(here.raw)
        reader, writer = await here.raw.connect()
        for id in (1, 2):
            message = client.calling("size", {"value": "x" * id}, id=id)
            writer.write(request_bytes("POST", "/mcp", client.head(message), encode(message)))
        for id in (1, 2):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            size = int(head.partition("content-length: ")[2].split("\r\n")[0])
            said = json.loads(await reader.readexactly(size))
            assert (said["id"], text(said)) == (id, str(id))
        writer.close()


@pytest.mark.parametrize("known", [True, False])
async def test_too_many_subscriptions_of_one_are_refused_and_the_others_go_on(known: bool) -> None:
    limits = quick(http_streams=2) if known else quick(http_sessions=2)
    server = Server("desk", "1", limits=limits, auth=APIKeys({"k-ann": "ann"}) if known else None)
    server.tool(name="any")(lambda: "x")
    async with site(server) as here:
        client = Modern(here.raw, **({"authorization": "Bearer k-ann"} if known else {}))
        wanted = {"notifications": {"toolsListChanged": True}}
        streams = [await client.ask("subscriptions/listen", wanted, id=id) for id in range(2)]
        for stream in streams:
            await stream.message()
        said = await (await client.ask("subscriptions/listen", wanted, id=2)).result()
        assert "too many" in said["error"]["message"]
        await streams[0].leave()
        await until(lambda: len(here.endpoint._stateless._listening) == 1)
        again = await client.ask("subscriptions/listen", wanted, id=3)
        assert "acknowledged" in (await again.message())["method"]
        for stream in (streams[1], again):
            await stream.leave()


@pytest.mark.parametrize("known", [True, False])
async def test_too_many_calls_in_flight_are_refused(known: bool) -> None:
    limits = quick(requests_in_flight=2, http_requests=2)
    server = Server("desk", "1", limits=limits, auth=APIKeys({"k-ann": "ann", "k-bob": "bob"}) if known else None)
    release = asyncio.Event()

    @server.tool
    async def waits() -> str:
        await release.wait()
        return "done"

    async with site(server) as here:
        ann = Modern(here.raw, **({"authorization": "Bearer k-ann"} if known else {}))
        calls = [await ann.begin(ann.calling("waits", id=id)) for id in range(2)]
        await until(lambda: sum(map(len, here.busy())) == 2)
        said = await (await ann.call("waits", id=2)).result()
        assert "too many requests in flight" in said["error"]["message"]
        if known:
            bob = Modern(here.raw, authorization="Bearer k-bob")
            calls.append(await bob.begin(bob.calling("waits")))
            await until(lambda: sum(map(len, here.busy())) == 3)
        release.set()
        assert [text(await (await call.start()).result()) for call in calls] == ["done"] * len(calls)


def retry(result: JSON) -> JSON:
    """The params that go on with a call, with every question answered."""
    answers = {key: {"action": "accept", "content": {}} for key in result["inputRequests"]}
    return {"requestState": result["requestState"], "inputResponses": answers}


@pytest.mark.parametrize("known", [True, False])
async def test_anonymous_clients_have_bounds_of_their_own_for_what_waits(known: bool) -> None:
    limits = quick(parked=2, http_parked=4)
    server = Server("desk", "1", limits=limits, auth=APIKeys({"k-ann": "ann"}) if known else None)

    @server.tool
    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("go on?")).action

    async with site(server) as here:
        client = Modern(here.raw, {"elicitation": {}}, **({"authorization": "Bearer k-ann"} if known else {}))
        said = [(await (await client.call("asks", id=id)).json())["result"] for id in range(5)]
        assert all("inputRequests" in each for each in said)
        kept = 2 if known else 4
        assert sum(map(len, server.round_trips.suspended_calls.waiting.values())) == kept
        again = [
            (await (await client.ask("tools/call", {"name": "asks", "arguments": {}, **retry(each)})).json())["result"]
            for each in said
        ]
        assert [each.get("isError", False) for each in again] == [True] * (5 - kept) + [False] * kept


@pytest.mark.parametrize("known", [True, False])
async def test_and_for_completions(known: bool) -> None:
    limits = quick(completions_per_second=2, http_completions_per_second=4)
    server = Server("desk", "1", limits=limits, auth=APIKeys({"k-ann": "ann"}) if known else None)

    @server.prompt
    async def greet(name: Literal["ann", "bob"]) -> str:
        return name

    async with site(server) as here:
        client = Modern(here.raw, **({"authorization": "Bearer k-ann"} if known else {}))
        of = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "a"}}
        said = [await (await client.ask("completion/complete", of, id=id)).json() for id in range(5)]
        assert ["result" in each for each in said] == [True] * (2 if known else 4) + [False] * (3 if known else 1)


async def test_many_principals_are_forgotten_but_none_with_something_in_flight() -> None:
    names = [f"p{number}" for number in range(20)]
    server = Server("desk", "1", limits=quick(principals=3), auth=APIKeys({f"key-of-{name}": name for name in names}))
    release = asyncio.Event()

    @server.tool
    async def waits() -> str:
        await release.wait()
        return "done"

    async with site(server) as here:
        assert isinstance(here.raw, Direct)
        busy = Modern(here.raw, authorization="Bearer key-of-p0")
        call = await busy.begin(busy.calling("waits"))
        await until(here.busy)
        for name in names[1:]:
            assert (await Modern(here.raw, authorization=f"Bearer key-of-{name}").ask("tools/list")).status == 200
        callers = here.endpoint._clients._clients
        assert "p0" in callers
        assert len(callers) <= 3
        release.set()
        assert text(await (await call.start()).result()) == "done"


async def test_one_tool_call_too_many_says_what_the_limit_is_and_when_to_come_back() -> None:
    server = Server("desk", "1", limits=quick(tool_calls_per_second=0.01), auth=APIKeys({"k-ann": "ann"}))
    server.tool(name="echo")(lambda: "said")
    async with site(server) as here:
        client = Modern(here.raw, authorization="Bearer k-ann")
        assert text(await (await client.call("echo")).json()) == "said"
        error = (await (await client.call("echo")).json())["error"]
        assert (error["code"], "the limit is 0.01 a second" in error["message"]) == (429, True)
        assert 0 < error["data"]["retryAfter"] <= 100


async def test_an_honest_program_that_calls_a_thousand_times_at_once_meets_no_limit() -> None:
    server = Server("desk", "1", auth=APIKeys({"k-ann": "ann"}))
    server.tool(name="echo")(lambda: "said")
    async with site(server) as here:
        client = Modern(here.raw, authorization="Bearer k-ann")
        assert {text(await (await client.call("echo")).json()) for _ in range(1_000)} == {"said"}


async def test_nor_any_with_a_handler_that_waits_for_answers_which_ends_with_the_server() -> None:
    server = Server("desk", "1", limits=quick(principals=1), auth=APIKeys({"k-ann": "ann", "k-bob": "bob"}))
    ended = asyncio.Event()

    @server.tool
    async def asks(ctx: Context) -> str:
        try:
            return (await ctx.elicit("go on?")).action
        finally:
            ended.set()

    async with site(server) as here:
        ann = Modern(here.raw, {"elicitation": {}}, authorization="Bearer k-ann")
        assert "inputRequests" in (await (await ann.call("asks")).json())["result"]
        for id in range(3):
            assert (await Modern(here.raw, authorization="Bearer k-bob").ask("tools/list", id=id)).status == 200
    assert ended.is_set()
