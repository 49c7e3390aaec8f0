"""Rows of limits of time, and of what is held for a peer that does not read or answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from accord import Client, Provided, Provider
from accord.server.auth.api_keys import APIKeys
from accord.server.http.serving.address import bind, parse_address
from accord.server.http.serving.serve import serving
from accord.server.http.serving.timeouts import ConnectionTimeouts
from accord.server.input.request_state import Keyring, RequestState, RequestStates, StateStore, _encode
from accord.server.run import serve
from accord.transport import memory
from accord.transport.asgi.sse_response import SSEResponse
from accord.types import Tool
from accord.wire import sse

from tests.bounds.client_rows import HANDSHAKE, ended
from tests.bounds.server_rows import MOST, shop
from tests.bounds.table import Outcome, drops, refuses
from tests.bounds.wires import outcome
from tests.clock import Clock
from tests.limits import limits_of
from tests.server.http.http_clients import Modern, Stateful, encode, site
from tests.server.http.raw import Socket
from tests.server.http.test_connections import LARGE, app as large_answers, listening
from tests.server.openapi.echo import always, get
from tests.server.openapi.test_response import called
from tests.server.raw import RawPeer
from tests.session import pair as wired
from tests.transport.test_request_sender import asked, hand_made, progress as progress_report
from tests.waiting import turns, until

# --- the end of a server ------------------------------------------------------------------------------------------


class Slow:
    """A server with a tool that waits for `release`, and takes `cleanup` seconds when it is cancelled."""

    def __init__(self, cleanup: float = 0, **limits: Any) -> None:
        self.server = shop(**limits)
        self.running, self.release = asyncio.Event(), asyncio.Event()
        self.has_cleaned_up = False

        @self.server.tool
        async def slow() -> str:
            self.running.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                await asyncio.sleep(cleanup)
                self.has_cleaned_up = True
                raise
            return "done"


@drops("Limits.grace_seconds", "memory", "modern")
async def time_of_a_shutdown(over: str, extra: int) -> Outcome:
    clock, stop, desk = Clock(), asyncio.Event(), Slow(grace_seconds=30)
    sockets = bind(parse_address("127.0.0.1:0"))
    async with AsyncExitStack() as stack:
        stack.callback(sockets[0].close)
        if over == "modern":

            async def run() -> None:
                async with serving(desk.server.app, sockets, desk.server.limits):
                    await stop.wait()

            running = asyncio.ensure_future(run())
            http = Modern(Socket(sockets[0].getsockname()[1]))
            begun = await http.begin(http.calling("slow"))
        else:
            ours, theirs = memory.pair()
            running = asyncio.ensure_future(serve(desk.server, theirs, stop))
            peer = RawPeer(ours)
            await peer.open(HANDSHAKE)
            peer.send("tools/call", {"name": "slow", "arguments": {}})
        await desk.running.wait()
        clock.move(0)
        stop.set()
        await clock.jump(0)
        await clock.jump(29 + 2 * extra)
        if not extra:
            desk.release.set()
        answer = await (await begun.start()).result() if over == "modern" else await peer.hear()
        desk.release.set()
        await running
        return outcome("", answer)


@drops("Limits.close_seconds", "memory")
async def time_to_clean_up(over: str, extra: int) -> Outcome:
    clock, desk = Clock(), Slow(cleanup=9 + 2 * extra, grace_seconds=0.01, close_seconds=20)  # a half is for handlers
    ours, theirs = memory.pair()
    running = asyncio.ensure_future(desk.server.serve(theirs))
    peer = RawPeer(ours)
    await peer.open(HANDSHAKE)
    peer.send("tools/call", {"name": "slow", "arguments": {}})
    await desk.running.wait()
    clock.move(0)
    await ours.close()
    for _ in range(100):
        await clock.jump(0.5)
        if running.done():
            break
    await running
    found = Outcome("" if desk.has_cleaned_up else "cut")
    await clock.jump(20)
    return found


# --- what a server holds, and waits for ---------------------------------------------------------------------------


class Late(Provider):
    """A provider that takes so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def tools(self) -> Sequence[Provided]:
        await asyncio.sleep(self._seconds)
        return [Provided(Tool(name="late", input_schema={"type": "object"}), lambda arguments: "")]


