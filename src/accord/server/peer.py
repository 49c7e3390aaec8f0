"""One client, as long as it is connected: the way back to it, and what the server remembers of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from accord.messages.capabilities import ClientCapabilities, declares

if TYPE_CHECKING:
    from msgspec import Raw

    from accord.messages.identity import Implementation
    from accord.messages.revision import Rules
    from accord.server.roots import RootList
    from accord.session.events import NotificationReceived
    from accord.session.exchange import Exchange
    from accord.session.session import Session


class Line(Protocol):
    """The way back to a client; a connection is one."""

    session: Session

    def report(self, exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
        """Send progress."""

    def notify(
        self, name: str, params: Any = None, *, meta: Mapping[str, Any] | None = None, rules: Rules | None = None
    ) -> None:
        """Send a notification."""

    async def ask(
        self, name: str, params: Any = None, *, timeout: float | None = None, needs: str | None = None
    ) -> Raw:
        """Send a request; the raw result."""


class Peer:
    """A client. `principal` is who it is, for what belongs to a person rather than to a connection."""

    def __init__(self, line: Line, principal: str = "") -> None:
        self.line: Line = line
        self.principal: str = principal
        self.roots: RootList | None = None
        """Its folders, where it tells when they change."""

    def hear(self, event: NotificationReceived) -> None:
        """The client tells something that belongs to no request."""
        if event.method.name == "notifications/roots/list_changed":
            self.roots = None

    def learn_roots(self, exchange: Exchange, roots: RootList) -> None:
        """Keep what the client answered, if it promised to tell of changes."""
        if exchange.rules.server_requests and declares(self.capabilities(exchange), "roots.list_changed"):
            self.roots = roots

    def capabilities(self, exchange: Exchange) -> ClientCapabilities:
        """What the client can do: as this request says, where requests say so, or as the opening said."""
        if exchange.capabilities is not None:
            return exchange.capabilities
        peer = self.line.session.peer
        return peer.capabilities if peer is not None else ClientCapabilities()

    def info(self, exchange: Exchange) -> Implementation | None:
        """What the client says it is. For display and logs, never for decisions."""
        if exchange.meta is not None and exchange.meta.client_info is not None:
            return exchange.meta.client_info
        peer = self.line.session.peer
        return peer.info if peer is not None else None
