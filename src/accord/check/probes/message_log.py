"""The log of a session: all messages of both sides in order, and the HTTP responses."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from accord.check.engine.report import TransportName
from accord.check.engine.rule import EvidenceLine, Kind
from accord.messages.base import JSONObject
from accord.transport.recording import ConnectionRecorder, SessionRecorder
from accord.wire.lines import SkippedMessage
from accord.wire.session_file import MessageDirection
from accord.wire.transcript import RECEIVED, SENT, TranscriptEntry

REMARK: Literal["#"] = "#"

_EVIDENCE = 12
_WIDTH = 2_000
_MEMORY, _HEAVIEST = 80 << 20, 48 << 20
"""Bytes of memory: for the whole log, and for one message."""


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or a remark with the direction `#`."""

    direction: Literal["→", "←", "#"]
    raw: bytes | SkippedMessage
    at: float
    message: Any = None
    """The decoded JSON value; None if it is not JSON."""
    misbehaved: bool = False
    """Whether the checker sent an invalid message on purpose."""
    stream: int = 0
    """Over HTTP: the number of the checker's request that it belongs to."""
    case: str = ""
    """The name of the case in which it was sent; empty in ordinary traffic."""
    number: int | None = None
    """The number of its entry in the session file; None if it is in none."""

    def line(self) -> EvidenceLine:
        """Return the message as a line of a transcript."""
        if self.direction == REMARK:
            text = f"# {self.raw.decode() if isinstance(self.raw, bytes) else self.raw.reason}"
        else:
            text = TranscriptEntry(self.direction, self.raw, self.at).render(_WIDTH)
        return EvidenceLine(text, () if self.number is None else (self.number,))


class LoggedAnswer(NamedTuple):
    """A response and the request that it answers, each with its entry."""

    entry: LogEntry
    message: JSONObject
    request_entry: LogEntry
    request: JSONObject


class LoggedResponse(msgspec.Struct, kw_only=True):
    """The response to one HTTP request, with the events of a stream and the JSON-RPC messages."""

    stream: int
    method: str
    status: int = 0
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    events: list[Any] = msgspec.field(default_factory=list)
    messages: list[Any] = msgspec.field(default_factory=list)
    request_headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The headers of the request, with names in lower case."""
    error: str = ""
    """Why there is no response, or why it is incomplete."""
    session_ended: bool = False
    """True if the checker ended the session before the response was complete."""
    url: str = ""
    """The URL of the request, if it is not that of the session."""
    entries: list[int] = msgspec.field(default_factory=list)
    """The numbers of the entries of the session file with the request and the response."""
    answered: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set when the status and the headers have been received, or the response has ended."""
    started: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set when the first event has been received, or the response has ended."""
    closed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set when the response has ended."""

    @property
    def is_closed(self) -> bool:
        """Whether the response is complete."""
        return self.closed.is_set()


class MemoryBudget:
    """A limit for the memory of the logs that share it, in bytes.

    `of` names the logs in error messages; a budget that is `within` another one charges that one as well.
    """

    def __init__(self, size: int = _MEMORY, of: str = "a visit", within: MemoryBudget | None = None) -> None:
        self._size = size
        self._remaining = size
        self._subject = of
        self._parent = within

    def charge_message(self, raw: bytes | SkippedMessage) -> None:
        """Charge one message."""
        self.charge(_memory_size(raw) if isinstance(raw, bytes) else _ENTRY)

    def charge(self, size: int) -> None:
        """Charge a number of bytes."""
        self._remaining -= size
        if self._parent is not None:
            self._parent.charge(size)

    @property
    def exhausted(self) -> str:
        """Describe the limit when it is exceeded; empty before."""
        if self._remaining >= 0:
            return self._parent.exhausted if self._parent is not None else ""
        return f"the peer sent more than the {self._size >> 20} MB that the checker keeps of {self._subject}"


