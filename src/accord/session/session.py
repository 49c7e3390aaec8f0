"""The session: messages in, events out; no clock, no await, no socket.

`receive` takes one message and returns the events; `request`, `notify`, `respond`, `fail`, `cancel` and `report` return
the bytes to send. The parts: requests of the peer are in `incoming_requests`, those of this side in
`outgoing_requests`, progress in `progress`, other notifications in `notifications`, the allowed methods in
`method_table`, the opening of the connection in `handshake`.

The revision belongs to the request: a server serves a request that carries its revision in `_meta` under the rules of
that revision, and any other under the revision of `initialize`, both on one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from accord.errors import AccordError, InvalidRequest, NotConnected, ParseError, ProtocolError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import envelope
from accord.messages.bounds import MAX_EXTREMES, MEASURED_BYTES, RESULT_NODES, has_more_nodes
from accord.messages.envelope import Incoming, MalformedMessage, Outline, RequestId
from accord.messages.methods import Method
from accord.messages.revision import REVISIONS, Rules
from accord.session.events import Event, ReplyReady, RequestReceived
from accord.session.handshake import ClientHandshake, ServerHandshake
from accord.session.incoming import IncomingRequests
from accord.session.notifications import Notifications
from accord.session.outgoing import OutgoingRequests
from accord.session.peer_info import PeerInfo
from accord.session.pending_request import Batch, PendingRequest
from accord.session.progress import ProgressTracker
from accord.session.state import Role, SessionState
from accord.session.states import Phase


class Session(SessionState):
    """One side of one connection. `role` is that of this side; `methods` are those of extensions, of both senders.

    Raises `ValueError` for methods whose names are already used.
    """

    def __init__(
        self,
        role: Role,
        profile: PeerInfo,
        *,
        revisions: Sequence[str] = REVISIONS,
        limits: Limits = DEFAULT_LIMITS,
        methods: Sequence[Method] = (),
    ) -> None:
        super().__init__(role, profile, revisions=revisions, limits=limits, methods=methods)
        self.incoming_requests: IncomingRequests = IncomingRequests(self)
        self.incoming: dict[object, PendingRequest] = self.incoming_requests.in_flight
        self.outgoing_requests: OutgoingRequests = OutgoingRequests(self)
        self.outgoing: dict[RequestId, PendingRequest] = self.outgoing_requests.in_flight
        self.progress: ProgressTracker = ProgressTracker(self, self.outgoing, self.notify)
        received: dict[str, Callable[[Raw | UnsetType], Event]] = {"notifications/progress": self.progress.receive}
        self.handshake: ClientHandshake | ServerHandshake
        if role == "client":
            client = self.handshake = ClientHandshake(self, self.outgoing_requests)
            self.outgoing_requests.on_opening_answer = client.receive
        else:
            server = self.handshake = ServerHandshake(self, self.incoming_requests)
            self.incoming_requests.built_in |= {"initialize": server.initialize, "server/discover": server.discover}
            received["notifications/initialized"] = server.receive_initialized
        self.notifications: Notifications = Notifications(
            self, self.incoming_requests, self.outgoing_requests, received
        )

    # --- incoming messages -------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> list[Event]:
        """Process one message and return the events. Never raises: the session answers, counts or passes on every
        message."""
        self.stats.received += 1
        if self.role == "client" and len(message) > MEASURED_BYTES and has_more_nodes(message, RESULT_NODES):
            return self._refuse_structure(message)
        try:
            incoming = envelope.read(message)
        except MalformedMessage as exc:
            return self._receive_batch(message) if envelope.is_array(message) else self._handle_malformed(exc)
        return self._dispatch(incoming, None)

    def receive_standalone_notification(self, incoming: Incoming, rules: Rules) -> Event:
        """Process a notification with rules of its own: a POST of 2026-07-28."""
        self.stats.received += 1
        self.last_request_rules = rules
        return self.notifications.receive(incoming.method, incoming.params)  # type: ignore[arg-type]  # it has a method

    def receive_unreadable(self, reason: str, head: bytes = b"", tail: bytes = b"") -> list[Event]:
        """Process a message that the transport could not read (a line over the limit).

        The transport calls it as soon as it knows, with the first bytes of the message (`head`), and again at its end,
        with the last bytes (`tail`): in these a client searches for the id of its request.
        """
        lost = self.outgoing_requests.fail_unread(head, tail, reason) if self.role == "client" else []
        if tail:
            return lost or [self.ignore("end of an unreadable message", "", log=False)]
        self.stats.received += 1
        if not lost:
            error = InvalidRequest(f"{reason} (Limits.line_bytes)")
            return self._handle_malformed(MalformedMessage(error, answerable=self.role == "server"))
        self.stats.malformed += 1
        return lost

    def fail_unanswered(self, id: RequestId, error: AccordError) -> Event:
        """Fail one request of this side, because the transport reports that no response will arrive. The connection
        goes on."""
        return self.outgoing_requests.fail(id, error) or self.ignore(
            "failure of nothing in flight", f"id {id!r}", log=False
        )

    def _dispatch(self, incoming: Incoming, batch: Batch | None) -> list[Event]:
        if incoming.method is UNSET:
            return self.outgoing_requests.receive(incoming)
        if incoming.id is UNSET:
            return [self.notifications.receive(incoming.method, incoming.params)]
        return [self.incoming_requests.receive(incoming, batch)]

    def _refuse_structure(self, message: bytes) -> list[Event]:
        """Refuse a message of a server whose decoded value would take more than a gigabyte."""
        objects = envelope.outlines(message)
        id = next((each.id for each in objects if each.names_method), None)
        error = InvalidRequest(
            f"more than {RESULT_NODES:,} arrays, objects and members, or twice as many items, or more than "
            f"{MAX_EXTREMES:,} numbers with an exponent of three digits"
        )
        return self._handle_malformed(MalformedMessage(error, id, answerable=id is not None, outlines=objects))

    def _handle_malformed(self, exc: MalformedMessage) -> list[Event]:
        self.stats.malformed += 1
        if ended := self._fail_answered(exc.outlines, str(exc)):
            return ended
        if not exc.answerable or (self.role == "client" and exc.id is None):
            return [self.ignore("malformed message", str(exc))]
        in_flight = exc.id is not None and exc.id in self.incoming
        return [self.incoming_requests.refuse(None if in_flight else exc.id, exc.error)]

    def _fail_answered(self, objects: Sequence[Outline], reason: str) -> list[Event]:
        """Fail the requests of this side whose responses are invalid."""
        named = [each.id for each in objects if each.id is not None and not each.names_method]
        ended = [
            event
            for id in named
            if (event := self.outgoing_requests.fail_invalid(id, f"is invalid: {reason}")) is not None
        ]
        # for a server, an object that may be a request is a request
        orphans = [each for each in objects if each.is_orphan and (each.is_answer or self.role == "client")]
        return ended or (self.outgoing_requests.fail_all_invalid(reason) if orphans else [])

    def _receive_batch(self, message: bytes) -> list[Event]:
        """Process a message that is an array: 2025-03-26 requires support for it, no other revision allows it."""
        items = envelope.items(message)
        if items is None:
            return self._handle_malformed(MalformedMessage(ParseError("not JSON"), outlines=envelope.outlines(message)))
        if (reason := self._batch_refusal(items)) is not None:
            return self._handle_malformed(MalformedMessage(InvalidRequest(reason), outlines=envelope.outlines(message)))
        batch = Batch(self.incoming_requests.load)
        batch.pending = 1  # one more, so that the batch stays open until every item is read
        events = [event for item in items for event in self._receive_batch_item(item, batch)]
        whole = batch.add(None)
        return events if whole is None else [*events, ReplyReady(whole)]

    def _batch_refusal(self, items: list[Raw]) -> str | None:
        """Return why a batch is refused, or None."""
        if not self.rules.batches:
            return "this revision has no batches"
        if len(items) > self.limits.batch_items:
            return f"a batch of {len(items):,} messages; the limit is {self.limits.batch_items:,} (Limits.batch_items)"
        return None if items else "an empty batch"

    def _receive_batch_item(self, item: Raw, batch: Batch) -> list[Event]:
        """Process one message of a batch; no events if it only led to a response, which waits for the batch."""
        batch.pending += 1
        id: RequestId | None = None
        try:
            incoming = envelope.read(item)
            id = None if incoming.id is UNSET else incoming.id
            if incoming.method == "initialize" and id is not None:
                raise MalformedMessage(InvalidRequest("initialize must not be part of a batch"), id)
            events = self._dispatch(incoming, batch)
        except MalformedMessage as exc:
            id = exc.id
            events = self._handle_malformed(exc)
        event = events[0]
        if isinstance(event, RequestReceived):
            return events
        if isinstance(event, ReplyReady):
            self.incoming_requests.add_to_batch(batch, id, event.message)
            return []
        batch.add(None)
        return events

    # --- requests of the peer ----------------------------------------------------------------------------------

    def respond(self, request: PendingRequest, result: Any) -> bytes | None:
        """Return the bytes of a result, or None if the request has ended or waits for its batch.

        Raises the errors of the encoder; then the request is still open for `fail`.
        """
        return self.incoming_requests.respond(request, result)

    def fail(self, request: PendingRequest, error: ProtocolError) -> bytes | None:
        """Return the bytes of an error, or None as for `respond`."""
        return self.incoming_requests.fail(request, error)

    def end_subscription(self, request: PendingRequest, reason: str | None = None) -> list[bytes]:
        """Return the messages that end a client's subscription: the cancellation, then the result; none if it had
        ended.

        "A server MUST send `notifications/cancelled` [...] when it tears down that subscription stream" (Cancellation);
        "it SHOULD respond to the original [...] request" (Subscriptions).
        """
        return self.incoming_requests.end_subscription(request, reason)

    def require_client_capability(self, request: PendingRequest, needs: str) -> None:
        """Raise `MissingClientCapability` unless the client of a request has declared `needs` ("elicitation.url"): in
        the request itself if the revision has capabilities there, else in the handshake."""
        self.incoming_requests.require_client_capability(request, needs)

    def report(
        self, request: PendingRequest, progress: float, total: float | None, message: str | None, now: float
    ) -> bytes | None:
        """Return a progress notification for a request of the peer; `now` is in seconds. Return None if the peer did
        not ask for progress, or the rate limit holds it: `progress.release_held` returns the last held one when the
        rate allows it, and `pop_held_report` before the response."""
        return self.progress.report(request, progress, total, message, now)

    def pop_held_report(self, request: PendingRequest) -> bytes | None:
        """Return the last held progress notification, to send before the response; None for a cancelled request."""
        return self.progress.pop_held(request)

    # --- requests of this side ---------------------------------------------------------------------------------

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
        needs: str | None = None,
    ) -> tuple[PendingRequest, bytes]:
        """Return a request and its bytes. `progress` asks for progress notifications; the token is the request's id.
        `needs` is the capability that the peer must have declared, if the method's own is not enough:
        "elicitation.url".

        Raises `NotConnected` before the handshake and after the end, `NotSupported` if the revision does not have the
        method; if the peer did not declare the capability, `NotSupported` on a client, `MissingClientCapability` on a
        server.
        """
        if self.phase is not Phase.OPEN:
            raise NotConnected(f"{name} needs an open connection; it is {self.phase.value}")
        row = self.method_table.own_request(name, self.rules)
        self.require_peer_capability(name, needs or row.needs)
        return self.outgoing_requests.send(row, self.rules, params, meta=meta, progress=progress)

    def cancel(self, request: PendingRequest, reason: str | None = None) -> bytes | None:
        """Cancel a request of this side. Return the bytes of the notification, or None if none may be sent."""
        return self.outgoing_requests.cancel(request, reason)

    def close(self) -> list[PendingRequest]:
        """Close the session, and return the requests of this side that will get no response."""
        self.phase = Phase.CLOSED
        return self.outgoing_requests.fail_all()

    # --- notifications -----------------------------------------------------------------------------------------

    def notify(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
    ) -> bytes:
        """Return the bytes of a notification, under the rules of a request or of the connection. `meta` goes into
        `_meta`.

        Raises `NotSupported` if the revision does not have it or this side does not declare its capability; if the peer
        does not declare it, the errors of `request`.
        """
        return self.notifications.send(name, params, meta, rules or self.rules)
