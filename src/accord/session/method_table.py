"""The methods that each side may send: the table of methods, limited by the capabilities of this side.

`peer_notifications` and `own_notification` cache one table per revision, so that a message costs one look-up. The
peer's capabilities for a request of this side are checked when it is sent (`Session.request`).
"""

from __future__ import annotations

from collections.abc import Mapping

from accord.errors import InvalidParams, MethodNotFound, NotSupported, ProtocolError
from accord.messages.capabilities import SESSION_CAPABILITIES
from accord.messages.methods import Method, Sender, Table
from accord.messages.revision import BEFORE_OPENING, HANDSHAKE, NO_SESSIONS, Rules
from accord.session.peer_info import PeerInfo

_BEFORE_OPENING = ("initialize", "ping", "notifications/message")
"""Methods that may be sent before the handshake: "The server SHOULD NOT send requests other than pings and logging
before receiving the initialized notification" (Lifecycle)."""
_MAX_NAME_CHARACTERS = 100
"""Number of characters of the peer's method name that an error repeats."""


class MethodTable:
    """The methods and notifications of both sides, seen from the side that `profile` describes."""

    def __init__(self, table: Table, role: Sender, profile: PeerInfo) -> None:
        self._table = table
        self._role: Sender = role
        self._peer_role: Sender = "server" if role == "client" else "client"
        self._profile = profile
        self._peer_requests: dict[str, Mapping[str, Method]] = {}
        self._peer_notifications: dict[str, Mapping[str, Method]] = {}
        self._own_notifications: dict[str, Mapping[str, Method]] = {}

    def peer_requests(self, rules: Rules) -> Mapping[str, Method]:
        """Return the requests that the peer may send."""
        requests = self._peer_requests.get(rules.revision)
        if requests is None:
            rows = self._peer_methods(rules)
            requests = self._peer_requests[rules.revision] = {
                name: row for name, row in rows.items() if not row.notification
            }
        return requests

    def peer_notifications(self, rules: Rules) -> Mapping[str, Method]:
        """Return the notifications that the peer may send."""
        notifications = self._peer_notifications.get(rules.revision)
        if notifications is None:
            rows = self._peer_methods(rules)
            notifications = self._peer_notifications[rules.revision] = {
                name: row for name, row in rows.items() if row.notification
            }
        return notifications

    def _peer_methods(self, rules: Rules) -> Mapping[str, Method]:
        if not rules.revision:
            rows = self._table(HANDSHAKE[-1], self._peer_role)
            return {name: row for name, row in rows.items() if name in _BEFORE_OPENING}
        rows = self._table(rules.revision, self._peer_role)
        return {name: row for name, row in rows.items() if self._profile.declares(row.needs)}

    def own_notification(self, name: str, revision: str) -> Method:
        """Return a notification of this side. Raise `NotSupported` if the revision or this side does not have it."""
        rows = self._own_notifications.get(revision)
        if rows is None:
            own_methods = self._table(revision, self._role)
            rows = {
                name: row
                for name, row in own_methods.items()
                if row.notification and self._profile.declares(row.offers)
            }
            self._own_notifications[revision] = rows
        row = rows.get(name)
        if row is None:
            raise self._notification_refusal(name, revision)
        return row

    def _notification_refusal(self, name: str, revision: str) -> NotSupported:
        row = self._table(revision, self._role).get(name)
        if row is None or not row.notification:
            return NotSupported(f"{name} is no notification of {revision}")
        return NotSupported(f"{name} needs the capability {row.offers!r}, which this side does not declare")

    def own_request(self, name: str, rules: Rules) -> Method:
        """Return a request of this side. Raise `NotSupported` if the revision does not have it."""
        row = self._table(rules.revision, self._role).get(name)
        if row is None or row.notification:
            raise NotSupported(f"{name} is not part of {rules.revision}")
        return row

    def refusal(self, name: str, rules: Rules) -> ProtocolError:
        """Return the error for a request that the peer may not send."""
        if rules is BEFORE_OPENING and self._role == "server":
            return InvalidParams(
                f"{name[:_MAX_NAME_CHARACTERS]!r} before the connection is open: send initialize first, or carry "
                "io.modelcontextprotocol/protocolVersion and /clientCapabilities in _meta"
            )
        row = self._table(rules.revision, self._peer_role).get(name) if rules.revision else None
        reason = ""
        if row is not None and not row.notification:
            needs_session = rules.handshake and not rules.sessions and row.needs in SESSION_CAPABILITIES
            reason = f": {NO_SESSIONS}" if needs_session else f" (capability {row.needs!r} is not offered)"
        where = rules.revision or "a connection that is not open"
        return MethodNotFound(f"no method {name[:_MAX_NAME_CHARACTERS]!r} in {where}{reason}")
