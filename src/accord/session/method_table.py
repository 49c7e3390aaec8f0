"""The methods that each side may send: the table of methods, limited by the capabilities of this side.

Each table is built for a revision when its first message arrives, so that all further ones cost one look-up. The peer's
capabilities for a request of this side are checked when it is sent (`Session.request`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


class RevisionTables(dict[str, Mapping[str, Method]]):
    """The methods of each revision by name; `select` returns those of a revision that has none yet."""

    def __init__(self, select: Callable[[str], Mapping[str, Method]]) -> None:
        super().__init__()
        self._select = select

    def __missing__(self, revision: str) -> Mapping[str, Method]:
        methods = self[revision] = self._select(revision)
        return methods


class MethodTable:
    """The methods and notifications of both sides, seen from the side that `profile` describes."""

    def __init__(self, table: Table, role: Sender, profile: PeerInfo) -> None:
        self._table = table
        self._role: Sender = role
        self._peer_role: Sender = "server" if role == "client" else "client"
        self._profile = profile
        self.peer_requests: RevisionTables = RevisionTables(lambda revision: self._peer_methods(revision, False))
        """The requests that the peer may send, by revision; "" before the handshake."""
        self.peer_notifications: RevisionTables = RevisionTables(lambda revision: self._peer_methods(revision, True))
        """The notifications that the peer may send."""
        self._own_requests = RevisionTables(self._select_own_requests)
        self._own_notifications = RevisionTables(self._select_own_notifications)

    def _peer_methods(self, revision: str, notification: bool) -> Mapping[str, Method]:
        rows = self._table(revision or HANDSHAKE[-1], self._peer_role)
        return {
            name: row
            for name, row in rows.items()
            if row.notification is notification
            and (self._profile.declares(row.needs) if revision else name in _BEFORE_OPENING)
        }

    def _select_own_notifications(self, revision: str) -> Mapping[str, Method]:
        rows = self._table(revision, self._role)
        return {name: row for name, row in rows.items() if row.notification and self._profile.declares(row.offers)}

    def _select_own_requests(self, revision: str) -> Mapping[str, Method]:
        return {name: row for name, row in self._table(revision, self._role).items() if not row.notification}

    def own_notification(self, name: str, revision: str) -> Method:
        """Return a notification of this side. Raise `NotSupported` if the revision or this side does not have it."""
        row = self._own_notifications[revision].get(name)
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
        row = self._own_requests[rules.revision].get(name)
        if row is None:
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
