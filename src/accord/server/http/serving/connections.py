"""The open connections of a server, and limits on them: their number per address, and the bytes buffered for them.

A client that does not read its responses makes the server buffer them (`slow_readers`). A client that sends requests
before it has the response to another makes the server buffer those (`early_senders`). Both are bounded in total.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from accord.limits import Limits
from accord.server.http.quotas import counted_address
from accord.server.http.slow_readers import SlowReaders


class CountedConnection(Protocol):
    """A connection that can be counted and closed."""

    peer: tuple[str, int] | None
    """The client's address, or None if it has none."""
    transport: asyncio.Transport

    def __hash__(self) -> int:
        """Return the hash of its identity."""


C = TypeVar("C", bound=CountedConnection)


class Connections(Generic[C]):
    """The open connections of one server, at most `cap`."""

    def __init__(self, limits: Limits, cap: int) -> None:
        self._per_address = _per_address(limits, cap)
        self._open: dict[C, str] = {}  # with their addresses
        self._count: Counter[str] = Counter()  # by address
        self.slow_readers: SlowReaders[C] = SlowReaders(limits.http.unsent_bytes, _abort)
        """Connections whose clients read their responses too slowly."""
        self.early_senders: SlowReaders[C] = SlowReaders(limits.http.unsent_bytes, _abort)
        """Connections whose clients have sent more than the server reads yet."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._open))

    def add(self, connection: C) -> bool:
        """Add a connection; return False if its address has too many."""
        address = "" if connection.peer is None else counted_address(connection.peer[0])
        if address and self._per_address is not None and self._count[address] >= self._per_address:
            return False
        self._open[connection] = address
        self._count[address] += 1
        return True

    def discard(self, connection: C) -> None:
        """Remove a closed connection."""
        self.resumed(connection)
        self.buffered(connection, 0)
        address = self._open.pop(connection, None)
        if address is not None:
            _subtract(self._count, address, 1)

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


def _subtract(counter: Counter[str], key: str, count: int) -> None:
    counter[key] -= count
    if not counter[key]:
        del counter[key]
