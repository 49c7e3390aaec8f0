"""The lines that the load sends and reads, in both eras: after a handshake, and with `_meta` in each request."""

from __future__ import annotations

import msgspec

from bench.measure import Child

SHAKEN, STATELESS = "2025-11-25", "2026-07-28"
ERAS = (SHAKEN, STATELESS)

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"load","version":"1"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
META = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{},'
    b'"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"}}'
)


class _Text(msgspec.Struct):
    text: str


class _Result(msgspec.Struct):
    content: list[_Text]


class Answer(msgspec.Struct):
    """The response to a call of a tool that returns text."""

    id: int
    result: _Result


def shake_hands(child: Child, era: str) -> None:
    """Complete the handshake, if the era has one."""
    if era == SHAKEN:
        child.ask(INITIALIZE)
        child.send(INITIALIZED)


def request(era: str, method: str, params: bytes) -> bytes:
    """Return a line with `%d` for its id; `params` are the members of an object, without its braces."""
    members = b",".join(part for part in (params, META if era == STATELESS else b"") if part)
    return b'{"jsonrpc":"2.0","id":%%d,"method":"%b","params":{%b}}\n' % (method.encode(), members)


def call(era: str, tool: str, arguments: bytes) -> bytes:
    """Return a `tools/call` with `%d` for its id."""
    return request(era, "tools/call", b'"name":"%b","arguments":%b' % (tool.encode(), arguments))
