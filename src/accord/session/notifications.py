"""Notifications: what is told and not answered. Those that come are taken, handed up, or dropped and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, UnsetType

from accord.errors import InvalidParams
from accord.messages import codec
from accord.messages.envelope import Notification, RequestId
from accord.messages.notifications import CancelledParams
from accord.messages.revision import HANDSHAKE, Rules
from accord.session import peek
from accord.session.events import Event, NotificationReceived
from accord.session.handshake import ServerHandshake
from accord.session.outgoing import split_meta

if TYPE_CHECKING:
    from accord.session.session import Session


class _LegacyCancelParams(msgspec.Struct):
    """`$/cancelRequest`, a form of older implementations, understood when it comes."""

    id: RequestId


class Notifications:
    """The notifications of one session, both ways."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._built_in: dict[str, Callable[[Raw | UnsetType], Event]] = {
            "notifications/progress": session.progress.receive,
            "notifications/cancelled": self._cancelled,
            "$/cancelRequest": self._cancelled_by_legacy_form,
        }
        """What the session has business with itself."""
        if isinstance(session.handshake, ServerHandshake):
            self._built_in["notifications/initialized"] = session.handshake.receive_initialized

    def send(self, name: str, params: Any, meta: Mapping[str, Any] | None, rules: Rules) -> bytes:
        """The bytes of a notification."""
        session, revision = self._session, rules.revision or HANDSHAKE[-1]
        row = session.method_table.own_notification(name, revision)
        if row.needs is not None:
            session.require_peer_capability(name, row.needs)
        carried = None
        if meta:
            params, carried = split_meta(params)
        body = None if params is None else codec.narrow(params, revision)
        if meta:
            encoded = b"{}" if body is None else codec.encode(body)
            body = Raw(codec.with_meta(encoded, codec.encode({**(carried or {}), **meta})))
        session.outgoing_requests.record_notification_sent()
        return codec.encode(Notification(name, body))

    def receive(self, name: str, params: Raw | UnsetType) -> Event:
        """A notification of the peer."""
        own = self._built_in.get(name)
        try:
            return self._deliver(name, params) if own is None else own(params)
        except InvalidParams as exc:
            return self._session.drop(f"malformed {name:.100}", exc.message)

    def _deliver(self, name: str, params: Raw | UnsetType) -> Event:
        session, rules = self._session, self._session.agreed
        method = session.method_table.peer_notifications(rules).get(name)
        if method is None:
            return session.drop("unknown notification", f"{name:.100}")
        if rules.handshake or session.role == "server":
            return NotificationReceived(method, params, rules)
        # "clients MUST use this field to correlate notifications with their originating subscription"
        id = peek.subscription_id(params)
        if id is None or session.outgoing_requests.is_subscription(id):
            return NotificationReceived(method, params, rules, id)
        late = session.outgoing_requests.is_abandoned(id)
        return session.drop("notification of no subscription", f"{name} of {id!r:.100}", log=not late)

    def _cancelled(self, params: Raw | UnsetType) -> Event:
        cancelled = codec.decode_params(CancelledParams, params)
        return self._end(cancelled.request_id, cancelled.reason)

    def _cancelled_by_legacy_form(self, params: Raw | UnsetType) -> Event:
        return self._end(codec.decode_params(_LegacyCancelParams, params).id, None)

    def _end(self, id: RequestId | None, reason: str | None) -> Event:
        session = self._session
        ended = session.incoming_requests.cancel(id, reason) or session.outgoing_requests.end_subscription(id, reason)
        return ended or session.drop("cancel of nothing in flight", f"id {id!r:.100}")
