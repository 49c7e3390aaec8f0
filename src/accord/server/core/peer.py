"""One connected client: the channel to it, and the state that the server keeps for it.

The server applies a notification to this state before it reads the next message; only handlers of the program run in
order among themselves, and nothing waits for them.
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
    """The channel to a client, such as a `SessionDriver`. `of` is the request that a message belongs to."""

    session: Session
    sink: MessageSink

    @property
    def ready(self) -> asyncio.Event:
        """Set when the server may send requests and notifications: after the handshake, and after the end of the
        connection.
        """

    def report(self, request: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification."""

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
        """Close the SSE stream of a request."""

    async def restart(self, initialize: PendingRequest) -> None:
        """End the requests of the previous handshake when the client sends another `initialize`."""

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        needs: str | None = None,
        of: PendingRequest | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request, and return the raw result."""


class Peer:
    """A connected client. `principal` is the id of the authenticated user or program; empty without authentication
    (stdio, HTTP without `auth`).
    """

    def __init__(self, channel: PeerChannel, principal: str = "") -> None:
        self.channel: PeerChannel = channel
        self.principal: str = principal
        self.account: str = principal
        """The key of the quotas that it uses: its principal, or its network address without authentication (HTTP)."""
        self.identity: Principal | None = None
        """The principal with its scopes, as of the last request."""
        self.shared: bool = False
        """Whether many clients that cannot be told apart share this peer: the actions of one are then no reason to
        limit others.
        """
        self.roots: RootList | None = None
        """The cached roots, if the client notifies the server of changes."""
        self.reserve_roots: Callable[[int], bool] | None = None
        """Reserves memory for the cached roots, in bytes, where it is limited; returns whether there is room."""
        self.hold_session: Callable[[], Callable[[], None]] | None = None
        """Keeps what is charged for its session, where that is limited; returns the function that releases it."""
        self.roots_changed: int = 0
        """The number of times the roots have changed."""
        self.log_level: LoggingLevel = "debug"
        """The minimum level of log messages, for all requests after a handshake."""
        self.call_limiter: RateLimiter | None = None
        """Limits the rate of tool calls; None without a limit."""
        self.completion_limiter: RateLimiter = RateLimiter(channel.session.limits.completions_per_second)
        """Limits the rate of completion requests."""
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.thread: int = threading.get_ident()
        """The event loop that serves the client, and the thread of that loop."""
        self.local: bool = False
        """Whether the client started this server or shares its process; it may then do all that the server can."""
        self.visibility: Visibility | None = None
        """The visibility rules of its session; None if there never were any."""
        self._logs: ClientLog | None = None

    def set_visibility(self, shown: bool, names: Iterable[str], tags: Iterable[str], only: bool) -> None:
        """Show or hide items for its session, and notify the client. Raises `DeclarationError`."""
        view = self.visibility or Visibility()
        view.set(shown, names, tags, only=only)
        self.visibility = view
        for what in ("tools", "prompts", "resources"):
            if self.channel.session.local_info.declares(f"{what}.list_changed"):
                self.channel.notify(f"notifications/{what}/list_changed")

    @property
    def logs(self) -> ClientLog:
        """The log messages for this client."""
        if self._logs is None:
            self._logs = self.new_logs()
        return self._logs

    def new_logs(self) -> ClientLog:
        """Return a client log with a rate limit of its own."""
        from accord.server.notify.logs import ClientLog

        return ClientLog(self, self.channel.session.limits.logs_per_second)

    def restart(self) -> None:
        """Discard the state of the session for a new handshake. The rate limiters stay."""
        self.roots = None
        self.roots_changed += 1
        self.log_level = "debug"
        self.visibility = None

    def receive_notification(self, event: NotificationReceived) -> None:
        """Handle a notification that belongs to no request."""
        if event.method.name == "notifications/roots/list_changed":
            self.roots = None
            self.roots_changed += 1

    def cache_roots(self, pending: PendingRequest, roots: RootList, changed: int) -> None:
        """Cache the client's roots, if it declared `roots.listChanged` and has sent no change since the request.

        `changed` is the value of `roots_changed` at the time of the request. Without memory for them they are not
        cached.
        """
        notifies = pending.rules.server_requests and declares(self.capabilities(pending), "roots.list_changed")
        if notifies and changed == self.roots_changed:
            self.roots = roots if self._has_room(roots) else None

    def _has_room(self, roots: RootList) -> bool:
        if self.reserve_roots is None:
            return True
        return self.reserve_roots(memory_of(codec.encode(list(roots)), self.channel.session.limits.http.body_nodes))

    def capabilities(self, pending: PendingRequest) -> ClientCapabilities:
        """Return the client's capabilities, from the request if its revision has them there, otherwise from the
        handshake.
        """
        if pending.capabilities is not None:
            return pending.capabilities
        peer = self.channel.session.peer_info
        return peer.capabilities if peer is not None else ClientCapabilities()

    def info(self, pending: PendingRequest) -> Implementation | None:
        """Return the name and version that the client sent. For display and logs, never for decisions.

        A copy: the requests of a client share the value.
        """
        if pending.meta is not None and pending.meta.client_info is not None:
            return codec.copy(pending.meta.client_info)
        peer = self.channel.session.peer_info
        return codec.copy(peer.info) if peer is not None else None


class ClientNotifications:
    """The incoming notifications of one client; the program handles those in `offered`."""

    def __init__(self, handler: NotificationCallback, offered: Collection[str], limits: Limits) -> None:
        self._extension_methods = offered
        self._deliver = handler
        self._callback = Callback(handler, limits.notices, limits.notice_bytes)

    def receive(self, event: NotificationReceived) -> None:
        """Handle one notification."""
        if event.method.name in self._extension_methods:
            self._callback.call(event, size=size_of(event))
        else:
            self._deliver(event)

    async def finish(self, seconds: float) -> None:
        """Wait at most `seconds` for running handlers, then cancel them."""
        await self._callback.finish(seconds)
