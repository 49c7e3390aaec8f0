"""Whatever stands in a field at the largest size of a body: it is read in a moment, and the answer is not larger.

The fields are those of the types in the table of methods; the values are what parsers and lookups find hard.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from accord import Server
from accord.errors import ProtocolError
from accord.messages import codec
from accord.messages.methods import METHODS, Method, table
from accord.messages.revision import HANDSHAKE

from .http_clients import Stateful, site
from tests.measure import costs_at_most, processor_seconds

SIZE = (4 << 20) - 4_096
UNITS = 20
"""Times 10 ms of a processor of 2025, for all that is done for one request of 4 MB. An attack takes seconds."""
SMALL = 128 << 10
ALWAYS_FINE = 0.05
"""Seconds for a value of that size."""


def repeated(piece: bytes, around: bytes = b'""', between: bytes = b"", size: int = SIZE) -> bytes:
    count = (size - 2) // len(piece + between)
    return around[:1] + (piece + between) * (count - 1) + piece + around[1:]


VALUES: dict[str, bytes] = {
    "slashes": repeated(b"a/"),
    "quotes": repeated(rb"\":"),
    "texts": repeated(b'"a"', b"[]", b","),
    "numbers": repeated(b"1", b"[]", b","),
    "smallest numbers": repeated(b"5e-310", b"[]", b",", size=7 * 199_000),
    "largest numbers": repeated(b"1.5e305", b"[]", b",", size=8 * 199_000),
    "large numbers in a small body": repeated(b"1e300", b"[]", b",", size=60 << 10),
    "JSON in a text": b'"[' + repeated(rb"1\u0065300", b"  ", b",", size=2_400_000).strip() + b']"',
    "lists": repeated(b"[]", b"[]", b","),
    "objects": repeated(b'{"a":1}', b"[]", b","),
    "many keys": b"{" + b",".join(b'"k%x":1' % n for n in range(SIZE // 12)) + b"}",
}

BASE: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "echo", "arguments": {"text": "x"}},
    "prompts/get": {"name": "greet", "arguments": {"who": "x"}},
    "resources/read": {"uri": "notes://a"},
    "resources/subscribe": {"uri": "notes://a"},
    "resources/unsubscribe": {"uri": "notes://a"},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": ""}},
    "logging/setLevel": {"level": "info"},
}


def offering() -> Server:
    made = Server("fields")

    @made.tool
    def echo(text: str, more: list[dict[str, int]] | None = None) -> str:
        return str(len(text))

    @made.tool
    def take(**rest: Any) -> int:
        return len(rest)

    @made.prompt
    def greet(who: str) -> str:
        return str(len(who))

    greet.complete("who")(lambda typed: [])

    for number in range(20):
        made.resource(f"notes://{{a}}/x{number}/{{+b}}", name=f"n{number}")(lambda a, b: "")
    made.resource("notes://{name}", name="notes")(lambda name: str(len(name)))
    return made


def places(params: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The fields of params, those inside of them too, and one that nobody knows."""
    for field in msgspec.structs.fields(params):
        yield (*path, field.encode_name)
        found = msgspec.inspect.type_info(field.type)
        for each in getattr(found, "types", (found,)):
            if isinstance(each, msgspec.inspect.StructType):
                yield from places(each.cls, (*path, field.encode_name))
            elif isinstance(each, msgspec.inspect.DictType):
                yield (*path, field.encode_name, "text")
    yield (*path, "unknown")


def requests(row: Method) -> Iterator[tuple[str, ...]]:
    yield from dict.fromkeys(places(row.params))
    yield ("_meta", "progressToken")
    yield ("_meta", "x")


MARK = "THE VALUE"


def body(method: str, place: tuple[str, ...]) -> bytes:
    """A request with a mark at that place."""
    params: Any = msgspec.json.decode(msgspec.json.encode(BASE.get(method, {})))
    inside = params
    for step in place[:-1]:
        if not isinstance(inside.get(step), dict):
            inside[step] = {}
        inside = inside[step]
    inside[place[-1]] = MARK
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


ROWS = {row.params: row for row in table(HANDSHAKE[-1], "client").values() if not row.notification}
SENT = [row for row in ROWS.values() if row.name not in ("initialize", "tasks/get")]


@pytest.mark.parametrize("row", SENT, ids=lambda row: row.name)
async def test_any_value_of_any_field_is_answered_in_a_moment_and_in_few_bytes(row: Method) -> None:
    unit = processor_seconds(lambda: sorted(map(str, range(100_000))))
    async with site(offering()) as here:
        client = await Stateful(here.raw).open()

        async def send(sent: bytes) -> bytes:
            begun = time.process_time()
            came = await (await client.send("POST", sent)).body()
            took = time.process_time() - begun
            assert len(came) < 2 * len(sent)
            if took > UNITS * unit:  # again, with the machine as it is now
                with costs_at_most(UNITS):
                    await (await client.send("POST", sent)).body()
            return came

        values = list(VALUES.values())
        for place in requests(row):
            whole = body(row.name, place).replace(b'"' + MARK.encode() + b'"', b"%b")
            came = {value: await send(whole % value) for value in values}
            # What is refused for its structure is refused before anything is decoded: no other place has to show it.
            values = [value for value in values if b"HTTPLimits.body_nodes" not in came[value]]
        assert 3 <= len(values) < len(VALUES)
        if row.name == "tools/call":
            for tool, value in (("take", "many keys"), ("echo", "many keys"), ("take", "texts")):
                whole = body("tools/call", ("arguments",)).replace(b'"echo"', b'"%b"' % tool.encode())
                await send(whole.replace(b'"' + MARK.encode() + b'"', VALUES[value]))
        assert (await client.ask("ping")).status == 200


RESULTS = {row.name: row.result for row in METHODS if row.result is not None and isinstance(row.result, type)}


@pytest.mark.parametrize("name", RESULTS)
def test_a_client_reads_any_value_of_any_field_of_a_result_about_as_fast_as_its_json(name: str) -> None:
    type_ = RESULTS[name]
    if not issubclass(type_, msgspec.Struct):
        raise AssertionError(f"{type_} has no fields")
    values = [
        repeated(b"a/", size=SMALL),
        repeated(rb"\":", size=SMALL),
        repeated(b"[]", b"[]", b",", size=SMALL),
        repeated(b'{"a":1}', b"[]", b",", size=SMALL),
        b"{" + b",".join(b'"k%x":1' % n for n in range(SMALL // 12)) + b"}",
    ]
    for place in dict.fromkeys(places(type_)):
        head = b"".join(b'{"%b":' % step.encode() for step in place)
        for value in values:
            text = head + value + b"}" * len(place)
            took = _seconds(partial(codec.decode_result, type_, text), 1)
            if took >= ALWAYS_FINE:
                floor = _seconds(partial(msgspec.json.decode, text))
                took = _seconds(partial(codec.decode_result, type_, text))
                assert took < 5 * floor + ALWAYS_FINE, (place, value[:20])


def _seconds(work: Any, runs: int = 3) -> float:
    """Processor seconds of the quickest of some runs, without the garbage collection that others' objects cost."""
    taken = []
    gc.disable()
    try:
        for _ in range(runs):
            begun = time.process_time()
            with contextlib.suppress(ProtocolError, msgspec.MsgspecError, RecursionError):
                work()
            taken.append(time.process_time() - begun)
    finally:
        gc.enable()
    return min(taken)
