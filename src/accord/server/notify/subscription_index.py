"""The subscribers on one event loop, and the notification of changes to all of them.

A `Subscriber` is the session of a client, which receives the changes declared in its handshake, untagged; or one
`subscriptions/listen`, which receives what it requested, tagged with its id. One client may have both. Subscribers are
indexed by what they subscribe to, so that the cost of an update depends only on its receivers. Changes in one iteration
of the loop are sent at its end, each once.

A `SubscriptionIndex` is used on its event loop alone, so there is nothing to lock; a `ChangeBus` passes it the changes,
from any thread.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accord.errors import InternalError, InvalidParams
from accord.limits import Limits
from accord.messages import codec
from accord.messages.resources import ResourceUpdatedParams
from accord.server.compose.access import viewer_of
from accord.server.notify.subscriber import (
    NO_PARAMS,
    ListenSubscriber,
    NotificationQueue,
    SessionSubscriber,
    Subscriber,
)

if TYPE_CHECKING:
    from accord.server.core.peer import Peer
    from accord.server.core.registry import Registry
    from accord.session.peer_info import PeerInfo
    from accord.session.pending_request import PendingRequest

LIST_CHANGES: dict[str, str] = {
    what: f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")
}

_SUBSCRIPTION_BYTES = 512
"""Bytes of a subscription to one resource, besides the URI."""


MayNotify = Callable[["Peer", str], bool]
"""Return whether a client may learn that a resource has changed: a subscriber to its parent may not know it exists."""


class SubscriptionIndex:
    """The clients and subscriptions on one event loop; used on that loop only. `profile` returns the current server
    info.
    """

    def __init__(self, profile: Callable[[], PeerInfo], limits: Limits, may_notify: MayNotify) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._server_info = profile
        self._limits = limits
        self._may_notify = may_notify
        self._clients: dict[Peer, SessionSubscriber] = {}
        self._by_list: dict[str, dict[Subscriber, None]] = {method: {} for method in LIST_CHANGES.values()}
        self._by_uri: dict[str, dict[Subscriber, None]] = {}
        self._bytes: Counter[str] = Counter()  # by principal: memory for what is subscribed to
        self._queued_changes: dict[tuple[str, str], None] = {}
        self.renewals: dict[Callable[[], None], None] = {}
        """Called after the lists of the server have changed."""

    # --- subscribers -------------------------------------------------------------------------------------------

    @contextmanager
    def with_peer(self, peer: Peer, used: int = 0) -> Iterator[None]:
        """Include a client while it is connected; `used` is its memory in bytes besides its subscriptions."""
        client = self._clients[peer] = SessionSubscriber(NotificationQueue(peer))
        self._add(client, LIST_CHANGES.values(), ())
        self._charge(client.queue, used)
        try:
            yield
        finally:
            self._remove(client)
            self._charge(client.queue, -used)
            client.close()
            del self._clients[peer]

    @contextmanager
    def with_subscription(
        self, pending: PendingRequest, peer: Peer, methods: Iterable[str], uris: Iterable[str]
    ) -> Iterator[Subscriber]:
        """Include a `subscriptions/listen` while it is open. Call `check_capacity` first, without an await between."""
        listen = ListenSubscriber(self._clients[peer].queue, pending)
        self._add(listen, methods, uris)
        try:
            yield listen
        finally:
            self._remove(listen)

    def check_capacity(self, peer: Peer, uris: Collection[str]) -> None:
        """Raise `InternalError` if these resources exceed the limits of a client."""
        limits, queue = self._limits, self._clients[peer].queue
        if queue.uris + len(uris) > limits.subscriptions:
            raise InternalError(
                f"too many subscriptions: the limit is {limits.subscriptions:,} resources (Limits.subscriptions)"
            )
        more, used = sum(map(_cost, uris)), self._bytes[queue.principal]
        whose = "yours" if queue.principal else "of this connection"
        if (used if queue.principal else queue.bytes) + more > limits.subscribed_bytes:
            raise InternalError(
                f"too many subscriptions: the limit is {limits.subscribed_bytes:,} bytes, {whose} "
                "(Limits.subscribed_bytes)"
            )
        if not queue.principal and used + more > limits.subscribed_total_bytes:
            raise InternalError(
                "too many subscriptions of all clients together (Limits.subscribed_total_bytes); try again later"
            )

    def check_length(self, uri: str) -> None:
        """Raise `InvalidParams` for a URI that is too long."""
        limit = self._limits.uri_bytes
        if len(uri) > limit or len(uri.encode()) > limit:
            raise InvalidParams(
                f"the URI {uri[:100]!r}... has more than {limit:,} bytes (Limits.uri_bytes): subscribe to one above it"
            )

    def subscribe(self, peer: Peer, uri: str) -> None:
        """Subscribe the session of a client to a resource. Raises `InternalError` beyond the limit."""
        client = self._clients[peer]
        if uri not in client.uris:
            self.check_capacity(peer, (uri,))
            self._add(client, (), (uri,))

    def unsubscribe(self, peer: Peer, uri: str) -> None:
        """Unsubscribe the session of a client from a resource; does nothing without a subscription."""
        self._remove_uri(self._clients[peer], uri)

    def restart(self, peer: Peer) -> None:
        """Remove the subscriptions of a client's session for a new handshake."""
        client = self._clients[peer]
        for uri in list(client.uris):
            self._remove_uri(client, uri)
        client.restart()

    def session(self, peer: Peer) -> Subscriber | None:
        """Return the session of a client, or None if it has disconnected."""
        return self._clients.get(peer)

    def uris(self, peer: Peer) -> list[str]:
        """Return the resources that the session of a client subscribes to."""
        return list(self._clients[peer].uris)

    def _add(self, listener: Subscriber, methods: Iterable[str], uris: Iterable[str]) -> None:
        new = set(uris) - listener.uris
        listener.queue.uris += len(new)
        self._charge(listener.queue, sum(map(_cost, new)))
        listener.uris |= new
        for method in methods:
            self._by_list[method][listener] = None
        for uri in new:
            self._by_uri.setdefault(uri, {})[listener] = None

    def _remove(self, listener: Subscriber) -> None:
        listener.open = False
        for listeners in self._by_list.values():
            listeners.pop(listener, None)
        for uri in list(listener.uris):
            self._remove_uri(listener, uri)

    def _remove_uri(self, listener: Subscriber, uri: str) -> None:
        if uri not in listener.uris:
            return
        listener.uris.discard(uri)
        listener.queue.uris -= 1
        self._charge(listener.queue, -_cost(uri))
        listeners = self._by_uri[uri]
        del listeners[listener]
        if not listeners:
            del self._by_uri[uri]

    def _charge(self, queue: NotificationQueue, size: int) -> None:
        queue.bytes += size
        self._bytes[queue.principal] += size
        if not self._bytes[queue.principal]:
            del self._bytes[queue.principal]

    # --- changes -----------------------------------------------------------------------------------------------

    def queue_change(self, method: str, uri: str) -> None:
        """Queue a change; it is sent at the end of this iteration of the loop."""
        if not self._queued_changes:
            self.loop.call_soon(self.flush)
        self._queued_changes[method, uri] = None

    def flush(self) -> None:
        """Send the queued changes now."""
        changes, self._queued_changes = self._queued_changes, {}
        if not all(uri for _, uri in changes):
            self._update_server_info()
        for method, uri in changes:
            params = codec.encode(ResourceUpdatedParams(uri=uri)) if uri else NO_PARAMS
            for listener in self._subscribers_of(method, uri):
                listener.notify(method, params)

    def subscribers(self, key: str) -> list[Subscriber]:
        """Return the subscribers of what is not a resource, by its key, such as a task."""
        return list(self._by_uri.get(key, ()))

    def _update_server_info(self) -> None:
        """Update the server info of connected clients after a change of a list."""
        profile = self._server_info()
        for client in self._clients.values():
            client.update_server_info(profile)
        for renew in list(self.renewals):
            renew()

    def _subscribers_of(self, method: str, uri: str) -> Iterable[Subscriber]:
        if not uri:
            return tuple(self._by_list[method])
        found: dict[Subscriber, None] = {}
        for subscribed in parent_uris(uri, self._limits.uri_bytes):
            found.update(self._by_uri.get(subscribed, {}))
        return [listener for listener in found if self._may_notify(listener.queue.peer, uri)]


