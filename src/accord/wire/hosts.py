"""Who may reach a server from a browser: `Host` and `Origin`, taken apart and compared exactly.

A page of any web site can send requests to a server on the same machine, and can point a name of its own at that
machine (DNS rebinding). The browser tells both: `Origin` is the page's, `Host` the name it was reached by. "Servers
MUST validate the `Origin` header on all incoming connections to prevent DNS rebinding attacks."

Values are read by a grammar narrower than that of URLs (no user-info, no path, no blank, no second value), and what the
grammar does not read is refused. There are no prefixes and no wildcards in names:

    example.com         a host; the port is that of http or https, said or unsaid
    example.com:8443    with this port only
    127.0.0.1:*         with any port or none, as [::1]:*
    http://localhost:*  an origin: the scheme is part of it
    *                   anything, absent and unreadable values too

What a browser must be told before a page of another origin may read an answer (CORS, of the Fetch standard).

Only origins that are named are told anything. Nothing is said of credentials: what a page may send is a bearer token in
`Authorization`, which it has to know; cookies never count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address
from typing import Literal, NamedTuple

from accord.errors import DeclarationError

LOOPBACK_HOSTS: tuple[str, ...] = ("127.0.0.1:*", "localhost:*", "[::1]:*")
"""The hosts of a server that only its own machine reaches."""
LOOPBACK_ORIGINS: tuple[str, ...] = ("http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*")
"""Pages that the machine itself serves."""

_HOST_PORT = re.compile(
    rb"(?:([a-z][a-z0-9+.-]*)://)?"
    rb"([a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])"
    rb"(?::([1-9][0-9]{0,4}))?"
)
_MAX_LENGTH = 320
"""Bytes of a value that is read: 253 for the name, the rest for a scheme and a port."""
_PORTS: dict[bytes, tuple[bytes, ...]] = {b"": (b"80", b"443"), b"http": (b"80",), b"https": (b"443",)}
"""The ports that may be left out; a `Host` does not tell its scheme."""
_ANY = b"*"
_FORMS = {"host": "example.com, example.com:8443 or [::1]:*", "origin": "https://app.example.com or http://localhost:*"}
_MAX_CACHED = 256
"""Values that were let in, and are so again without being read: a client sends the same ones each time."""


class _HostPort(NamedTuple):
    """One host or origin; `scheme` is empty for a host, `port` where a scheme has none."""

    scheme: bytes
    name: bytes
    port: bytes


class HostPatterns:
    """Patterns of hosts, or of origins, and whether a header's value is one of them.

    Raises `DeclarationError` for what is no such pattern.
    """

    def __init__(self, kind: Literal["host", "origin"], patterns: Sequence[str]) -> None:
        self.patterns: tuple[str, ...] = check_patterns(kind, patterns)
        self.allows_any: bool = "*" in self.patterns
        """Whether nothing is refused."""
        self._kind = kind
        self._allowed = {place for text in self.patterns if text != "*" for place in _parse_pattern(kind, text)}
        self._cache: set[bytes] = set()

    def allows(self, value: bytes) -> bool:
        """Whether a value is let in. What is refused is not remembered: a peer could fill a memory with it."""
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
        """Whether a value could be let in, were it named."""
        return _parse(self._kind, value) is not None


class HostCheck:
    """The names that a server answers to, and the pages that may reach it. Raises as `HostPatterns` does."""

    def __init__(self, hosts: Sequence[str] = LOOPBACK_HOSTS, origins: Sequence[str] = LOOPBACK_ORIGINS) -> None:
        self.hosts: HostPatterns = HostPatterns("host", hosts)
        self.origins: HostPatterns = HostPatterns("origin", origins)

    def refusal(self, host: bytes | None, origin: bytes | None) -> str | None:
        """None lets a request in; else what was refused, and how to allow it.

        A request without an `Origin` comes from no page. One without a `Host` is refused: HTTP/1.1 demands it.
        """
        if host is None:
            if not self.hosts.allows_any:
                return "the request has no Host header: send the name of the server"
        elif not self.hosts.allows(host):
            return self._refused_host(host)
        if origin is None or self.origins.allows(origin):
            return None
        return self._refused_origin(origin)

    def _refused_host(self, host: bytes) -> str:
        shown = _quote(host)
        if not self.hosts.is_well_formed(host):
            return f"the Host {shown} is not a name and a port"
        return (
            f"this server does not answer to the Host {shown}: if it is meant to, start it with "
            f"HTTPOptions(hosts=[{shown}]) or --allow-host, or tell its address with public_url or --public-url"
        )

    def _refused_origin(self, origin: bytes) -> str:
        shown = _quote(origin)
        if not self.origins.is_well_formed(origin):
            return f"the Origin {shown} is not a scheme, a name and a port: nothing that comes from there is let in"
        return (
            f"pages of the Origin {shown} may not reach this server: if they are meant to, start it with "
            f"HTTPOptions(origins=[{shown}]) or --allow-origin"
        )


def check_patterns(kind: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns as a tuple. Raises `DeclarationError` for one text, which is a sequence of letters too."""
    if isinstance(patterns, str):
        raise DeclarationError(f"{kind}s must be a list, even for one: {kind}s=[{patterns!r}]")
    return tuple(patterns)