@drops("Limits.provider_seconds")
async def time_of_a_provider(over: str, extra: int) -> Outcome:
    clock, server = Clock(), shop(provider_seconds=30)
    server.add_provider(Late(29 + 2 * extra))
    async with Client(server) as client:
        clock.move(0)
        listing = asyncio.ensure_future(client.list_tools())
        await clock.jump(0)
        await clock.jump(29.5 + extra)
        return Outcome("" if "late" in [tool.name for tool in await listing] else "left out")


@refuses("Limits.upstream_bytes")
async def answer_of_an_api(over: str, extra: int) -> Outcome:
    result = await called(always(b"x" * (1_000 + extra)), get(), limits=limits_of(upstream_bytes=1_000))
    return Outcome(result.text if result.is_error else "")


@drops("Limits.state_bytes")
async def bytes_of_a_state(over: str, extra: int) -> Outcome:
    state = RequestState(once_values={"big": b"x" * 5_000})
    keyring, unlimited = Keyring(), RequestStates(Keyring(), limits_of())
    unlimited.seal(state)  # sets its times, which count as well
    states = RequestStates(keyring, limits_of(state_bytes=len(_encode(state)) - extra))
    sealed = states.seal(state)
    assert states.open(sealed, b"").once_values == state.once_values
    return Outcome("" if len(sealed) > 5_000 else "stored on the server")


@drops("Limits.kept_bytes")
async def bytes_of_states(over: str, extra: int) -> Outcome:
    store: StateStore = RequestStates(Keyring(), limits_of(kept_bytes=10 * MOST))._store
    tokens = [store.put(b"x" * 10, "ann") for _ in range(MOST)]
    if extra:
        store.put(b"x", "ann")
    return Outcome("" if tokens[0] in store._entries else "dropped")


@drops("Limits.principals", "modern")
async def principals(over: str, extra: int) -> Outcome:
    names = [f"p{number}" for number in range(MOST + extra)]
    async with site(shop(principals=MOST, auth=APIKeys({f"k-{name}": name for name in names}))) as here:
        for name in names:
            assert (await Modern(here.raw, authorization=f"Bearer k-{name}").ask("tools/list")).status == 200
        return Outcome("" if "p0" in here.endpoint._clients._clients else "forgotten")


# --- streams ------------------------------------------------------------------------------------------------------


@drops("HTTPLimits.write_seconds")
async def time_of_a_write(over: str, extra: int) -> Outcome:
    clock = Clock()
    clock.move(0)

    async def send(message: Any) -> None:
        await asyncio.sleep(29 + 2 * extra)

    stream = SSEResponse(send, limits_of(http_write_seconds=30))
    running = asyncio.ensure_future(stream.run())
    await clock.jump(0)
    await clock.jump(29 + 1.5 * extra)
    found = Outcome("the stream is cut" if stream.is_closed else "")
    stream.abort()
    await running
    return found


@drops("HTTPLimits.stream_bytes")
async def unread_bytes_of_a_stream(over: str, extra: int) -> Outcome:
    async def send(message: Any) -> None:
        raise AssertionError("nothing is written")

    stream = SSEResponse(send, limits_of(http_stream_bytes=1_000))
    stream.send_event(b"x" * (1_000 + extra))
    stream.send_event(b"x")
    return Outcome("the stream is cut" if stream.is_closed else "")


@drops("HTTPLimits.keep_alive_seconds")
async def time_without_an_event(over: str, extra: int) -> Outcome:
    clock = Clock()
    clock.move(0)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    stream = SSEResponse(send, limits_of(http_keep_alive_seconds=30))
    running = asyncio.ensure_future(stream.run())
    await clock.jump(0)
    await clock.jump(29 + 2 * extra)
    found = Outcome("a comment is sent" if sse.KEEP_ALIVE in [each.get("body") for each in sent] else "")
    stream.abort()
    await running
    return found


@drops("HTTPLimits.patience_seconds")
async def time_until_a_stream(over: str, extra: int) -> Outcome:
    clock = Clock()
    async with site(shop(http_patience_seconds=30)) as here:
        clock.move(0)
        client = await Stateful(here.raw, HANDSHAKE).open()
        call = await client.begin("POST", encode(client.calling("waits")))
        await until(here.busy)
        await clock.jump(29 + 2 * extra)
        found = Outcome("a stream begins" if call.status else "")
        await (await client.delete()).end()
        return found


