"""Requests of our own: their ids and bytes, and which answer belongs to which.

Our ids are whole numbers from 1 on, unless others were used before (`start_ids_after`). Whatever comes as an answer
ends its request, if only with an error; an answer to nothing in flight is late, a duplicate or unknown, and dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from accord.errors import AccordError, InvalidRequest, ParseError, RemoteProtocolError, from_wire
from accord.messages import codec
from accord.messages.base import Meta
from accord.messages.envelope import ErrorObject, Incoming, Notification, RequestId, id_at_end, outlines
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROGRESS_TOKEN, PROTOCOL_VERSION, RequestMeta
from accord.messages.methods import Method
from accord.messages.notifications import CancelledParams
from accord.messages.revision import Rules
from accord.session.events import ErrorReceived, Event, ResultReceived, SubscriptionEnded
from accord.session.negotiation import OPENING_METHODS
from accord.session.pending_request import PendingRequest
from accord.session.state import SessionState
from accord.session.states import Phase

UNKNOWN_ANSWER = "unknown answer"
"""The kind of event that an answer to a question is which this side never asked."""

MAX_ABANDONED_IDS = 1_024
"""How many requests that we gave up are remembered, to tell a late answer from a duplicate one."""


class OutgoingRequests:
    """The requests of one session, as long as they are in flight."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.in_flight: dict[RequestId, PendingRequest] = {}
        self.on_opening_answer: Callable[[ResultReceived | ErrorReceived], Event] | None = None
        """What an answer means before the connection is open."""
        self._abandoned: OrderedDict[RequestId, None] = OrderedDict()
        self._first_id = self._last_id = 0
        self._notified_after: float = inf
        """The last request before a notification of ours that the peer may not have read yet."""

    def start_ids_after(self, id: int) -> None:
        """Have the next request an id after this one: those up to it belong to whoever had the session before."""
        self._first_id = self._last_id = id

    # --- out ---------------------------------------------------------------------------------------------------

    def record_notification_sent(self) -> None:
        """A notification goes out."""
        self._notified_after = self._last_id

    def send(
        self,
        row: Method,
        rules: Rules,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
    ) -> tuple[PendingRequest, bytes]:
        """A request and its bytes, by the rules given and unchecked."""
        id = self._last_id + 1
        params, carried = split_meta(params)
        fields = self._meta_of(rules, carried, meta, id if progress else None)
        body = b"{}" if params is None else codec.encode(codec.narrow(params, rules.revision))
        if fields:
            body = codec.with_meta(body, codec.encode(fields))
        asked = RequestMeta(progress_token=id) if progress else None
        exchange = self.in_flight[id] = PendingRequest(id, row, rules, meta=asked)
        self._last_id = id
        self._state.stats.requests_sent += 1
        return exchange, b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, row.name.encode(), body)

    def _meta_of(
        self, rules: Rules, carried: Meta | None, given: Mapping[str, Any] | None, token: int | None
    ) -> dict[str, Any]:
        """The `_meta` of a request of ours: what params carry, what was given, the token, what the revision demands."""
        fields = {**(carried or {}), **(given or {})}
        if token is not None:
            fields[PROGRESS_TOKEN] = token
        if not rules.handshake:
            profile = self._state.local_info
            fields[PROTOCOL_VERSION] = rules.revision
            fields[CLIENT_CAPABILITIES] = profile.raw_capabilities
            if profile.info is not None:
                fields[CLIENT_INFO] = profile.raw_info
        return fields

    def cancel(self, exchange: PendingRequest, reason: str | None) -> bytes | None:
        """Give up a request. The bytes to tell the peer, or None where it must not be told.

        "The initialize request MUST NOT be cancelled by clients"; a probe is not worth a message.
        """
        self.in_flight.pop(exchange.id, None)
        if not exchange.end("cancel"):
            return None
        self.abandon(exchange.id)
        if exchange.method.name in OPENING_METHODS:
            return None
        self._state.stats.cancels_sent += 1
        self.record_notification_sent()
        return codec.encode(
            Notification("notifications/cancelled", CancelledParams(request_id=exchange.id, reason=reason))
        )

    def abandon(self, id: RequestId) -> None:
        """Remember that no answer to `id` is wanted any more."""
        self.in_flight.pop(id, None)
        self._abandoned[id] = None
        if len(self._abandoned) > MAX_ABANDONED_IDS:
            self._abandoned.popitem(last=False)

    def is_abandoned(self, id: RequestId) -> bool:
        """Whether this was a request of ours that ended before its answer came."""
        return id in self._abandoned

    def fail_all(self) -> list[PendingRequest]:
        """The connection is over: the requests that will get no answer."""
        lost = [exchange for exchange in self.in_flight.values() if exchange.end("lose")]
        self.in_flight.clear()
        return lost

    # --- answers -----------------------------------------------------------------------------------------------

    def receive(self, incoming: Incoming) -> list[Event]:
        """An answer of the peer."""
        self._state.stats.answers_received += 1
        id: Any = incoming.id
        exchange = self.in_flight.pop(id, None) if id is not UNSET else None
        if exchange is None:
            return self._unmatched_answer(id, incoming)
        if id > self._notified_after:
            self._notified_after = inf
        return [self._finish(exchange, _outcome(exchange, incoming))]

    def fail_invalid(self, id: RequestId, why: str) -> Event | None:
        """Something that is no message was meant as the answer to `id`; None when `id` is not in flight."""
        exchange = self.in_flight.get(id)
        if exchange is None:
            return None
        return self.fail(id, RemoteProtocolError(f"the answer to {exchange.method.name} is {why}"))

    def fail_all_invalid(self, why: str) -> list[Event]:
        """An answer that names no request cannot be read: none of those in flight knows whether it was its own.

        Subscriptions wait for no answer.
        """
        said = "an answer came, and to which request cannot be read, perhaps to"
        reasons = {
            id: RemoteProtocolError(f"{said} {each.method.name}: {why}")
            for id, each in self.in_flight.items()
            if not each.method.stays
        }
        ended = [self.fail(id, reason) for id, reason in reasons.items()]
        return [event for event in ended if event is not None]

    def fail(self, id: RequestId, error: AccordError) -> Event | None:
        """No answer to `id` will come, for this reason; None when `id` is not in flight."""
        exchange = self.in_flight.pop(id, None)
        return None if exchange is None else self._finish(exchange, ErrorReceived(exchange, error))

    def fail_unread(self, head: bytes, tail: bytes, why: str) -> list[Event]:
        """The requests that a message ends which could not be read, by its beginning and, once it is over, its end."""
        found = outlines(head)
        if not found or not found[0].is_answer:
            return []
        id = found[0].id
        if id is None and tail:
            id = id_at_end(tail)
            if id is None:
                return self.fail_all_invalid(f"lost: {why}")
        ended = None if id is None else self.fail_invalid(id, f"lost: {why}")
        return [] if ended is None else [ended]

    def _finish(self, exchange: PendingRequest, event: ResultReceived | ErrorReceived) -> Event:
        exchange.end("answer")
        receive = self.on_opening_answer
        return event if receive is None or self._state.phase is Phase.OPEN else receive(event)

    def _unmatched_answer(self, id: Any, incoming: Incoming) -> list[Event]:
        """An answer to nothing in flight."""
        state = self._state
        if id is UNSET or id is None:
            return self._answer_without_id(incoming)
        if id in self._abandoned:
            del self._abandoned[id]
            state.stats.late_answers += 1
            return [state.ignore("late answer", f"id {id!r:.100}")]
        if type(id) is int and self._first_id < id <= self._last_id:
            state.stats.duplicate_answers += 1
            return [state.ignore("duplicate answer", f"id {id!r:.100}")]
        state.stats.unknown_answers += 1
        return [state.ignore(UNKNOWN_ANSWER, f"id {id!r:.100}")]

    def _answer_without_id(self, incoming: Incoming) -> list[Event]:
        """An answer without an id. Such an error means that a message of ours could not be read: "If there was an error
        in detecting the id in the Request object (e.g. Parse error/Invalid Request), it MUST be Null" (JSON-RPC).

        After a notification it may be meant for that, though none is to be answered.
        """
        excerpt = bytes(incoming.error or b"")[:500].decode(errors="replace")
        if incoming.error is UNSET:
            ended = self.fail_all_invalid("the answer has no id")
        elif self._notified_after == inf and _is_parse_failure(incoming.error):
            ended = self.fail_all_invalid(f"the server could not read a request: {excerpt}")
        else:
            ended, self._notified_after = [], inf
        return ended or [self._state.drop("error without id", excerpt)]

    def is_subscription(self, id: RequestId) -> bool:
        """Whether this is a subscription of ours."""
        exchange = self.in_flight.get(id)
        return exchange is not None and exchange.method.stays

    def end_subscription(self, id: RequestId | None, reason: str | None) -> Event | None:
        """The server ends a subscription of ours, by this alone or with a result to follow; None if it is none."""
        if id is None or not self.is_subscription(id):
            return None
        exchange = self.in_flight[id]
        exchange.end("cancel")
        self.abandon(id)  # the result that may follow is late
        return SubscriptionEnded(exchange, reason)


def _outcome(exchange: PendingRequest, incoming: Incoming) -> ResultReceived | ErrorReceived:
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


def _is_parse_failure(raw: Raw) -> bool:
    """Whether an error says that a message could not be read."""
    try:
        return codec.decoder(ErrorObject).decode(raw).code in (ParseError.default_code, InvalidRequest.default_code)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True


def split_meta(params: Any) -> tuple[Any, Meta | None]:
    """Params and the `_meta` that they carry, apart: it is written once, with what else belongs into it."""
    if isinstance(params, dict):
        return {key: value for key, value in params.items() if key != "_meta"}, params.get("_meta")
    carried = getattr(params, "meta", None)
    return (params, None) if carried is None else (msgspec.structs.replace(params, meta=None), carried)