def _parse_pattern(kind: str, pattern: str) -> Sequence[_HostPort]:
    """What a pattern stands for; where the port may be left out, one place for each that is meant."""
    text = pattern.removesuffix(":*") if isinstance(pattern, str) else ""
    place = _parse(kind, text.encode())
    if place is None or (place.port and text != pattern):
        raise DeclarationError(f"{pattern!r} is no {kind}: write it as {_FORMS[kind]}; * alone matches any")
    return [place._replace(port=_ANY)] if text != pattern else _with_default_ports(place)


def _parse(kind: str, value: bytes) -> _HostPort | None:
    """A value taken apart: lower case, an IPv6 address in its one shortest form; None for what is not read."""
    found = _HOST_PORT.fullmatch(value.lower()) if len(value) <= _MAX_LENGTH else None
    if found is None:
        return None
    scheme, name, port = found.groups(b"")
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
    """The places that a pattern may name to let this one in."""
    return [place._replace(port=_ANY), *_with_default_ports(place)]


def _with_default_ports(place: _HostPort) -> list[_HostPort]:
    """A place with its port; one whose port was left out, with each that it may be."""
    ports = (place.port,) if place.port else _PORTS.get(place.scheme, (b"",))
    return [place._replace(port=port) for port in ports]


def _quote(value: bytes) -> str:
    """A value for a person: quoted, ASCII, whole where it can be read."""
    text = value[:_MAX_LENGTH].decode("latin-1")
    return ascii(text + ("..." if len(value) > _MAX_LENGTH else ""))


Headers = list[tuple[bytes, bytes]]

_VARY = (b"vary", b"Origin")
_EXPOSED = (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate")
"""A page reads its session's id, and how to ask for authorization."""
_METHODS = (b"access-control-allow-methods", b"GET, POST, DELETE")
_MAX_AGE = (b"access-control-max-age", b"7200")
"""Seconds that a browser need not ask again; it takes no more than two hours."""

# A wildcard would leave out Authorization, and the names of mirrored parameters (Mcp-Param-*) are the tools'.
_ALLOWED = re.compile(rb"accept|authorization|content-type|last-event-id|mcp-[a-z0-9!#$%&'*+.^_`|~-]+")


class CORS:
    """The rules for the origins that are named; for none, nothing is ever said.

    Raises `DeclarationError` for what is no origin. `*` stands for any page.
    """

    def __init__(self, origins: Sequence[str] = ()) -> None:
        self._origins = HostPatterns("origin", origins)

    def answer(self, origin: bytes | None) -> Headers:
        """Headers for any answer to a request with this `Origin`, errors too: a page should read them as well."""
        if not self._origins.patterns:
            return []
        allowed = self._allow(origin)
        return [_VARY, *allowed, _EXPOSED] if allowed else [_VARY]

    def preflight(self, headers: Mapping[bytes, bytes]) -> Headers | None:
        """Headers for the answer (204, no body) to an OPTIONS with these headers; names are in lower case.

        None where it is not what a browser asks for a page of a named origin. It carries no `Authorization`, so it is
        answered before anybody asks who it is.
        """
        allowed = self._allow(headers.get(b"origin"))
        if not allowed or b"access-control-request-method" not in headers:
            return None
        asked = headers.get(b"access-control-request-headers", b"").lower().split(b",")
        names = [name for each in asked if _ALLOWED.fullmatch(name := each.strip(b" \t"))]
        return [_VARY, *allowed, _METHODS, (b"access-control-allow-headers", b", ".join(names)), _MAX_AGE]

    def _allow(self, origin: bytes | None) -> Headers:
        if origin is None or not self._origins.allows(origin):
            return []
        return [(b"access-control-allow-origin", b"*" if self._origins.allows_any else origin)]
