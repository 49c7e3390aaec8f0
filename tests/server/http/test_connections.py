"""What one address may take of the connections of a server, and what clients that do not read may make it keep."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from accord.server.http.serving import asgi_server
from accord.server.http.serving.address import bind, parse_address
from accord.server.http.serving.asgi_server import ASGIServer
from accord.server.http.serving.protocol import Application
from accord.server.http.serving.refusals import unsent_bytes
from accord.server.http.serving.serve import new_loop

from tests.limits import limits_of
from tests.server.http.http_clients import until
from tests.server.http.raw import SECONDS

LARGE = 20 << 20
"""Bytes of an answer: more than the system takes."""

HEAD = b"HTTP/1.1 200"
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
    await send({"type": "http.response.body", "body": b"x" * LARGE})


@asynccontextmanager
async def listening(app: Application = app, **limits: Any) -> AsyncIterator[tuple[int, ASGIServer]]:
    sockets = bind(parse_address("127.0.0.1:0"))
    served = ASGIServer(app, limits_of(**limits))
    await served.start(sockets)
    try:
        yield sockets[0].getsockname()[1], served
    finally:
        await served.finish(0.2)


async def ask(port: int, address: str) -> socket.socket:
    """A connection from this address that asks for the large answer, and takes little of it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.bind((address, 0))
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, GET)
    async with asyncio.timeout(SECONDS):
        await loop.sock_recv(client, len(HEAD))  # once this is here, the whole answer was given to the transport
    return client


async def read(client: socket.socket, wanted: int = LARGE) -> int:
    """Bytes that come until so many are there, or the connection ends."""
    loop, got = asyncio.get_running_loop(), 0
    async with asyncio.timeout(SECONDS):
        try:
            while got < wanted and (data := await loop.sock_recv(client, 1 << 20)):
                got += len(data)
        except ConnectionError:
            pass
    return got


async def test_one_address_does_not_take_all_connections() -> None:
    async with listening(http_connections_per_address=3) as (port, served):
        first = [await ask(port, "127.0.0.2") for _ in range(3)]
        await until(lambda: len(served.connections) == 3)
        with closing(await ask(port, "127.0.0.2")) as fourth, closing(await ask(port, "127.0.0.3")) as other:
            assert await read(fourth) < 1000
            assert await read(other) >= LARGE
        first.pop().close()
        await until(lambda: len(served.connections) == 2)
        with closing(await ask(port, "127.0.0.2")) as again:
            assert await read(again) >= LARGE
        for each in first:
            each.close()


async def test_one_address_does_not_take_all_connections_where_descriptors_are_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asgi_server, "connection_cap", lambda limits: 4)
    async with listening() as (port, _):
        first = [await ask(port, "127.0.0.2") for _ in range(2)]
        with closing(await ask(port, "127.0.0.2")) as third, closing(await ask(port, "127.0.0.3")) as other:
            assert await read(third) < 1000
            assert await read(other) >= LARGE
        for each in first:
            each.close()


async def part(scope: Any, receive: Any, send: Any) -> None:
    """Answer a GET, begin the answer to a PUT, and wait for the body of a POST."""
    if scope["method"] != "POST":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": scope["method"] == "PUT"})
    if scope["method"] != "GET":
        await never_answers(scope, receive, send)


async def say(port: int, address: str, said: bytes) -> socket.socket:
    """A connection from this address that says this."""
    client = socket.socket()
    client.bind((address, 0))
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, said)
    return client


POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n"


@pytest.mark.parametrize(
    "said",
    [b"", GET[:-2], GET, GET.replace(b"GET", b"PUT"), POST + b"x"],
    ids=["new", "head", "idle", "stream", "body"],
)
async def test_addresses_that_keep_all_connections_open_do_not_lock_others_out(said: bytes) -> None:
    async with listening(part, http_connections=6, http_connections_per_address=3) as (port, served):
        flood = [await say(port, address, said) for address in ("127.0.0.2", "127.0.0.3") for _ in range(3)]
        await until(lambda: len(served.connections) == 6)
        heard = [each.http for each in served.connections]
        await until(lambda: all(http.requests or http.unparsed or not said for http in heard))
        await until(lambda: not any(each.is_working for each in served.connections))
        for address in ("127.0.0.4", "127.0.0.5"):
            flood.append(await say(port, address, GET))
            async with asyncio.timeout(SECONDS):
                assert (await asyncio.get_running_loop().sock_recv(flood[-1], 100)).startswith(HEAD)
        assert len(served.connections) == 6
        for each in flood:
            each.close()


