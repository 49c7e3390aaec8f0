"""Whose quotas a client uses up: those of its principal, or of its address where nobody vouches for it.

The address is that of the connection. Where `public_url` says that a proxy stands in front, it is the last element of
`X-Forwarded-For`, or of `Forwarded`: the one that the proxy itself has added. What stands before it, anybody may have
written. Where both headers are there and differ, one of them came from the client, and neither is believed. An IPv6
client has 2**64 addresses, so they count as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
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
