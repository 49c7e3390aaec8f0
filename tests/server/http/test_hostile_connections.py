"""Four hostile connections of each kind: the server stays small, and honest requests are answered meanwhile.

How much a client can send is what is counted here, not how fast the machine is.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from accord import Limits, Server
from accord.server.auth.api_keys import APIKeys
from accord.server.http.serving.address import bind, parse_address
from accord.server.http.serving.asgi_server import ASGIServer

from tests.server.http.http_clients import Modern, encode, quick, site, text
from tests.server.http.raw import SECONDS, Socket, request_bytes
from tests.waiting import until

CONNECTIONS = 4
MOST = 24 << 20
"""Bytes that each hostile connection would send."""
MEMORY = 120 << 10
"""Kilobytes that the server may have."""
READ = 256 << 10
"""Bytes of one read of a loop."""

PROGRAM = """
from accord import Server

server = Server("hostile")

@server.tool
async def echo(text: str) -> str:
    return text

@server.tool
async def large() -> str:
    return "x" * 1_000_000

server.run(http="127.0.0.1:0")
"""


def posted(tool: str, *fields: str) -> bytes:
    """The head of a call in 2026-07-28 without what frames its body, and the body."""
    client = Modern(Socket(0))
    head = client.head(client.calling(tool))
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), *fields, "", ""]
    return "\r\n".join(lines).encode()


def call(tool: str) -> bytes:
    client = Modern(Socket(0))
    message = client.calling(tool)
    return request_bytes("POST", "/mcp", client.head(message), encode(message))


SSE = "GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n"
CHUNKED = "transfer-encoding: chunked\r\n\r\n"
TRAILER = b"x-trailer: " + b"x" * 1000 + b"\r\n"
LARGE = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

KINDS: dict[str, tuple[bytes, bytes]] = {
    "a pipeline that is not read": (b"", b"GET / HTTP/1.1\r\nHost: e\r\n\r\n"),
    "a pipeline of posts": (b"", call("echo")),
    "a pipeline behind a call that runs": (f"{SSE}\r\n".encode(), b"GET / HTTP/1.1\r\nHost: e\r\n\r\n"),
    "a pipeline behind the last request": (f"{SSE}connection: close\r\n\r\n".encode(), b"GET / HTTP/1.1\r\n\r\n"),
    "a pipeline behind an upgrade": (f"{SSE}connection: upgrade\r\nupgrade: h2c\r\n\r\n".encode(), b"x" * 1000),
    "trailers": (posted("echo", "transfer-encoding: chunked") + b"0\r\n", TRAILER),
    "trailers of a stream": (f"{SSE}{CHUNKED}0\r\n".encode(), TRAILER),
    "one trailer": (posted("echo", "transfer-encoding: chunked") + b"0\r\nx: ", b"x" * 1000),
    "chunk extensions": (posted("echo", "transfer-encoding: chunked"), b"1;" + b"x" * 1000 + b"\r\n \r\n"),
    "tiny chunks": (posted("echo", "transfer-encoding: chunked"), b"1\r\n \r\n" * 100),
    "a head": (b"GET / HTTP/1.1\r\n", b"x-flood: " + b"x" * 1000 + b"\r\n"),
    "a line": (b"GET /", b"x" * 1000),
    "blank lines": (b"", b"\r\n" * 500),
    "a head by bytes": (b"GET / HTTP/1.1\r\nx: ", b"x"),
    "a body by bytes": (posted("echo", "content-length: 1000000"), b" "),
    "a body": (posted("echo", "content-length: 100000000"), b" " * 1000),
    "a body in chunks": (posted("echo", "transfer-encoding: chunked"), LARGE),
    "a body of a stream": (f"{SSE}content-length: 100000000\r\n\r\n".encode(), b" " * 1000),
    "a body in chunks of a stream": (f"{SSE}{CHUNKED}".encode(), LARGE),
    "a body of what is answered before": (
        b"GET /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n",
        b" " * 1000,
    ),
    "answers that are not read": (b"", call("large")),
}  # fmt: skip


COUNTED = {"trailers", "trailers of a stream", "one trailer", "chunk extensions", "a head", "a line"}
"""Kinds whose bytes count towards the budget of the head, so that the server reads no more of them after a while."""


async def flood(port: int, begin: bytes, again: bytes, loops: asyncio.Event) -> int:
    """Send as much as the server takes, read nothing, and stay; return how much it was."""
    reader, writer = await Socket(port).connect()
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    writer.transport.set_write_buffer_limits(0)
    piece = again if len(again) == 1 else again * (1 + (1 << 16) // len(again))
    sent = 0
    with suppress(ConnectionError, TimeoutError):
        writer.write(begin)
        for turn in range(1000 if len(piece) == 1 else MOST // len(piece)):
            writer.write(piece)
            sent += len(piece)
            await asyncio.wait_for(writer.drain(), 1)
            if turn % 10 == 0:
                await asyncio.sleep(0)
    await loops.wait()
    writer.transport.abort()
    return sent


async def hostile(port: int, kind: str, honest: Callable[[], object]) -> list[int]:
    """Four connections of a kind; how much each could send. Honest requests are answered while they are there."""
    ended = asyncio.Event()
    floods = [asyncio.create_task(flood(port, *KINDS[kind], ended)) for _ in range(CONNECTIONS)]
    client = Modern(Socket(port))
    for number in range(10):
        answer = await asyncio.wait_for(client.call("echo", {"text": str(number)}), SECONDS)
        assert text(await answer.result()) == str(number)
        honest()
        await asyncio.sleep(0.02)
    ended.set()
    sent = await asyncio.gather(*floods)
    assert (await client.call("echo", {"text": "after"})).status == 200
    honest()
    return sent


@contextmanager
def served_apart(folder: Path) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port, and its process id."""
    program = folder / "hostile.py"
    program.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
            assert port is not None
            yield int(port[1]), process.pid
        finally:
            process.kill()


