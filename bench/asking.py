"""The CPU time that a question adds to a call, besides its request: a call of two requests, in one session.

The floor is two calls of a tool with the same arguments and no question. There is no transport: the bytes go from the
session to the handler and back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

from accord import Context, Server
from accord.messages.tools import ToolAnnotations
from accord.server.core.dispatch import Dispatcher
from accord.server.core.peer import Peer
from accord.server.core.results import ResultEncoder
from accord.server.input.questions import Elicit
from accord.server.notify.subscription_index import SubscriptionIndex
from accord.session.events import RequestReceived
from accord.session.session import Session
from accord.transport import memory
from accord.transport.connection import Connection
from bench.measure import Figure, compare
from bench.wire import META, STATELESS, request

ROUNDS, CALLS = 9, 500

ADDED, FLOOR = 15, 21.0
"""The maximum microseconds that a declared question may add, and the lowest measured time of two plain calls."""

_META = META.replace(b'clientCapabilities":{}', b'clientCapabilities":{"elicitation":{"form":{}}}')
_FIRST = request(STATELESS, "tools/call", b'"name":"%b","arguments":{"path":"/tmp"}').replace(META, _META)
_ANSWER = b'"inputResponses":{"%b":{"action":"accept","content":{"value":true}}},"requestState":"%b","_meta"'

Call = Callable[[], Awaitable[None]]


class DirectSession:
    """A server session without a transport."""

    def __init__(self, server: Server) -> None:
        profile = server.profile()
        self._session = Session("server", profile)
        audience = SubscriptionIndex(server.profile, server.limits, lambda peer, uri: True)
        self._dispatch = Dispatcher(server, ResultEncoder(profile.raw_info), server.limits, audience)
        self._peer = Peer(Connection(self._session, memory.pair()[0], self._dispatch.handle))
        self._id = 0

    async def ask(self, line: bytes) -> bytes:
        """Return the response to a request."""
        self._id += 1
        (event,) = self._session.receive(line % self._id)
        assert type(event) is RequestReceived
        answer = self._session.respond(event.pending, await self._dispatch.handle(event.pending, self._peer))
        assert answer is not None
        return answer

    async def twice(self, tool: bytes) -> None:
        """Call a tool without a question twice."""
        line = _FIRST.replace(b"%b", tool)
        await self.ask(line)
        await self.ask(line)

    async def asked(self, tool: bytes, key: bytes) -> None:
        """Call a tool with a question, and call it again with the answer."""
        line = _FIRST.replace(b"%b", tool)
        state = (await self.ask(line)).split(b'"requestState":"', 1)[1].split(b'"', 1)[0]
        response = await self.ask(line.replace(b'"_meta"', _ANSWER % (key, state)))
        assert b"complete" in response


def run() -> list[Figure]:
    with asyncio.Runner() as runner:
        return runner.run(_run())


async def _run() -> list[Figure]:
    desk = DirectSession(_server())
    floor = partial(desk.twice, b"plain")
    aim = (FLOOR + ADDED) / FLOOR
    return [
        await figure("declared question, of what may run again", floor, partial(desk.asked, b"safe", b"sure"), aim),
        await figure("declared question, of what runs once", floor, partial(desk.asked, b"once", b"sure"), aim),
        await figure("question in the body, run again", floor, partial(desk.asked, b"again", b"ask-1")),
        await figure("question in the body, parked", floor, partial(desk.asked, b"parked", b"ask-1")),
    ]


async def figure(name: str, floor: Call, accord: Call, aim: float | None = None) -> Figure:
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for call, side in zip((floor, accord), times, strict=True):
            side.append(await microseconds(call))
    floors, accords = times
    return compare(name, "µs", floors, accords, aim, pick=min)


async def microseconds(call: Call) -> float:
    """Return the CPU time of one call in microseconds, averaged over many."""
    started = time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.process_time() - started) * 1e6 / CALLS


def _server() -> Server:
    server = Server("bench")
    safe = ToolAnnotations(read_only_hint=True)

    @server.tool
    async def plain(path: str) -> str:
        return path

    async def declared(path: str, sure: Annotated[bool, Elicit("Delete {path}?")]) -> str:
        return path

    async def in_the_body(path: str, ctx: Context) -> str:
        return f"{(await ctx.elicit('Delete?', bool)).data}"

    server.tool(name="safe", annotations=safe)(declared)
    server.tool(name="once")(declared)
    server.tool(name="again", annotations=safe)(in_the_body)
    server.tool(name="parked")(in_the_body)
    return server
