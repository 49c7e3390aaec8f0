"""The memory that bodies of requests take, from their first byte until their request is answered.

A connection sends 4 MiB in a moment, decoded values take several times the bytes that they came in, and a handler may
hold them for minutes. So what all of them take is estimated and bounded, and what those of one account take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from accord.limits import Limits
from accord.messages.bounds import NODE_BYTES, memory_of
from accord.server.http.accounts import is_address
from accord.transport.asgi.request import RequestRejected

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.http.http_context import HTTPContext
    from accord.transport.asgi.request import ASGIRequest

SMALL_BYTES = 8 << 10
"""A body up to this size that is there at once is not counted: `Limits.requests_in_flight` bounds those."""

_LATER = ((b"retry-after", b"5"), (b"connection", b"close"))


class BodyBudget:
    """What the bodies of one site take, all together and by account."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.http_bodies_bytes
        self._most_of_one = limits.http_bodies_bytes_per_address
        self._of: dict[str, int] = {}
        self.total: int = 0
        """Bytes, as they are estimated."""

    def charge(self, account: str, size: int) -> None:
        """Count so many bytes more. Raises `RequestRejected` (503) where that is too much."""
        of_one = self._of.get(account, 0) + size
        if self.total + size > self._most or of_one > self._most_of_one:
            whose = "" if of_one <= self._most_of_one else " of this address" if is_address(account) else " of yours"
            raise RequestRejected(
                503, f"too many large requests{whose} are being received and worked on; try again", _LATER
            )
        self.total += size
        self._of[account] = of_one

    def release(self, account: str, size: int) -> None:
        """Count so many bytes less."""
        self.total -= size
        self._of[account] -= size
        if not self._of[account]:
            del self._of[account]


class BodyCharge(msgspec.Struct, eq=False):
    """What one body takes. It is given back when everyone who holds it has released it."""

    _context: HTTPContext
    _principal: Principal | None
    _request: ASGIRequest
    _account: str = ""
    _size: int = 0
    _holders: int = 1

    def add(self, size: int) -> None:
        """Charge a part that has come. Raises `RequestRejected`."""
        account = self._account = self._account or self._context.account(self._principal, self._request)
        self._context.body_budget.charge(account, size + NODE_BYTES)
        self._size += size + NODE_BYTES

    def measure(self, body: bytes) -> None:
        """Charge what the whole body takes once it is decoded. Raises `RequestRejected`."""
        if len(body) > SMALL_BYTES:
            self.add(max(0, memory_of(body) - self._size))

    def hold(self) -> None:
        """Keep it charged until one more `release`."""
        self._holders += 1

    def release(self) -> None:
        """Give it back, unless someone else holds it."""
        self._holders -= 1
        if not self._holders and self._size:
            self._context.body_budget.release(self._account, self._size)
