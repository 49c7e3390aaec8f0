"""What passed in one conversation: every message both ways, in order, with what was on the way over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from accord.check.engine.report import TransportName
from accord.check.engine.rule import Kind
from accord.messages.base import JSONObject
from accord.wire.lines import SkippedMessage
from accord.wire.transcript import RECEIVED, SENT, TranscriptEntry

REMARK: Literal["#"] = "#"

_EVIDENCE = 12
_WIDTH = 2_000
_MEMORY, _HEAVIEST = 80 << 20, 48 << 20
"""Bytes of memory: for all that is kept, and for one message."""


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or with direction `#` a remark about what happened."""

    direction: Literal["→", "←", "#"]
    raw: bytes | SkippedMessage
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
        return TranscriptEntry(self.direction, self.raw, self.at).render(_WIDTH)


class LoggedResponse(msgspec.Struct, kw_only=True):
    """What came for one HTTP request. `events` are those of a stream, `logged_messages` what it said of MCP."""

    stream: int
    method: str
    status: int = 0
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    events: list[Any] = msgspec.field(default_factory=list)
    messages: list[Any] = msgspec.field(default_factory=list)
    request_headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Our headers, names in lower case."""
    error: str = ""
    """Why there is no response, or why it broke off."""
    started: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Its first event is there, or it is over."""
    closed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Nothing more comes."""

    @property
    def is_closed(self) -> bool:
        """Whether the response is complete."""
        return self.closed.is_set()


class MemoryBudget:
    """How much of what a peer says is kept, in all the conversations that share it: so many bytes of memory.

    `of` says in words what is kept; what is taken from a room is taken from the one that it is `within` as well.
    """

    def __init__(self, size: int = _MEMORY, of: str = "a visit", within: MemoryBudget | None = None) -> None:
        self._size = size
        self._remaining = size
        self._subject = of
        self._parent = within

    def charge_message(self, raw: bytes | SkippedMessage) -> None:
        """Count one message."""
        self.charge(_memory_size(raw) if isinstance(raw, bytes) else _ENTRY)

    def charge(self, size: int) -> None:
        """Count so many bytes."""
        self._remaining -= size
        if self._parent is not None:
            self._parent.charge(size)

    @property
    def exhausted(self) -> str:
        """A sentence once there is no more room; empty while there is."""
        if self._remaining >= 0:
            return self._parent.exhausted if self._parent is not None else ""
        return f"the peer says more than the {self._size >> 20} MB that we keep of {self._subject}"


class MessageLog:
    """One conversation. `kind` and `case` say which case has it; `case` is empty while a shared one is nobody's."""

    def __init__(
        self,
        revision: str,
        transport: TransportName,
        kind: Kind = "shared",
        case: str = "",
        room: MemoryBudget | None = None,
    ) -> None:
        self.memory: MemoryBudget = room or MemoryBudget()
        self.revision: str = revision
        self.transport: TransportName = transport
        self.kind: Kind = kind
        self.case: str = case
        self.entries: list[LogEntry] = []
        self.responses: list[LoggedResponse] = []
        """Over HTTP: what came for each request."""
        self.handshake_result: JSONObject = {}
        """What the peer said of itself when it was opened."""
        self.client_capabilities: JSONObject = {}
        """What we said that we can do."""
        self.stderr: str = ""
        self.exit_code: int | None = None

    def add(
        self,
        direction: Literal["→", "←", "#"],
        raw: bytes | SkippedMessage,
        *,
        misbehaved: bool = False,
        stream: int = 0,
    ) -> LogEntry:
        """Note one message, or one remark."""
        message = decode_json(raw) if direction != REMARK else None
        entry = LogEntry(
            direction=direction,
            raw=raw,
            at=time.monotonic(),
            message=message,
            misbehaved=misbehaved,
            stream=stream,
            case=self.case,
        )
        self.entries.append(entry)
        if direction == RECEIVED:
            self.memory.charge_message(raw)
        return entry

    def add_remark(self, text: str) -> None:
        """Record a remark, which is no message."""
        self.add(REMARK, text.encode())

    @property
    def first_answer_seconds(self) -> float:
        """Seconds from our first message to the first one of the peer; 0 where there is none."""
        sent = next((entry.at for entry in self.entries if entry.direction == SENT), 0.0)
        return next((entry.at - sent for entry in self.entries if entry.direction == RECEIVED), 0.0)

    def sent_messages(self) -> Iterator[JSONObject]:
        """Our messages that are objects, those of batches one by one."""
        return self._objects(SENT)

    def received_messages(self) -> Iterator[JSONObject]:
        """The peer's messages that are objects, those of batches one by one."""
        return self._objects(RECEIVED)

    def _objects(self, direction: str) -> Iterator[JSONObject]:
        for entry in self.entries:
            if entry.direction == direction:
                yield from message_objects(entry.message)

    def evidence(self, since: int = 0, about: Sequence[LogEntry] = ()) -> tuple[str, ...]:
        """The messages in question, or the last ones since `since`, as lines."""
        entries = list(about) or self.entries[since:]
        lines = [entry.line() for entry in entries[-_EVIDENCE:]]
        if not about and (self.exit_code is not None):
            lines.append(f"# the process ended with {self.exit_code}")
        return tuple(lines)


def decode_json(raw: bytes | SkippedMessage) -> Any:
    """The JSON in these bytes, or None."""
    if isinstance(raw, SkippedMessage) or _memory_size(raw) > _HEAVIEST:
        return None
    try:
        if not raw.isascii():
            raw.decode()
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_ENTRY, _OBJECT, _ARRAY, _VALUE = 200, 200, 64, 50
"""Bytes of memory of an entry, an object, an array and one more value in them, beside the text."""


def _memory_size(raw: bytes) -> int:
    """What a message takes in memory, decoded and as it came, about: an empty array is 30 times its two bytes."""
    values = _OBJECT * raw.count(b"{") + _ARRAY * raw.count(b"[") + _VALUE * raw.count(b",")
    return _ENTRY + 2 * len(raw) + values


def is_json(raw: bytes | SkippedMessage) -> bool:
    """By the grammar alone: an id that is half a character, which the rules about faults send, may come back."""
    try:
        json.loads(raw if isinstance(raw, bytes) else b"")
    except (ValueError, RecursionError):
        return False
    return True


def message_objects(message: Any) -> Iterator[JSONObject]:
    """The objects in a message: itself, or the items of a batch."""
    for each in message if isinstance(message, list) else (message,):
        if isinstance(each, dict):
            yield each
