"""The floor of a server: a blocking loop of read, decode, encode, write, with msgspec only.

    python floor.py calls | many | large

It has fixed responses to `initialize` and `tools/list`, runs its tool, and checks nothing. A Python server can hardly
do less, so it represents the speed of the machine.
"""

from __future__ import annotations

import os
import sys

import msgspec
from msgspec import UNSET, Raw, UnsetType

LINE = "The quick brown fox jumps over the lazy dog, and the lazy dog does not mind.\n"


class Call(msgspec.Struct):
    name: str = ""
    arguments: Raw = Raw(b"{}")
    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")


class IncomingMessage(msgspec.Struct):
    method: str
    id: int | UnsetType = UNSET
    params: Call = msgspec.field(default_factory=Call)


class Text(msgspec.Struct, tag="text"):
    text: str


class Result(msgspec.Struct, omit_defaults=True):
    content: tuple[Text, ...]
    result_type: str | None = msgspec.field(default=None, name="resultType")


class Answer(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: int
    result: Result | Raw


class Echo(msgspec.Struct):
    text: str


class Size(msgspec.Struct):
    size: int


decode = msgspec.json.Decoder(IncomingMessage).decode
decode_echo = msgspec.json.Decoder(Echo).decode
decode_size = msgspec.json.Decoder(Size).decode
encode = msgspec.json.Encoder().encode

INITIALIZED = Raw(
    b'{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}}'
)
DISCOVERED = Raw(
    b'{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"floor","version":"1"},"ttlMs":0,"cacheScope":"private"}'
)


def described(number: int) -> dict[str, object]:
    """Return the definition of a tool with five parameters."""
    types = {"query": "string", "limit": "integer", "exact": "boolean", "score": "number", "place": "string"}
    return {
        "name": f"tool_{number}",
        "description": f"Find things of kind {number}.",
        "inputSchema": {
            "type": "object",
            "properties": {name: {"type": type_, "description": f"The {name}."} for name, type_ in types.items()},
            "required": ["query", "limit", "exact"],
        },
    }


def echo(arguments: Raw) -> str:
    return decode_echo(arguments).text


def large(arguments: Raw) -> str:
    return LINE * (decode_size(arguments).size // len(LINE))


TOOLS = {"echo": echo, "echo_sync": echo, "large": large}


def known(many: bool) -> dict[str, Raw]:
    """Return the fixed responses."""
    listed = Raw(encode({"tools": [described(number) for number in range(1_000 if many else 1)]}))
    return {"initialize": INITIALIZED, "server/discover": DISCOVERED, "tools/list": listed}


def serve(many: bool) -> None:
    responses = known(many)
    rest = b""
    while data := os.read(0, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        answers = [line for line in (answer(line, responses) for line in lines) if line]
        if len(answers) == 1:
            write([answers.pop(), b"\n"])
        elif answers:
            write([b"\n".join([*answers, b""])])


def answer(line: bytes, responses: dict[str, Raw]) -> bytes:
    """Return the response to a line, or an empty one for a notification."""
    request = decode(line)
    params = request.params
    if request.id is UNSET:
        return b""
    if request.method == "tools/call":
        content = (Text(TOOLS[params.name](params.arguments)),)
        return encode(Answer(request.id, Result(content, None if params.meta is UNSET else "complete")))
    return encode(Answer(request.id, responses[request.method]))


def write(buffers: list[bytes]) -> None:
    written = os.writev(1, buffers)
    for buffer in buffers:
        rest = memoryview(buffer)[written:]
        written = max(0, written - len(buffer))
        while rest:
            rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        os.sched_setaffinity(0, {int(sys.argv[2])})
    serve(sys.argv[1] == "many")
