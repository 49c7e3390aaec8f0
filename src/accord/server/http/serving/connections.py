"""The open connections of a server, and limits on them: their number, in total and per address, and the bytes buffered
for them.

If all connections are taken, a new one replaces one of the network that has the most (see `network_of`), unless that
serves requests: two clients that keep idle connections open could otherwise lock out all others.

A client that does not read its responses makes the server buffer them (`slow_readers`). A client that sends requests
before it has the response to another makes the server buffer those (`early_senders`). Both are bounded in total.
Bytes are sent, and connections closed, between turns of the event loop only. If many bytes are unsent, each request
therefore has a turn of its own: otherwise hundreds of large responses could begin in one turn, and be held together.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from accord.limits import Limits
from accord.server.http.quotas import counted_address, network_of
from accord.server.http.slow_readers import SlowReaders


class CountedConnection(Protocol):
    """A connection that can be counted and closed."""

    peer: tuple[str, int] | None
    """The client's address, or None if it has none."""
    transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress, as far as its head has arrived."""

    @property
    def is_working(self) -> bool:
        """Whether a request has arrived whose response has not begun."""

    def __hash__(self) -> int:
        """Return the hash of its identity."""


C = TypeVar("C", bound=CountedConnection)


class Connections(Generic[C]):
    """The open connections of one server, at most `cap`."""

    def __init__(self, limits: Limits, cap: int) -> None:
        self._cap = cap
        self._per_address = _per_address(limits, cap)
        self._open: dict[C, str] = {}  # with their addresses
        self._count: Counter[str] = Counter()  # by address
        self._by_network: dict[str, dict[C, None]] = {}  # the oldest first
        self.slow_readers: SlowReaders[C] = SlowReaders(limits.http.unsent_bytes, _abort)
        """Connections whose clients read their responses too slowly."""
        self.early_senders: SlowReaders[C] = SlowReaders(limits.http.unsent_bytes, _abort)
        """Connections whose clients have sent more than the server reads yet."""
        self._much = limits.http.unsent_bytes // 2
        self._turn = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._open))

    def add(self, connection: C) -> bool:
        """Add a connection; return False if there are too many, of its address or in total."""
        address = "" if connection.peer is None else counted_address(connection.peer[0])
        if address and self._per_address is not None and self._count[address] >= self._per_address:
            return False
        if len(self._open) >= self._cap and not self._make_room(network_of(address)):
            return False
        self._open[connection] = address
        self._count[address] += 1
        self._by_network.setdefault(network_of(address), {})[connection] = None
        return True

    def _make_room(self, network: str) -> bool:
        """Close a connection for one of this network: an idle one of the network with the most; if that has more than
        its share, any that serves no request. Return whether there was one.
        """
        largest = max(self._by_network.values(), key=len)
        if len(largest) < len(self._by_network.get(network, ())) + 2:
            return False
        spare = next((each for each in largest if each.is_idle), None)
        if spare is None and len(largest) > self._cap // (len(self._by_network) + 1):
            spare = next((each for each in largest if not each.is_working), None)
        if spare is None:
            return False
        self.discard(spare)
        _abort(spare)
        return True

    def discard(self, connection: C) -> None:
        """Remove a closed connection."""
        self.resumed(connection)
        self.buffered(connection, 0)
        address = self._open.pop(connection, None)
        if address is not None:
            network = network_of(address)
            _subtract(self._count, address)
            del self._by_network[network][connection]
            if not self._by_network[network]:
                del self._by_network[network]

    def stalled(self, connection: C, size: int) -> None:
        """Set the unsent bytes of a connection. Close connections until the total is within its bound."""
        address = self._open.get(connection)
        if address is not None:
            self.slow_readers.update(address, connection, size)

    def resumed(self, connection: C) -> None:
        """Record that the client has read most of its unsent bytes."""
        address = self._open.get(connection)
        if address is not None:
            self.slow_readers.update(address, connection, 0)

    @property
    def have_much_unsent(self) -> bool:
        """Whether the unsent bytes are over half of their bound. A transport holds up to twice what it reports, because
        it keeps a large response whole while a part of it is sent.
        """
        return self.slow_readers.unsent > self._much

    async def wait_for_turn(self) -> None:
        """Wait for a turn of the event loop in which no other caller continues."""
        async with self._turn:
            await asyncio.sleep(0)

    def buffered(self, connection: C, size: int) -> None:
        """Set the unread bytes of a connection. Close connections until the total is within its bound."""
        address = self._open.get(connection)
        if address is not None:
            self.early_senders.update(address, connection, size)


def _per_address(limits: Limits, cap: int) -> int | None:
    """Return the most connections of one address: at most half of `cap` if file descriptors reduce that."""
    most = limits.http.connections_per_address
    return most if most is None or cap >= limits.http.connections else min(most, max(1, cap // 2))


def _abort(connection: CountedConnection) -> None:
    asyncio.get_running_loop().call_soon(connection.transport.abort)


def _subtract(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