def peak(pid: int) -> int:
    """Kilobytes of memory that a process had at most."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory of a process is read where Linux tells it")
@pytest.mark.parametrize("kind", KINDS)
async def test_the_server_stays_small_and_serves_others(kind: str, tmp_path: Path) -> None:
    with served_apart(tmp_path) as (port, pid):
        sent = await hostile(port, kind, lambda: None)
        assert peak(pid) < MEMORY
        if kind in COUNTED:
            assert max(sent) < MOST // 2, "the buffers of the sockets hold less"


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[tuple[int, ASGIServer]]:
    sockets = bind(parse_address("127.0.0.1:0"))
    served = ASGIServer(server.app, server.limits)
    await served.start(sockets)
    try:
        yield sockets[0].getsockname()[1], served
    finally:
        served.stop_accepting()
        await server.app.drain(1)
        await served.finish(1)
        await server.app.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_no_connection_holds_more_than_its_budget(kind: str) -> None:
    server = Server("hostile", "1", limits=quick())

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    async def large() -> str:
        return "x" * 1_000_000

    async with listening(server) as (port, served):

        def looks() -> None:
            for connection in served.connections:
                http = connection.http
                assert http.buffered_bytes <= 64 * 1024 + 32 * 1024 + READ
                assert http.reading or connection._reading is False
            assert len(served._tasks) <= 2 * (CONNECTIONS + 1)

        await hostile(port, kind, looks)


@pytest.mark.parametrize("kind", ["a pipeline that is not read", "a pipeline of posts", "answers that are not read"])
async def test_one_request_of_a_connection_runs_at_a_time(kind: str) -> None:
    server = Server("hostile", "1", limits=quick())
    running = {"now": 0, "most": 0}

    async def app(scope: dict[str, object], receive: Callable[[], object], send: object) -> None:
        running["now"] += 1
        running["most"] = max(running.values())
        try:
            await server.app(scope, receive, send)  # type: ignore[arg-type]
        finally:
            running["now"] -= 1

    server.tool(name="large")(lambda: "x" * 1_000_000)
    server.tool(name="echo")(lambda text: text)
    sockets = bind(parse_address("127.0.0.1:0"))
    served = ASGIServer(app, Limits())
    await served.start(sockets)
    ended = asyncio.Event()
    one = asyncio.create_task(flood(sockets[0].getsockname()[1], *KINDS[kind], ended))
    await until(lambda: running["most"] and any(not each.http.reading for each in served.connections))
    assert running["most"] == 1
    ended.set()
    await one
    await served.finish(1)
    await server.app.close()


# --- what stands behind a body -----------------------------------------------------------------------------------


async def answer_to(raw: Socket, head: bytes, message: bytes, trailers: str) -> tuple[int, bytes]:
    body = b"%x\r\n%b\r\n0\r\n" % (len(message), message) + trailers.encode() + b"\r\n"
    answer = await (await raw.bytes(head + b"transfer-encoding: chunked\r\n\r\n" + body)).start()
    return answer.status, await answer.body()


@pytest.mark.parametrize(
    ("left_out", "trailer"),
    [
        ("authorization", "Authorization: Bearer key"),
        ("host", "Host: localhost"),
        ("mcp-method", "Mcp-Method: tools/call"),
        ("mcp-name", "Mcp-Name: echo"),
    ],
)
async def test_a_header_that_a_request_needs_is_not_taken_from_a_trailer(left_out: str, trailer: str) -> None:
    server = Server("hostile", "1", limits=quick(), auth=APIKeys({"key": "ann"}))
    server.tool(name="echo")(lambda: "x")
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        client = Modern(here.raw, authorization="Bearer key")
        message = client.calling("echo")
        fields = client.head(message)

        def head(names: dict[str, str]) -> bytes:
            return "".join(
                ["POST /mcp HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in names.items())]
            ).encode()

        less = {name: value for name, value in fields.items() if name != left_out}
        assert (await answer_to(here.raw, head(fields), encode(message), trailer + "\r\n"))[0] == 200
        without = await answer_to(here.raw, head(less), encode(message), "")
        assert 400 <= without[0] < 500
        assert await answer_to(here.raw, head(less), encode(message), trailer + "\r\n") == without
        assert (await answer_to(here.raw, head(less), encode(message), f"{trailer}\r\n" * 10)) == without


async def test_a_trailer_does_not_become_a_header_of_the_next_request() -> None:
    server = Server("hostile", "1", limits=quick(), auth=APIKeys({"key": "ann"}))
    server.tool(name="echo")(lambda: "x")
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        reader, writer = await here.raw.connect()
        writer.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n")
        writer.write(b"Authorization: Bearer key\r\n\r\n")
        client = Modern(here.raw)
        message = client.calling("echo")
        writer.write(request_bytes("POST", "/mcp", client.head(message), encode(message)))
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 401 ")
            await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
        writer.close()


async def test_a_request_behind_one_that_offers_another_protocol_is_no_part_of_its_body() -> None:
    async def echo(scope: object, receive: Callable[[], object], send: Callable[[object], object]) -> None:
        body, more = b"", True
        while more:
            event = await receive()  # type: ignore[misc]
            body, more = body + event["body"], event["more_body"]
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[misc]
        await send({"type": "http.response.body", "body": body})  # type: ignore[misc]

    offer = b"POST / HTTP/1.1\r\nhost: e\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nhi"
    next_one = b"POST / HTTP/1.1\r\nhost: e\r\ncontent-length: 6\r\n\r\nsecret"
    sockets = bind(parse_address("127.0.0.1:0"))
    served = ASGIServer(echo, Limits())
    await served.start(sockets)
    for at in (len(offer) + len(next_one), len(offer), len(offer) - 1, 10):
        reader, writer = await Socket(sockets[0].getsockname()[1]).connect()
        sent = offer + next_one
        writer.write(sent[:at])
        await asyncio.sleep(0)
        writer.write(sent[at:])
        answer = await asyncio.wait_for(reader.read(), SECONDS)
        assert answer == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi"
        writer.close()
    await served.finish(1)
