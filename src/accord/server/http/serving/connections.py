"""The connections that are open, and two bounds on them: how many one address has, and what all of them are owed.

A client that does not take its answers makes the server keep them. Together they may be so large; beyond that a
connection of the address that is owed most is cut, the one that takes too little for the longest time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accord.limits import Limits
from accord.server.http.accounts import counted_address

if TYPE_CHECKING:
    from accord.server.http.serving.protocol import HTTPProtocol


class Connections:
    """The open connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[HTTPProtocol, str] = {}  # and their addresses
        self._count: Counter[str] = Counter()  # by address
        self._owed: dict[HTTPProtocol, int] = {}  # bytes of those that take too little, the longest first
        self._owed_to: Counter[str] = Counter()  # by address
        self.owed: int = 0
        """Bytes of answers that wait for clients which take too little."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[HTTPProtocol]:
        return iter(list(self._open))

    def add(self, connection: HTTPProtocol) -> bool:
        """Add a connection, unless its address has as many as it may."""
        address = "" if connection.peer is None else counted_address(connection.peer[0])
        most = self._limits.http_connections_per_address
        if address and most is not None and self._count[address] >= most:
            return False
        self._open[connection] = address
        self._count[address] += 1
        return True

    def discard(self, connection: HTTPProtocol) -> None:
        """Forget a connection that is closed."""
        self.resumed(connection)
        address = self._open.pop(connection, None)
        if address is not None:
            _subtract(self._count, address, 1)

    def stalled(self, connection: HTTPProtocol, size: int) -> None:
        """So many bytes wait for this client. Cut connections until what waits is within its bound."""
        address = self._open.get(connection)
        if address is None or connection in self._owed:
            return
        self._owed[connection] = size
        self._owed_to[address] += size
        self.owed += size
        while self.owed > self._limits.http_unsent_bytes and len(self._owed) > 1:
            self._cut_one()

    def resumed(self, connection: HTTPProtocol) -> None:
        """The client has taken most of it."""
        size = self._owed.pop(connection, 0)
        if size:
            _subtract(self._owed_to, self._open[connection], size)
            self.owed -= size

    def _cut_one(self) -> None:
        most = max(self._owed_to, key=self._owed_to.__getitem__)
        connection = next(each for each in self._owed if self._open[each] == most)
        self.resumed(connection)
        asyncio.get_running_loop().call_soon(connection.transport.abort)


def _subtract(counter: Counter[str], key: str, count: int) -> None:
    counter[key] -= count
    if not counter[key]:
        del counter[key]
