"""What passed in one conversation: every message both ways, in order, with what was on the way over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from accord.check.report import TransportName
from accord.check.rule import Kind
from accord.messages.base import JSONObject
from accord.wire.lines import Unreadable
from accord.wire.transcript import RECEIVED, SENT, Entry

REMARK: Literal["#"] = "#"

_EVIDENCE = 12
_WIDTH = 2_000
_ROOM, _HEAVIEST = 80 << 20, 48 << 20
"""Bytes of memory: for all that is kept, and for one message."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or with direction `#` a remark about what happened."""

    direction: Literal["→", "←", "#"]
    raw: bytes | Unreadable
    at: float
    message: Any = None
    """Decoded: an object, an array, any JSON; None where it is no JSON."""
    misbehaved: bool = False
    """Whether we sent it wrong on purpose."""
    stream: int = 0
    """Over HTTP: which request of ours it belongs to."""
    case: str = ""
    """In the course of which case, in words; empty in ordinary traffic."""

    def line(self) -> str:
        """Return the message as a line of a transcript."""
        if self.direction == REMARK:
            return f"# {self.raw.decode() if isinstance(self.raw, bytes) else self.raw.reason}"
        return Entry(self.direction, self.raw, self.at).render(_WIDTH)


class Reply(msgspec.Struct, kw_only=True):
    """What came for one HTTP request. `events` are those of a stream, `messages` what it said of MCP."""

    stream: int
    method: str
    status: int = 0
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    events: list[Any] = msgspec.field(default_factory=list)
    messages: list[Any] = msgspec.field(default_factory=list)
    sent: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Our headers, names in lower case."""
    error: str = ""
    """Why there is no response, or why it broke off."""
    begun: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Its first event is there, or it is over."""
    over: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Nothing more comes."""

    @property
    def ended(self) -> bool:
        """Whether the response is complete."""
        return self.over.is_set()


class Room:
    """How much of what a peer says is kept, in all the conversations that share it: so many bytes of memory.

    `of` says in words what is kept; what is taken from a room is taken from the one that it is `within` as well.
    """

    def __init__(self, size: int = _ROOM, of: str = "a visit", within: Room | None = None) -> None:
        self._size = size
        self._left = size
        self._of = of
        self._within = within

    def take(self, raw: bytes | Unreadable) -> None:
        """Count one message."""
        self.spend(_weight(raw) if isinstance(raw, bytes) else _ENTRY)

    def spend(self, size: int) -> None:
        """Count so many bytes."""
        self._left -= size
        if self._within is not None:
            self._within.spend(size)

    @property
    def full(self) -> str:
        """A sentence once there is no more room; empty while there is."""
        if self._left >= 0:
            return self._within.full if self._within is not None else ""
        return f"the peer says more than the {self._size >> 20} MB that we keep of {self._of}"


class Record:
    """One conversation. `kind` and `case` say which case has it; `case` is empty while a shared one is nobody's."""

    def __init__(
        self,
        revision: str,
        transport: TransportName,
        kind: Kind = "shared",
        case: str = "",
        room: Room | None = None,
    ) -> None:
        self.room: Room = room or Room()
        self.revision: str = revision
        self.transport: TransportName = transport
        self.kind: Kind = kind
        self.case: str = case
        self.entries: list[Said] = []
        self.replies: list[Reply] = []
        """Over HTTP: what came for each request."""
        self.hello: JSONObject = {}
        """What the peer said of itself when it was opened."""
        self.declared: JSONObject = {}
        """What we said that we can do."""
        self.stderr: str = ""
        self.exit_code: int | None = None

    def add(
        self,
        direction: Literal["→", "←", "#"],
        raw: bytes | Unreadable,
        *,
        misbehaved: bool = False,
        stream: int = 0,
    ) -> Said:
        """Note one message, or one remark."""
        message = decoded(raw) if direction != REMARK else None
        said = Said(
            direction=direction,
            raw=raw,
            at=time.monotonic(),
            message=message,
            misbehaved=misbehaved,
            stream=stream,
            case=self.case,
        )
        self.entries.append(said)
        if direction == RECEIVED:
            self.room.take(raw)
        return said

    def remark(self, text: str) -> None:
        """Record a remark, which is no message."""
        self.add(REMARK, text.encode())

    @property
    def silence(self) -> float:
        """Seconds from our first message to the first one of the peer; 0 where there is none."""
        sent = next((said.at for said in self.entries if said.direction == SENT), 0.0)
        return next((said.at - sent for said in self.entries if said.direction == RECEIVED), 0.0)

    def sent(self) -> Iterator[JSONObject]:
        """Our messages that are objects, those of batches one by one."""
        return self._objects(SENT)

    def heard(self) -> Iterator[JSONObject]:
        """The peer's messages that are objects, those of batches one by one."""
        return self._objects(RECEIVED)

    def _objects(self, direction: str) -> Iterator[JSONObject]:
        for said in self.entries:
            if said.direction == direction:
                yield from objects(said.message)

    def evidence(self, since: int = 0, about: Sequence[Said] = ()) -> tuple[str, ...]:
        """The messages in question, or the last ones since `since`, as lines."""
        entries = list(about) or self.entries[since:]
        lines = [said.line() for said in entries[-_EVIDENCE:]]
        if not about and (self.exit_code is not None):
            lines.append(f"# the process ended with {self.exit_code}")
        return tuple(lines)


def decoded(raw: bytes | Unreadable) -> Any:
    """The JSON in these bytes, or None."""
    if isinstance(raw, Unreadable) or _weight(raw) > _HEAVIEST:
        return None
    try:
        if not raw.isascii():
            raw.decode()
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_ENTRY, _OBJECT, _ARRAY, _VALUE = 200, 200, 64, 50
"""Bytes of memory of an entry, an object, an array and one more value in them, beside the text."""


def _weight(raw: bytes) -> int:
    """What a message takes in memory, decoded and as it came, about: an empty array is 30 times its two bytes."""
    values = _OBJECT * raw.count(b"{") + _ARRAY * raw.count(b"[") + _VALUE * raw.count(b",")
    return _ENTRY + 2 * len(raw) + values


def is_json(raw: bytes | Unreadable) -> bool:
    """By the grammar alone: an id that is half a character, which `rough` sends, may come back."""
    try:
        json.loads(raw if isinstance(raw, bytes) else b"")
    except (ValueError, RecursionError):
        return False
    return True


def objects(message: Any) -> Iterator[JSONObject]:
    """The objects in a message: itself, or the items of a batch."""
    for each in message if isinstance(message, list) else (message,):
        if isinstance(each, dict):
            yield each
