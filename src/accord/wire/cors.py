"""What a browser must be told before a page of another origin may read an answer (CORS, of the Fetch standard).

Only origins that are named are told anything. Nothing is said of credentials: what a page may send is a bearer token in
`Authorization`, which it has to know; cookies never count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from accord.wire.hosts import HostPatterns

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
