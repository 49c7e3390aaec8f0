"""Whose quotas a client uses up: those of its principal, or of its address where nobody vouches for it.

The address is that of the connection. Where `public_url` says that a proxy stands in front, it is the last element of
`X-Forwarded-For`, or of `Forwarded`: the one that the proxy itself has added. What stands before it, anybody may have
written. Where both headers are there and differ, one of them came from the client, and neither is believed. An IPv6
client has 2**64 addresses, so they count as one.

The memory that bodies of requests take, from their first byte until their request is answered.

A connection sends 4 MiB in a moment, decoded values take several times the bytes that they came in, and a handler may
hold them for minutes. So what all of them take is estimated and bounded, and what those of one account take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

import msgspec

from accord.limits import Limits
from accord.messages.bounds import FIELD_BYTES, NODE_BYTES, largest_share, memory_of
from accord.transport.asgi.request import RequestRejected

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.transport.asgi.request import ASGIRequest

_ADDRESS = "\0"
"""How the account of an address begins, and none of a principal."""

_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;\s"]*))', re.IGNORECASE)
_LONGEST = 100
"""Characters of an element that are looked at: an address with a port has fewer."""


def account_of(who: Principal | None, request: ASGIRequest, *, proxied: bool) -> str:
    """The account of whoever sent a request; `proxied` says that a proxy stands in front."""
    if who is not None:
        return who.id
    client = request.scope.get("client")
    address = client[0] if client else ""
    if proxied:
        address = _forwarded(request.headers) or address
    return _account_of_address(address)


def is_address(account: str) -> bool:
    """Whether an account is that of an address, rather than of a principal."""
    return account.startswith(_ADDRESS)


def _forwarded(headers: Mapping[bytes, bytes]) -> str:
    """The address that the nearest proxy has added; an empty string where there is none that can be believed."""
    plain, structured = _last(headers.get(b"x-forwarded-for")), _last(headers.get(b"forwarded"))
    if structured:
        found = _FOR.search(structured)
        structured = (found[1] or found[2] or "") if found is not None else ""
    addresses = {_address(each) for each in (plain, structured) if each}
    return addresses.pop() if len(addresses) == 1 else ""


def _last(header: bytes | None) -> str:
    return "" if header is None else header.rpartition(b",")[2].strip()[-_LONGEST:].decode("latin-1")


def _address(element: str) -> str:
    """The address in an element, without its port; an empty string for one that hides it."""
    if element.startswith("["):
        element = element[1:].partition("]")[0]
    elif element.count(":") == 1:
        element = element.partition(":")[0]
    try:
        return str(ip_address(element))
    except ValueError:
        return ""


@lru_cache(4_096)
def _account_of_address(address: str) -> str:
    """The account of an address."""
    return _ADDRESS + counted_address(address)


@lru_cache(4_096)
def counted_address(address: str) -> str:
    """Return an address as it is counted: IPv4 as it is, IPv6 by its network of 64 bits."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found) >> 64 << 64, 64)))


SMALL_BYTES = 1 << 10
"""A body up to this size that is there at once is not counted, though it may take 30 times as much once it is decoded:
`HTTPLimits.requests_per_address` bounds those.
"""

_MEDIUM_BYTES = 8 << 10
"""A body up to this size is not counted either while few requests are being answered: to estimate it takes as long as
a twentieth of a call."""

_FEW_REQUESTS = 64
"""Requests whose bodies of up to `_MEDIUM_BYTES` are not counted."""

_FEW_FIELDS = 32
"""Header fields of a request that are not counted."""

_LATER = ((b"retry-after", b"5"), (b"connection", b"close"))


class BodyBudget:
    """What the bodies of one site take, all together and by account."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.http.bodies_bytes
        self._most_of_one = limits.http.bodies_bytes_per_address
        self.most_nodes: int = limits.http.body_nodes
        """See `memory_of`."""
        self._of: dict[str, int] = {}
        self.total: int = 0
        """Bytes, as they are estimated."""
        self.requests: int = 0
        """Requests whose bodies are there, and that are not answered yet."""

    def charge(self, account: str, size: int) -> None:
        """Count so many bytes more. Raises `RequestRejected` (503) where that is too much. Those who have little go on
        where the others have used up the whole.
        """
        of_one = self._of.get(account, 0) + size
        if of_one > self._most_of_one or of_one > largest_share(self.total + size, self._most):
            whose = "" if of_one <= self._most_of_one else " of this address" if is_address(account) else " of yours"
            raise RequestRejected(503, f"too many large requests{whose} are in progress; try again later", _LATER)
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

    _budget: BodyBudget
    _find_account: Callable[[Principal | None, ASGIRequest], str]
    _principal: Principal | None
    _request: ASGIRequest
    _account: str = ""
    _size: int = 0
    _holders: int = 1
    _is_counted: bool = False

    def add(self, size: int) -> None:
        """Charge a part that has come. Raises `RequestRejected`."""
        account = self._account = self._account or self._find_account(self._principal, self._request)
        self._budget.charge(account, size + NODE_BYTES)
        self._size += size + NODE_BYTES

    def measure(self, body: bytes) -> None:
        """Charge what the whole body takes once it is decoded, and many headers. Raises `RequestRejected`."""
        budget = self._budget
        budget.requests += 1
        self._is_counted = True
        more = len(self._request.headers) - _FEW_FIELDS
        uncounted = _MEDIUM_BYTES if budget.requests <= _FEW_REQUESTS else SMALL_BYTES
        size = memory_of(body, budget.most_nodes) if len(body) > uncounted else 0
        if more > 0:
            size += FIELD_BYTES * more
        if size:
            self.add(max(0, size - self._size))

    def hold(self) -> None:
        """Keep it charged until one more `release`."""
        self._holders += 1

    def release(self) -> None:
        """Give it back, unless someone else holds it."""
        self._holders -= 1
        if not self._holders:
            self._budget.requests -= self._is_counted
            if self._size:
                self._budget.release(self._account, self._size)
