"""A client that goes away at any byte leaves nothing behind, and finds again what it was promised."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from accord import Context, Server

from tests.server.http.http_clients import Here, Legacy, Modern, Stateful, encode, quick, site, text, until
from tests.server.http.raw import BASIC, Event, Socket, request_bytes

AT_ONCE = 100
"""Connections at once: so many bytes are tried side by side."""


class Desk(Server):
    """A server that knows how its handlers ended."""

    def __init__(self) -> None:
        super().__init__("desk", "1", limits=quick(progress_per_second=1e6))
        self.ends: list[str] = []

        @self.tool
        async def steps(ctx: Context, name: str) -> str:
            try:
                for step in range(2):
                    ctx.report_progress(step + 1, 2, f"{name} {step}")
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                self.ends.append("cancelled")
                raise
            self.ends.append("done")
            return f"{name} done"

        @self.tool
        async def forever(ctx: Context) -> str:
            ctx.report_progress(1)
            try:
                await asyncio.Event().wait()
            finally:
                self.ends.append("cancelled")
            return ""


async def answer_bytes(socket: Socket, request: bytes, most: int = -1) -> bytes:
    """Send it, read so many bytes of the answer, or all until the connection is closed, and go away."""
    reader, writer = await socket.connect()
    writer.write(request)
    try:
        return await (reader.readexactly(most) if most >= 0 else reader.read())
    finally:
        writer.transport.abort()


async def cut_request(socket: Socket, request: bytes, at: int) -> None:
    """Send the beginning of it, and go away."""
    _, writer = await socket.connect()
    writer.write(request[:at])
    await writer.drain()
    writer.transport.abort()


async def for_each(numbers: range, work: Callable[[int], Awaitable[object]]) -> None:
    for start in range(numbers.start, numbers.stop, AT_ONCE):
        await asyncio.gather(*(work(number) for number in range(start, min(start + AT_ONCE, numbers.stop))))


def call_of(client: Modern | Stateful, name: str) -> bytes:
    """A call as bytes, on a connection that is closed after it."""
    message = client.calling("steps", {"name": name}, id=name, progressToken=name)
    head = client.head(message) if isinstance(client, Modern) else client.headers
    return request_bytes("POST", "/mcp", {**head, "connection": "close"}, encode(message))


async def quiet(here: Here, before: set[asyncio.Task[object]]) -> None:
    """Nothing runs that did not run before, and the server is well."""
    await until(lambda: not here.busy(), here.busy)
    await until(lambda: asyncio.all_tasks() <= before, lambda: asyncio.all_tasks() - before)
    assert all(session.open_requests == 0 for session in here.endpoint.sessions)
    assert (await Modern(here.raw).ask("tools/list")).status == 200


@pytest.mark.parametrize("form", ["modern", "stateful"])
async def test_a_request_that_is_cut_at_any_byte_leaves_nothing(form: str) -> None:
    server = Desk()
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        socket = here.raw
        client = Modern(socket) if form == "modern" else await Stateful(socket).open()
        await Modern(socket).ask("tools/list")
        before = asyncio.all_tasks()
        request = call_of(client, "a")
        await for_each(range(len(request)), lambda at: cut_request(socket, request, at))
        await quiet(here, before)
        assert server.ends == []


@pytest.mark.parametrize("form", ["initialize", "notification", "listen", "delete", "legacy"])
async def test_other_requests_that_are_cut_at_any_byte_leave_nothing(form: str) -> None:
    async with site(Desk(), "socket") as here:
        assert isinstance(here.raw, Socket)
        socket = here.raw
        await Modern(socket).ask("tools/list")
        before = asyncio.all_tasks()
        client = await Stateful(socket).open()
        head = client.headers
        request = {
            "initialize": request_bytes("POST", "/mcp", BASIC, encode(client.hello())),
            "notification": request_bytes(
                "POST", "/mcp", head, b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
            ),
            "listen": request_bytes("GET", "/mcp", head, b""),
            "delete": request_bytes("DELETE", "/mcp", head, b""),
            "legacy": request_bytes("GET", "/sse", {"host": "localhost", "accept": "text/event-stream"}, b""),
        }[form]
        await for_each(range(len(request) + 1), lambda at: cut_request(socket, request, at))
        await until(lambda: not len(here.endpoint.sse))
        await quiet(here, before)


async def test_an_answer_of_2026_07_28_that_is_cut_at_any_byte_leaves_nothing() -> None:
    server = Desk()
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        socket = here.raw
        request = call_of(Modern(socket), "a")
        whole = len(await answer_bytes(socket, request))
        before = asyncio.all_tasks()
        await for_each(range(whole), lambda at: answer_bytes(socket, request, at))
        await quiet(here, before)
        assert len(server.ends) == whole + 1


async def test_going_away_is_the_cancel_in_2026_07_28_at_any_byte_of_what_has_come() -> None:
    server = Desk()
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        socket = here.raw
        client = Modern(socket)
        message = client.calling("forever", progressToken=1)
        request = request_bytes("POST", "/mcp", client.head(message), encode(message))
        answer = await client.post(message)
        await answer.event()
        await answer.leave()
        before = asyncio.all_tasks()
        await for_each(range(200), lambda at: answer_bytes(socket, request, at))
        await until(lambda: len(server.ends) == 201, lambda: len(server.ends))
        await quiet(here, before)


@pytest.mark.timeout(300)
async def test_an_answer_of_a_session_that_is_cut_at_any_byte_runs_on_and_is_taken_up_there() -> None:
    server = Desk()
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        socket = here.raw
        client = await Stateful(socket).open()
        whole = len(await answer_bytes(socket, call_of(client, "000000")))
        before = asyncio.all_tasks()

        async def cut(at: int) -> None:
            name = f"{at:06}"
            seen = events_in(await answer_bytes(socket, call_of(client, name), at))
            if seen:
                rest = await (await client.listen(seen[-1][0])).events()
                told([*seen, *((event.id, event.data) for event in rest)], name)

        await for_each(range(whole), cut)
        await quiet(here, before)
        assert server.ends == ["done"] * (whole + 1)


def events_in(received: bytes) -> list[tuple[str | None, object]]:
    """The ids, and the data where somebody looked, of the events that had come whole."""
    _, _, body = received.partition(b"\r\n\r\n")
    parts: list[bytes] = []
    while b"\r\n" in body:
        size, _, body = body.partition(b"\r\n")
        parts.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    blocks = b"".join(parts).split(b"\n\n")[:-1]
    return [(block.split(b"\n")[0].removeprefix(b"id: ").decode(), block) for block in blocks]


def told(found: list[tuple[str | None, object]], name: str) -> None:
    """All events of a call, once and in order."""
    assert [(id or "").rpartition("-")[2] for id, _ in found] == ["1", "2", "3", "4"], found
    assert len({(id or "").rpartition("-")[0] for id, _ in found}) == 1
    assert all(name in str(data) for _, data in found[1:])


@pytest.mark.parametrize("form", ["get", "listen"])
async def test_a_stream_that_is_cut_at_any_byte_leaves_nothing(form: str) -> None:
    server = Desk()
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        socket = here.raw
        client = await Stateful(socket).open()
        new = Modern(socket)
        message = new.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        request = {
            "get": request_bytes("GET", "/mcp", client.headers, b""),
            "listen": request_bytes("POST", "/mcp", new.head(message), encode(message)),
        }[form]
        before = asyncio.all_tasks()
        await for_each(range(150), lambda at: answer_bytes(socket, request, at))
        await quiet(here, before)
        server.tool(name="new")(lambda: "x")


async def test_the_stream_of_the_oldest_that_is_cut_at_any_byte_takes_its_session_along() -> None:
    server = Desk()
    async with site(server, "socket") as here:
        assert isinstance(here.raw, Socket)
        socket = here.raw
        await Modern(socket).ask("tools/list")
        request = request_bytes("GET", "/sse", {"host": "localhost", "accept": "text/event-stream"}, b"")
        before = asyncio.all_tasks()
        await for_each(range(200), lambda at: answer_bytes(socket, request, at))
        await until(lambda: not len(here.endpoint.sse))
        client = await (await Legacy.connect(socket)).open()
        await client.post(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "forever", "arguments": {}}}
        )
        await until(here.busy)
        await client.stream.leave()
        await until(lambda: server.ends == ["cancelled"])
        await quiet(here, before)


async def test_a_client_that_disconnects_many_times_loses_no_answer_that_it_can_resume() -> None:
    server = Desk()
    async with site(server, "socket") as here:
        client = await Stateful(here.raw).open()

        async def one(id: int) -> Event:
            call = await client.call("steps", {"name": f"n{id}"}, id=id, progressToken=id)
            primed = await call.event()
            await call.leave()
            return (await (await client.listen(primed.id)).events())[-1]

        ends = await asyncio.gather(*(one(id) for id in range(100)))
        assert [text(end.data) for end in ends] == [f"n{id} done" for id in range(100)]
