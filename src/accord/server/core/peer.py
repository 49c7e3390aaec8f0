"""One client, as long as it is connected: the way back to it, and what the server remembers of it.

What a client tells that belongs to no request. What the server remembers of it goes for all that comes behind it;
only handlers of the program wait for each other, and nothing waits for them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from accord.limits import Limits
from accord.messages import codec
from accord.messages.bounds import memory_of
from accord.messages.capabilities import ClientCapabilities, declares
from accord.server.core.visibility import Visibility
from accord.session.events import NotificationReceived
from accord.session.rate import RateLimiter
from accord.transport.callbacks import Callback
from accord.transport.request_sender import NotificationCallback, size_of

if TYPE_CHECKING:
    from msgspec import Raw

    from accord.messages.base import LoggingLevel
    from accord.messages.identity import Implementation
    from accord.messages.revision import Rules
    from accord.server.core.principal import Principal
    from accord.server.input.roots import RootList
    from accord.server.notify.logs import ClientLog
    from accord.session.pending_request import PendingRequest
    from accord.session.session import Session
    from accord.transport.base import MessageSink


class PeerChannel(Protocol):
    """The way back to a client; a conversation is one. `of` is the request that something belongs to."""

    session: Session
    sink: MessageSink

    @property
    def ready(self) -> asyncio.Event:
        """Set when the client may be asked and told: after its handshake, and after the end."""

    def report(self, exchange: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        """Send progress."""

    def notify(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
        of: PendingRequest | None = None,
    ) -> None:
        """Send a notification."""

    def close_stream(self, of: PendingRequest, retry: int | None) -> None:
        """Let go of the stream of a request."""

    async def restart(self, initialize: PendingRequest) -> None:
        """End what belongs to the handshake before, when the client sends another `initialize`."""

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        needs: str | None = None,
        of: PendingRequest | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request; the raw result."""


class Peer:
    """A client. `principal` is the id of who it is, for what belongs to a person rather than to a connection; empty
    where nobody was asked (stdio, HTTP without `auth`).
    """

    def __init__(self, line: PeerChannel, principal: str = "") -> None:
        self.channel: PeerChannel = line
        self.principal: str = principal
        self.account: str = principal
        """Whose quotas it uses up: its principal, or the address of one whom nobody vouches for (HTTP)."""
        self.identity: Principal | None = None
        """The same, with what was granted, as it was when it was last heard of."""
        self.shared: bool = False
        """Whether many come as this one, whom nobody tells apart: what one does is no reason to bound others."""
        self.roots: RootList | None = None
        """Its folders, where it tells when they change."""
        self.reserve_roots: Callable[[int], bool] | None = None
        """Charges the memory of its folders, about so many bytes, where that is bounded; whether there is room."""
        self.roots_changed: int = 0
        """How often it has told that they did."""
        self.log_level: LoggingLevel = "debug"
        """The least severe log message that it wants, of all requests after a handshake."""
        self.call_limiter: RateLimiter | None = None
        """How often it may call tools, where that is bounded."""
        self.completion_limiter: RateLimiter = RateLimiter(line.session.limits.completions_per_second)
        """How often it may ask for a completion."""
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.thread: int = threading.get_ident()
        """The loop that it is served on, and the thread of that loop."""
        self.local: bool = False
        """Whether it started this server, or shares its process: then it may do all that the server can."""
        self.visibility: Visibility | None = None
        """What its session hides from it; None where nothing ever was."""
        self._logs: ClientLog | None = None

    def set_visibility(self, shown: bool, names: Iterable[str], tags: Iterable[str], only: bool) -> None:
        """Show things to its session, or hide them; it is told. Raises `DeclarationError`."""
        view = self.visibility or Visibility()
        view.set(shown, names, tags, only=only)
        self.visibility = view
        for what in ("tools", "prompts", "resources"):
            if self.channel.session.local_info.declares(f"{what}.list_changed"):
                self.channel.notify(f"notifications/{what}/list_changed")

    @property
    def logs(self) -> ClientLog:
        """What it is told of what handlers log."""
        if self._logs is None:
            self._logs = self.new_logs()
        return self._logs

    def new_logs(self) -> ClientLog:
        """The same, with a bound of its own."""
        from accord.server.notify.logs import ClientLog

        return ClientLog(self, self.channel.session.limits.logs_per_second)

    def restart(self) -> None:
        """Forget what it has said of itself: it begins anew. How often it may do what goes on."""
        self.roots = None
        self.roots_changed += 1
        self.log_level = "debug"
        self.visibility = None

    def receive_notification(self, event: NotificationReceived) -> None:
        """The client tells something that belongs to no request."""
        if event.method.name == "notifications/roots/list_changed":
            self.roots = None
            self.roots_changed += 1

    def cache_roots(self, exchange: PendingRequest, roots: RootList, changed: int) -> None:
        """Keep what the client answered, if it promised to tell of changes, and has told of none since it was asked.

        `changed` is what `roots_changed` was then. Where there is no room for them they are asked for again.
        """
        told = exchange.rules.server_requests and declares(self.capabilities(exchange), "roots.list_changed")
        if told and changed == self.roots_changed:
            self.roots = roots if self._has_room(roots) else None

    def _has_room(self, roots: RootList) -> bool:
        if self.reserve_roots is None:
            return True
        return self.reserve_roots(memory_of(codec.encode(list(roots)), self.channel.session.limits.http.body_nodes))

    def capabilities(self, exchange: PendingRequest) -> ClientCapabilities:
        """What the client can do: as this request says, where requests say so, or as the opening said."""
        if exchange.capabilities is not None:
            return exchange.capabilities
        peer = self.channel.session.peer_info
        return peer.capabilities if peer is not None else ClientCapabilities()

    def info(self, exchange: PendingRequest) -> Implementation | None:
        """What the client says it is. For display and logs, never for decisions."""
        if exchange.meta is not None and exchange.meta.client_info is not None:
            return exchange.meta.client_info
        peer = self.channel.session.peer_info
        return peer.info if peer is not None else None


class ClientNotifications:
    """The notifications of one client; the program hears those in `offered`."""

    def __init__(self, take: NotificationCallback, offered: Collection[str], limits: Limits) -> None:
        self._extension_methods = offered
        self._deliver = take
        self._callback = Callback(take, limits.notices, limits.notice_bytes)

    def receive(self, event: NotificationReceived) -> None:
        """Take one."""
        if event.method.name in self._extension_methods:
            self._callback.call(event, size=size_of(event))
        else:
            self._deliver(event)

    async def finish(self, seconds: float) -> None:
        """Wait for what still runs, at most so long; then it is cancelled."""
        await self._callback.finish(seconds)
