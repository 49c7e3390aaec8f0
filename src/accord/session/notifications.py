"""Notifications: incoming ones are processed, passed to the driver, or dropped and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, UnsetType

from accord.errors import InvalidParams
from accord.messages import codec
from accord.messages.envelope import Notification, RequestId
from accord.messages.notifications import CancelledParams
from accord.messages.revision import HANDSHAKE, Rules
from accord.session import peek
from accord.session.events import Event, NotificationReceived
from accord.session.incoming import IncomingRequests
from accord.session.outgoing import OutgoingRequests, split_meta
from accord.session.state import SessionState


class _LegacyCancelParams(msgspec.Struct):
    """`$/cancelRequest`, sent by older implementations and accepted."""

    id: RequestId


class Notifications:
    """The notifications of one session, in both directions."""

    def __init__(
        self,
        state: SessionState,
        incoming: IncomingRequests,
        outgoing: OutgoingRequests,
        built_in: Mapping[str, Callable[[Raw | UnsetType], Event]],
    ) -> None:
        self._state = state
        self._incoming = incoming
        self._outgoing = outgoing
        self._built_in: dict[str, Callable[[Raw | UnsetType], Event]] = {
            "notifications/cancelled": self._on_cancelled,
            "$/cancelRequest": self._on_legacy_cancel,
            **built_in,
        }
        """Handlers of the session itself, by notification."""

    def send(self, name: str, params: Any, meta: Mapping[str, Any] | None, rules: Rules) -> bytes:
        """Return the bytes of a notification."""
        state, revision = self._state, rules.revision or HANDSHAKE[-1]
        row = state.method_table.own_notification(name, revision)
        if row.needs is not None:
            state.require_peer_capability(name, row.needs)
        params_meta = None
        if meta:
            params, params_meta = split_meta(params)
        body = None if params is None else codec.narrow(params, revision)
        if meta:
            encoded = b"{}" if body is None else codec.encode(body)
            body = Raw(codec.with_meta(encoded, codec.encode({**(params_meta or {}), **meta})))
        self._outgoing.record_notification_sent()
        return codec.encode(Notification(name, body))

    def receive(self, name: str, params: Raw | UnsetType) -> Event:
        """Process a notification of the peer."""
        handler = self._built_in.get(name)
        try:
            return self._deliver(name, params) if handler is None else handler(params)
        except InvalidParams as exc:
            return self._state.drop(f"malformed {name:.100}", exc.message)

    def _deliver(self, name: str, params: Raw | UnsetType) -> Event:
        state, rules = self._state, self._state.agreed
        method = state.method_table.peer_notifications[rules.revision].get(name)
        if method is None:
            return state.drop("unknown notification", f"{name:.100}")
        if rules.handshake or state.role == "server":
            return NotificationReceived(method, params, rules)
        # "clients MUST use this field to correlate notifications with their originating subscription"
        id = peek.subscription_id(params)
        if id is None or self._outgoing.is_subscription(id):
            return NotificationReceived(method, params, rules, id)
        is_late = self._outgoing.is_abandoned(id)
        return state.drop("notification of no subscription", f"{name} of {id!r:.100}", log=not is_late)

    def _on_cancelled(self, params: Raw | UnsetType) -> Event:
        cancelled = codec.decode_params(CancelledParams, params)
        return self._end(cancelled.request_id, cancelled.reason)

    def _on_legacy_cancel(self, params: Raw | UnsetType) -> Event:
        return self._end(codec.decode_params(_LegacyCancelParams, params).id, None)

    def _end(self, id: RequestId | None, reason: str | None) -> Event:
        state = self._state
        ended = self._incoming.cancel(id, reason) or self._outgoing.end_subscription(id, reason)
        return ended or state.drop("cancel of nothing in flight", f"id {id!r:.100}")
