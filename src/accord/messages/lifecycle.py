"""How two peers find out what they have in common: `initialize`, or `server/discover` (basic, Lifecycle)."""

from __future__ import annotations

from accord.messages.base import lives
from accord.messages.bounds import Name, Names
from accord.messages.capabilities import ClientCapabilities, ServerCapabilities
from accord.messages.identity import Implementation
from accord.messages.meta import CacheableResult, Params, Result


@lives(until="2026-07-28")
class InitializeParams(Params):
    """Params of `initialize`: the client introduces itself and proposes a revision."""

    protocol_version: Name
    capabilities: ClientCapabilities
    client_info: Implementation


@lives(until="2026-07-28")
class InitializeResult(Result):
    """Result of `initialize`: the server introduces itself and settles the revision."""

    protocol_version: Name
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


@lives(since="2026-07-28")
class DiscoverResult(CacheableResult):
    """Result of `server/discover`; who answers stands in `_meta`."""

    supported_versions: Names
    capabilities: ServerCapabilities
    instructions: str | None = None