async def test_connections_with_a_request_in_progress_are_not_closed_for_others() -> None:
    async with listening(part, http_connections=6, http_connections_per_address=3) as (port, served):
        working = [await say(port, address, POST + b"body") for address in ("127.0.0.2", "127.0.0.3") for _ in range(3)]
        await until(lambda: sum(each.is_working for each in served.connections) == 6)
        with closing(await say(port, "127.0.0.4", GET)) as other:
            async with asyncio.timeout(SECONDS):
                assert (await asyncio.get_running_loop().sock_recv(other, 100)).startswith(b"HTTP/1.1 503")
        assert len(served.connections) == 6
        for each in working:
            each.close()


async def test_unread_answers_are_bounded_and_the_address_with_most_of_them_is_cut() -> None:
    async with listening(http_unsent_bytes=45 << 20) as (port, served):
        honest = await ask(port, "127.0.0.2")
        await until(lambda: served.connections.slow_readers.unsent > LARGE / 2)
        flood = []
        for _ in range(5):
            flood.append(await ask(port, "127.0.0.3"))
            assert LARGE < served.connections.slow_readers.unsent <= 45 << 20
        await until(lambda: len(served.connections) == 2)
        assert await read(honest) >= LARGE
        assert await read(flood[0]) < LARGE
        assert await read(flood[-1]) >= LARGE
        await until(lambda: served.connections.slow_readers.unsent == 0)
        for each in (honest, *flood):
            each.close()


async def test_an_answer_that_is_larger_than_the_bound_is_sent_all_the_same() -> None:
    async with listening(http_unsent_bytes=1 << 20) as (port, served):
        with closing(await ask(port, "127.0.0.1")) as client:
            await until(lambda: served.connections.slow_readers.unsent > 1 << 20)
            assert await read(client) >= LARGE


@pytest.mark.parametrize("loop_factory", [new_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_a_client_that_takes_its_answer_slowly_gets_all_of_it(loop_factory: Callable[[], Any]) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(read_slowly())


async def read_slowly() -> None:
    """Take some of the answer before each deadline, and nothing before the last one; the time is that of the test."""
    async with listening(http_unread_seconds=4) as (port, served):
        timeouts, now = served._timeouts, 0.0
        timeouts.stop()
        with closing(await ask(port, "127.0.0.1")) as slow, closing(await ask(port, "127.0.0.2")) as silent:
            await until(lambda: len(served.connections) == 2)
            transports = {each.transport.get_extra_info("peername")[0]: each.transport for each in served.connections}
            got, transport = len(HEAD), transports["127.0.0.1"]
            while (before := unsent_bytes(transport)) > LARGE / 2:
                for _ in range(7):  # half a second each: the longest that a look counts
                    timeouts.check(now := now + 0.5)
                while unsent_bytes(transport) == before:
                    got += len(await asyncio.wait_for(asyncio.get_running_loop().sock_recv(slow, 1 << 18), SECONDS))
            assert now > 20
            await until(lambda: len(served.connections) == 1)
            assert got + await read(slow, LARGE - got) >= LARGE
            assert await read(silent) < LARGE


async def never_answers(scope: Any, receive: Any, send: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def early_sender(port: int, address: str) -> socket.socket:
    """A connection from this address that sends a part of another request while one is being answered."""
    client = socket.socket()
    client.bind((address, 0))
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, GET + b"GET / HTTP/1.1\r\nx: " + b"x" * 25_000)
    return client


async def test_what_is_sent_before_the_answer_is_bounded_and_the_address_with_most_is_cut() -> None:
    async with listening(never_answers, http_unsent_bytes=200_000) as (port, served):
        early = served.connections.early_senders
        honest = await early_sender(port, "127.0.0.2")
        await until(lambda: early.unsent > 25_000)
        flood = [await early_sender(port, "127.0.0.3") for _ in range(10)]
        await until(lambda: len(served.connections) == 7)
        assert 7 * 25_000 <= early.unsent <= 200_000
        assert "127.0.0.2" in [each.peer[0] for each in served.connections if each.peer is not None]
        for client in (honest, *flood):
            client.close()
        await until(lambda: not served.connections)
        assert early.unsent == 0


async def test_what_was_sent_early_is_not_counted_once_it_is_taken() -> None:
    async with listening(drops_the_body) as (port, served):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50000\r\n\r\n" + b"x" * 50_000
        writer.write(body * 20)
        for _ in range(20):
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)).startswith(b"HTTP/1.1 204")
        assert served.connections.early_senders.unsent == 0
        writer.close()


async def drops_the_body(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def test_a_stream_that_is_cut_because_nobody_reads_it_is_no_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening(gives_up) as (port, served):
        client = await ask(port, "127.0.0.2")
        await until(lambda: any(each.exchange is not None and each.exchange.task.done() for each in served.connections))
        assert not [each for each in caplog.records if each.levelname == "ERROR"]
        client.close()


async def gives_up(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * LARGE, "more_body": True})
