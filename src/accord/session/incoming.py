"""Requests of the peer: which are let in, by which rules, and how they are answered.

A request is refused, answered by the session itself, or handed up; then it is in flight until `respond`, `fail` or a
cancel ends it. Whoever ends it first wins.
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


class IncomingRequests:
    """The requests that one session serves, as long as they are in flight."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.in_flight: dict[object, PendingRequest] = {}
        """By id, but for those that came alone (`receive_standalone`)."""
        self.subscription_count: int = 0
        """How many of them are subscriptions."""
        self.load: RequestLoad | None = None
        """What bounds them together with those of other sessions, without the subscriptions."""
        self.subscription_load: RequestLoad | None = None
        """What bounds the subscriptions together with those of other sessions, where one connection may have many."""
        self.last_meta: peek.LastMeta = peek.LastMeta()
        self._per_request_revisions = [revision for revision in PER_REQUEST if revision in state.revisions]
        self.built_in: dict[str, Callable[[PendingRequest], Event | None]] = {"ping": self._answer_ping}
        """What the session answers itself; None is an answer that it leaves to the handler."""

    def _answer_ping(self, exchange: PendingRequest) -> Event:
        return ReplyReady(self.respond(exchange, Raw(b"{}")) or b"")

    # --- in ----------------------------------------------------------------------------------------------------

    def receive(self, incoming: Incoming, batch: Batch | None) -> Event:
        """A request of the peer."""
        self._state.stats.requests_received += 1
        id: Any = incoming.id
        if id in self.in_flight:
            # An error with this id would end the first request at the peer.
            return self.refuse(None, InvalidRequest(f"a request with id {id!r:.100} is in flight"))
        try:
            meta = peek.request_meta(incoming.params, self.last_meta)
            if meta is not None and meta.protocol_version is not None and not self._state.allows_revision_in_meta:
                raise HeaderMismatch(f"_meta names revision {meta.protocol_version!r:.100}, and no header does")
            exchange = self._admit(incoming, meta, batch)
        except ProtocolError as error:
            return self.refuse(id, error)
        return self._begin(exchange, id, batch)

    def receive_standalone(self, incoming: Incoming, meta: RequestMeta | None) -> Event:
        """A request that comes and is answered on a way of its own, whoever else may use its id (HTTP, 2026-07-28)."""
        self._state.stats.requests_received += 1
        try:
            exchange = self._admit(incoming, meta, None)
        except ProtocolError as error:
            return self.refuse(incoming.id, error)  # type: ignore[arg-type]  # a request has one
        exchange.key = object()
        return self._begin(exchange, exchange.key, None)

    def _begin(self, exchange: PendingRequest, key: object, batch: Batch | None) -> Event:
        """Answer it here, or hand it up and keep it in flight."""
        answer = self.built_in.get(exchange.method.name)
        if answer is not None and (event := answer(exchange)) is not None:
            return event
        exchange.batch = batch
        self.in_flight[key] = exchange
        if exchange.method.stays:
            self.subscription_count += 1
            if self.subscription_load is not None:
                self.subscription_load.add(1)
        elif self.load is not None:
            self.load.add(1)
        return RequestReceived(exchange)

    def refuse(self, id: RequestId | None, error: ProtocolError) -> ReplyReady:
        """An error at once."""
        self._state.stats.answers_sent += 1
        self._state.stats.errors_sent += 1
        return ReplyReady(error_bytes(id, error, self._state.agreed), error.code)

    def _admit(self, incoming: Incoming, meta: RequestMeta | None, batch: Batch | None) -> PendingRequest:
        """The exchange of a request that may be served. Raises `ProtocolError`."""
        state = self._state
        id: Any = incoming.id
        name: Any = incoming.method
        rules, capabilities = state.rules, None
        if meta is not None and meta.protocol_version is not None and state.role == "server":
            rules, capabilities = self._per_request(meta)
            state.last_request_rules = rules
        method = state.method_table.peer_requests(rules).get(name)
        if method is None:
            raise state.method_table.refusal(name, rules)
        exchange = PendingRequest(id, method, rules, incoming.params, meta, capabilities)
        if method.offers is not None:
            self.require_client_capability(exchange, method.offers)
        if name != "ping":  # "The receiver MUST respond promptly" (2025-11-25, Ping)
            self._check_capacity(method, batch)
        return exchange

    def _check_capacity(self, method: Method, batch: Batch | None) -> None:
        limits = self._state.limits
        if self._state.draining:
            raise InternalError("shutting down; no new requests are accepted")
        if method.stays:
            if self.subscription_count >= limits.subscriptions:
                raise InternalError(f"too many subscriptions: the limit is {limits.subscriptions}")
            if batch is not None:
                raise InvalidRequest("a request that stays open must not be part of a batch")
            if self.subscription_load is not None:
                self.subscription_load.check()
        elif len(self.in_flight) - self.subscription_count >= limits.requests_in_flight:
            raise InternalError(f"too many requests in flight: the limit is {limits.requests_in_flight}")
        elif self.load is not None and method.name not in self.built_in:
            self.load.check()

    def _per_request(self, meta: RequestMeta) -> tuple[Rules, Any]:
        """The rules that a request names, and the capabilities that come with it (2026-07-28, basic, _meta)."""
        requested = meta.protocol_version
        if requested not in self._per_request_revisions:
            supported = self._per_request_revisions or list(self._state.revisions)
            raise UnsupportedVersion(
                f"revision {requested!r:.100} is not supported here",
                data={"supported": supported, "requested": requested},
            )
        if meta.client_capabilities is None:
            raise InvalidParams("_meta lacks io.modelcontextprotocol/clientCapabilities")
        return RULES[requested], meta.client_capabilities

    def require_client_capability(self, exchange: PendingRequest, needs: str) -> None:
        """Raise `MissingClientCapability` unless the client of a request has declared `needs`."""
        capabilities: Any = exchange.capabilities
        if exchange.rules.handshake:
            peer = self._state.peer_info
            capabilities = peer.capabilities if peer is not None else None
        if capabilities is None or not declares(capabilities, needs):
            raise missing_capability(needs, exchange.method.name)

    def cancel(self, id: RequestId | None, reason: str | None) -> Event | None:
        """The peer does not want an answer any more; None when it waits for none."""
        exchange = self.in_flight.get(id) if id is not None else None
        if exchange is None:
            return None
        self.abandon(exchange)
        return CancelReceived(exchange, reason, None if exchange.batch is None else exchange.batch.add(None))

    def abandon(self, exchange: PendingRequest) -> None:
        """Nobody waits for the answer to a request any more."""
        if exchange.end("cancel"):
            self._forget(exchange)
            self._state.stats.cancels_received += 1

    # --- out ---------------------------------------------------------------------------------------------------

    def respond(self, exchange: PendingRequest, result: Any) -> bytes | None:
        """The bytes of a result, or None."""
        if not isinstance(result, codec.FINISHED):  # as `finish_result` sees first; most results need no call of it
            result = codec.finish_result(result, exchange.rules, self._state.local_info.raw_info)
        return self._end(exchange, codec.encode(Response(exchange.id, result)))

    def fail(self, exchange: PendingRequest, error: ProtocolError) -> bytes | None:
        """The bytes of an error, or None."""
        exchange.code = error.code
        return self._end(exchange, error_bytes(exchange.id, error, exchange.rules), errors=1)

    def end_subscription(self, exchange: PendingRequest, reason: str | None) -> list[bytes]:
        """The bytes that end a subscription: the cancel, then the result; none when it had ended before."""
        result = self.respond(exchange, ListenResult(meta={SUBSCRIPTION_ID: exchange.id}))
        if result is None:
            return []
        cancelled = CancelledParams(request_id=exchange.id, reason=reason)
        return [codec.encode(Notification("notifications/cancelled", cancelled)), result]

    def _end(self, exchange: PendingRequest, message: bytes, *, errors: int = 0) -> bytes | None:
        stats = self._state.stats
        if not exchange.end("answer"):
            stats.dropped_results += 1
            return None
        self._forget(exchange)
        stats.answers_sent += 1
        stats.errors_sent += errors
        return message if exchange.batch is None else self.add_to_batch(exchange.batch, exchange.id, message)

    def _forget(self, exchange: PendingRequest) -> None:
        """It has ended. One that the session answers itself was never in flight."""
        if self.in_flight.pop(exchange.id if exchange.key is None else exchange.key, None) is None:
            return
        if exchange.method.stays:
            self.subscription_count -= 1
            if self.subscription_load is not None:
                self.subscription_load.add(-1)
        elif self.load is not None:
            self.load.add(-1)

    def add_to_batch(self, batch: Batch, id: RequestId | None, message: bytes) -> bytes | None:
        """Answers that leave together are held together: all of them are no larger than one message may be."""
        most = self._state.limits.line_bytes
        try:
            if batch.size + len(message) > most:
                raise InternalError(f"the answers of this batch are over {most:,} bytes; ask one by one")
            if self.load is not None:
                self.load.check_batch_bytes(len(message))
        except InternalError as over:
            message = error_bytes(id, over, self._state.rules)
        return batch.add(message)


def error_bytes(id: RequestId | None, error: ProtocolError, rules: Rules) -> bytes:
    """An error as the revision has it; without an id where none could be read."""
    code = code_of(error, rules)
    data = UNSET if error.data is None else error.data
    absent = None if rules.null_id else UNSET
    # "The message SHOULD be limited to a concise single sentence" (schema, Error)
    message = error.message.replace("\n", "; ")
    said = ErrorObject(code, message, data)
    try:
        return codec.encode(ErrorResponse(absent if id is None else id, said))
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):  # what a handler put into it
        said = ErrorObject(code, message.encode(errors="replace").decode())
        return codec.encode(ErrorResponse(absent if id is None else id, said))


def code_of(error: ProtocolError, rules: Rules) -> int:
    """The code of an error, as the revision has it."""
    if isinstance(error, ResourceNotFound):
        return rules.resource_not_found
    if isinstance(error, MissingClientCapability):
        return rules.missing_capability
    return error.code
