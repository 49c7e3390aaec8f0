"""The session: messages in, events out; no clock, no await, no socket.

`receive` takes one message and says what happened; `request`, `notify`, `respond`, `fail`, `cancel` and `report` give
the bytes to send. The parts: requests of the peer are in `served`, our own in `calls`, reports of progress in
`progress`, other notifications in `notifications`, who may say what in `repertoire`, how a connection opens in
`opening`.

The revision belongs to the request: a server serves a request that carries its revision in `_meta` by the rules of
that revision, and any other by what `initialize` agreed on, both on one connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, Raw

from accord.errors import AccordError, InvalidRequest, NotConnected, NotSupported, ParseError, ProtocolError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import envelope
from accord.messages.envelope import Incoming, Malformed, Outline, RequestId
from accord.messages.meta import RequestMeta
from accord.messages.methods import Method, extended
from accord.messages.revision import BEFORE_OPENING, REVISIONS, Rules
from accord.session.calls import Calls
from accord.session.events import Event, Ignored, Reply, RequestReceived
from accord.session.exchange import Batch, Exchange
from accord.session.negotiate import check_spoken
from accord.session.notifications import Notifications
from accord.session.opening import ClientOpening, ServerOpening
from accord.session.profile import Profile
from accord.session.progress import Progress
from accord.session.repertoire import Repertoire
from accord.session.served import Served, missing
from accord.session.states import Phase
from accord.session.stats import Stats

Role = Literal["client", "server"]


class Session:
    """One side of one connection. `role` is what this side is; `methods` are those of extensions, whoever sends them.

    Raises `ValueError` for methods whose names are taken.
    """

    def __init__(
        self,
        role: Role,
        profile: Profile,
        *,
        revisions: Sequence[str] = REVISIONS,
        limits: Limits = DEFAULT_LIMITS,
        methods: Sequence[Method] = (),
    ) -> None:
        self.role: Role = role
        self.peer_role: Role = "server" if role == "client" else "client"
        self.spoken: tuple[str, ...] = check_spoken(revisions)
        self.limits = limits
        self.phase: Phase = Phase.NEW
        self.rules: Rules = BEFORE_OPENING
        self.heard: Rules = BEFORE_OPENING
        """The rules of the last request that named its revision."""
        self.peer: Profile | None = None
        self.stats: Stats = Stats()
        self.draining: bool = False
        """Whether the end is near: new requests are refused."""
        self.names_revisions: bool = True
        """Whether a request may name its revision by itself; over HTTP a header must say the same."""
        self._table = extended(methods)
        self.profile = profile
        self.opening: ClientOpening | ServerOpening = ClientOpening(self) if role == "client" else ServerOpening(self)
        self.served: Served = Served(self)
        self.incoming: dict[object, Exchange] = self.served.in_flight
        self.calls: Calls = Calls(self)
        self.outgoing: dict[RequestId, Exchange] = self.calls.in_flight
        self.progress: Progress = Progress(self)
        self.notifications: Notifications = Notifications(self)
        self._seen: set[str] = set()

    @property
    def profile(self) -> Profile:
        """What this side says of itself; give another one when tools come or go."""
        return self._profile

    @profile.setter
    def profile(self, profile: Profile) -> None:
        self._profile = profile
        self.repertoire: Repertoire = Repertoire(self._table, self.role, profile)

    @property
    def agreed(self) -> Rules:
        """What holds for a message that names no revision: what was agreed on, or else what was heard last."""
        return self.rules if self.rules.revision else self.heard

    # --- messages in -------------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> list[Event]:
        """What one message means. Never raises: whatever comes is answered, counted or handed up."""
        self.stats.received += 1
        try:
            incoming = envelope.read(message)
        except Malformed as bad:
            return self._receive_batch(message) if envelope.is_array(message) else self._malformed(bad)
        return self._take(incoming, None)

    def receive_alone(self, incoming: Incoming, meta: RequestMeta | None) -> Event:
        """What a request means that has a way of its own to come and be answered on: a POST of 2026-07-28.

        `meta` is its `_meta`, read before. What else is in flight may have the same id.
        """
        self.stats.received += 1
        return self.served.take_alone(incoming, meta)

    def hear_alone(self, incoming: Incoming, rules: Rules) -> Event:
        """The same for a notification, by the rules that came with it."""
        self.stats.received += 1
        self.heard = rules
        return self.notifications.take(incoming.method, incoming.params)  # type: ignore[arg-type]  # it has a method

    def unreadable(self, reason: str, head: bytes = b"", tail: bytes = b"") -> list[Event]:
        """What a message means that the transport could not even hand over (a line over the limit).

        It is told as soon as that is known, with how the message begins (`head`), and again when it has ended, with
        how it ends (`tail`): a client looks there for the request that it would have answered.
        """
        lost = self.calls.unread(head, tail, reason) if self.role == "client" else []
        if tail:
            return lost or [self.ignore("end of an unreadable message", "", log=False)]
        self.stats.received += 1
        if not lost:
            return self._malformed(Malformed(InvalidRequest(reason), answerable=self.role == "server"))
        self.stats.malformed += 1
        return lost

    def unanswered(self, id: RequestId, error: AccordError) -> Event:
        """One request of ours gets no answer: the transport says so, and why. The connection goes on."""
        return self.calls.failed(id, error) or self.ignore("no answer, to nothing in flight", f"id {id!r}", log=False)

    def _take(self, incoming: Incoming, batch: Batch | None) -> list[Event]:
        if incoming.method is UNSET:
            return self.calls.take(incoming)
        if incoming.id is UNSET:
            return [self.notifications.take(incoming.method, incoming.params)]
        return [self.served.take(incoming, batch)]

    def _malformed(self, bad: Malformed) -> list[Event]:
        self.stats.malformed += 1
        if ended := self._end_answered(bad.outlines, str(bad)):
            return ended
        if not bad.answerable or (self.role == "client" and bad.id is None):
            return [self.ignore("malformed message", str(bad))]
        in_flight = bad.id is not None and bad.id in self.incoming
        return [self.served.refuse(None if in_flight else bad.id, bad.error)]

    def _end_answered(self, found: Sequence[Outline], why: str) -> list[Event]:
        """The requests of ours that end because their answers cannot be read."""
        named = [each.id for each in found if each.id is not None and not each.names_method]
        ended = [event for id in named if (event := self.calls.broken(id, f"none: {why}")) is not None]
        # a server takes what may be a request for one
        orphans = [each for each in found if each.is_orphan and (each.is_answer or self.role == "client")]
        return ended or (self.calls.broken_all(why) if orphans else [])

    def _receive_batch(self, message: bytes) -> list[Event]:
        """A message that is an array: 2025-03-26 MUST take it, no other revision does."""
        found = envelope.items(message)
        if found is None:
            return self._malformed(Malformed(ParseError("not JSON"), outlines=envelope.outlines(message)))
        if (why := self._no_batch(found)) is not None:
            return self._malformed(Malformed(InvalidRequest(why), outlines=envelope.outlines(message)))
        batch = Batch()
        batch.waiting = 1  # held open until every item is read
        events = [event for item in found for event in self._take_item(item, batch)]
        whole = batch.take(None)
        return events if whole is None else [*events, Reply(whole)]

    def _no_batch(self, found: list[Raw]) -> str | None:
        """Why an array is refused, if it is."""
        if not self.rules.batches:
            return "this revision has no batches"
        if len(found) > self.limits.batch_items:
            return f"a batch of {len(found):,} messages; the limit is {self.limits.batch_items:,}"
        return None if found else "an empty batch"

    def _take_item(self, item: Raw, batch: Batch) -> list[Event]:
        """One message of a batch; nothing when all it leads to is an answer, which waits for the others."""
        batch.waiting += 1
        id: RequestId | None = None
        try:
            incoming = envelope.read(item)
            id = None if incoming.id is UNSET else incoming.id
            if incoming.method == "initialize" and id is not None:
                raise Malformed(InvalidRequest("initialize must not be part of a batch"), id)
            events = self._take(incoming, batch)
        except Malformed as bad:
            id = bad.id
            events = self._malformed(bad)
        event = events[0]
        if isinstance(event, RequestReceived):
            return events
        if isinstance(event, Reply):
            self.served.into_batch(batch, id, event.message)
            return []
        batch.take(None)
        return events

    # --- requests of the peer ----------------------------------------------------------------------------------

    def respond(self, exchange: Exchange, result: Any) -> bytes | None:
        """The bytes of a result, or None when nobody waits for it any more (or it waits for its batch).

        Raises what the encoder raises; then the exchange is still open for `fail`.
        """
        return self.served.respond(exchange, result)

    def fail(self, exchange: Exchange, error: ProtocolError) -> bytes | None:
        """The bytes of an error, or None as for `respond`."""
        return self.served.fail(exchange, error)

    def end_listen(self, exchange: Exchange, reason: str | None = None) -> list[bytes]:
        """The bytes that end a subscription of the client: the cancel, then the result; none when it had ended.

        "A server MUST send `notifications/cancelled` [...] when it tears down that subscription stream"
        (Cancellation); "it SHOULD respond to the original [...] request" (Subscriptions).
        """
        return self.served.end_listen(exchange, reason)

    def check_client(self, exchange: Exchange, needs: str) -> None:
        """Raise `MissingClientCapability` unless the client of a request has declared `needs` ("elicitation.url"):
        in the request itself where the revision has it do so, else at the opening.
        """
        self.served.check_client(exchange, needs)

    def report(
        self, exchange: Exchange, progress: float, total: float | None, message: str | None, now: float
    ) -> bytes | None:
        """Progress of a request of the peer; `now` in seconds. None where nobody asked, or it is held back: the last
        report held is given by `progress.release` when the rate allows it, and by `held_report` before the answer.
        """
        return self.progress.report(exchange, progress, total, message, now)

    def held_report(self, exchange: Exchange) -> bytes | None:
        """The last report that was held back, to send before the answer; none of a request that was cancelled."""
        return self.progress.held(exchange)

    # --- requests of ours --------------------------------------------------------------------------------------

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
        needs: str | None = None,
    ) -> tuple[Exchange, bytes]:
        """A request and its bytes. `progress` asks for reports; its token is the request's id. `needs` is the
        capability that the peer must have declared, where that is more than the method says: "elicitation.url".

        Raises `NotConnected` before the opening and after the end, `NotSupported` for what the revision does not have;
        for what the peer did not declare `NotSupported` on a client, `MissingClientCapability` on a server.
        """
        if self.phase is not Phase.OPEN:
            raise NotConnected(f"{name} needs an open connection; it is {self.phase.value}")
        row = self.repertoire.own(name, self.rules)
        self.check_peer(name, needs or row.needs)
        return self.calls.send(row, self.rules, params, meta=meta, progress=progress)

    def check_peer(self, name: str, needs: str | None) -> None:
        """Raise unless the peer has declared at the opening what `name` needs, as `request` says."""
        if self.peer is None or self.peer.declares(needs):
            return
        if self.role == "server":
            raise missing(str(needs), name)
        raise NotSupported(f"the server does not offer {needs!r}, which {name} needs")

    def cancel(self, exchange: Exchange, reason: str | None = None) -> bytes | None:
        """Give up a request of ours. The bytes to tell the peer, or None where it must not be told."""
        return self.calls.cancel(exchange, reason)

    def lose(self) -> list[Exchange]:
        """The connection is over: the requests of ours that will get no answer."""
        self.phase = Phase.CLOSED
        return self.calls.lose()

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

    # --- what was dropped --------------------------------------------------------------------------------------

    def drop(self, kind: str, detail: str, *, log: bool = True) -> Event:
        """A message without meaning here: counted, and no more."""
        self.stats.ignored += 1
        return self.ignore(kind, detail, log=log)

    def ignore(self, kind: str, detail: str, *, log: bool = True) -> Ignored:
        """The event of something dropped; the first of its kind is worth a line in the log."""
        first = log and kind not in self._seen
        self._seen.add(kind)
        return Ignored(kind, detail, first)
