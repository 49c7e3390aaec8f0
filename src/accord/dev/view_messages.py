"""The messages between a running `accord dev` and the views that are attached to it: one JSON object on each line."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The first message to a view: what runs here."""

    target: str
    """The name for people."""
    identity: str
    """The file, or the command line with its directory."""
    pid: int
    started: float


class StartedCall(msgspec.Struct, frozen=True, tag="call_started"):
    """A call went to the program; `number` counts the calls."""

    number: int
    at: float
    """Seconds since 1970."""
    title: str
    """Method and name: `tools/call forecast`."""
    request: str
    """The JSON-RPC message; redacted when it is sent to a view."""


class EndedCall(msgspec.Struct, frozen=True, tag="call_ended"):
    """A call has ended."""

    number: int
    seconds: float
    outcome: str
    """`ok`, `tool error`, `error -32602: ...`, `cancelled`."""
    response: str


class Line(msgspec.Struct, frozen=True, tag="line"):
    """A line that the developer was shown."""

    at: float
    text: str


class Dropped(msgspec.Struct, frozen=True, tag="dropped"):
    """The view was too slow: so many messages were not sent to it."""

    count: int


class ReloadCommand(msgspec.Struct, frozen=True, tag="reload"):
    """A view asks for a reload."""


ViewEvent: TypeAlias = StartedCall | EndedCall | Line
ToView: TypeAlias = Hello | StartedCall | EndedCall | Line | Dropped

_OBJECT_SIZE = 100


def size_of(event: ViewEvent) -> int:
    """Return about how many characters an event takes."""
    if isinstance(event, StartedCall):
        return _OBJECT_SIZE + len(event.title) + len(event.request)
    return _OBJECT_SIZE + (len(event.text) if isinstance(event, Line) else len(event.outcome) + len(event.response))