class MessageLog:
    """The log of one session. `kind` and `case` are those of its case; `case` is empty between the cases of a shared
    one.
    """

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
        self.messages: list[tuple[LogEntry, JSONObject]] = []
        """The messages of both sides that are objects, and the items of batches, each with its entry."""
        self.answers: list[LoggedAnswer] = []
        """The responses to requests of the checker. All readings use them: they are matched once, as they arrive."""
        self._requests: dict[tuple[type, Any], tuple[LogEntry, JSONObject]] = {}
        self.responses: list[LoggedResponse] = []
        """Over HTTP: the response to each request."""
        self.unconfirmed: set[str] = set()
        """The names of cases that failed once, and not alone. Readings that depend on timing do not judge them."""
        self.handshake_result: JSONObject = {}
        """The result of the handshake."""
        self.client_capabilities: JSONObject = {}
        """The client capabilities of the session."""
        self.stderr: str = ""
        self.exit_code: int | None = None
        self._session: SessionRecorder | None = None
        self._recorder: ConnectionRecorder | None = None
        self._recorded_case = ""
        self._entries: dict[int, list[int]] = defaultdict(list)
        """Over HTTP: the numbers of the recorded entries of each request with its response."""

    def record(self, recorder: SessionRecorder | None, name: str, client: MessageDirection = "sent") -> None:
        """Write the log to a session file, too; `name` is the peer, `client` the direction of the client's messages."""
        if recorder is not None:
            self._session = recorder
            self._recorder = recorder.connection(client)
            self._recorder.opened(name, self.transport)

    def close(self, stderr: str = "", exit_code: int | None = None) -> None:
        """Store how the session ended; nothing is logged afterwards."""
        self.stderr, self.exit_code = stderr, exit_code
        if self._recorder is not None:
            for line in stderr.splitlines():
                self._recorder.stderr(line)
            if exit_code is not None:
                self._recorder.remark(f"the process ended with {exit_code}")
            self._recorder.closed()

    def add_request(self, response: LoggedResponse, url: str) -> None:
        """Add the response of an HTTP request that is sent to a URL."""
        self.responses.append(response)
        if self._recorder is not None:
            response.entries = self._entries[response.stream]
            self._recorder.on_request(response.stream, response.method, url, response.request_headers, None, 0)
            self._note_entry(response.stream)

    def add_response(self, response: LoggedResponse) -> None:
        """Add the status and the headers of a response, which have arrived."""
        if self._recorder is not None:
            self._recorder.on_response(response.stream, response.status, response.headers)
            self._note_entry(response.stream)

    def add_body(self, response: LoggedResponse) -> None:
        """Add the body of a response, which is no message."""
        if self._recorder is not None and response.body:
            self._recorder.on_message(response.stream, response.body)
            self._note_entry(response.stream)

    def add(
        self,
        direction: Literal["→", "←", "#"],
        raw: bytes | SkippedMessage,
        *,
        misbehaved: bool = False,
        stream: int = 0,
    ) -> LogEntry:
        """Add one message or one remark."""
        message = decode_json(raw) if direction != REMARK else None
        number = None if self._recorder is None else self._record(direction, raw, stream, self._recorder)
        entry = LogEntry(
            direction=direction,
            raw=raw,
            at=time.monotonic(),
            message=message,
            misbehaved=misbehaved,
            stream=stream,
            case=self.case,
            number=number,
        )
        self.entries.append(entry)
        self._add_messages(entry)
        if direction == RECEIVED:
            self.memory.charge_message(raw)
        return entry

    def _add_messages(self, entry: LogEntry) -> None:
        """Add the messages of an entry, and match a response with its request."""
        for message in message_objects(entry.message):
            self.messages.append((entry, message))
            if entry.direction == SENT and "method" in message and "id" in message:
                self._requests[id_key(message["id"])] = entry, message
            elif entry.direction == RECEIVED and is_response(message):
                request = self._requests.get(id_key(message.get("id")))
                if request is not None:
                    self.answers.append(LoggedAnswer(entry, message, *request))

    def _record(
        self, direction: str, raw: bytes | SkippedMessage, stream: int, recorder: ConnectionRecorder
    ) -> int | None:
        """Record a message or a remark, and return the number of its entry; None if it has none."""
        if self.case != self._recorded_case:
            self._recorded_case = self.case
            recorder.remark(f"case {self.case}" if self.case else "ordinary traffic")
        before = self._recorded_entries
        if direction == REMARK:
            recorder.remark(raw.decode() if isinstance(raw, bytes) else raw.reason)
        else:
            recorder.message(raw, "sent" if direction == SENT else "received", stream)
        if self._recorded_entries == before:  # the end of a message, or the connection is closed
            return None
        if stream:
            self._entries[stream].append(before)
        return before

    @property
    def _recorded_entries(self) -> int:
        return 0 if self._session is None else self._session.entries

    def _note_entry(self, stream: int) -> None:
        """Note that the last recorded entry belongs to a request over HTTP."""
        self._entries[stream].append(self._recorded_entries - 1)

    def record_lines(self, lines: Iterable[str]) -> tuple[EvidenceLine, ...]:
        """Write lines of evidence that are in no log to the session file, as remarks, and return them."""
        recorded = []
        for line in lines:
            number = self._recorded_entries
            if self._recorder is not None:
                self._recorder.remark(str(line))
            recorded.append(EvidenceLine(line, range(number, self._recorded_entries)))
        return tuple(recorded)

    def add_remark(self, text: str) -> None:
        """Add a remark, which is not a message."""
        self.add(REMARK, text.encode())

    @property
    def first_answer_seconds(self) -> float:
        """Return the seconds from the first message of the checker to the first message of the peer; 0 without one."""
        sent = next((entry.at for entry in self.entries if entry.direction == SENT), 0.0)
        return next((entry.at - sent for entry in self.entries if entry.direction == RECEIVED), 0.0)

    def sent_messages(self) -> Iterator[JSONObject]:
        """Yield the messages of the checker that are objects, and the items of batches."""
        return self._objects(SENT)

    def received_messages(self) -> Iterator[JSONObject]:
        """Yield the messages of the peer that are objects, and the items of batches."""
        return self._objects(RECEIVED)

    def _objects(self, direction: str) -> Iterator[JSONObject]:
        return (message for entry, message in self.messages if entry.direction == direction)

    def evidence(self, since: int = 0, about: Sequence[LogEntry] = ()) -> tuple[str, ...]:
        """Return messages as lines of a transcript: those in `about`, or the last ones since `since`."""
        entries = list(about) or self.entries[since:]
        lines: list[str] = [entry.line() for entry in entries[-_EVIDENCE:]]
        if not about and (self.exit_code is not None):
            lines.append(f"# the process ended with {self.exit_code}")
        return tuple(lines)


