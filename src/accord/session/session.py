"""The session: messages in, events out; no clock, no await, no socket.

`receive` takes one message and says what happened; `request`, `notify`, `respond`, `fail`, `cancel` and `report` give
the bytes to send. The parts: requests of the peer are in `incoming_requests`, our own in `outgoing_requests`, reports
of progress in `progress`, other notifications in `notifications`, who may say what in `method_table`, how a connection
opens in `handshake`.

The revision belongs to the request: a server serves a request that carries its revision in `_meta` by the rules of
that revision, and any other by what `initialize` agreed on, both on one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from accord.errors import AccordError, InvalidRequest, NotConnected, ParseError, ProtocolError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import envelope
from accord.messages.bounds import MEASURED_BYTES, RESULT_NODES, has_more_nodes
from accord.messages.envelope import Incoming, MalformedMessage, Outline, RequestId
from accord.messages.meta import RequestMeta
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
    """One side of one connection. `role` is what this side is; `methods` are those of extensions, whoever sends them.

    Raises `ValueError` for methods whose names are taken.
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

    # --- messages in -------------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> list[Event]:
        """What one message means. Never raises: whatever comes is answered, counted or handed up."""
        self.stats.received += 1
        if self.role == "client" and len(message) > MEASURED_BYTES and has_more_nodes(message, RESULT_NODES):
            return self._refuse_structure(message)
        try:
            incoming = envelope.read(message)
        except MalformedMessage as bad:
            return self._receive_batch(message) if envelope.is_array(message) else self._malformed(bad)
        return self._dispatch(incoming, None)

    def receive_standalone_request(self, incoming: Incoming, meta: RequestMeta | None) -> Event:
        """What a request means that has a way of its own to come and be answered on: a POST of 2026-07-28.

        `meta` is its `_meta`, read before. What else is in flight may have the same id.
        """
        self.stats.received += 1
        return self.incoming_requests.receive_standalone(incoming, meta)

    def receive_standalone_notification(self, incoming: Incoming, rules: Rules) -> Event:
        """The same for a notification, by the rules that came with it."""
        self.stats.received += 1
        self.last_request_rules = rules
        return self.notifications.receive(incoming.method, incoming.params)  # type: ignore[arg-type]  # it has a method

    def receive_unreadable(self, reason: str, head: bytes = b"", tail: bytes = b"") -> list[Event]:
        """What a message means that the transport could not even hand over (a line over the limit).

        It is told as soon as that is known, with how the message begins (`head`), and again when it has ended, with
        how it ends (`tail`): a client looks there for the request that it would have answered.
        """
        lost = self.outgoing_requests.fail_unread(head, tail, reason) if self.role == "client" else []
        if tail:
            return lost or [self.ignore("end of an unreadable message", "", log=False)]
        self.stats.received += 1
        if not lost:
            return self._malformed(MalformedMessage(InvalidRequest(reason), answerable=self.role == "server"))
        self.stats.malformed += 1
        return lost

    def fail_unanswered(self, id: RequestId, error: AccordError) -> Event:
        """One request of ours gets no answer: the transport says so, and why. The connection goes on."""
        return self.outgoing_requests.fail(id, error) or self.ignore(
            "no answer, to nothing in flight", f"id {id!r}", log=False
        )

    def _dispatch(self, incoming: Incoming, batch: Batch | None) -> list[Event]:
        if incoming.method is UNSET:
            return self.outgoing_requests.receive(incoming)
        if incoming.id is UNSET:
            return [self.notifications.receive(incoming.method, incoming.params)]
        return [self.incoming_requests.receive(incoming, batch)]

    def _refuse_structure(self, message: bytes) -> list[Event]:
        """What a message of a server means that would take more than a gigabyte once it is decoded."""
        found = envelope.outlines(message)
        id = next((each.id for each in found if each.names_method), None)
        error = InvalidRequest(f"more than {RESULT_NODES:,} arrays, objects and members, or twice as many items")
        return self._malformed(MalformedMessage(error, id, answerable=id is not None, outlines=found))

    def _malformed(self, bad: MalformedMessage) -> list[Event]:
        self.stats.malformed += 1
        if ended := self._fail_answered(bad.outlines, str(bad)):
            return ended
        if not bad.answerable or (self.role == "client" and bad.id is None):
            return [self.ignore("malformed message", str(bad))]
        in_flight = bad.id is not None and bad.id in self.incoming
        return [self.incoming_requests.refuse(None if in_flight else bad.id, bad.error)]

    def _fail_answered(self, found: Sequence[Outline], why: str) -> list[Event]:
        """The requests of ours that end because their answers cannot be read."""
        named = [each.id for each in found if each.id is not None and not each.names_method]
        ended = [
            event for id in named if (event := self.outgoing_requests.fail_invalid(id, f"none: {why}")) is not None
        ]
        # a server takes what may be a request for one
        orphans = [each for each in found if each.is_orphan and (each.is_answer or self.role == "client")]
        return ended or (self.outgoing_requests.fail_all_invalid(why) if orphans else [])

    def _receive_batch(self, message: bytes) -> list[Event]:
        """A message that is an array: 2025-03-26 MUST take it, no other revision does."""
        found = envelope.items(message)
        if found is None:
            return self._malformed(MalformedMessage(ParseError("not JSON"), outlines=envelope.outlines(message)))
        if (why := self._batch_refusal(found)) is not None:
            return self._malformed(MalformedMessage(InvalidRequest(why), outlines=envelope.outlines(message)))
        batch = Batch(self.incoming_requests.load)
        batch.pending = 1  # held open until every item is read
        events = [event for item in found for event in self._receive_batch_item(item, batch)]
        whole = batch.add(None)
        return events if whole is None else [*events, ReplyReady(whole)]

    def _batch_refusal(self, found: list[Raw]) -> str | None:
        """Why an array is refused, if it is."""
        if not self.rules.batches:
            return "this revision has no batches"
        if len(found) > self.limits.batch_items:
            return f"a batch of {len(found):,} messages; the limit is {self.limits.batch_items:,}"
        return None if found else "an empty batch"

    def _receive_batch_item(self, item: Raw, batch: Batch) -> list[Event]:
        """One message of a batch; nothing when all it leads to is an answer, which waits for the others."""
        batch.pending += 1
        id: RequestId | None = None
        try:
            incoming = envelope.read(item)
            id = None if incoming.id is UNSET else incoming.id
            if incoming.method == "initialize" and id is not None:
                raise MalformedMessage(InvalidRequest("initialize must not be part of a batch"), id)
            events = self._dispatch(incoming, batch)
        except MalformedMessage as bad:
            id = bad.id
            events = self._malformed(bad)
        event = events[0]
        if isinstance(event, RequestReceived):
            return events
        if isinstance(event, ReplyReady):
            self.incoming_requests.add_to_batch(batch, id, event.message)
            return []
        batch.add(None)
        return events

    # --- requests of the peer ----------------------------------------------------------------------------------

    def respond(self, exchange: PendingRequest, result: Any) -> bytes | None:
        """The bytes of a result, or None when nobody waits for it any more (or it waits for its batch).

        Raises what the encoder raises; then the exchange is still open for `fail`.
        """
        return self.incoming_requests.respond(exchange, result)

    def fail(self, exchange: PendingRequest, error: ProtocolError) -> bytes | None:
        """The bytes of an error, or None as for `respond`."""
        return self.incoming_requests.fail(exchange, error)

    def end_subscription(self, exchange: PendingRequest, reason: str | None = None) -> list[bytes]:
        """The bytes that end a subscription of the client: the cancel, then the result; none when it had ended.

        "A server MUST send `notifications/cancelled` [...] when it tears down that subscription stream"
        (Cancellation); "it SHOULD respond to the original [...] request" (Subscriptions).
        """
        return self.incoming_requests.end_subscription(exchange, reason)

    def require_client_capability(self, exchange: PendingRequest, needs: str) -> None:
        """Raise `MissingClientCapability` unless the client of a request has declared `needs` ("elicitation.url"):
        in the request itself where the revision has it do so, else at the opening.
        """
        self.incoming_requests.require_client_capability(exchange, needs)

    def report(
        self, exchange: PendingRequest, progress: float, total: float | None, message: str | None, now: float
    ) -> bytes | None:
        """Progress of a request of the peer; `now` in seconds. None where nobody asked, or it is held back: the last
        report held is given by `progress.release` when the rate allows it, and by `pop_held_report` before the answer.
        """
        return self.progress.report(exchange, progress, total, message, now)

    def pop_held_report(self, exchange: PendingRequest) -> bytes | None:
        """The last report that was held back, to send before the answer; none of a request that was cancelled."""
        return self.progress.pop_held(exchange)

    # --- requests of ours --------------------------------------------------------------------------------------

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
        needs: str | None = None,
    ) -> tuple[PendingRequest, bytes]:
        """A request and its bytes. `progress` asks for reports; its token is the request's id. `needs` is the
        capability that the peer must have declared, where that is more than the method says: "elicitation.url".

        Raises `NotConnected` before the opening and after the end, `NotSupported` for what the revision does not have;
        for what the peer did not declare `NotSupported` on a client, `MissingClientCapability` on a server.
        """
        if self.phase is not Phase.OPEN:
            raise NotConnected(f"{name} needs an open connection; it is {self.phase.value}")
        row = self.method_table.own_request(name, self.rules)
        self.require_peer_capability(name, needs or row.needs)
        return self.outgoing_requests.send(row, self.rules, params, meta=meta, progress=progress)

    def cancel(self, exchange: PendingRequest, reason: str | None = None) -> bytes | None:
        """Give up a request of ours. The bytes to tell the peer, or None where it must not be told."""
        return self.outgoing_requests.cancel(exchange, reason)

    def close(self) -> list[PendingRequest]:
        """The connection is over: the requests of ours that will get no answer."""
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
        """The bytes of a notification, by the rules of an exchange or of the connection. `meta` goes into its `_meta`.

        Raises `NotSupported` for what the revision does not have or this side does not declare; for what the peer does
        not declare, as `request`.
        """
        return self.notifications.send(name, params, meta, rules or self.rules)
