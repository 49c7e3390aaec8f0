"""The session: messages in, events out; no clock, no await, no socket.

It owns ids, correlation, the requests in flight of both directions, cancellation, progress and the rules of the
revision in use. `receive` takes one message and says what happened; `request`, `notify`, `respond`, `fail`, `cancel`
and `report` give the bytes to send. How a connection opens is in `opening`.

The revision belongs to the request: a server serves a request that carries its revision in `_meta` by the rules of
that revision, and any other by what `initialize` agreed on, both on one connection.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    NotConnected,
    NotSupported,
    ParseError,
    ProtocolError,
    RemoteProtocolError,
    ResourceNotFound,
    UnsupportedVersion,
    from_wire,
)
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import codec, envelope
from accord.messages.base import Meta
from accord.messages.envelope import (
    ErrorObject,
    ErrorResponse,
    Incoming,
    Malformed,
    Notification,
    RequestId,
    Response,
)
from accord.messages.meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    RequestMeta,
)
from accord.messages.methods import Method, table
from accord.messages.progress import CancelledParams, ProgressParams
from accord.messages.revision import BEFORE_OPENING, HANDSHAKE, PER_REQUEST, REVISIONS, RULES, Rules
from accord.session.events import (
    CancelReceived,
    ErrorReceived,
    Event,
    Ignored,
    NotificationReceived,
    ProgressReceived,
    Reply,
    RequestReceived,
    ResultReceived,
)
from accord.session.exchange import Batch, Exchange
from accord.session.negotiate import check_spoken
from accord.session.opening import ClientOpening, ServerOpening
from accord.session.profile import Profile
from accord.session.states import Phase
from accord.session.stats import Stats

Role = Literal["client", "server"]

_REMEMBERED = 1_024
"""How many requests that we gave up are remembered, to tell a late answer from a duplicate one."""


_ANSWERED = re.compile(rb'\s*{[^{]*"id"\s*:\s*([1-9]\d{0,17})\b(?!.*"method")', re.DOTALL)
"""How an answer begins that was not read, and the id in it; our ids are whole numbers from 1 on."""


class _Peek(msgspec.Struct):
    meta: RequestMeta | None = msgspec.field(default=None, name="_meta")


class _CancelSeed(msgspec.Struct):
    """`$/cancelRequest`, a form of older implementations, understood when it comes."""

    id: RequestId


class Session:
    """One side of one connection. `role` is what this side is."""

    def __init__(
        self,
        role: Role,
        profile: Profile,
        *,
        revisions: Sequence[str] = REVISIONS,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.role: Role = role
        self.peer_role: Role = "server" if role == "client" else "client"
        self.spoken: tuple[str, ...] = check_spoken(revisions)
        self.limits = limits
        self.phase: Phase = Phase.NEW
        self.rules: Rules = BEFORE_OPENING
        self.peer: Profile | None = None
        self.stats: Stats = Stats()
        self.incoming: dict[RequestId, Exchange] = {}
        self.outgoing: dict[RequestId, Exchange] = {}
        self.opening: ClientOpening | ServerOpening = ClientOpening(self) if role == "client" else ServerOpening(self)
        self._given_up: OrderedDict[RequestId, None] = OrderedDict()
        self._last_id = 0
        self._heard = BEFORE_OPENING
        self._seen: set[str] = set()
        self.draining = False
        """Whether the end is near: new requests are refused."""
        self.profile = profile

    @property
    def profile(self) -> Profile:
        """What this side says of itself; give another one when tools come or go."""
        return self._profile

    @profile.setter
    def profile(self, profile: Profile) -> None:
        self._profile = profile
        self._served: dict[str, Mapping[str, Method]] = {}

    # --- messages in -------------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> list[Event]:
        """What one message means. Never raises: whatever comes is answered, counted or handed up."""
        self.stats.received += 1
        try:
            incoming = envelope.read(message)
        except Malformed as bad:
            return self._receive_batch(message) if envelope.is_array(message) else [self._malformed(bad)]
        return [self._take(incoming, None)]

    def unreadable(self, reason: str, head: bytes = b"") -> Event:
        """What a message means that the transport could not even hand over (a line over the limit).

        A client looks into its beginning, `head`, for the request that it would have answered.
        """
        self.stats.received += 1
        found = _ANSWERED.match(head) if self.role == "client" else None
        exchange = self.outgoing.pop(int(found[1]), None) if found else None
        if exchange is None:
            return self._malformed(Malformed(InvalidRequest(reason), answerable=self.role == "server"))
        self.stats.malformed += 1
        lost = RemoteProtocolError(f"the answer to {exchange.method.name} is lost: {reason}")
        return self._answered(exchange, ErrorReceived(exchange, lost))

    def _take(self, incoming: Incoming, batch: Batch | None) -> Event:
        if incoming.method is UNSET:
            return self._take_answer(incoming)
        if incoming.id is UNSET:
            return self._take_notification(incoming.method, incoming.params)
        return self._take_request(incoming, batch)

    def _malformed(self, bad: Malformed) -> Event:
        self.stats.malformed += 1
        exchange = self.outgoing.pop(bad.id, None) if bad.unnamed and bad.id is not None else None
        if exchange is not None:
            return self._answered(exchange, ErrorReceived(exchange, RemoteProtocolError(f"not an answer: {bad}")))
        if not bad.answerable or (self.role == "client" and bad.id is None):
            return self.ignore("malformed message", str(bad))
        in_flight = bad.id is not None and bad.id in self.incoming
        return self._refuse(None if in_flight else bad.id, bad.error)

    def _receive_batch(self, message: bytes) -> list[Event]:
        """A message that is an array: 2025-03-26 MUST take it, no other revision does."""
        found = envelope.items(message)
        if found is None:
            return [self._malformed(Malformed(ParseError("not JSON")))]
        if not self.rules.batches:
            return [self._malformed(Malformed(InvalidRequest("this revision has no batches")))]
        if not found:
            return [self._malformed(Malformed(InvalidRequest("an empty batch")))]
        batch = Batch()
        batch.waiting = 1  # held open until every item is read
        events = [event for item in found if (event := self._take_item(item, batch)) is not None]
        whole = batch.take(None)
        return events if whole is None else [*events, Reply(whole)]

    def _take_item(self, item: Raw, batch: Batch) -> Event | None:
        batch.waiting += 1
        try:
            incoming = envelope.read(item)
            if incoming.method == "initialize" and incoming.id is not UNSET:
                raise Malformed(InvalidRequest("initialize must not be part of a batch"), incoming.id)
            event = self._take(incoming, batch)
        except Malformed as bad:
            event = self._malformed(bad)
        if isinstance(event, RequestReceived):
            return event
        batch.take(event.message if isinstance(event, Reply) else None)
        return None if isinstance(event, Reply) else event

    # --- requests of the peer ----------------------------------------------------------------------------------

    def _take_request(self, incoming: Incoming, batch: Batch | None) -> Event:
        self.stats.requests_received += 1
        id: Any = incoming.id
        if id in self.incoming:
            # An error with this id would end the first request at the peer.
            return self._refuse(None, InvalidRequest(f"a request with id {id!r} is in flight"))
        try:
            exchange = self._admit(id, incoming)
        except ProtocolError as error:
            return self._refuse(id, error)
        if exchange.method.name == "ping":
            return Reply(self.respond(exchange, Raw(b"{}")) or b"")
        if exchange.method.name in self.opening.methods:
            return self.opening.answer(exchange)
        exchange.batch = batch
        self.incoming[id] = exchange
        return RequestReceived(exchange)

    def _refuse(self, id: RequestId | None, error: ProtocolError) -> Reply:
        """An error at once. An id that could not be read is written by what was agreed on, or by what was heard."""
        self.stats.answers_sent += 1
        self.stats.errors_sent += 1
        return Reply(self._error(id, error, self.rules if self.rules.revision else self._heard))

    def _admit(self, id: RequestId, incoming: Incoming) -> Exchange:
        """The exchange of a request that may be served. Raises `ProtocolError`."""
        name: Any = incoming.method
        meta = self._peek(incoming.params)
        rules, capabilities = self.rules, None
        if meta is not None and meta.protocol_version is not None and self.role == "server":
            rules, capabilities = self._per_request(meta)
            self._heard = rules
        method = self._methods(rules).get(name)
        if method is None:
            raise self._not_served(name, rules)
        if name != "ping":  # "The receiver MUST respond promptly" (2025-11-25, Ping)
            self._check_room()
        return Exchange(id, method, rules, incoming.params, meta, capabilities)

    def _check_room(self) -> None:
        if self.draining:
            raise InternalError("this side is shutting down and takes no new requests")
        if len(self.incoming) >= self.limits.requests_in_flight:
            raise InternalError(f"too many requests in flight: the limit is {self.limits.requests_in_flight}")

    def _peek(self, params: Raw | UnsetType) -> RequestMeta | None:
        if params is UNSET:
            return None
        try:
            return _peek(params).meta
        except (msgspec.DecodeError, RecursionError) as exc:
            raise InvalidParams(f"params do not fit: {exc}") from exc

    def _per_request(self, meta: RequestMeta) -> tuple[Rules, Any]:
        """The rules that a request names, and the capabilities that come with it (2026-07-28, basic, _meta)."""
        requested = meta.protocol_version
        supported = [revision for revision in PER_REQUEST if revision in self.spoken]
        if requested not in supported:
            raise UnsupportedVersion(
                f"revision {requested!r} is not supported here",
                data={"supported": supported or list(self.spoken), "requested": requested},
            )
        if meta.client_capabilities is None:
            raise InvalidParams("_meta lacks io.modelcontextprotocol/clientCapabilities")
        return RULES[requested], meta.client_capabilities

    def _methods(self, rules: Rules) -> Mapping[str, Method]:
        """What the peer may ask for under these rules; made once for each profile."""
        found = self._served.get(rules.revision)
        if found is None:
            found = self._served[rules.revision] = self._serve(rules)
        return found

    def _serve(self, rules: Rules) -> Mapping[str, Method]:
        if not rules.revision:
            rows = table(HANDSHAKE[-1], self.peer_role)
            return {name: row for name, row in rows.items() if name in ("initialize", "ping")}
        rows = table(rules.revision, self.peer_role)
        requests = {name: row for name, row in rows.items() if not row.notification}
        return {name: row for name, row in requests.items() if self._profile.declares(row.needs)}

    def _not_served(self, name: str, rules: Rules) -> ProtocolError:
        if rules is BEFORE_OPENING and self.role == "server":
            return InvalidParams(
                f"{name!r} before the connection is open: send initialize first, or carry "
                "io.modelcontextprotocol/protocolVersion and /clientCapabilities in _meta"
            )
        row = table(rules.revision, self.peer_role).get(name) if rules.revision else None
        why = f" (capability {row.needs!r} is not offered)" if row is not None and not row.notification else ""
        return MethodNotFound(f"no method {name!r} in {rules.revision or 'a connection that is not open'}{why}")

    def respond(self, exchange: Exchange, result: Any) -> bytes | None:
        """The bytes of a result, or None when nobody waits for it any more (or it waits for its batch).

        Raises what the encoder raises; then the exchange is still open for `fail`.
        """
        finished = codec.finish(result, exchange.rules, self._profile.raw_info)
        return self._end(exchange, codec.encode(Response(exchange.id, finished)))

    def fail(self, exchange: Exchange, error: ProtocolError) -> bytes | None:
        """The bytes of an error, or None as for `respond`."""
        return self._end(exchange, self._error(exchange.id, error, exchange.rules), errors=1)

    def _end(self, exchange: Exchange, message: bytes, *, errors: int = 0) -> bytes | None:
        if not exchange.end("answer"):
            self.stats.dropped_results += 1
            return None
        self.incoming.pop(exchange.id, None)
        self.stats.answers_sent += 1
        self.stats.errors_sent += errors
        return message if exchange.batch is None else self._into_batch(exchange.batch, exchange, message)

    def _into_batch(self, batch: Batch, exchange: Exchange, message: bytes) -> bytes | None:
        """Answers that leave together are held together: all of them are no larger than one message may be."""
        if batch.size + len(message) > self.limits.line_bytes:
            over = InternalError(f"the answers of this batch are over {self.limits.line_bytes:,} bytes; ask one by one")
            message = self._error(exchange.id, over, exchange.rules)
        return batch.take(message)

    def _error(self, id: RequestId | None, error: ProtocolError, rules: Rules) -> bytes:
        code = rules.resource_not_found if isinstance(error, ResourceNotFound) else error.code
        data = UNSET if error.data is None else error.data
        absent = None if rules.null_id else UNSET
        said = ErrorObject(code, error.message, data)
        try:
            return codec.encode(ErrorResponse(absent if id is None else id, said))
        except (TypeError, ValueError, RecursionError, msgspec.EncodeError):  # what a handler put into it
            said = ErrorObject(code, error.message.encode(errors="replace").decode())
            return codec.encode(ErrorResponse(absent if id is None else id, said))

    # --- requests of ours --------------------------------------------------------------------------------------

    def request(
        self, name: str, params: Any = None, *, meta: Mapping[str, Any] | None = None, progress: bool = False
    ) -> tuple[Exchange, bytes]:
        """A request and its bytes. `progress` asks for reports; its token is the request's id.

        Raises `NotConnected` before the opening and after the end, `NotSupported` for what the revision or the
        peer's capabilities do not have.
        """
        if self.phase is not Phase.OPEN:
            raise NotConnected(f"{name} needs an open connection; it is {self.phase.value}")
        return self.send(self._offered(name), self.rules, params, meta=meta, progress=progress)

    def _offered(self, name: str) -> Method:
        row = table(self.rules.revision, self.role).get(name)
        if row is None or row.result is None:
            raise NotSupported(f"{name} is not part of {self.rules.revision}")
        if self.peer is not None and not self.peer.declares(row.needs):
            raise NotSupported(f"the {self.peer_role} does not offer {row.needs!r}, which {name} needs")
        return row

    def send(
        self,
        row: Method,
        rules: Rules,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
    ) -> tuple[Exchange, bytes]:
        """As `request`, without its checks and by the rules given; the opening uses it."""
        self._last_id += 1
        id = self._last_id
        params, carried = _without_meta(params)
        fields = self._meta_of(rules, carried, meta, id if progress else None)
        body = b"{}" if params is None else codec.encode(codec.narrow(params, rules.revision))
        if fields:
            body = codec.with_meta(body, codec.encode(fields))
        asked = RequestMeta(progress_token=id) if progress else None
        exchange = self.outgoing[id] = Exchange(id, row, rules, meta=asked)
        self.stats.requests_sent += 1
        return exchange, b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, row.name.encode(), body)

    def _meta_of(
        self, rules: Rules, carried: Meta | None, given: Mapping[str, Any] | None, token: int | None
    ) -> dict[str, Any]:
        """The `_meta` of a request of ours: what params carry, what was given, the token, what the revision demands."""
        fields = {**(carried or {}), **(given or {})}
        if token is not None:
            fields[PROGRESS_TOKEN] = token
        if not rules.handshake:
            fields[PROTOCOL_VERSION] = rules.revision
            fields[CLIENT_CAPABILITIES] = self._profile.raw_capabilities
            if self._profile.info is not None:
                fields[CLIENT_INFO] = self._profile.raw_info
        return fields

    def cancel(self, exchange: Exchange, reason: str | None = None) -> bytes | None:
        """Give up a request of ours. The bytes to tell the peer, or None where it must not be told.

        "The initialize request MUST NOT be cancelled by clients"; a probe is not worth a message.
        """
        self.outgoing.pop(exchange.id, None)
        if not exchange.end("cancel"):
            return None
        self.give_up(exchange.id)
        if exchange.method.name in self.opening.methods:
            return None
        self.stats.cancels_sent += 1
        return codec.encode(
            Notification("notifications/cancelled", CancelledParams(request_id=exchange.id, reason=reason))
        )

    def give_up(self, id: RequestId) -> None:
        """Remember that no answer to `id` is wanted any more."""
        self.outgoing.pop(id, None)
        self._given_up[id] = None
        if len(self._given_up) > _REMEMBERED:
            self._given_up.popitem(last=False)

    def lose(self) -> list[Exchange]:
        """The connection is over: the requests of ours that will get no answer."""
        self.phase = Phase.CLOSED
        lost = [exchange for exchange in self.outgoing.values() if exchange.end("lose")]
        self.outgoing.clear()
        return lost

    def _take_answer(self, incoming: Incoming) -> Event:
        self.stats.answers_received += 1
        id: Any = incoming.id
        exchange = self.outgoing.pop(id, None) if id is not UNSET else None
        if exchange is None:
            return self._stray(id, incoming)
        return self._answered(exchange, self._outcome(exchange, incoming))

    def _answered(self, exchange: Exchange, event: ResultReceived | ErrorReceived) -> Event:
        exchange.end("answer")
        if self.phase is not Phase.OPEN and exchange.method.name in self.opening.methods:
            return self.opening.take(event)
        return event

    def _outcome(self, exchange: Exchange, incoming: Incoming) -> ResultReceived | ErrorReceived:
        if incoming.error is UNSET:
            return ResultReceived(exchange, incoming.result)  # type: ignore[arg-type]  # read() saw one of the two
        if incoming.result is not UNSET:
            return ErrorReceived(exchange, RemoteProtocolError("the answer has both a result and an error"))
        try:
            error = codec.decoder(ErrorObject).decode(incoming.error)
        except (msgspec.DecodeError, RecursionError) as exc:
            return ErrorReceived(exchange, RemoteProtocolError(f"the answer has an error that is none: {exc}"))
        data = None if error.data is UNSET else error.data
        return ErrorReceived(exchange, from_wire(error.code, error.message, data))

    def _stray(self, id: Any, incoming: Incoming) -> Event:
        """An answer to nothing in flight: late, duplicate or unknown."""
        if id is UNSET or id is None:
            self.stats.ignored += 1
            return self.ignore("error without id", bytes(incoming.error or b"")[:500].decode(errors="replace"))
        if id in self._given_up:
            del self._given_up[id]
            self.stats.late_answers += 1
            return self.ignore("late answer", f"id {id!r}")
        if type(id) is int and 0 < id <= self._last_id:
            self.stats.duplicate_answers += 1
            return self.ignore("duplicate answer", f"id {id!r}")
        self.stats.unknown_answers += 1
        return self.ignore("unknown answer", f"id {id!r}")

    # --- notifications -----------------------------------------------------------------------------------------

    def notify(self, name: str, params: Any = None, *, rules: Rules | None = None) -> bytes:
        """The bytes of a notification, by the rules of an exchange or of the connection. Raises `NotSupported`."""
        rules = rules or self.rules
        revision = rules.revision or HANDSHAKE[-1]
        row = table(revision, self.role).get(name)
        if row is None or not row.notification:
            raise NotSupported(f"{name} is no notification of {revision}")
        return codec.encode(Notification(name, None if params is None else codec.narrow(params, revision)))

    def _take_notification(self, name: str, params: Raw | UnsetType) -> Event:
        try:
            if name == "notifications/progress":
                return self._take_progress(codec.decode_params(ProgressParams, params))
            if name == "notifications/cancelled":
                cancelled = codec.decode_params(CancelledParams, params)
                return self._take_cancel(cancelled.request_id, cancelled.reason)
            if name == "$/cancelRequest":
                return self._take_cancel(codec.decode_params(_CancelSeed, params).id, None)
        except InvalidParams as exc:
            return self.drop(f"malformed {name}", exc.message)
        if name == "notifications/initialized":
            return self.opening.confirmed()
        method = table(self.rules.revision, self.peer_role).get(name) if self.rules.revision else None
        if method is None or method.result is not None:
            return self.drop("unknown notification", name)
        return NotificationReceived(method, params, self.rules)

    def drop(self, kind: str, detail: str) -> Event:
        """A notification without meaning here: counted, and no more."""
        self.stats.ignored += 1
        return self.ignore(kind, detail)

    def _take_cancel(self, id: RequestId | None, reason: str | None) -> Event:
        exchange = self.incoming.pop(id, None) if id is not None else None
        if exchange is None or not exchange.end("cancel"):
            return self.drop("cancel of nothing in flight", f"id {id!r}")
        self.stats.cancels_received += 1
        return CancelReceived(exchange, reason, None if exchange.batch is None else exchange.batch.take(None))

    # --- progress ----------------------------------------------------------------------------------------------

    def _take_progress(self, params: ProgressParams) -> Event:
        exchange = self.outgoing.get(params.progress_token)
        if exchange is None or exchange.meta is None:  # "MUST only reference tokens that were provided"
            return self.drop("progress of nothing in flight", f"token {params.progress_token!r}")
        if exchange.reported is not None and params.progress <= exchange.reported:
            return self.drop("progress that does not increase", exchange.method.name)
        exchange.reported = params.progress
        self.stats.progress_received += 1
        return ProgressReceived(exchange, params.progress, params.total, params.message)

    def report(
        self, exchange: Exchange, progress: float, total: float | None, message: str | None, now: float
    ) -> bytes | None:
        """Progress of a request of the peer; `now` in seconds. None where nobody asked, or it is held back.

        "The progress value MUST increase with each notification"; reports beyond the rate that the limit allows are
        held, and the last one held is given by `held_report` before the answer.
        """
        token = exchange.meta.progress_token if exchange.meta is not None else None
        increases = isfinite(progress) and (exchange.reported is None or progress > exchange.reported)
        if token is None or not increases or exchange.stage != "active":
            self.stats.progress_held += token is not None
            return None
        exchange.reported = progress
        if total is not None and not isfinite(total):  # JSON has no infinity
            total = None
        params = ProgressParams(progress_token=token, progress=progress, total=total, message=message)
        bytes_ = self.notify("notifications/progress", params, rules=exchange.rules)
        if not self._is_due(exchange, now):
            self.stats.progress_held += 1
            exchange.held = bytes_
            return None
        exchange.held = None
        self.stats.progress_sent += 1
        return bytes_

    def _is_due(self, exchange: Exchange, now: float) -> bool:
        """Whether the rate allows a report; one second's worth of them may go at once."""
        rate = self.limits.progress_per_second
        due = max(exchange.due, now)
        if rate <= 0 or due - now > max(0, 1 - 1 / rate):
            return False
        exchange.due = due + 1 / rate
        return True

    def held_report(self, exchange: Exchange) -> bytes | None:
        """The last report that was held back, to send before the answer; none of a request that was cancelled."""
        held, exchange.held = exchange.held, None
        if exchange.stage == "cancelled":
            return None
        self.stats.progress_sent += held is not None
        return held

    # --- what was dropped --------------------------------------------------------------------------------------

    def ignore(self, kind: str, detail: str, *, log: bool = True) -> Ignored:
        """The event of something dropped; the first of its kind is worth a line in the log."""
        first = log and kind not in self._seen
        self._seen.add(kind)
        return Ignored(kind, detail, first)


def _without_meta(params: Any) -> tuple[Any, Meta | None]:
    """Params and the `_meta` that they carry, apart: it is written once, with what the session adds."""
    if isinstance(params, dict):
        return {key: value for key, value in params.items() if key != "_meta"}, params.get("_meta")
    carried = getattr(params, "meta", None)
    return (params, None) if carried is None else (msgspec.structs.replace(params, meta=None), carried)


_peek = msgspec.json.Decoder(_Peek).decode
