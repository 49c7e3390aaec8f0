"""The call that a policy decides about."""

from __future__ import annotations

import msgspec

from accord.messages.base import JSONObject
from accord.messages.tools import ToolAnnotations


class ProposedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model or a program wants to make."""

    server: str
    """The name of the configured server."""
    tool: str
    """The server's own name of the tool."""
    arguments: JSONObject = {}
    """The arguments as they will be sent."""
    principal: str = ""
    """Who caused the call; empty for the owner of the host."""
    annotations: ToolAnnotations | None = None
    """The annotations of the tool; None unless the server is trusted."""
    folder: str | None = None
    """The working directory of the server, to which its relative paths refer; None if it is not known."""
