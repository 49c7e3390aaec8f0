"""Requests of the peer: which are accepted, under which rules, and how they are answered.

The session refuses a request, answers it itself, or passes it to the driver; then the request is in flight until
`respond`, `fail` or a cancellation ends it. The first of these counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from accord.errors import (
    HeaderMismatch,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MissingClientCapability,
    ProtocolError,
    ResourceNotFound,
    UnsupportedVersion,
)
from accord.messages import codec
from accord.messages.capabilities import declares
from accord.messages.envelope import ErrorObject, ErrorResponse, Incoming, Notification, RequestId, Response
from accord.messages.meta import SUBSCRIPTION_ID, RequestMeta
from accord.messages.methods import Method
from accord.messages.notifications import CancelledParams, ListenResult
from accord.messages.revision import PER_REQUEST, RULES, Rules
from accord.session import peek
from accord.session.events import CancelReceived, Event, ReplyReady, RequestReceived
from accord.session.peer_info import missing_capability
from accord.session.pending_request import Batch, PendingRequest
from accord.session.rate import RequestLoad
from accord.session.state import SessionState
from accord.session.states import REQUEST_TRANSITIONS

_BACKSLASH = ord("\\")


class IncomingRequests:
    """The requests of the peer that are in flight in one session."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.in_flight: dict[object, PendingRequest] = {}
        """By id, except those of `receive_standalone`."""
        self.subscription_count: int = 0
        """Number of the subscriptions in flight."""
        self.load: RequestLoad | None = None
        """Limit on the requests in flight together with those of other sessions, without subscriptions."""
        self.subscription_load: RequestLoad | None = None
        """Limit on the subscriptions together with those of other sessions, if one connection may have many."""
        self.last_meta: peek.LastMeta = peek.LastMeta()
        self._per_request_rules = {each: RULES[each] for each in PER_REQUEST if each in state.revisions}
        self.built_in: dict[str, Callable[[PendingRequest], Event | None]] = {"ping": self._answer_ping}
        """Handlers of the session itself, by method; one that returns None leaves the response to the driver."""

    def _answer_ping(self, request: PendingRequest) -> Event:
        return ReplyReady(self.respond(request, Raw(b"{}")) or b"")

    # --- requests ----------------------------------------------------------------------------------------------

    def receive(self, incoming: Incoming, batch: Batch | None) -> Event:
        """Process a request of the peer."""
        self._state.stats.requests_received += 1
        id: Any = incoming.id
        if id in self.in_flight:
            # An error with this id would end the first request at the peer.
            return self.refuse(None, InvalidRequest(f"a request with id {id!r:.100} is in flight"))
        try:
            params, meta = bytes(incoming.params or b""), None
            # a backslash may escape a letter of the key
            if params.find(b"_meta") >= 0 or _BACKSLASH in params or params[:1] != b"{":
                meta = peek.request_meta(incoming.params, self.last_meta)
            if meta is not None and meta.protocol_version is not None and not self._state.allows_revision_in_meta:
                raise HeaderMismatch(f"_meta names revision {meta.protocol_version!r:.100}, and no header does")
            request = self._admit(incoming, meta, batch)
        except ProtocolError as error:
            return self.refuse(id, error)
        return self._begin(request, id, batch)

    def receive_standalone(self, incoming: Incoming, meta: RequestMeta | None) -> Event:
        """Process a request with a response channel of its own, where other requests may have the same id (HTTP,
        2026-07-28); `meta` is its decoded `_meta`."""
        self._state.stats.received += 1
        self._state.stats.requests_received += 1
        try:
            request = self._admit(incoming, meta, None)
        except ProtocolError as error:
            return self.refuse(incoming.id, error)  # type: ignore[arg-type]  # a request has one
        return self._begin(request, object(), None)

    def _begin(self, request: PendingRequest, key: object, batch: Batch | None) -> Event:
        """Answer the request in the session, or return it as an event and keep it in flight."""
        answer = self.built_in.get(request.method.name)
        if answer is not None and (event := answer(request)) is not None:
            return event
        request.batch, request.key = batch, key
        self.in_flight[key] = request
        if request.method.stays:
            self.subscription_count += 1
            if self.subscription_load is not None:
                self.subscription_load.add(1)
        elif self.load is not None:
            self.load.add(1)
        return RequestReceived(request)

    def refuse(self, id: RequestId | None, error: ProtocolError) -> ReplyReady:
        """Return an error response."""
        self._state.stats.answers_sent += 1
        self._state.stats.errors_sent += 1
        return ReplyReady(error_bytes(id, error, self._state.agreed), error.code)

    def _admit(self, incoming: Incoming, meta: RequestMeta | None, batch: Batch | None) -> PendingRequest:
        """Return the pending request for a message. Raise `ProtocolError` if it may not be served."""
        state = self._state
        id: Any = incoming.id
        name: Any = incoming.method
        rules, capabilities = state.rules, None
        if meta is not None and meta.protocol_version is not None and state.role == "server":
            own_rules, capabilities = self._per_request_rules.get(meta.protocol_version), meta.client_capabilities
            if own_rules is None or capabilities is None:
                raise self._meta_refusal(meta)
            rules = state.last_request_rules = own_rules
        method = state.method_table.peer_requests[rules.revision].get(name)
        if method is None:
            raise state.method_table.refusal(name, rules)
        request = PendingRequest(id, method, rules, incoming.params, meta, capabilities)
        if method.offers is not None:
            self.require_client_capability(request, method.offers)
        if name != "ping":  # "The receiver MUST respond promptly" (2025-11-25, Ping)
            self._check_capacity(method, batch)
        return request

    def _check_capacity(self, method: Method, batch: Batch | None) -> None:
        limits = self._state.limits
        if self._state.draining:
            raise InternalError("shutting down; no new requests are accepted")
        if method.stays:
            if self.subscription_count >= limits.subscriptions:
                raise InternalError(
                    f"too many subscriptions: the limit is {limits.subscriptions:,} (Limits.subscriptions)"
                )
            if batch is not None:
                raise InvalidRequest("a request that stays open must not be part of a batch")
            if self.subscription_load is not None:
                self.subscription_load.check()
        elif len(self.in_flight) - self.subscription_count >= limits.requests_in_flight:
            most = limits.requests_in_flight
            shared = self.load is not None and most >= min(limits.http.requests, limits.http.requests_per_address)
            name = "HTTPLimits.requests" if shared else "Limits.requests_in_flight"
            raise InternalError(f"too many requests in flight: the limit is {most:,} ({name})")
        elif self.load is not None and method.name not in self.built_in:
            self.load.check()

    def _meta_refusal(self, meta: RequestMeta) -> ProtocolError:
        """Return the error for a request whose `_meta` names a revision that is not supported, or lacks the client's
        capabilities (2026-07-28, basic, _meta)."""
        requested = meta.protocol_version
        if requested in self._per_request_rules:
            return InvalidParams("_meta lacks io.modelcontextprotocol/clientCapabilities")
        supported = list(self._per_request_rules or self._state.revisions)
        return UnsupportedVersion(
            f"revision {requested!r:.100} is not supported here",
            data={"supported": supported, "requested": requested},
        )

    def require_client_capability(self, request: PendingRequest, needs: str) -> None:
        """Raise `MissingClientCapability` unless the client of a request has declared `needs`."""
        capabilities: Any = request.capabilities
        if request.rules.handshake:
            peer = self._state.peer_info
            capabilities = peer.capabilities if peer is not None else None
        if capabilities is None or not declares(capabilities, needs):
            raise missing_capability(needs, request.method.name)

    def cancel(self, id: RequestId | None, reason: str | None) -> Event | None:
        """Process a cancellation by the peer; return None if no such request is in flight."""
        request = self.in_flight.get(id) if id is not None else None
        if request is None:
            return None
        self.abandon(request)
        return CancelReceived(request, reason, None if request.batch is None else request.batch.add(None))

    def abandon(self, request: PendingRequest) -> None:
        """End a request whose response the peer no longer expects."""
        if self._end(request, "cancel"):
            self._state.stats.cancels_received += 1

    # --- responses ---------------------------------------------------------------------------------------------

    def respond(self, request: PendingRequest, result: Any) -> bytes | None:
        """Return the bytes of a result, or None if the request has ended or waits for its batch."""
        if not isinstance(result, codec.FINISHED):  # same check as in `finish_result`; it saves a call for most results
            result = codec.finish_result(result, request.rules, self._state.local_info.raw_info)
        return self._answer(request, codec.encode(Response(request.id, result)))

    def fail(self, request: PendingRequest, error: ProtocolError) -> bytes | None:
        """Return the bytes of an error, or None as for `respond`."""
        request.code = error.code
        if request.stage == "active":
            self._state.stats.errors_sent += 1
        return self._answer(request, error_bytes(request.id, error, request.rules))

    def end_subscription(self, request: PendingRequest, reason: str | None) -> list[bytes]:
        """Return the messages that end a subscription: the cancellation, then the result; none if it had already
        ended."""
        result = self.respond(request, ListenResult(meta={SUBSCRIPTION_ID: request.id}))
        if result is None:
            return []
        cancelled = CancelledParams(request_id=request.id, reason=reason)
        return [codec.encode(Notification("notifications/cancelled", cancelled)), result]

    def _answer(self, request: PendingRequest, message: bytes) -> bytes | None:
        """End a request with these bytes; return them, or None as for `respond`."""
        stats = self._state.stats
        if not self._end(request, "answer"):
            stats.dropped_results += 1
            return None
        stats.answers_sent += 1
        return message if request.batch is None else self.add_to_batch(request.batch, request.id, message)

    def _end(self, request: PendingRequest, event: str) -> bool:
        """End a request, and remove it; return False if it had already ended."""
        stage = REQUEST_TRANSITIONS.get((request.stage, event))
        if stage is None:
            return False
        request.stage = stage
        if self.in_flight.pop(request.key, None) is None:
            return True  # the session answers it itself, so it was never in flight
        if request.method.stays:
            self.subscription_count -= 1
            if self.subscription_load is not None:
                self.subscription_load.add(-1)
        elif self.load is not None:
            self.load.add(-1)
        return True

    def add_to_batch(self, batch: Batch, id: RequestId | None, message: bytes) -> bytes | None:
        """Add a response to its batch; all responses of a batch together are limited to the size of one message."""
        limit = self._state.limits.line_bytes
        try:
            if batch.size + len(message) > limit:
                raise InternalError(f"the answers of this batch are over {limit:,} bytes; ask one by one")
            if self.load is not None:
                self.load.check_batch_bytes(len(message))
        except InternalError as over:
            message = error_bytes(id, over, self._state.rules)
        return batch.add(message)


def error_bytes(id: RequestId | None, error: ProtocolError, rules: Rules) -> bytes:
    """Return an error response in the shape of the revision; without an id if the request's id could not be read."""
    code = code_of(error, rules)
    data = UNSET if error.data is None else error.data
    absent = None if rules.null_id else UNSET
    # "The message SHOULD be limited to a concise single sentence" (schema, Error)
    message = error.message.replace("\n", "; ")
    error_object = ErrorObject(code, message, data)
    try:
        return codec.encode(ErrorResponse(absent if id is None else id, error_object))
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):  # a value of a handler that cannot be encoded
        error_object = ErrorObject(code, message.encode(errors="replace").decode())
        return codec.encode(ErrorResponse(absent if id is None else id, error_object))


def code_of(error: ProtocolError, rules: Rules) -> int:
    """Return the code of an error in the revision."""
    if isinstance(error, ResourceNotFound):
        return rules.resource_not_found
    if isinstance(error, MissingClientCapability):
        return rules.missing_capability
    return error.code
