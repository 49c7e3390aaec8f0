"""Quotas by account: a client's principal, or its address if it is anonymous; and the memory of request bodies.

The address is that of the connection. If `public_url` declares a proxy, the address is the last element of
`X-Forwarded-For`, or of `Forwarded`, which the proxy itself has added; a client may have written earlier elements. If
both headers are present and differ, one is from the client, and neither is used. An IPv6 client has 2**64 addresses,
which count as one. One customer of a provider has up to 2**16 such networks: where a table for all clients is full,
they count as one network (/48).

The memory of a body is charged from its first byte until its request is answered. A connection can send 4 MiB in a
moment, decoded values take several times the bytes of the body, and a handler may hold them for minutes. So the
estimated memory is bounded, for each account and for all together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

import msgspec

from accord.limits import Limits
from accord.messages.bounds import FIELD_BYTES, NODE_BYTES, AccountMemory, memory_of
from accord.session.rate import FEW, MANY
from accord.transport.asgi.request import RequestRejected

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.transport.asgi.request import ASGIRequest

_ADDRESS = "\0"
"""The prefix of an address's account, which no principal's account has."""

_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;\s"]*))', re.IGNORECASE)
_LONGEST = 100
"""The most characters of an element: an address with a port has fewer."""


def account_of(request: ASGIRequest, *, proxied: bool) -> str:
    """Return the account of a request's sender; `proxied` is whether a proxy is in front of the server."""
    principal: Principal | None = request.principal
    if principal is not None:
        return principal.id
    client = request.scope.get("client")
    address = client[0] if client else ""
    if proxied:
        address = _forwarded_address(request.headers) or address
    return _account_of_address(address)


def is_address(account: str) -> bool:
    """Return whether an account is that of an address, rather than of a principal."""
    return account.startswith(_ADDRESS)


def _forwarded_address(headers: Mapping[bytes, bytes]) -> str:
    """Return the address that the nearest proxy has added, or an empty string if none can be trusted."""
    plain, structured = _last_element(headers.get(b"x-forwarded-for")), _last_element(headers.get(b"forwarded"))
    if structured:
        match = _FOR.search(structured)
        structured = (match[1] or match[2] or "") if match is not None else ""
    addresses = {_address(each) for each in (plain, structured) if each}
    return addresses.pop() if len(addresses) == 1 else ""


def _last_element(header: bytes | None) -> str:
    return "" if header is None else header.rpartition(b",")[2].strip()[-_LONGEST:].decode("latin-1")


def _address(element: str) -> str:
    """Return the address in an element without its port, or an empty string if it is hidden."""
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
    """Return the account of an address."""
    return _ADDRESS + counted_address(address)


