"""Two sessions wired back to back: no event loop, no I/O, no clock.

What one side sends waits in `wire[role]`, the queue towards that role, until `deliver` or `run` hands it over; until
then a test may drop, repeat or reorder it. Each side's requests are answered by a function of the session and the
pending, which returns a result, a `ProtocolError`, or LATER.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from accord.errors import ProtocolError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.capabilities import ClientCapabilities, ServerCapabilities
from accord.messages.identity import Implementation
from accord.messages.revision import REVISIONS
from accord.session.events import (
    CancelReceived,
    ConnectionOpened,
    Event,
    HandshakeFailed,
    ReplyReady,
    RequestReceived,
)
from accord.session.handshake import ClientHandshake
from accord.session.peer_info import PeerInfo
from accord.session.pending_request import PendingRequest
from accord.session.session import Role, Session

LATER = object()
"""An answer that is not there yet: the test gives it itself, by `Pair.respond` or `Pair.fail`."""

Answer = Callable[[Session, PendingRequest], Any]

ARROWS: dict[Role, str] = {"server": "→", "client": "←"}

SERVER_SAYS: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "logging": {},
    "completions": {},
}
CLIENT_SAYS: dict[str, Any] = {"sampling": {}, "elicitation": {}, "roots": {}}

ERAS = {"2024-11-05": "null", "2025-03-26": "null", "2025-06-18": "null", "2025-11-25": "absent"}
"""The revisions with a handshake, and the id of an error where none could be read (traps, 10)."""

S26 = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: S26, "io.modelcontextprotocol/clientCapabilities": {}}


def client(
    revisions: Sequence[str] = REVISIONS, *, says: Any = CLIENT_SAYS, limits: Limits = DEFAULT_LIMITS
) -> Session:
    capabilities = msgspec.convert(says, ClientCapabilities)
    profile = PeerInfo(Implementation(name="c", version="1"), capabilities)
    return Session("client", profile, revisions=revisions, limits=limits)


def server(
    revisions: Sequence[str] = REVISIONS, *, says: Any = SERVER_SAYS, limits: Limits = DEFAULT_LIMITS
) -> Session:
    capabilities = msgspec.convert(says, ServerCapabilities)
    profile = PeerInfo(Implementation(name="s", version="1"), capabilities, "Be kind.")
    return Session("server", profile, revisions=revisions, limits=limits)


NOTHING = Raw(b"{}")
"""The result that says nothing."""


def done(session: Session, pending: PendingRequest) -> Any:
    return NOTHING


def later(session: Session, pending: PendingRequest) -> Any:
    return LATER


class Pair:
    """A client and a server, and the two queues between them."""

    def __init__(
        self,
        ours: Session | None = None,
        theirs: Session | None = None,
        *,
        answer: Answer = done,
    ) -> None:
        self.client = ours or client()
        self.server = theirs or server()
        self.answer = answer
        self.wire: dict[Role, list[bytes]] = {"client": [], "server": []}
        self.happened: list[tuple[Role, Event]] = []
        self.transcript: list[str] = []

    def side(self, role: Role) -> Session:
        return self.client if role == "client" else self.server

    # What goes over the wire

    def send(self, session: Session, message: bytes | None) -> None:
        """Queue what a session gave to send, if it gave anything."""
        if message is not None:
            assert message, "an empty message was to be sent"
            assert message.isascii() or message.decode()
            assert msgspec.json.decode(message)
            assert b"\n" not in message
            self.transcript.append(f"{ARROWS[session.peer_role]} {message.decode()}")
            self.wire[session.peer_role].append(message)

    def put(self, to: Role, message: bytes) -> None:
        """Bytes that no session would send."""
        self.wire[to].append(message)

    def drop(self, to: Role, at: int = 0) -> bytes:
        return self.wire[to].pop(at)

    def repeat(self, to: Role, at: int = 0) -> None:
        self.wire[to].insert(at, self.wire[to][at])

    def reorder(self, to: Role) -> None:
        self.wire[to].reverse()

    def deliver(self, to: Role) -> list[Event]:
        """Hand over the next message, and do what the events ask for."""
        session = self.side(to)
        events = session.receive(self.wire[to].pop(0))
        for event in events:
            self.react(session, event)
        return events

    def react(self, session: Session, event: Event) -> None:
        self.happened.append((session.role, event))
        match event:
            case ReplyReady(message):
                self.send(session, message)
            case ConnectionOpened(reply=reply) | CancelReceived(reply=reply):
                self.send(session, reply)
            case RequestReceived(pending):
                outcome = self.answer(session, pending)
                if isinstance(outcome, ProtocolError):
                    self.send(session, session.fail(pending, outcome))
                elif outcome is not LATER:
                    self.send(session, session.respond(pending, outcome))

    def run(self) -> list[Event]:
        """Deliver, in turns, until nothing is under way; what happened."""
        before = len(self.happened)
        while any(self.wire.values()):
            for role in self.wire:
                if self.wire[role]:
                    self.deliver(role)
        return [event for _, event in self.happened[before:]]

    # What a side does

    def open(self, *, handshake: bool = False) -> ConnectionOpened | HandshakeFailed | None:
        """Begin, and run; how it ended for the client, or None while it waits."""
        opening = self.client.handshake
        assert isinstance(opening, ClientHandshake)
        self.send(self.client, opening.start(handshake=handshake))
        return self.opened()

    def silence(self) -> ConnectionOpened | HandshakeFailed | None:
        """The client loses patience with its probe."""
        opening = self.client.handshake
        assert isinstance(opening, ClientHandshake)
        self.send(self.client, opening.on_probe_timeout())
        return self.opened()

    def opened(self) -> ConnectionOpened | HandshakeFailed | None:
        """Run; the last word on the opening, for the client."""
        self.run()
        words = [
            event
            for role, event in self.happened
            if role == "client" and isinstance(event, ConnectionOpened | HandshakeFailed)
        ]
        return words[-1] if words else None

    def ask(self, name: str, params: Any = None, *, of: Role = "server", **options: Any) -> PendingRequest:
        session = self.client if of == "server" else self.server
        pending, message = session.request(name, params, **options)
        self.send(session, message)
        return pending

    def respond(self, session: Session, pending: PendingRequest, result: Any = NOTHING) -> None:
        self.send(session, session.respond(pending, result))

    def cancel(self, session: Session, pending: PendingRequest, reason: str | None = None) -> None:
        self.send(session, session.cancel(pending, reason))


# One server session, and what a test says to it by hand


def opened_server(revision: str, *, says: Any = SERVER_SAYS, limits: Limits = DEFAULT_LIMITS) -> Session:
    """A server that speaks `revision`: after the handshake, or fresh where there is none."""
    session = server(says=says, limits=limits)
    if revision != S26:
        session.receive(initialize(revision))
        session.receive(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    return session


def opened_client(revision: str, *, says: Any = CLIENT_SAYS, limits: Limits = DEFAULT_LIMITS) -> Session:
    """A client that a server of `revision` has opened."""
    pair = Pair(client([revision], says=says, limits=limits), server([revision]))
    assert isinstance(pair.open(), ConnectionOpened)
    return pair.client


def request(id: Any, method: str, params: Any = None, *, revision: str = "2025-11-25") -> bytes:
    """A request as a plain peer of `revision` writes it."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if revision == S26:
        params = {"_meta": META, **(params or {})}
    if params is not None:
        message["params"] = params
    return msgspec.json.encode(message)


