"""The clients of one event loop, and what each of them wants to be told.

A `Listener` is one who wants something: a client after its handshake, which gets what it was promised, untagged; or
one `subscriptions/listen`, which gets what it asked for, tagged with its id. Both may hold for one client. Listeners
are found by what they want, so that an update costs no more than those who get it.

What changes in one turn of the loop is told at its end, each change once.
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
from accord.server.compose.access import viewer
from accord.server.listener import NOTHING, Client, Listen, Listener, Outlet

if TYPE_CHECKING:
    from accord.server.peer import Peer
    from accord.server.server import Server
    from accord.session.exchange import Exchange
    from accord.session.profile import Profile

LIST_CHANGES: dict[str, str] = {
    what: f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")
}

_KEPT = 512
"""Bytes for one who is told of one resource, beside the URI."""


MayHear = Callable[["Peer", str], bool]
"""Whether a client may be told that a resource has changed: who subscribed above it need not know that it is there."""


class Audience:
    """Touched on its own loop only. `profile` gives what the server says of itself by now."""

    def __init__(self, profile: Callable[[], Profile], limits: Limits, may_hear: MayHear) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._profile = profile
        self._limits = limits
        self._may_hear = may_hear
        self._clients: dict[Peer, Client] = {}
        self._by_list: dict[str, dict[Listener, None]] = {method: {} for method in LIST_CHANGES.values()}
        self._by_uri: dict[str, dict[Listener, None]] = {}
        self._bytes: Counter[str] = Counter()  # by principal: memory for what is subscribed to
        self._noted: dict[tuple[str, str], None] = {}
        self.renewals: dict[Callable[[], None], None] = {}
        """Called when the server offers other lists than before."""

    # --- who is there ------------------------------------------------------------------------------------------

    @contextmanager
    def with_peer(self, peer: Peer, held: int = 0) -> Iterator[None]:
        """As long as a client is connected, which takes so many bytes meanwhile beside what it subscribes to."""
        client = self._clients[peer] = Client(Outlet(peer))
        self._add(client, LIST_CHANGES.values(), ())
        self._charge(client.outlet, held)
        try:
            yield
        finally:
            self._remove(client)
            self._charge(client.outlet, -held)
            client.close()
            del self._clients[peer]

    @contextmanager
    def with_listen(
        self, exchange: Exchange, peer: Peer, methods: Iterable[str], uris: Iterable[str]
    ) -> Iterator[None]:
        """As long as a subscription is open. See `check_room` first."""
        listen = Listen(self._clients[peer].outlet, exchange)
        self._add(listen, methods, uris)
        try:
            yield
        finally:
            self._remove(listen)

    def check_room(self, peer: Peer, uris: Collection[str]) -> None:
        """Raise `InternalError` if a client may not have these resources as well."""
        limits, outlet = self._limits, self._clients[peer].outlet
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
            self.check_room(peer, (uri,))
            self._add(client, (), (uri,))

    def unsubscribe(self, peer: Peer, uri: str) -> None:
        """Tell it no more; if it was told at all."""
        self._forget(self._clients[peer], uri)

    def restart(self, peer: Peer) -> None:
        """Forget what a client has subscribed to, and what it was promised: it begins anew."""
        client = self._clients[peer]
        for uri in list(client.uris):
            self._forget(client, uri)
        client.restart()

    def uris(self, peer: Peer) -> list[str]:
        """What a client has subscribed to, after a handshake."""
        return list(self._clients[peer].uris)

    def _add(self, listener: Listener, methods: Iterable[str], uris: Iterable[str]) -> None:
        new = set(uris) - listener.uris
        listener.outlet.uris += len(new)
        self._charge(listener.outlet, sum(map(_cost, new)))
        listener.uris |= new
        for method in methods:
            self._by_list[method][listener] = None
        for uri in new:
            self._by_uri.setdefault(uri, {})[listener] = None

    def _remove(self, listener: Listener) -> None:
        listener.open = False
        for listeners in self._by_list.values():
            listeners.pop(listener, None)
        for uri in list(listener.uris):
            self._forget(listener, uri)

    def _forget(self, listener: Listener, uri: str) -> None:
        if uri not in listener.uris:
            return
        listener.uris.discard(uri)
        listener.outlet.uris -= 1
        self._charge(listener.outlet, -_cost(uri))
        listeners = self._by_uri[uri]
        del listeners[listener]
        if not listeners:
            del self._by_uri[uri]

    def _charge(self, outlet: Outlet, size: int) -> None:
        outlet.bytes += size
        self._bytes[outlet.principal] += size
        if not self._bytes[outlet.principal]:
            del self._bytes[outlet.principal]

    # --- what is told ------------------------------------------------------------------------------------------

    def note(self, method: str, uri: str) -> None:
        """Something has changed; it is told when this turn of the loop is over."""
        if not self._noted:
            self.loop.call_soon(self.flush)
        self._noted[method, uri] = None

    def flush(self) -> None:
        """Tell now what was noted."""
        noted, self._noted = self._noted, {}
        if not all(uri for _, uri in noted):
            self._renew()
        for method, uri in noted:
            params = codec.encode(ResourceUpdatedParams(uri=uri)) if uri else NOTHING
            for listener in self._who(method, uri):
                listener.tell(method, params)

    def _renew(self) -> None:
        """What the server offers is no longer what it was: that goes for those who are connected already."""
        profile = self._profile()
        for client in self._clients.values():
            client.renew(profile)
        for renew in list(self.renewals):
            renew()

    def _who(self, method: str, uri: str) -> Iterable[Listener]:
        if not uri:
            return tuple(self._by_list[method])
        found: dict[Listener, None] = {}
        for subscribed in and_above(uri, self._limits.uri_bytes):
            found.update(self._by_uri.get(subscribed, {}))
        return [listener for listener in found if self._may_hear(listener.outlet.peer, uri)]


def audience_of(server: Server) -> Audience:
    """The clients of a server on this loop."""
    registry = server.registry
    return Audience(server.profile, server.limits, lambda peer, uri: viewer(peer).knows(registry, "resource", uri))


def _cost(uri: str) -> int:
    """Bytes of memory for a subscription to a resource, about."""
    return _KEPT + sys.getsizeof(uri)


def and_above(uri: str, longest: int) -> Iterator[str]:
    """A URI, and those of which it may be a part: "The URI [...] might be a sub-resource of the one that the client
    actually subscribed to". Parts are cut off at `/`, `?` and `#`, and a directory is meant with its `/` and without.
    Those have at most `longest` characters: nobody subscribes to more, and all of them take time with its square.
    """
    yield uri
    authority = uri.find("://")
    first = uri.find(":") + 1 if authority < 0 else authority + 3
    for at in range(min(len(uri) - 1, longest), first, -1):
        if uri[at] == "/" and at + 1 < len(uri) and at < longest:
            yield uri[: at + 1]
        if uri[at] in "/?#":
            yield uri[:at]
