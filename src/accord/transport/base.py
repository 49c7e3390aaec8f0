"""What a transport is: it moves whole messages and knows nothing of what they say.

Write your own by having these methods; `accord.testing.check_transport` tells whether it holds the
contract. One task receives at a time; anyone may send.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from accord.errors import ConnectionLost
from accord.wire.lines import Unreadable

__all__ = ["Message", "Transport", "Unreadable"]

Message = bytes | Unreadable


class Transport(Protocol):
    """Moves whole messages. The public contract for custom transports."""

    async def open(self) -> None:
        """Start. Raises `ConnectError`."""

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        """Every message that is there, at least one; `[]` once the connection has ended, and ever after.

        A cancelled `receive()` loses nothing.
        """

    def send(self, message: bytes) -> None:
        """Queue one message. Never blocks, and never raises because the peer is gone."""

    def flush(self) -> None:
        """Begin to write what is queued, now rather than at the end of this step of the loop.

        Whoever receives should call it after each batch, or never: a transport may hold what is sent while
        a batch is in hand until the `flush()`, or the next `receive()`.
        """

    async def drain(self) -> None:
        """Return when less than `Limits.pending_bytes` are unsent, or the peer is gone."""

    async def close(self) -> None:
        """End the connection: what was sent goes out first, in bounded time. Closing again does nothing."""

    def lost(self) -> ConnectionLost:
        """What to tell those who still wait for an answer, after `receive()` gave `[]`."""

    @property
    def name(self) -> str:
        """Who is on the other side, for errors and logs: `stdio`, `python weather.py`."""