def notification(method: str, params: Any = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return msgspec.json.encode(message if params is None else {**message, "params": params})


def answer_to(id: Any, **rest: Any) -> bytes:
    """An answer of a plain peer; without more, the result `{}`."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, **(rest or {"result": {}})})


def initialize(revision: str, id: Any = 0) -> bytes:
    params = {"protocolVersion": revision, "capabilities": CLIENT_SAYS, "clientInfo": {"name": "c", "version": "1"}}
    return request(id, "initialize", params)


def replies(session: Session, message: bytes) -> list[Any]:
    """What a session says at once to a message; requests that it lets through are answered `{}`."""
    said: list[bytes | None] = []
    for event in session.receive(message):
        match event:
            case ReplyReady(reply):
                said.append(reply)
            case ConnectionOpened(reply=reply) | CancelReceived(reply=reply):
                said.append(reply)
            case RequestReceived(pending):
                said.append(session.respond(pending, Raw(b"{}")))
    return [msgspec.json.decode(each) for each in said if each is not None]


def error_of(answer: Any) -> tuple[Any, int]:
    """The id ("absent" where there is none) and the code of an error response."""
    assert set(answer) <= {"jsonrpc", "id", "error"}
    assert answer["jsonrpc"] == "2.0"
    return answer.get("id", "absent"), answer["error"]["code"]
