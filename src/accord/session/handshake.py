"""The opening of a connection by each side (2025-11-25, Lifecycle; 2026-07-28, Versioning and stdio).

A client first sends `server/discover`, in a revision without a handshake. A result of such a revision opens the
connection; any other response means an older server, to which the client sends `initialize`. After a timeout it sends
`initialize` as well, and the first valid response opens the connection. A server answers both, on one connection. It
also answers a repeated `initialize`, because a client may start again with a process that it keeps, and a bridge has
one process for all its clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw, UnsetType

from accord.errors import (
    AccordError,
    AuthorizationError,
    ConnectError,
    ConnectionLost,
    HeaderMismatch,
    HTTPError,
    InvalidParams,
    InvalidRequest,
    ProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from accord.messages import codec
from accord.messages.capabilities import for_discover, for_handshake
from accord.messages.envelope import Notification
from accord.messages.identity import Implementation
from accord.messages.lifecycle import DiscoverResult, InitializeParams, InitializeResult
from accord.messages.meta import SERVER_INFO
from accord.messages.methods import table
from accord.messages.revision import HANDSHAKE, PER_REQUEST, RULES
from accord.session.events import (
    ConnectionOpened,
    ErrorReceived,
    Event,
    HandshakeFailed,
    InitializedReceived,
    ReplyReady,
    ResultReceived,
)
from accord.session.incoming import IncomingRequests
from accord.session.negotiation import (
    OPENING_METHODS,
    answer_initialize,
    choose_revision,
    newest_handshake,
    revisions_in_error,
)
from accord.session.outgoing import OutgoingRequests
from accord.session.peer_info import UNNAMED, PeerInfo
from accord.session.state import SessionState
from accord.session.states import CLIENT_TRANSITIONS, SERVER_TRANSITIONS, Phase

if TYPE_CHECKING:
    from accord.session.pending_request import PendingRequest

DISCOVER_TTL_MS = 60_000
"""How long a client may cache the result of `server/discover`: one minute, because the server's features may change."""


class ServerHandshake:
    """The server's side: it answers `initialize` and `server/discover`."""

    def __init__(self, state: SessionState, incoming: IncomingRequests) -> None:
        self._state = state
        self._incoming = incoming

    def discover(self, request: PendingRequest) -> Event:
        """Answer `server/discover`."""
        state, profile = self._state, self._state.local_info
        result = DiscoverResult(
            supported_versions=[revision for revision in PER_REQUEST if revision in state.revisions],
            capabilities=for_discover(profile.capabilities),
            instructions=profile.instructions,
            ttl_ms=DISCOVER_TTL_MS,
            cache_scope="private",
        )
        return ReplyReady(self._incoming.respond(request, result) or b"")

    def initialize(self, request: PendingRequest) -> Event | None:
        """Answer the first `initialize`.

        Return None for a repeated one, which goes to the handler as a request: the work of the previous handshake ends
        first, and then `read_params` and `accept` make the response.
        """
        state = self._state
        if state.phase is not Phase.NEW:
            return None
        try:
            result = self.accept(request, self.read_params(request))
        except ProtocolError as error:
            return ReplyReady(self._incoming.fail(request, error) or b"", error.code)
        return ConnectionOpened(state.rules.revision, self._incoming.respond(request, result))

    def read_params(self, request: PendingRequest) -> InitializeParams:
        """Decode the params of `initialize`. Their size is limited, because they are kept.

        Raises `InvalidParams`, `UnsupportedVersion` if the server has no revision with a handshake, and
        `InvalidRequest` once the connection is closed.
        """
        state, limit = self._state, self._state.limits.hello_bytes
        if isinstance(request.params, Raw) and len(request.params) > limit:
            raise InvalidParams(f"the params of initialize are over {limit:,} bytes (Limits.hello_bytes); declare less")
        params = codec.decode_params(InitializeParams, request.params)
        if answer_initialize(params.protocol_version, state.revisions) is None:
            raise UnsupportedVersion(
                f"initialize is not supported: this server supports {', '.join(state.revisions)}",
                data={"supported": list(state.revisions), "requested": params.protocol_version},
            )
        if (state.phase, "initialize") not in SERVER_TRANSITIONS:
            raise InvalidRequest(f"the connection is {state.phase.value}")
        return params

    def accept(self, request: PendingRequest, params: InitializeParams) -> InitializeResult:
        """Start the handshake, regardless of a previous one, and return its result."""
        state, profile = self._state, self._state.local_info
        revision = answer_initialize(params.protocol_version, state.revisions)
        assert revision is not None, "read() has looked"
        state.phase = SERVER_TRANSITIONS[state.phase, "initialize"]
        state.rules = request.rules = RULES[revision]
        state.peer_info = PeerInfo(params.client_info, params.capabilities)
        return InitializeResult(
            protocol_version=revision,
            capabilities=for_handshake(profile.capabilities),
            server_info=profile.info or UNNAMED,
            instructions=profile.instructions,
        )

    def receive_initialized(self, params: Raw | UnsetType) -> Event:
        """Process `notifications/initialized`: from now on this side may send requests."""
        phase = SERVER_TRANSITIONS.get((self._state.phase, "initialized"))
        if phase is None:
            return self._state.drop("initialized without initialize", "")
        self._state.phase = phase
        return InitializedReceived()