def make_subscription_index(
    registry: Registry, server_info: Callable[[], PeerInfo], limits: Limits
) -> SubscriptionIndex:
    """Return the subscription index of a server for the running loop."""
    return SubscriptionIndex(server_info, limits, lambda peer, uri: viewer_of(peer).may_know(registry, "resource", uri))


def _cost(uri: str) -> int:
    """Return the approximate bytes of memory of a subscription to a resource."""
    return _SUBSCRIPTION_BYTES + sys.getsizeof(uri)


def parent_uris(uri: str, longest: int) -> Iterator[str]:
    """Yield a URI, and those of which it may be a part: "The URI [...] might be a sub-resource of the one that the
    client actually subscribed to". Parts are cut off at `/`, `?` and `#`, and a directory counts with its `/` and
    without. Parents have at most `longest` characters: subscriptions to longer ones do not exist, and the time for all
    parents grows with the square of the length.
    """
    yield uri
    authority = uri.find("://")
    first = uri.find(":") + 1 if authority < 0 else authority + 3
    for at in range(min(len(uri) - 1, longest), max(first, 1) - 1, -1):
        if uri[at] == "/" and at + 1 < len(uri) and at < longest:
            yield uri[: at + 1]
        if uri[at] in "/?#" or at == first:  # `docs://` is the root of a directory, too
            yield uri[:at]
