"""Params and results of `initialize` and `server/discover` (basic, Lifecycle)."""

from __future__ import annotations

from accord.messages.base import lives
from accord.messages.bounds import Name, Names
from accord.messages.capabilities import ClientCapabilities, ServerCapabilities
from accord.messages.identity import Implementation
from accord.messages.meta import CacheableResult, Params, Result


@lives(until="2026-07-28")
class InitializeParams(Params):
    """Params of `initialize`: the client's identity, capabilities and proposed revision."""

    protocol_version: Name
    capabilities: ClientCapabilities
    client_info: Implementation


@lives(until="2026-07-28")
class InitializeResult(Result):
    """Result of `initialize`: the server's identity, capabilities and the chosen revision."""

    protocol_version: Name
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


@lives(since="2026-07-28")
class DiscoverResult(CacheableResult):
    """Result of `server/discover`; the server's identity is in `_meta`."""

    supported_versions: Names
    capabilities: ServerCapabilities
    instructions: str | None = None