# --- connections --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def timed(served: Any, seconds: float, **limits: Any) -> Any:
    """Let so much time pass for the connections of a server."""
    timeouts = ConnectionTimeouts(served.connections, limits_of(**limits))
    for second in range(int(seconds) + 1):
        timeouts.check(second)
    yield timeouts


@refuses("HTTPLimits.head_seconds")
async def time_of_a_head(over: str, extra: int) -> Outcome:
    async with listening() as (port, served):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HT")
        await until(lambda: [each for each in served.connections if each.http.unparsed])
        async with timed(served, 79 + extra, http_head_seconds=80):
            await turns(3)
        is_open = len(served.connections) == 1
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return Outcome("" if is_open else answer.decode())


async def answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": b"x"})


@drops("HTTPLimits.idle_seconds")
async def time_of_an_idle_connection(over: str, extra: int) -> Outcome:
    async with listening(answers) as (port, served):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\nx")
        async with timed(served, 79 + extra, http_idle_seconds=80):
            await turns(3)
        found = Outcome("" if served.connections else "closed")
        writer.close()
        return found


@drops("HTTPLimits.unread_seconds")
async def time_of_an_unread_answer(over: str, extra: int) -> Outcome:
    async with listening(large_answers) as (port, served):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_000)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await until(lambda: served.connections.slow_readers.unsent > LARGE / 2)
        async with timed(served, 79 + extra, http_unread_seconds=80):
            await turns(3)
        found = Outcome("" if served.connections else "closed")
        writer.transport.abort()
        return found


# --- clients ------------------------------------------------------------------------------------------------------


async def connecting(clock: Clock, seconds: float, **limits: Any) -> tuple[Outcome, list[str]]:
    """Connect to a server that is silent; return how that has ended after so long, and what the client has sent."""
    ours, theirs = memory.pair()
    client = Client(theirs, limits=limits_of(**limits))
    clock.move(0)
    opening = asyncio.ensure_future(client.connect())
    await clock.jump(0)
    await clock.jump(seconds)
    found = await ended(opening) if opening.done() else Outcome()
    opening.cancel()
    await asyncio.wait((opening,))
    sent = [json.loads(each)["method"] for each in await ours.receive()]
    await ours.close()
    return found, sent


@refuses("ClientLimits.connect_seconds", name=" in 30 s")
async def time_to_connect(over: str, extra: int) -> Outcome:
    found, _ = await connecting(Clock(), 29 + 2 * extra, client_connect_seconds=30, client_probe_seconds=100)
    return found


@drops("ClientLimits.probe_seconds")
async def time_of_the_probe(over: str, extra: int) -> Outcome:
    _, sent = await connecting(Clock(), 29 + 2 * extra, client_connect_seconds=100, client_probe_seconds=30)
    return Outcome("the handshake is tried" if "initialize" in sent else "")


@drops("ClientLimits.callback_seconds")
async def time_of_a_callback(over: str, extra: int) -> Outcome:
    clock, has_ended = Clock(), asyncio.Event()

    async def slow(*_: Any) -> None:
        await asyncio.sleep(29 + 2 * extra)
        has_ended.set()

    client, server = await hand_made(limits_of(client_callback_seconds=30))
    clock.move(0)
    asking = asyncio.ensure_future(client.request("tools/list", on_progress=slow))
    id = await asked(server)
    server.send(progress_report(id, 1))
    server.send(wired.answer_to(id))
    await clock.jump(0)
    await clock.jump(29.5 + extra)
    await asking
    await client.close()
    return Outcome("" if has_ended.is_set() else "cancelled")


@drops("Limits.pending_bytes", "client")
async def unsent_bytes_of_a_client(over: str, extra: int) -> Outcome:
    client, server = await hand_made()
    first = asyncio.ensure_future(client.request("tools/call", {"name": "x" * 900}))
    (message,) = await server.receive()
    await client.close()
    await asyncio.gather(first, return_exceptions=True)
    client, server = await hand_made(limits_of(pending_bytes=len(message) + 1 - extra))
    calls = [asyncio.ensure_future(client.request("tools/call", {"name": "x" * 900})) for _ in range(2)]
    await turns(20)
    found = Outcome("" if len(client.session.outgoing) == 2 else "the next one waits")
    await client.close()
    await asyncio.gather(*calls, return_exceptions=True)
    return found
