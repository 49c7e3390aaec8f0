"""The identity and the capabilities of one side."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from msgspec import Raw

from accord.errors import MissingClientCapability
from accord.messages import codec
from accord.messages.capabilities import declares, required_capabilities
from accord.messages.identity import Implementation
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from accord.messages.revision import LATEST

UNNAMED = Implementation(name="unnamed", version="0")
"""The identity in a handshake, which requires one, if none was given."""


class PeerInfo:
    """Name, capabilities and instructions of one side; immutable, encoded once.

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
        self._declared: dict[str | None, bool] = {}
        self._request_meta: dict[str, bytes] = {}  # by revision

    @cached_property
    def raw_info(self) -> Raw:
        """Return `Implementation` as bytes."""
        return codec.raw(self.info)

    @cached_property
    def raw_capabilities(self) -> Raw:
        """Return the capabilities as bytes, in the shape of the newest revision."""
        return codec.raw(codec.narrow(self.capabilities, LATEST))

    def request_meta(self, revision: str) -> dict[str, Any]:
        """Return the keys of `_meta` that each request has in a revision without a handshake."""
        keys = {PROTOCOL_VERSION: revision, CLIENT_CAPABILITIES: self.raw_capabilities}
        return keys if self.info is None else {**keys, CLIENT_INFO: self.raw_info}

    def encoded_request_meta(self, revision: str) -> bytes:
        """Return `request_meta` as bytes, encoded once."""
        if revision not in self._request_meta:
            self._request_meta[revision] = codec.encode(self.request_meta(revision))
        return self._request_meta[revision]

    def declares(self, path: str | None) -> bool:
        """Return whether a capability (`"tools"`, `"resources.subscribe"`) is declared; True if no path is given."""
        if path not in self._declared:
            self._declared[path] = path is None or declares(self.capabilities, path)
        return self._declared[path]


def missing_capability(needs: str, name: str) -> MissingClientCapability:
    """Return a server's error for a client without a capability that `name` needs (basic, `_meta`)."""
    message = f"{name} needs the capability {needs!r}, which the client does not declare"
    return MissingClientCapability(message, data={"requiredCapabilities": required_capabilities(needs)})
