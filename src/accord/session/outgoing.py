"""Requests of this side: their ids and bytes, and the match of responses to requests.

Ids are whole numbers from 1 on, unless a previous owner of the session used some (`start_ids_after`). Every response
ends its request, an invalid one with an error; a response to nothing in flight is late, duplicate or unknown, and
dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from accord.errors import AccordError, InvalidRequest, ParseError, RemoteProtocolError
from accord.messages import codec
from accord.messages.base import Meta
from accord.messages.envelope import ErrorObject, Incoming, Notification, RequestId, id_at_end, outlines
from accord.messages.meta import PROGRESS_TOKEN, RequestMeta
from accord.messages.methods import Method
from accord.messages.notifications import CancelledParams
from accord.messages.revision import Rules
from accord.session.events import ErrorReceived, Event, ResultReceived, SubscriptionEnded
from accord.session.negotiation import OPENING_METHODS
from accord.session.pending_request import PendingRequest
from accord.session.state import SessionState
from accord.session.states import Phase

UNKNOWN_ANSWER = "unknown answer"
"""The kind of event for a response to a request that this side never sent."""

MAX_ABANDONED_IDS = 1_024
"""Number of abandoned requests that are remembered, to distinguish a late response from a duplicate one."""


class OutgoingRequests:
    """The requests of this side that are in flight in one session."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.in_flight: dict[RequestId, PendingRequest] = {}
        self.on_opening_answer: Callable[[ResultReceived | ErrorReceived], Event] | None = None
        """Handler of responses before the connection is open."""
        self.peer_name: str = ""
        """The name of the server for errors about its responses."""
        self._abandoned: OrderedDict[RequestId, None] = OrderedDict()
        self._first_id = self._last_id = 0
        self._notified_after: float = inf
        """The last request before a notification of this side that the peer may not have read yet."""

    def start_ids_after(self, id: int) -> None:
        """Continue with the ids after this one: ids up to it belong to the previous owner of the session."""
        self._first_id = self._last_id = id

    # --- requests ----------------------------------------------------------------------------------------------

    def record_notification_sent(self) -> None:
        """Record that a notification was sent."""
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
        """Return a request and its bytes, under these rules and unchecked."""
        id = self._last_id + 1
        params, params_meta = split_meta(params)
        encoded_meta = self._encode_meta(rules, params_meta, meta, id if progress else None)
        body = b"{}" if params is None else codec.encode_params(params, rules.revision)
        if encoded_meta:
            body = codec.with_meta(body, encoded_meta)
        request_meta = RequestMeta(progress_token=id) if progress else None
        request = self.in_flight[id] = PendingRequest(id, row, rules, meta=request_meta)
        self._last_id = id
        self._state.stats.requests_sent += 1
        return request, b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, row.name.encode(), body)

    def _encode_meta(
        self, rules: Rules, params_meta: Meta | None, given: Mapping[str, Any] | None, token: int | None
    ) -> bytes:
        """Return the `_meta` of a request: that of the params, the given one, the token, and the keys that the revision
        requires. Empty if there is none."""
        fields = {**(params_meta or {}), **(given or {})}
        if token is not None:
            fields[PROGRESS_TOKEN] = token
        if rules.handshake:
            return codec.encode(fields) if fields else b""
        profile = self._state.local_info
        if not fields:  # as in most requests
            return profile.encoded_request_meta(rules.revision)
        return codec.encode({**fields, **profile.request_meta(rules.revision)})

    def cancel(self, request: PendingRequest, reason: str | None) -> bytes | None:
        """Cancel a request. Return the bytes of the notification, or None if none may be sent.

        "The initialize request MUST NOT be cancelled by clients"; for a probe no notification is sent either.
        """
        self.in_flight.pop(request.id, None)
        if not request.end("cancel"):
            return None
        self.abandon(request.id)
        if request.method.name in OPENING_METHODS:
            return None
        self._state.stats.cancels_sent += 1
        self.record_notification_sent()
        return codec.encode(
            Notification("notifications/cancelled", CancelledParams(request_id=request.id, reason=reason))
        )

    def abandon(self, id: RequestId) -> None:
        """Record that the response to `id` is no longer expected."""
        self.in_flight.pop(id, None)
        self._abandoned[id] = None
        if len(self._abandoned) > MAX_ABANDONED_IDS:
            self._abandoned.popitem(last=False)

    def is_abandoned(self, id: RequestId) -> bool:
        """Return whether a request of this side ended before its response arrived."""
        return id in self._abandoned

    def fail_all(self) -> list[PendingRequest]:
        """End all requests at the end of the connection, and return those without a response."""
        lost = [request for request in self.in_flight.values() if request.end("lose")]
        self.in_flight.clear()
        return lost

    # --- responses ---------------------------------------------------------------------------------------------

    def receive(self, incoming: Incoming) -> list[Event]:
        """Process a response of the peer."""
        self._state.stats.answers_received += 1
        id: Any = incoming.id
        request = self.in_flight.pop(id, None) if id is not UNSET else None
        if request is None:
            return self._unmatched_answer(id, incoming)
        if id > self._notified_after:
            self._notified_after = inf
        return [self._finish(request, self._outcome(request, incoming))]

    def _outcome(self, request: PendingRequest, incoming: Incoming) -> ResultReceived | ErrorReceived:
        if incoming.error is UNSET:
            return ResultReceived(request, incoming.result)  # type: ignore[arg-type]  # read() saw one of the two
        if incoming.result is not UNSET:
            return ErrorReceived(request, self._invalid(request, "has both a result and an error"))
        try:
            error = codec.decoder(ErrorObject).decode(incoming.error)
        except (msgspec.DecodeError, RecursionError) as exc:
            return ErrorReceived(request, self._invalid(request, f"has an invalid error object: {exc}"))
        return ErrorReceived(request, error.to_exception())

    def _invalid(self, request: PendingRequest, problem: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"{self._prefix}the answer to {request.method.name} {problem}")

    @property
    def _prefix(self) -> str:
        return f"{self.peer_name}: " if self.peer_name else ""

    def fail_invalid(self, id: RequestId, problem: str) -> Event | None:
        """Fail request `id`, because its response is not a valid message; return None if `id` is not in flight."""
        request = self.in_flight.get(id)
        if request is None:
            return None
        return self.fail(id, self._invalid(request, problem))

    def fail_all_invalid(self, reason: str) -> list[Event]:
        """Fail all requests in flight, because a response without an id is invalid and could belong to any of them.

        Subscriptions do not wait for a response, so they go on.
        """
        prefix = f"{self._prefix}a response without a readable id arrived, perhaps to"
        reasons = {
            id: RemoteProtocolError(f"{prefix} {each.method.name}: {reason}")
            for id, each in self.in_flight.items()
            if not each.method.stays
        }
        ended = [self.fail(id, reason) for id, reason in reasons.items()]
        return [event for event in ended if event is not None]

    def fail(self, id: RequestId, error: AccordError) -> Event | None:
        """Fail request `id` with an error; return None if `id` is not in flight."""
        request = self.in_flight.pop(id, None)
        return None if request is None else self._finish(request, ErrorReceived(request, error))

    def fail_unread(self, head: bytes, tail: bytes, reason: str) -> list[Event]:
        """Fail the requests whose response could not be read, by its first bytes and, once it is complete, its last
        bytes."""
        objects = outlines(head)
        if not objects or not objects[0].is_answer:
            return []
        id = objects[0].id
        if id is None and tail:
            id = id_at_end(tail)
            if id is None:
                return self.fail_all_invalid(f"lost: {reason}")
        ended = None if id is None else self.fail_invalid(id, f"is lost: {reason}")
        return [] if ended is None else [ended]

    def _finish(self, request: PendingRequest, event: ResultReceived | ErrorReceived) -> Event:
        request.end("answer")
        receive = self.on_opening_answer
        return event if receive is None or self._state.phase is Phase.OPEN else receive(event)

    def _unmatched_answer(self, id: Any, incoming: Incoming) -> list[Event]:
        """Process a response to nothing in flight."""
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
        """Process a response without an id. Such an error means that the peer could not read a message: "If there was
        an error in detecting the id in the Request object (e.g. Parse error/Invalid Request), it MUST be Null"
        (JSON-RPC).

        After a notification the error may belong to it, although notifications must not be answered.
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
        """Return whether `id` is a subscription of this side."""
        request = self.in_flight.get(id)
        return request is not None and request.method.stays

    def end_subscription(self, id: RequestId | None, reason: str | None) -> Event | None:
        """End a subscription at the server's request, with or without a result to follow; return None for any other
        id."""
        if id is None or not self.is_subscription(id):
            return None
        request = self.in_flight[id]
        request.end("cancel")
        self.abandon(id)  # the result that may follow is late
        return SubscriptionEnded(request, reason)


def _is_parse_failure(raw: Raw) -> bool:
    """Return whether an error means that the peer could not read a message."""
    try:
        return codec.decoder(ErrorObject).decode(raw).code in (ParseError.default_code, InvalidRequest.default_code)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True


def split_meta(params: Any) -> tuple[Any, Meta | None]:
    """Return the params without their `_meta`, and that `_meta`: it is encoded once, together with other keys."""
    if isinstance(params, dict):
        return {key: value for key, value in params.items() if key != "_meta"}, params.get("_meta")
    params_meta = getattr(params, "meta", None)
    return (params, None) if params_meta is None else (msgspec.structs.replace(params, meta=None), params_meta)
