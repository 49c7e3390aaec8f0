"""How a server is reached over HTTP: its names, the pages that may use it, its path, and what it keeps."""

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

    Raises `DeclarationError` for what cannot work. For sizes and times see `Limits`.
    """

    path: str = "/mcp"
    """Where Streamable HTTP is served; where the application is mounted under a path, its root serves it as well."""
    public_url: str | None = None
    """The address that clients use, where a proxy stands before the server: "https://tools.example.com/mcp". Its host
    is answered to, and pages of its origin are let in. What stands before `path` in it, as "/api" in
    "https://example.com/api/mcp", is where the proxy has put the server, whether or not it takes that off."""
    hosts: Sequence[str] = ()
    """Names that the server answers to besides its machine's own (`Host`): "example.com", "10.0.0.5:8000", "box:*";
    "*" answers to any name, and with it a page that points a name of its own at this machine gets in."""
    origins: Sequence[str] = ()
    """Web pages that may use the server besides those of its machine (`Origin`): "https://app.example.com". Browsers
    let pages read answers (CORS) of the origins named here only; "*" means any page."""
    events: Events | None = None
    """Where sessions and streams are kept, so that a client that lost its connection can take up a stream again; in
    memory by default."""
    stateless: bool = False
    """Whether revisions before 2026-07-28 are served without sessions too, so that any process may answer any request:
    several workers or machines behind a plain load balancer. What needs a session is refused: questions to the client
    (elicitation, sampling, roots), subscriptions, log levels, changes of lists, HTTP+SSE, and resuming streams.
    2026-07-28 has no sessions, and is served as ever."""
    access_log: bool = False
    """Whether each request is logged, a line of JSON each."""
    retry_seconds: float | None = None
    """How long a client whose stream was closed waits before it comes back for the rest (`retry` of server-sent
    events); by default clients decide."""

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
        """Which hosts and origins are let in: the machine's own, the public address, and those named."""
        public = _public(self.public_url) if self.public_url is not None else None
        hosts, origins = check_patterns("host", self.hosts), check_patterns("origin", self.origins)
        if public is not None:
            scheme, host = public
            hosts, origins = (host, *hosts), (f"{scheme}://{host}", *origins)
        return HostCheck((*LOOPBACK_HOSTS, *hosts), (*LOOPBACK_ORIGINS, *origins))

    def public_root(self) -> str:
        """The path under which a proxy has put the server; empty where there is none, or it is not told."""
        found = _PUBLIC.fullmatch(self.public_url or "")
        path = (found[2] or "").rstrip("/") if found is not None else ""
        own = self.path.rstrip("/")
        return path.removesuffix(own) if path.endswith(own) else ""

    def cors(self) -> CORS:
        """What pages of the named origins may read. Pages of the public address itself need no leave to."""
        return CORS(self.origins)


def _public(url: str) -> tuple[str, str]:
    """The scheme and the host of a public address."""
    found = _PUBLIC.fullmatch(url) if isinstance(url, str) else None
    if found is None or not HostPatterns("origin", ()).is_well_formed(found[1].encode()):
        raise DeclarationError(f"{url!r} is not a valid public_url: write it as https://tools.example.com/mcp")
    scheme, _, host = found[1].partition("://")
    return scheme, host