def decode_json(raw: bytes | SkippedMessage) -> Any:
    """Return the JSON value in these bytes, or None."""
    if isinstance(raw, SkippedMessage) or _memory_size(raw) > _HEAVIEST:
        return None
    try:
        if not raw.isascii():
            raw.decode()
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_ENTRY, _OBJECT, _ARRAY, _VALUE = 200, 200, 64, 50
"""Bytes of memory of an entry, an object, an array and another value, without their text."""


def _memory_size(raw: bytes) -> int:
    """Return the approximate memory of a message, decoded and encoded: an empty array takes 30 times its two bytes."""
    values = _OBJECT * raw.count(b"{") + _ARRAY * raw.count(b"[") + _VALUE * raw.count(b",")
    return _ENTRY + 2 * len(raw) + values


def is_json(raw: bytes | SkippedMessage) -> bool:
    """Return whether the bytes match the grammar of JSON, also with lone surrogates, which the rules about faults
    send.
    """
    try:
        json.loads(raw if isinstance(raw, bytes) else b"")
    except (ValueError, RecursionError):
        return False
    return True


def message_objects(message: Any) -> Iterator[JSONObject]:
    """Yield the objects in a message: itself, or the items of a batch."""
    for each in message if isinstance(message, list) else (message,):
        if isinstance(each, dict):
            yield each


def is_response(message: JSONObject) -> bool:
    """Return whether a message is a response: a result or an error."""
    return "method" not in message and ("result" in message or "error" in message)


def id_key(id: Any) -> tuple[type, Any]:
    """Return an id as a key with its JSON type: 7 is not "7"."""
    return type(id), id if isinstance(id, int | str | float) else repr(id)
