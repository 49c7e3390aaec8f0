"""The time of the internal steps of a call in microseconds, in this process; the floor is msgspec alone.

Most of these figures have no aims: they show which step caused a change of the total.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from msgspec import Raw

from accord.messages import codec, envelope
from accord.messages.identity import Implementation
from accord.messages.revision import RULES
from accord.messages.tools import Tool, ToolExecution
from accord.server.core.registry import Registry
from accord.server.core.results import ResultEncoder
from accord.server.declare.signature import signature
from accord.server.server import Server
from accord.session.events import RequestReceived
from accord.session.peer_info import PeerInfo
from accord.session.session import Session
from bench.measure import Figure, compare, take_turns
from bench.wire import SHAKEN, STATELESS, call

ROUNDS, SECONDS = 7, 0.03

Step = Callable[[], object]


class _Request(msgspec.Struct):
    id: int
    method: str
    params: Raw


class _Answer(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: int
    result: Raw


class _Arguments(msgspec.Struct):
    city: str
    days: int
    exact: bool = False


class _Day(msgspec.Struct):
    sky: str
    high: float


_decode = msgspec.json.Decoder(_Request).decode
_encode = msgspec.json.Encoder().encode
_LINE = call(STATELESS, "forecast", b'{"city":"Oslo","days":3}') % 1
_RESULT = Raw(b'{"resultType":"complete","content":[{"type":"text","text":"fine"}]}')


def run() -> list[Figure]:
    pairs = {
        "read an envelope": reading,
        "session: a request and its answer": session,
        "bind arguments": binding,
        "pack a structured result": packing,
        "narrow a tool to an older view": narrowing,
        "a page of 1,000 tools, made before": listing,
    }
    return [of_step(name, *pair()) for name, pair in pairs.items()]


def of_step(name: str, floor: Step, accord: Step, aim: float | None = None) -> Figure:
    for step in (floor, accord):
        microseconds(step)
    floors, accords = take_turns(ROUNDS, lambda: microseconds(floor), lambda: microseconds(accord))
    return compare(name, "µs", floors, accords, aim, pick=min)


def microseconds(step: Step) -> float:
    """Return the CPU time of one step in microseconds, averaged over many."""
    count = 0
    end = time.perf_counter() + SECONDS
    started = time.process_time()
    while time.perf_counter() < end:
        for _ in range(200):
            step()
        count += 200
    return (time.process_time() - started) * 1e6 / count


def reading() -> tuple[Step, Step]:
    return lambda: _decode(_LINE), lambda: envelope.read(_LINE)


def session() -> tuple[Step, Step]:
    """Measure ids, the table of requests and the rules of the revision: the code between the bytes and a handler."""
    server_session = Session("server", Server("bench").profile())
    server = Server("bench")
    server.tool(_forecast)
    server_session.local_info = server.profile()

    def accord() -> bytes | None:
        (event,) = server_session.receive(_LINE)
        assert type(event) is RequestReceived
        return server_session.respond(event.pending, _RESULT)

    return lambda: _encode(_Answer(_decode(_LINE).id, _RESULT)), accord


def binding() -> tuple[Step, Step]:
    decode = msgspec.json.Decoder(_Arguments).decode
    bind = signature(_forecast).bind
    arguments = Raw(b'{"city":"Oslo","days":3}')
    return lambda: decode(arguments), lambda: bind(arguments)


def packing() -> tuple[Step, Step]:
    """Measure the encoding; the floor encodes the value, and then the result with the value as JSON and as text."""
    value = [_Day("fine", 20.5), _Day("rain", 12.0)]
    packer, returns = (
        ResultEncoder(PeerInfo(Implementation(name="bench", version="1"), None).raw_info),
        signature(_forecast),
    )
    rules = RULES[STATELESS]

    def floor() -> bytes:
        encoded = _encode(value)
        content = [{"type": "text", "text": encoded.decode()}]
        return _encode({"resultType": "complete", "content": content, "structuredContent": Raw(encoded)})

    return floor, lambda: packer.encode_tool(value, returns, rules)


def narrowing() -> tuple[Step, Step]:
    """Measure the encoding for an older revision; the floor encodes the value as it is."""
    tool = Tool(name="one", input_schema={"type": "object"}, execution=ToolExecution(task_support="optional"))
    return lambda: _encode(tool), lambda: _encode(codec.narrow(tool, "2025-03-26"))


def listing() -> tuple[Step, Step]:
    server = Server("bench")
    for number in range(1_000):
        server.tool(name=f"tool_{number}")(_forecast)
    registry: Registry = server.registry
    pages, rules = registry.lists["tools/list"], RULES[SHAKEN]
    pages_made = {None: pages.page(None, rules)}
    return lambda: pages_made[None], lambda: pages.page(None, rules)


async def _forecast(city: str, days: int, exact: bool = False) -> list[_Day]:
    """Return the weather of the coming days."""
    return [_Day("fine", 20.5) for _ in range(days)]
