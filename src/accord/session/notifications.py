"""Notifications: what is told and not answered. Those that come are taken, handed up, or dropped and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, UnsetType

from accord.errors import InvalidParams
from accord.messages import codec
from accord.messages.envelope import Notification, RequestId
from accord.messages.progress import CancelledParams
from accord.messages.revision import HANDSHAKE, Rules
from accord.session import peek
from accord.session.calls import without_meta
from accord.session.events import Event, NotificationReceived
from accord.session.opening import ServerOpening

if TYPE_CHECKING:
    from accord.session.session import Session


class _CancelSeed(msgspec.Struct):
    """`$/cancelRequest`, a form of older implementations, understood when it comes."""

    id: RequestId


class Notifications:
    """The notifications of one session, both ways."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: dict[str, Callable[[Raw | UnsetType], Event]] = {
            "notifications/progress": session.progress.take,
            "notifications/cancelled": self._cancelled,
            "$/cancelRequest": self._cancelled_by_seed,
        }
        """What the session has business with itself."""
        if isinstance(session.opening, ServerOpening):
            self._own["notifications/initialized"] = session.opening.confirmed

    def send(self, name: str, params: Any, meta: Mapping[str, Any] | None, rules: Rules) -> bytes:
        """The bytes of a notification."""
        session, revision = self._session, rules.revision or HANDSHAKE[-1]
        row = session.repertoire.told(name, revision)
        if row.needs is not None:
            session.check_peer(name, row.needs)
        carried = None
        if meta:
            params, carried = without_meta(params)
        body = None if params is None else codec.narrow(params, revision)
        if meta:
            encoded = b"{}" if body is None else codec.encode(body)
            body = Raw(codec.with_meta(encoded, codec.encode({**(carried or {}), **meta})))
        session.calls.note_told()
        return codec.encode(Notification(name, body))

    def take(self, name: str, params: Raw | UnsetType) -> Event:
        """A notification of the peer."""
        own = self._own.get(name)
        try:
            return self._hand_up(name, params) if own is None else own(params)
        except InvalidParams as exc:
            return self._session.drop(f"malformed {name:.100}", exc.message)

    def _hand_up(self, name: str, params: Raw | UnsetType) -> Event:
        session, rules = self._session, self._session.agreed
        method = session.repertoire.heard(rules).get(name)
        if method is None:
            return session.drop("unknown notification", f"{name:.100}")
        if rules.handshake or session.role == "server":
            return NotificationReceived(method, params, rules)
        # "clients MUST use this field to correlate notifications with their originating subscription"
        id = peek.subscription_id(params)
        if id is None or session.calls.stays(id):
            return NotificationReceived(method, params, rules, id)
        late = session.calls.gave_up(id)
        return session.drop("notification of no subscription", f"{name} of {id!r:.100}", log=not late)

    def _cancelled(self, params: Raw | UnsetType) -> Event:
        cancelled = codec.decode_params(CancelledParams, params)
        return self._end(cancelled.request_id, cancelled.reason)

    def _cancelled_by_seed(self, params: Raw | UnsetType) -> Event:
        return self._end(codec.decode_params(_CancelSeed, params).id, None)

    def _end(self, id: RequestId | None, reason: str | None) -> Event:
        session = self._session
        ended = session.served.cancel(id, reason) or session.calls.ended(id, reason)
        return ended or session.drop("cancel of nothing in flight", f"id {id!r:.100}")
