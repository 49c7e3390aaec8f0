"""The clients of one event loop, and what each of them wants to be told.

A `Subscriber` is one who wants something: a client after its handshake, which gets what it was promised, untagged; or
one `subscriptions/listen`, which gets what it asked for, tagged with its id. Both may hold for one client. Listeners
are found by what they want, so that an update costs no more than those who get it.

What changes in one turn of the loop is told at its end, each change once.

What changes on a server, told to everyone who is connected to it, from any thread.

The clients of one event loop are an `SubscriptionIndex` (see `audience`), which looks at them on that loop alone; a
server has as many of these as loops that serve it, however many ways it is reached on one of them, and before it is
served none. So there is nothing to lock.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
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
    from asyncio import AbstractEventLoop

    from accord.server.core.peer import Peer
    from accord.server.core.registry import Registry
    from accord.session.peer_info import PeerInfo
    from accord.session.pending_request import PendingRequest

LIST_CHANGES: dict[str, str] = {
    what: f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")
}

_SUBSCRIPTION_BYTES = 512
"""Bytes for one who is told of one resource, beside the URI."""


MayNotify = Callable[["Peer", str], bool]
"""Whether a client may be told that a resource has changed: who subscribed above it need not know that it is there."""


class SubscriptionIndex:
    """Touched on its own loop only. `profile` gives what the server says of itself by now."""

    def __init__(self, profile: Callable[[], PeerInfo], limits: Limits, may_hear: MayNotify) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._server_info = profile
        self._limits = limits
        self._may_notify = may_hear
        self._clients: dict[Peer, SessionSubscriber] = {}
        self._by_list: dict[str, dict[Subscriber, None]] = {method: {} for method in LIST_CHANGES.values()}
        self._by_uri: dict[str, dict[Subscriber, None]] = {}
        self._bytes: Counter[str] = Counter()  # by principal: memory for what is subscribed to
        self._queued_changes: dict[tuple[str, str], None] = {}
        self.renewals: dict[Callable[[], None], None] = {}
        """Called when the server offers other lists than before."""

    # --- who is there ------------------------------------------------------------------------------------------

    @contextmanager
    def with_peer(self, peer: Peer, held: int = 0) -> Iterator[None]:
        """As long as a client is connected, which takes so many bytes meanwhile beside what it subscribes to."""
        client = self._clients[peer] = SessionSubscriber(NotificationQueue(peer))
        self._add(client, LIST_CHANGES.values(), ())
        self._charge(client.queue, held)
        try:
            yield
        finally:
            self._remove(client)
            self._charge(client.queue, -held)
            client.close()
            del self._clients[peer]

    @contextmanager
    def with_subscription(
        self, exchange: PendingRequest, peer: Peer, methods: Iterable[str], uris: Iterable[str]
    ) -> Iterator[None]:
        """As long as a subscription is open. See `check_capacity` first."""
        listen = ListenSubscriber(self._clients[peer].queue, exchange)
        self._add(listen, methods, uris)
        try:
            yield
        finally:
            self._remove(listen)

    def check_capacity(self, peer: Peer, uris: Collection[str]) -> None:
        """Raise `InternalError` if a client may not have these resources as well."""
        limits, outlet = self._limits, self._clients[peer].queue
        if outlet.uris + len(uris) > limits.subscriptions:
            raise InternalError(f"too many subscriptions: the limit is {limits.subscriptions} resources")
        more, held = sum(map(_cost, uris)), self._bytes[outlet.principal]
        whose = "yours" if outlet.principal else "of this connection"
        if (held if outlet.principal else outlet.bytes) + more > limits.subscribed_bytes:
            raise InternalError(f"too many subscriptions: the limit is {limits.subscribed_bytes:,} bytes, {whose}")
        if not outlet.principal and held + more > limits.subscribed_total_bytes:
            raise InternalError("too many subscriptions of all clients together: come back later")

    def check_length(self, uri: str) -> None:
        """Raise `InvalidParams` for a URI that is too long to be kept."""
        limit = self._limits.uri_bytes
        if len(uri) > limit or len(uri.encode()) > limit:
            raise InvalidParams(f"the URI {uri[:100]!r}... has more than {limit:,} bytes: subscribe to one above it")

    def subscribe(self, peer: Peer, uri: str) -> None:
        """Tell a client, after a handshake, of a resource. Raises `InternalError` beyond the limit."""
        client = self._clients[peer]
        if uri not in client.uris:
            self.check_capacity(peer, (uri,))
            self._add(client, (), (uri,))

    def unsubscribe(self, peer: Peer, uri: str) -> None:
        """Tell it no more; if it was told at all."""
        self._remove_uri(self._clients[peer], uri)

    def restart(self, peer: Peer) -> None:
        """Forget what a client has subscribed to, and what it was promised: it begins anew."""
        client = self._clients[peer]
        for uri in list(client.uris):
            self._remove_uri(client, uri)
        client.restart()

    def uris(self, peer: Peer) -> list[str]:
        """What a client has subscribed to, after a handshake."""
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

    def _charge(self, outlet: NotificationQueue, size: int) -> None:
        outlet.bytes += size
        self._bytes[outlet.principal] += size
        if not self._bytes[outlet.principal]:
            del self._bytes[outlet.principal]

    # --- what is told ------------------------------------------------------------------------------------------

    def queue_change(self, method: str, uri: str) -> None:
        """Something has changed; it is told when this turn of the loop is over."""
        if not self._queued_changes:
            self.loop.call_soon(self.flush)
        self._queued_changes[method, uri] = None

    def flush(self) -> None:
        """Tell now what was noted."""
        noted, self._queued_changes = self._queued_changes, {}
        if not all(uri for _, uri in noted):
            self._update_server_info()
        for method, uri in noted:
            params = codec.encode(ResourceUpdatedParams(uri=uri)) if uri else NO_PARAMS
            for listener in self._subscribers_of(method, uri):
                listener.notify(method, params)

    def _update_server_info(self) -> None:
        """What the server offers is no longer what it was: that goes for those who are connected already."""
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
    """The clients of a server on this loop."""
    return SubscriptionIndex(server_info, limits, lambda peer, uri: viewer_of(peer).may_know(registry, "resource", uri))


def _cost(uri: str) -> int:
    """Bytes of memory for a subscription to a resource, about."""
    return _SUBSCRIPTION_BYTES + sys.getsizeof(uri)


def parent_uris(uri: str, longest: int) -> Iterator[str]:
    """A URI, and those of which it may be a part: "The URI [...] might be a sub-resource of the one that the client
    actually subscribed to". Parts are cut off at `/`, `?` and `#`, and a directory is meant with its `/` and without.
    Those have at most `longest` characters: nobody subscribes to more, and all of them take time with its square.
    """
    yield uri
    authority = uri.find("://")
    first = uri.find(":") + 1 if authority < 0 else authority + 3
    for at in range(min(len(uri) - 1, longest), max(first, 1) - 1, -1):
        if uri[at] == "/" and at + 1 < len(uri) and at < longest:
            yield uri[: at + 1]
        if uri[at] in "/?#" or at == first:  # `docs://` is the root of a directory as well
            yield uri[:at]


class ChangeBus:
    """The audiences of one server."""

    def __init__(self) -> None:
        self.indexes: dict[AbstractEventLoop, SubscriptionIndex] = {}
        self._joined: Counter[AbstractEventLoop] = Counter()
        self._listeners: list[Callable[[str, str], None]] = []

    def add_listener(self, follower: Callable[[str, str], None]) -> None:
        """Have somebody else hear what has changed: a server that this one is mounted in. Of lists, `what`; of
        resources, the URI.
        """
        self._listeners.append(follower)

    def remove_listener(self, follower: Callable[[str, str], None]) -> None:
        """No more."""
        self._listeners.remove(follower)

    def join(self, make: Callable[[], SubscriptionIndex]) -> SubscriptionIndex:
        """The audience of the loop that runs, for one who serves there; the first makes it. `leave` it at the end."""
        loop = _running_loop()
        assert loop is not None
        audience = self.indexes.get(loop)
        if audience is None:
            audience = self.indexes[loop] = make()
        self._joined[loop] += 1
        return audience

    def leave(self, audience: SubscriptionIndex) -> None:
        """One serves no more; with the last, the audience goes. On its loop, or when that is closed."""
        self._joined[audience.loop] -= 1
        if not self._joined[audience.loop]:
            del self._joined[audience.loop]
            self.indexes.pop(audience.loop, None)

    def list_changed(self, what: str) -> None:
        """Its "tools", "prompts" or "resources" are no longer what they were. From any thread."""
        for follower in list(self._listeners):
            follower(what, "")
        self._notify(f"notifications/{what}/list_changed", "")

    def resource_updated(self, uri: str) -> None:
        """A resource is no longer what it was. From any thread."""
        for follower in list(self._listeners):
            follower("", uri)
        self._notify("notifications/resources/updated", uri)

    def _notify(self, method: str, uri: str) -> None:
        for audience in list(self.indexes.values()):
            with suppress(RuntimeError):  # that loop was closed
                if audience.loop is _running_loop():
                    audience.queue_change(method, uri)
                else:
                    audience.loop.call_soon_threadsafe(audience.queue_change, method, uri)


def _running_loop() -> AbstractEventLoop | None:
    """The loop of who asks. A thread may run several, one after the other, and its number is given again."""
    import asyncio

    return asyncio._get_running_loop()
