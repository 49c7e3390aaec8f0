"""One client, as long as it is connected: the way back to it, and what the server remembers of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from accord.messages.capabilities import ClientCapabilities, declares
from accord.server.compose.visibility import Visibility
from accord.session.rate import Rate

if TYPE_CHECKING:
    from msgspec import Raw

    from accord.messages.base import LoggingLevel
    from accord.messages.identity import Implementation
    from accord.messages.revision import Rules
    from accord.server.http.auth import Principal
    from accord.server.logs import Logs
    from accord.server.roots import RootList
    from accord.session.events import NotificationReceived
    from accord.session.exchange import Exchange
    from accord.session.session import Session
    from accord.transport.base import Way


class Line(Protocol):
    """The way back to a client; a conversation is one. `of` is the request that something belongs to."""

    session: Session
    way: Way

    @property
    def ready(self) -> asyncio.Event:
        """Set when the client may be asked and told: after its handshake, and after the end."""

    def report(self, exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
        """Send progress."""

    def notify(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
        of: Exchange | None = None,
    ) -> None:
        """Send a notification."""

    def close_stream(self, of: Exchange, retry: int | None) -> None:
        """Let go of the stream of a request."""

    async def restart(self, initialize: Exchange) -> None:
        """End what belongs to the handshake before, when the client sends another `initialize`."""

    def ask(
        self,
        name: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        needs: str | None = None,
        of: Exchange | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request; the raw result."""


class Peer:
    """A client. `principal` is the id of who it is, for what belongs to a person rather than to a connection; empty
    where nobody was asked (stdio, HTTP without `auth`).
    """

    def __init__(self, line: Line, principal: str = "") -> None:
        self.line: Line = line
        self.principal: str = principal
        self.account: str = principal
        """Whose quotas it uses up: its principal, or the address of one whom nobody vouches for (HTTP)."""
        self.who: Principal | None = None
        """The same, with what was granted, as it was when it was last heard of."""
        self.shared: bool = False
        """Whether many come as this one, whom nobody tells apart: what one does is no reason to bound others."""
        self.roots: RootList | None = None
        """Its folders, where it tells when they change."""
        self.roots_changed: int = 0
        """How often it has told that they did."""
        self.log_level: LoggingLevel = "debug"
        """The least severe log message that it wants, of all requests after a handshake."""
        self.calls: Rate | None = None
        """How often it may call tools, where that is bounded."""
        self.completions: Rate = Rate(line.session.limits.completions_per_second)
        """How often it may ask for a completion."""
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.thread: int = threading.get_ident()
        """The loop that it is served on, and the thread of that loop."""
        self.local: bool = False
        """Whether it started this server, or shares its process: then it may do all that the server can."""
        self.view: Visibility | None = None
        """What its session hides from it; None where nothing ever was."""
        self._logs: Logs | None = None

    def show(self, shown: bool, names: Iterable[str], tags: Iterable[str], only: bool) -> None:
        """Show things to its session, or hide them; it is told. Raises `DeclarationError`."""
        view = self.view or Visibility()
        view.set(shown, names, tags, only=only)
        self.view = view
        for what in ("tools", "prompts", "resources"):
            if self.line.session.profile.declares(f"{what}.list_changed"):
                self.line.notify(f"notifications/{what}/list_changed")

    @property
    def logs(self) -> Logs:
        """What it is told of what handlers log."""
        if self._logs is None:
            self._logs = self.new_logs()
        return self._logs

    def new_logs(self) -> Logs:
        """The same, with a bound of its own."""
        from accord.server.logs import Logs

        return Logs(self, self.line.session.limits.logs_per_second)

    def restart(self) -> None:
        """Forget what it has said of itself: it begins anew. How often it may do what goes on."""
        self.roots = None
        self.roots_changed += 1
        self.log_level = "debug"
        self.view = None

    def hear(self, event: NotificationReceived) -> None:
        """The client tells something that belongs to no request."""
        if event.method.name == "notifications/roots/list_changed":
            self.roots = None
            self.roots_changed += 1

    def learn_roots(self, exchange: Exchange, roots: RootList, changed: int) -> None:
        """Keep what the client answered, if it promised to tell of changes, and has told of none since it was asked.

        `changed` is what `roots_changed` was then.
        """
        told = exchange.rules.server_requests and declares(self.capabilities(exchange), "roots.list_changed")
        if told and changed == self.roots_changed:
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
