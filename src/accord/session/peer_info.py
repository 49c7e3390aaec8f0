"""What one side says of itself, and what may be asked of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from msgspec import Raw

from accord.errors import MissingClientCapability
from accord.messages import codec
from accord.messages.capabilities import declares, required_capabilities
from accord.messages.identity import Implementation
from accord.messages.revision import LATEST

UNNAMED = Implementation(name="unnamed", version="0")
"""Who speaks where the handshake wants a name and none was given."""


class PeerInfo:
    """Name, capabilities and instructions of one side; immutable, its bytes made once.

    `capabilities` are `ClientCapabilities` or `ServerCapabilities`, by the role of that side.
    """

    def __init__(
        self,
        info: Implementation | None,
        capabilities: Any,
        instructions: str | None = None,
    ) -> None:
        self.info = info
        self.capabilities = capabilities
        self.instructions = instructions

    @cached_property
    def raw_info(self) -> Raw:
        """`Implementation` as bytes."""
        return codec.raw(self.info)

    @cached_property
    def raw_capabilities(self) -> Raw:
        """The capabilities as bytes, as the newest revision has them."""
        return codec.raw(codec.narrow(self.capabilities, LATEST))

    def declares(self, path: str | None) -> bool:
        """Whether a capability (`"tools"`, `"resources.subscribe"`) is declared; no path needs none."""
        return path is None or declares(self.capabilities, path)


def missing_capability(needs: str, name: str) -> MissingClientCapability:
    """What a server says to a client that cannot do what `name` needs (basic, `_meta`)."""
    message = f"{name} needs the capability {needs!r}, which the client does not declare"
    return MissingClientCapability(message, data={"requiredCapabilities": required_capabilities(needs)})
