"""URLs of OAuth: which are safe, which belong together, and where metadata is published.

A peer chooses most of these URLs. Only https is used, and http for this machine: "All authorization server endpoints
MUST be served over HTTPS" (Authorization, Communication Security).
"""

from __future__ import annotations

import ipaddress
import re
from enum import IntEnum
from urllib.parse import SplitResult, unquote, urlsplit

from accord.errors import AuthorizationError, visible
from accord.transport.http.redaction import without_credentials_malformed
from accord.wire.hosts import is_loopback as is_loopback

URL_CHARACTERS = 2_048
"""Limit of the length of a URL in metadata, in characters."""

RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
"""RFC 9728, 3."""
SERVER_METADATA = "/.well-known/oauth-authorization-server"
"""RFC 8414, 3."""
OPENID_CONFIGURATION = "/.well-known/openid-configuration"
"""OpenID Connect Discovery 1.0, 4."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[!#$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]+").fullmatch
"""The characters of a URI (RFC 3986), which exclude blanks, quotes, backslashes and control characters."""
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.(?!-)[A-Za-z0-9_-]{1,63})*\.?").fullmatch
_NUMERIC = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)").fullmatch
_DEFAULT_PORTS = {"http": 80, "https": 443}


def check_url(url: str, what: str) -> SplitResult:
    """Return the parts of a URL that may be requested, or opened in a browser. `what` names the URL in errors.

    Raises `AuthorizationError` unless it is https, or http on loopback, without a user, a fragment, or characters that
    a URI does not have. A host that is an address must be in its usual form: `0x7f.1` and `2130706433` are refused.
    """
    reason = _reason_against(url)
    if reason is not None:
        cure = "accord opens https URLs, and http on loopback"
        shown = visible(without_credentials_malformed(url))[:200]
        raise AuthorizationError(what, f"{shown!r} {reason}", cure)
    return urlsplit(url)


def _reason_against(url: str) -> str | None:
    """Return why a URL is refused, or None."""
    if len(url) > URL_CHARACTERS:
        return f"is longer than {URL_CHARACTERS} characters"
    if not _URL(url):
        return "is not a URL"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if not host or port == 0 or not _is_host(host):
        return "has no usual host name or address"
    if "@" in parts.netloc:
        return "has a user name"
    if "#" in url:
        return "has a fragment"
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return None
    return "is http, and not on this machine" if parts.scheme == "http" else "is not https"


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2]
        return bool(_HOST_NAME(host)) and len(host) <= 253 and not _NUMERIC(last)
    return "%" not in host


def origin_of(url: str) -> str:
    """Return the origin of a URL (RFC 6454): scheme, host and port, the default port omitted."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = parts.port
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}")


def covers(resource: str, server: str) -> bool:
    """Return whether a resource identifier is that of a server: on its origin, and with its path, or a parent of it by
    segments.

    "MUST identify the MCP server that the client intends to use the token with" (Authorization, Resource Parameter
    Implementation).
    """
    if origin_of(resource) != origin_of(server) or urlsplit(resource).query:
        return False
    parent, path = (urlsplit(url).path.removesuffix("/") for url in (resource, server))
    return path == parent or (path.startswith(f"{parent}/") and not _has_dot_segment(path))


def _has_dot_segment(path: str) -> bool:
    """Return whether a path has a segment that leads out of those before it, also if its dots are encoded."""
    return not {".", ".."}.isdisjoint(unquote(path).split("/"))


def canonical_resource(server: str) -> str:
    """Return the resource identifier of a server that publishes none: its URL without query, fragment and final slash;
    scheme and host in lower case (Authorization, Canonical Server URI).
    """
    return origin_of(server) + urlsplit(server).path.rstrip("/")


def resource_metadata_urls(server: str) -> list[str]:
    """Return where a server may publish the metadata of its resource, in order (RFC 9728, 3.1): for its path, then at
    the root.
    """
    parts = urlsplit(server)
    path = parts.path.rstrip("/")
    base = f"{parts.scheme}://{parts.netloc}{RESOURCE_METADATA}"
    return [base + path, base] if path else [base]


def server_metadata_urls(issuer: str) -> list[str]:
    """Return where an authorization server may publish its metadata, in order (Authorization Server Metadata
    Discovery): RFC 8414, then OpenID Connect with the path inserted, then with the path appended.
    """
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    base = f"{parts.scheme}://{parts.netloc}"
    urls = [base + SERVER_METADATA + path, base + OPENID_CONFIGURATION + path]
    return [*urls, base + path + OPENID_CONFIGURATION] if path else urls


class Reach(IntEnum):
    """The distance of an address inside a private network; no URL may lead further in than the one the user gave."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    SPECIAL = 3
    """Link-local addresses, among them the metadata services of clouds, multicast, and reserved ones."""


def reach_of(address: str) -> Reach:
    """Return how far inside a private network an IP address lies. Raises `ValueError` for any other text."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        embedded = parsed.ipv4_mapped or parsed.sixtofour or _nat64(parsed) or (parsed.teredo or (None, None))[1]
        if embedded is not None:
            return reach_of(str(embedded))
        if parsed.is_site_local:  # deprecated (RFC 3879), and global for `is_global`
            return Reach.SPECIAL
    if parsed.is_loopback:
        return Reach.LOOPBACK
    if parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified or parsed.is_reserved:
        return Reach.SPECIAL
    return Reach.PUBLIC if parsed.is_global and parsed not in _PROTOCOL_ASSIGNMENTS else Reach.PRIVATE


def _nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address in one of the well-known prefix for translation (RFC 6052), or None."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


_PROTOCOL_ASSIGNMENTS = ipaddress.IPv4Network("192.0.0.0/24")
"""RFC 6890, 2.2.2: older releases of Python take some of it for global."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
