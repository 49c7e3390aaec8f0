"""Access control for browsers: exact comparison of `Host` and `Origin`, and CORS.

A page of any website can send requests to a server on the same machine, and can point a name of its own to that machine
(DNS rebinding). The browser reports both: `Origin` is that of the page, `Host` the name it connected to. "Servers MUST
validate the `Origin` header on all incoming connections to prevent DNS rebinding attacks."

Values are parsed by a grammar narrower than that of URLs (no user-info, no path, no blank, no second value); any other
value is refused. There are no prefixes and no wildcards in names:

    example.com         a host; the port is that of http or https, explicit or not
    example.com:8443    with this port only
    127.0.0.1:*         with any port or none, as [::1]:*
    http://localhost:*  an origin: the scheme is part of it
    *                   anything, absent and invalid values too

`CORS` makes the headers without which a browser does not let a page of another origin read a response (Fetch standard).
Only configured origins get these headers. Credentials are not allowed: a page sends a bearer token in `Authorization`,
which it must know; cookies never count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Literal, NamedTuple

from accord.errors import DeclarationError

LOOPBACK_HOSTS: tuple[str, ...] = ("127.0.0.1:*", "localhost:*", "[::1]:*")
"""The hosts of a server that only its own machine can reach."""
LOOPBACK_ORIGINS: tuple[str, ...] = ("http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*")
"""Origins of pages from the same machine."""

_HOST_PORT = re.compile(
    rb"(?:([a-z][a-z0-9+.-]*)://)?"
    rb"([a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])"
    rb"(?::([1-9][0-9]{0,4}))?"
)
_MAX_LENGTH = 320
"""Limit of a value in bytes: 253 for the name, the rest for a scheme and a port."""
_PORTS: dict[bytes, tuple[bytes, ...]] = {b"": (b"80", b"443"), b"http": (b"80",), b"https": (b"443",)}
"""The default ports by scheme; a `Host` does not include its scheme."""
_ANY = b"*"
_FORMS = {"host": "example.com, example.com:8443 or [::1]:*", "origin": "https://app.example.com or http://localhost:*"}
_MAX_CACHED = 256
"""Limit of cached values that were allowed: a client sends the same ones each time."""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name, or its address: 127.0.0.0/8, ::1.

    RFC 6761, 6.3: `localhost` and all names below it.
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        name = host.lower().removesuffix(".")
        return name == "localhost" or name.endswith(".localhost")


class _HostPort(NamedTuple):
    """One host or origin; `scheme` is empty for a host, `port` for a scheme without a default port."""

    scheme: bytes
    name: bytes
    port: bytes


class HostPatterns:
    """Patterns of hosts, or of origins, and the check of a header's value against them.

    Raises `DeclarationError` for an invalid pattern.
    """

    def __init__(self, kind: Literal["host", "origin"], patterns: Sequence[str]) -> None:
        self.patterns: tuple[str, ...] = check_patterns(kind, patterns)
        self.allows_any: bool = "*" in self.patterns
        """Whether every value is allowed."""
        self._kind = kind
        self._allowed = {place for text in self.patterns if text != "*" for place in _parse_pattern(kind, text)}
        self._cache: set[bytes] = set()

    def allows(self, value: bytes) -> bool:
        """Return whether a value is allowed. Refused values are not cached: a peer could fill the memory with them."""
        if value in self._cache or self.allows_any:
            return True
        place = _parse(self._kind, value)
        if place is None or self._allowed.isdisjoint(_matching_patterns(place)):
            return False
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        self._cache.add(value)
        return True

    def is_well_formed(self, value: bytes) -> bool:
        """Return whether a value is a valid host or origin, allowed or not."""
        return _parse(self._kind, value) is not None


class HostCheck:
    """The allowed names of a server, and the allowed origins of pages. Raises the errors of `HostPatterns`."""

    def __init__(self, hosts: Sequence[str] = LOOPBACK_HOSTS, origins: Sequence[str] = LOOPBACK_ORIGINS) -> None:
        self.hosts: HostPatterns = HostPatterns("host", hosts)
        self.origins: HostPatterns = HostPatterns("origin", origins)
        self.allowed: set[tuple[bytes | None, bytes | None]] = set()
        """Pairs of `Host` and `Origin` that `refusal` has allowed lately: these need no further check."""

    def refusal(self, host: bytes | None, origin: bytes | None) -> str | None:
        """Return None if a request is allowed; else what was refused, and how to allow it.

        A request without an `Origin` does not come from a page. One without a `Host` is refused: HTTP/1.1 requires it.
        """
        if host is None:
            if not self.hosts.allows_any:
                return "the request has no Host header: send the name of the server"
        elif not self.hosts.allows(host):
            return self._host_refusal(host)
        if origin is not None and not self.origins.allows(origin):
            return self._origin_refusal(origin)
        if len(self.allowed) >= _MAX_CACHED:
            self.allowed.clear()
        self.allowed.add((host, origin))
        return None

    def _host_refusal(self, host: bytes) -> str:
        shown = _quote(host)
        if not self.hosts.is_well_formed(host):
            return f"the Host {shown} is not a name and a port"
        return (
            f"this server does not answer to the Host {shown}: if it is meant to, start it with "
            f"HTTPOptions(hosts=[{shown}]) or --allow-host, or tell its address with public_url or --public-url"
        )

    def _origin_refusal(self, origin: bytes) -> str:
        shown = _quote(origin)
        if not self.origins.is_well_formed(origin):
            return f"the Origin {shown} is not a scheme, a name and a port: nothing that comes from there is let in"
        return (
            f"pages of the Origin {shown} may not reach this server: if they are meant to, start it with "
            f"HTTPOptions(origins=[{shown}]) or --allow-origin"
        )


def check_patterns(kind: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns as a tuple. Raise `DeclarationError` for a single text, which is a sequence too."""
    if isinstance(patterns, str):
        raise DeclarationError(f"{kind}s must be a list, even for one: {kind}s=[{patterns!r}]")
    return tuple(patterns)