class ClientHandshake:
    """The client's side: it detects whether the server has a handshake."""

    def __init__(self, state: SessionState, outgoing: OutgoingRequests) -> None:
        self._state = state
        self._outgoing = outgoing
        self._refusal: Exception | None = None
        """The server's error for `initialize`, which is then not sent again."""
        self._probe_refusal: Exception | None = None
        """The server's error for the probe (`server/discover`)."""
        self._retried: bool = False
        """Whether the probe was sent again, with a revision from the server's error."""
        self.is_older: bool = False
        """Whether the response to the probe was that of an older server."""
        self.probe_timed_out: bool = False
        """Whether the probe timed out, so that `initialize` was sent."""

    def start(self, *, handshake: bool = False) -> bytes:
        """Return the first message. `handshake` skips the probe: the server is known to be an older one."""
        revision = choose_revision(PER_REQUEST, self._state.revisions)
        if revision is None or handshake:
            return self._initialize()
        return self._probe(revision)

    def on_probe_timeout(self) -> bytes | None:
        """Return `initialize` after a timeout of the probe, or None if the client cannot send it; both responses remain
        valid."""
        can_initialize = newest_handshake(self._state.revisions) is not None and self._refusal is None
        if self._state.phase is Phase.DISCOVERING and can_initialize:
            self.probe_timed_out = True
            return self._initialize()
        return None

    def assume(self, revision: str) -> None:
        """Set a revision without a handshake as the agreed one, without a message. Capabilities are unknown and not
        checked."""
        self._transition("assume")
        self._state.rules = RULES[revision]

    def _transition(self, what: str) -> None:
        self._state.phase = CLIENT_TRANSITIONS[self._state.phase, what]

    def _probe(self, revision: str) -> bytes:
        self._transition("probe")
        row = table(revision, "client")["server/discover"]
        return self._outgoing.send(row, RULES[revision])[1]

    def _initialize(self) -> bytes:
        revision = newest_handshake(self._state.revisions)
        if revision is None:
            raise ConnectError(f"the server has a handshake, and only {', '.join(self._state.revisions)} is allowed")
        self._transition("initialize")
        profile = self._state.local_info
        params = InitializeParams(
            protocol_version=revision,
            capabilities=for_handshake(profile.capabilities),
            client_info=profile.info or UNNAMED,
        )
        return self._outgoing.send(table(revision, "client")["initialize"], RULES[revision], params)[1]

    def _fall_back_to_initialize(self) -> Event:
        """Return `initialize` for an older server, unless it is in flight or was refused before."""
        can_initialize = newest_handshake(self._state.revisions) is not None and self._refusal is None
        if not can_initialize and isinstance(self._probe_refusal, HeaderMismatch):
            return self._open_undiscovered(choose_revision(PER_REQUEST, self._state.revisions))
        if self._refusal is not None:
            probe = _probe_refusal_text(self._probe_refusal, self._refusal)
            raise ConnectError(f"the server refused initialize: {self._refusal}{probe}") from self._refusal
        if newest_handshake(self._state.revisions) is None and self._probe_refusal is not None:
            raise ConnectError(
                f"the server refused server/discover: {self._probe_refusal}; an older server needs initialize, "
                f"and only {', '.join(self._state.revisions)} is allowed"
            ) from self._probe_refusal
        self.is_older = True
        if self._state.phase is Phase.INITIALIZING:
            return self._state.ignore("probe refused", "", log=False)
        return ReplyReady(self._initialize())

    def receive(self, event: ResultReceived | ErrorReceived) -> Event:
        """Return the event that follows from a response to an opening request; return any other event unchanged."""
        if event.pending.method.name not in OPENING_METHODS:
            return event
        try:
            if event.pending.method.name == "initialize":
                return self._on_initialize_response(event)
            return self._on_probe_response(event)
        except AccordError as error:
            return HandshakeFailed(error)

    def _on_probe_response(self, event: ResultReceived | ErrorReceived) -> Event:
        if isinstance(event, ErrorReceived):
            offered = revisions_in_error(event.error) if isinstance(event.error, ProtocolError) else None
            # "any other error" is that of an older server. A header mismatch is that of a newer one, which this
            # transport cannot reach: a bridge in between sends no headers. That server may have a handshake as well.
            if offered is None or isinstance(event.error, HeaderMismatch):
                if self._state.phase is Phase.DISCOVERING and _is_final(event.error):
                    raise event.error
                self._probe_refusal = event.error
                return self._fall_back_to_initialize()
            return self._open_per_request(offered, event.error)
        try:
            result = codec.decode_result(DiscoverResult, event.result)
        except ProtocolError:  # invalid: an older server that answers any request
            return self._fall_back_to_initialize()
        revision = choose_revision(result.supported_versions, self._state.revisions)
        if revision is None:
            return self._negotiate_older(result.supported_versions)
        info = codec.convert(Implementation, (result.meta or {}).get(SERVER_INFO))
        return self._finish_opening("discovered", revision, PeerInfo(info, result.capabilities, result.instructions))

    def _open_per_request(self, offered: list[str], error: Exception) -> Event:
        """Handle an error to the probe from a server of 2026-07-28 or later."""
        revision = choose_revision(offered, self._state.revisions)
        if revision is None:
            return self._negotiate_older(offered)
        if isinstance(error, UnsupportedVersion):  # "SHOULD select a mutually supported version ... and retry"
            if self._retried:
                raise RemoteProtocolError(f"the server refuses {revision}, although it offers it") from error
            self._retried = True
            return ReplyReady(self._probe(revision))
        return self._open_undiscovered(revision)

    def _open_undiscovered(self, revision: str | None) -> Event:
        """Open the connection without the result of `server/discover`."""
        assert revision is not None, "only a client with such a revision sends a probe"
        self.is_older = False
        return self._finish_opening("discovered", revision, None)

    def _negotiate_older(self, offered: list[str]) -> Event:
        """Fall back to `initialize` if the two sides share only revisions with a handshake, else raise
        `ConnectError`."""
        if any(revision in HANDSHAKE and revision in self._state.revisions for revision in offered):
            return self._fall_back_to_initialize()
        supported, offered_text = ", ".join(self._state.revisions), ", ".join(map(str, offered)) or "nothing"
        raise ConnectError(
            f"no revision in common: the server supports {offered_text}, the client supports {supported}"
        )

    def _on_initialize_response(self, event: ResultReceived | ErrorReceived) -> Event:
        if isinstance(event, ErrorReceived):
            return self._on_initialize_error(event.error)
        try:
            result = codec.decode_result(InitializeResult, event.result)
        except ProtocolError as exc:
            raise RemoteProtocolError(f"the answer to initialize is invalid: {exc.__cause__}") from exc
        if result.protocol_version not in HANDSHAKE or result.protocol_version not in self._state.revisions:
            raise ConnectError(
                f"the server answered initialize with revision {result.protocol_version!r}; "
                f"the client supports {', '.join(self._state.revisions)}"
            )
        peer = PeerInfo(result.server_info, result.capabilities, result.instructions)
        confirm = codec.encode(Notification("notifications/initialized"))
        self._outgoing.record_notification_sent()
        return self._finish_opening("initialized", result.protocol_version, peer, confirm)

    def _on_initialize_error(self, error: Exception) -> Event:
        """Handle an error to `initialize`: the probe remains, in flight or sent again."""
        self._refusal = error
        offered = revisions_in_error(error) if isinstance(error, ProtocolError) else None
        revision = choose_revision(offered or (), self._state.revisions)
        if revision is not None and not isinstance(self._probe_refusal, HeaderMismatch):
            return ReplyReady(self._probe(revision))
        if any(request.method.name == "server/discover" for request in self._outgoing.in_flight.values()):
            return self._state.ignore("initialize refused", "", log=False)
        if _is_final(error):
            raise error
        return self._fall_back_to_initialize()

    def _finish_opening(self, how: str, revision: str, peer: PeerInfo | None, reply: bytes | None = None) -> Event:
        state = self._state
        self._transition(how)
        state.rules, state.peer_info = RULES[revision], peer
        for id in [id for id, request in self._outgoing.in_flight.items() if request.method.name in OPENING_METHODS]:
            self._outgoing.abandon(id)  # the other opening request, still without a response
        return ConnectionOpened(revision, reply)


def _is_final(error: Exception) -> bool:
    """Return whether `initialize` would fail for the same reason as the probe."""
    return isinstance(error, ConnectionLost | AuthorizationError) or (isinstance(error, HTTPError) and error.final)


def _probe_refusal_text(refusal: Exception | None, other: Exception) -> str:
    """Return the reason for the refused probe, for an error that begins with `other`; the same reason is not
    repeated."""
    if refusal is None:
        return ""
    is_same = type(refusal) is type(other) and vars(refusal) == vars(other)
    return "; server/discover likewise" if is_same else f"; server/discover before: {refusal}"
