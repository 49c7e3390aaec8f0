"""Options of a server over HTTP: path, public URL, hosts, origins, storage and logging."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from accord.errors import DeclarationError
from accord.wire.hosts import CORS, LOOPBACK_HOSTS, LOOPBACK_ORIGINS, HostCheck, HostPatterns, check_patterns

if TYPE_CHECKING:
    from accord.store.base import Events

_PUBLIC = re.compile(r"(https?://[^/?#]+)(/[^?#\s]*)?", re.IGNORECASE)
_PATH = re.compile(r"/|(/[A-Za-z0-9._~-]+)+")
_RESERVED_PATHS = ("/sse", "/messages", "/health", "/ready")


class HTTPOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a server over HTTP: `server.run(http=":8000", options=HTTPOptions(public_url="https://a.example"))`.

    Raises `DeclarationError` for invalid options. For sizes and times see `Limits`.
    """

    path: str = "/mcp"
    """The path of Streamable HTTP; an application mounted under a path serves it at its root too."""
    public_url: str | None = None
    """The URL that clients use if a proxy is in front of the server: "https://tools.example.com/mcp". Its host is
    allowed, and so are pages of its origin. A prefix before `path`, such as "/api" in "https://example.com/api/mcp", is
    the path under which the proxy serves the server, whether or not the proxy strips it.
    """
    hosts: Sequence[str] = ()
    """Allowed host names (`Host`) besides those of the local machine: "example.com", "10.0.0.5:8000", "box:*". "*"
    allows any name, and with it DNS rebinding: pages that point a name of their own at this machine.
    """
    origins: Sequence[str] = ()
    """Allowed origins of web pages (`Origin`) besides those of the local machine: "https://app.example.com". Browsers
    let pages read responses (CORS) only from origins in this list; "*" allows any page.
    """
    events: Events | None = None
    """The store of sessions and streams, so that a client that lost its connection can resume a stream; by default in
    memory.
    """
    stateless: bool = False
    """Whether revisions before 2026-07-28 are served without sessions too, so that any process may answer any request:
    several workers or machines behind a plain load balancer. Features that need a session are refused: requests to the
    client (elicitation, sampling, roots), subscriptions, log levels, list changes, HTTP+SSE, and resuming streams.
    2026-07-28 has no sessions, and is served as usual.
    """
    authorization_server_metadata: bool = False
    """Whether the metadata of the first authorization server of `auth` is published at the root of this server, for
    clients of 2025-03-26, which look for it there.
    """
    access_log: bool = False
    """Whether each request is logged as a line of JSON."""
    retry_seconds: float | None = None
    """Seconds that a client waits before it reconnects to a closed stream (`retry` of server-sent events); by default
    the client decides.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or not _PATH.fullmatch(self.path) or self.path in _RESERVED_PATHS:
            others = ", ".join(_RESERVED_PATHS)
            raise DeclarationError(f"{self.path!r} is not a valid path: write it as /mcp; {others} are taken")
        if self.retry_seconds is not None and not self.retry_seconds > 0:
            raise DeclarationError(f"retry_seconds must be more than 0, not {self.retry_seconds!r}")
        if self.stateless and self.events is not None:
            raise DeclarationError("events= needs sessions, and stateless=True has none: use one of them")
        self.gate()

    def gate(self) -> HostCheck:
        """Return the check of hosts and origins: local ones, the public URL, and those in the options."""
        public = _public(self.public_url) if self.public_url is not None else None
        hosts, origins = check_patterns("host", self.hosts), check_patterns("origin", self.origins)
        if public is not None:
            scheme, host = public
            hosts, origins = (host, *hosts), (f"{scheme}://{host}", *origins)
        return HostCheck((*LOOPBACK_HOSTS, *hosts), (*LOOPBACK_ORIGINS, *origins))

    def public_root(self) -> str:
        """Return the path prefix under which a proxy serves the server, or an empty string."""
        match = _PUBLIC.fullmatch(self.public_url or "")
        path = (match[2] or "").rstrip("/") if match is not None else ""
        own = self.path.rstrip("/")
        return path.removesuffix(own) if path.endswith(own) else ""

    def public_url_of(self, path: str) -> str | None:
        """Return the public URL of a path other than that of Streamable HTTP, or None without a public URL."""
        match = _PUBLIC.fullmatch(self.public_url or "")
        return None if match is None else f"{match[1]}{self.public_root()}{path}"

    def cors(self) -> CORS:
        """Return the CORS policy for the listed origins. Pages of the public URL itself do not need it."""
        return CORS(self.origins)


def _public(url: str) -> tuple[str, str]:
    """Return scheme and host of a public URL. Raises `DeclarationError`."""
    match = _PUBLIC.fullmatch(url) if isinstance(url, str) else None
    if match is None or not HostPatterns("origin", ()).is_well_formed(match[1].encode()):
        raise DeclarationError(f"{url!r} is not a valid public_url: write it as https://tools.example.com/mcp")
    scheme, _, host = match[1].partition("://")
    return scheme, host
