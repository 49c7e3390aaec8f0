"""The `data` of JSON-RPC errors that the specification defines."""

from __future__ import annotations

from accord.messages.base import Model, lives, open_ended
from accord.messages.capabilities import ClientCapabilities
from accord.messages.elicitation import ElicitParams


@lives(since="2026-07-28")
class UnsupportedVersionData(Model):
    """Data of -32022: the supported revisions, and the requested one."""

    supported: list[str]
    requested: str


@lives(since="2026-07-28")
class MissingClientCapabilityData(Model):
    """Data of -32021: the capabilities that the client must declare."""

    required_capabilities: ClientCapabilities


@open_ended
@lives(since="2025-11-25", until="2026-07-28")
class URLElicitationRequiredData(Model):
    """Data of -32042: the pages that the user must visit first."""

    elicitations: list[ElicitParams]
