"""The connections that are open, and bounds on them: how many one address has, and what the server keeps for them.

A client that does not take its answers makes the server keep them. Together they may be so large (`slow_readers`).
One that sends requests before it has the answer to another makes the server keep those (`early_senders`).
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
    """One of the connections, as they are counted and cut."""

    peer: tuple[str, int] | None
    """Its address; None where there is none."""
    transport: asyncio.Transport

    def __hash__(self) -> int:
        """Return the hash of its identity."""


C = TypeVar("C", bound=CountedConnection)


class Connections(Generic[C]):
    """The open connections of one server, which may have `cap` of them."""

    def __init__(self, limits: Limits, cap: int) -> None:
        self._per_address = _per_address(limits, cap)
        self._open: dict[C, str] = {}  # and their addresses
        self._count: Counter[str] = Counter()  # by address
        self.slow_readers: SlowReaders[C] = SlowReaders(limits.http.unsent_bytes, _cut)
        """Those whose clients take too little of their answers."""
        self.early_senders: SlowReaders[C] = SlowReaders(limits.http.unsent_bytes, _cut)
        """Those whose clients have sent what the server does not take yet."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._open))

    def add(self, connection: C) -> bool:
        """Add a connection, unless its address has as many as it may."""
        address = "" if connection.peer is None else counted_address(connection.peer[0])
        if address and self._per_address is not None and self._count[address] >= self._per_address:
            return False
        self._open[connection] = address
        self._count[address] += 1
        return True

    def discard(self, connection: C) -> None:
        """Forget a connection that is closed."""
        self.resumed(connection)
        self.buffered(connection, 0)
        address = self._open.pop(connection, None)
        if address is not None:
            _subtract(self._count, address, 1)

    def stalled(self, connection: C, size: int) -> None:
        """So many bytes wait for this client. Cut connections until what waits is within its bound."""
        address = self._open.get(connection)
        if address is not None:
            self.slow_readers.update(address, connection, size)

    def resumed(self, connection: C) -> None:
        """The client has taken most of it."""
        address = self._open.get(connection)
        if address is not None:
            self.slow_readers.update(address, connection, 0)

    def buffered(self, connection: C, size: int) -> None:
        """So many bytes of this client wait to be taken. Cut connections until what waits is within its bound."""
        address = self._open.get(connection)
        if address is not None:
            self.early_senders.update(address, connection, size)


def _per_address(limits: Limits, cap: int) -> int | None:
    """Return how many connections one address may have: at most half of them where descriptors leave fewer."""
    most = limits.http.connections_per_address
    return most if most is None or cap >= limits.http.connections else min(most, max(1, cap // 2))


def _cut(connection: CountedConnection) -> None:
    asyncio.get_running_loop().call_soon(connection.transport.abort)


def _subtract(counter: Counter[str], key: str, count: int) -> None:
    counter[key] -= count
    if not counter[key]:
        del counter[key]