@lru_cache(4_096)
def counted_address(address: str) -> str:
    """Return the address to count: IPv4 as it is, IPv6 as its /64 network."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed) >> 64 << 64, 64)))


@lru_cache(4_096)
def network_of(account: str) -> str:
    """Return the network of an account, or of an address as `counted_address` returns it: of IPv6 its /48 network,
    otherwise the account itself.
    """
    try:
        return str(IPv6Network(account.removeprefix(_ADDRESS)).supernet(new_prefix=48))
    except ValueError:
        return account


SMALL_BYTES = 1 << 10
"""A body up to this size that arrives at once is not counted, though its decoded value may take 30 times as much:
`HTTPLimits.requests_per_address` bounds those.
"""

_MEDIUM_BYTES = 8 << 10
"""A body up to this size is not counted either while few requests are in progress: the estimate takes a twentieth of a
call's time.
"""

_FEW_REQUESTS = 64
"""The most requests in progress for `_MEDIUM_BYTES` to apply, and to wait for authentication without an account."""

_FEW_FIELDS = 32
"""Header fields of a request that are not counted."""

_LATER = ((b"retry-after", b"5"), (b"connection", b"close"))


class BodyBudget:
    """The memory of bodies in progress, in total and by account."""

    def __init__(self, limits: Limits) -> None:
        self._memory = AccountMemory(limits.http.bodies_bytes, limits.http.bodies_bytes_per_address)
        self.most_nodes: int = limits.http.body_nodes
        """See `memory_of`."""
        self.requests: int = 0
        """Requests in progress whose bodies have arrived."""

    @property
    def total(self) -> int:
        """Return the estimated bytes."""
        return self._memory.total

    def charge(self, account: str, size: int) -> None:
        """Charge `size` bytes. Raises `RequestRejected` (503) over the quota. Near the total bound, the largest
        accounts are refused first.
        """
        memory = self._memory
        if not memory.has_room(account, size):
            suffix, limit = "", "bodies_bytes"
            if memory.of_one(account) + size > memory.most_of_one:
                suffix = " of this address" if is_address(account) else " of yours"
                limit = "bodies_bytes_per_address"
            what = f"too many large requests{suffix} are in progress (HTTPLimits.{limit}); try again later"
            raise RequestRejected(503, what, _LATER)
        memory.add(account, size)

    def release(self, account: str, size: int) -> None:
        """Release `size` bytes."""
        self._memory.add(account, -size)


AccountFinder = Callable[["ASGIRequest"], str]


class PendingAuthentications:
    """The requests that wait for authentication, such as for an authorization server: they wait on after their client
    has disconnected.
    """

    def __init__(self, limits: Limits, find_account: AccountFinder) -> None:
        self._most = limits.http.requests
        self._most_of_one = limits.http.requests_per_address
        self._find_account = find_account
        self._of: dict[str, int] = {}
        self.total: int = 0
        """The number of these requests."""

    def add(self, request: ASGIRequest) -> str:
        """Count a request; return its address, or an empty string while there are few. Raises `RequestRejected` (503)
        over the limits of requests in flight.
        """
        account = self._find_account(request) if self.total >= _FEW_REQUESTS else ""
        if account:
            of_one = self._of.get(account, 0)
            share = self._most if self.total < self._most else MANY if self.total < 2 * self._most else FEW
            if of_one >= min(share, self._most_of_one):
                limit = "requests_per_address" if of_one >= self._most_of_one else "requests"
                what = f"too many requests wait for authentication (HTTPLimits.{limit}); try again later"
                raise RequestRejected(503, what, _LATER)
            self._of[account] = of_one + 1
        self.total += 1
        return account

    def remove(self, account: str) -> None:
        """Remove a request that `add` has counted for this account."""
        self.total -= 1
        if account:
            self._of[account] -= 1
            if not self._of[account]:
                del self._of[account]


class BodyCharge(msgspec.Struct, eq=False):
    """The charge for one body, returned when every holder has released it."""

    _budget: BodyBudget
    _find_account: AccountFinder
    _request: ASGIRequest
    _account: str = ""
    _size: int = 0
    _holders: int = 1
    _is_counted: bool = False

    def add(self, size: int) -> None:
        """Charge a received part. Raises `RequestRejected`."""
        account = self._account = self._account or self._find_account(self._request)
        self._budget.charge(account, size + NODE_BYTES)
        self._size += size + NODE_BYTES

    def measure(self, body: bytes) -> None:
        """Charge the memory of the decoded body, and of many headers. Raises `RequestRejected`."""
        budget = self._budget
        budget.requests += 1
        self._is_counted = True
        extra_fields = len(self._request.headers) - _FEW_FIELDS
        uncounted = _MEDIUM_BYTES if budget.requests <= _FEW_REQUESTS else SMALL_BYTES
        size = memory_of(body, budget.most_nodes) if len(body) > uncounted else 0
        if extra_fields > 0:
            size += FIELD_BYTES * extra_fields
        if size:
            self.add(max(0, size - self._size))

    def hold(self) -> None:
        """Add a holder, which must call `release`."""
        self._holders += 1

    def release(self) -> None:
        """Remove a holder; the last one returns the charge."""
        self._holders -= 1
        if not self._holders:
            self._budget.requests -= self._is_counted
            if self._size:
                self._budget.release(self._account, self._size)


class SessionCharge:
    """The charge for what a session keeps of its client: `initialize`, and roots. It is returned when every holder has
    released it: a task may run on after the end of its session.
    """

    def __init__(self, budget: BodyBudget, account: str) -> None:
        self._budget = budget
        self._account = account
        self._size = 0
        self._holders = 1

    def add(self, size: int) -> None:
        """Charge `size` more bytes. Raises `RequestRejected`."""
        self._budget.charge(self._account, size)
        self._size += size

    def hold(self) -> Callable[[], None]:
        """Add a holder; return the function that releases it."""
        self._holders += 1
        return self.release

    def release(self) -> None:
        """Remove a holder; the last one returns the charge."""
        self._holders -= 1
        if not self._holders and self._size:
            self._budget.release(self._account, self._size)