def _parse_pattern(kind: str, pattern: str) -> Sequence[_HostPort]:
    """Parse a pattern; if it may omit the port, return one value for each default port."""
    text = pattern.removesuffix(":*") if isinstance(pattern, str) else ""
    place = _parse(kind, text.encode())
    if place is None or (place.port and text != pattern):
        raise DeclarationError(f"{pattern!r} is no {kind}: write it as {_FORMS[kind]}; * alone matches any")
    return [place._replace(port=_ANY)] if text != pattern else _with_default_ports(place)


def _parse(kind: str, value: bytes) -> _HostPort | None:
    """Parse a value to lower case, with an IPv6 address in its one shortest form; return None for an invalid value."""
    match = _HOST_PORT.fullmatch(value.lower()) if len(value) <= _MAX_LENGTH else None
    if match is None:
        return None
    scheme, name, port = match.groups(b"")
    if (kind == "origin") != bool(scheme) or (port and int(port) > 65535):
        return None
    if not name.startswith(b"["):
        return _HostPort(scheme, name, port)
    try:
        address = IPv6Address(name[1:-1].decode())
    except ValueError:
        return None
    return _HostPort(scheme, str(address).encode(), port)


def _matching_patterns(place: _HostPort) -> list[_HostPort]:
    """Return the patterns that match a value."""
    return [place._replace(port=_ANY), *_with_default_ports(place)]


def _with_default_ports(place: _HostPort) -> list[_HostPort]:
    """Return a value with its port, or, without one, the value with each default port."""
    ports = (place.port,) if place.port else _PORTS.get(place.scheme, (b"",))
    return [place._replace(port=port) for port in ports]


def _quote(value: bytes) -> str:
    """Return a value for an error: quoted, ASCII, in full up to the limit."""
    text = value[:_MAX_LENGTH].decode("latin-1")
    return ascii(text + ("..." if len(value) > _MAX_LENGTH else ""))


Headers = list[tuple[bytes, bytes]]

_VARY = (b"vary", b"Origin")
_EXPOSED = (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce")
"""A page reads the id of its session, and how to authenticate."""
_METHODS = (b"access-control-allow-methods", b"GET, POST, DELETE")
_MAX_AGE = (b"access-control-max-age", b"7200")
"""Seconds for which a browser may cache the preflight response; browsers accept at most two hours."""

# A wildcard would not include Authorization, and the tools define the names of mirrored parameters (Mcp-Param-*).
_ALLOWED = re.compile(rb"accept|authorization|content-type|dpop|last-event-id|mcp-[a-z0-9!#$%&'*+.^_`|~-]+")


class CORS:
    """The CORS headers for configured origins; without any, there are no headers.

    Raises `DeclarationError` for an invalid origin. `*` allows any page.
    """

    def __init__(self, origins: Sequence[str] = ()) -> None:
        self._origins = HostPatterns("origin", origins)

    def answer(self, origin: bytes | None) -> Headers:
        """Return the headers for any response to a request with this `Origin`, errors too: a page should be able to
        read them."""
        if not self._origins.patterns:
            return []
        allowed = self._allow(origin)
        return [_VARY, *allowed, _EXPOSED] if allowed else [_VARY]

    def preflight(self, headers: Mapping[bytes, bytes]) -> Headers | None:
        """Return the headers of the response (204, no body) to an OPTIONS request; header names are in lower case.

        Return None if it is not the preflight of a page of a configured origin. It carries no `Authorization`, so it is
        answered before authentication.
        """
        allowed = self._allow(headers.get(b"origin"))
        if not allowed or b"access-control-request-method" not in headers:
            return None
        requested = headers.get(b"access-control-request-headers", b"").lower().split(b",")
        names = [name for each in requested if _ALLOWED.fullmatch(name := each.strip(b" \t"))]
        return [_VARY, *allowed, _METHODS, (b"access-control-allow-headers", b", ".join(names)), _MAX_AGE]

    def _allow(self, origin: bytes | None) -> Headers:
        if origin is None or not self._origins.allows(origin):
            return []
        return [(b"access-control-allow-origin", b"*" if self._origins.allows_any else origin)]
