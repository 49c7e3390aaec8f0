"""The session and revision of a client, and the headers for them on each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from accord.errors import LocalProtocolError
from accord.transport.http.fetcher import SESSION
from accord.transport.http.messages import SentMessage, negotiated_revision
from accord.wire.headers import encode_value, parameter_headers

if TYPE_CHECKING:
    from aiohttp import ClientResponse

INITIALIZE = "initialize"

_encoded = lru_cache(maxsize=1_000)(encode_value)

_VERSION = "MCP-Protocol-Version"

Mirrors = Callable[[str], Mapping[str, tuple[str, ...]]]
"""Returns the mirrored arguments of a tool, with the path of each, by the name of the tool."""


class ClientSessionState:
    """The state of one client that HTTP headers carry."""

    def __init__(self) -> None:
        self.session: str | None = None
        """The id of the session, if the server has sessions."""
        self.mirrors: Mirrors | None = None
        self._negotiated_revision: str | None = None  # from `initialize`
        self._request_revision: str | None = None  # from the last request with a revision of its own

    def message_headers(self, message: SentMessage) -> dict[str, str]:
        """Return the headers of one message. Raise `LocalProtocolError` for arguments that no header can carry."""
        version = message.revision
        if version is not None:
            self._request_revision = version
            return self._request_headers(message, version)
        if message.method == INITIALIZE:
            return {}
        if self._negotiated_revision is None and self._request_revision is not None:
            return {_VERSION: self._request_revision, "Mcp-Method": message.method or ""}
        return self.session_headers()

    def _request_headers(self, message: SentMessage, version: str) -> dict[str, str]:
        """Return the headers of a request with a revision: "MUST include the request metadata headers on each POST"."""
        method = message.method or ""
        headers = {_VERSION: version, "Mcp-Method": method}
        name = message.name
        if name is None:
            return headers
        try:
            headers["Mcp-Name"] = _encoded(name)
            mirrored = self.mirrors(name) if self.mirrors is not None and method == "tools/call" else None
            if mirrored and message.params is not None:
                headers |= parameter_headers(mirrored, bytes(message.params.arguments))
        except ValueError as exc:
            raise LocalProtocolError(f"{method} of {name!r:.100} cannot be sent over HTTP: {exc}") from exc
        return headers

    def session_headers(self) -> dict[str, str]:
        """Return the headers of the session."""
        headers = {} if self.session is None else {SESSION: self.session}
        if self._negotiated_revision is not None:
            headers[_VERSION] = self._negotiated_revision
        return headers

    def on_initialize_response(self, response: ClientResponse) -> None:
        """Set the session from the HTTP response to `initialize`."""
        id = response.headers.get(SESSION)
        # "The session ID MUST only contain visible ASCII characters"
        self.session = id if id and id.isascii() and id.isprintable() and " " not in id else None

    def on_initialize_result(self, answer: bytes) -> None:
        """Set the revision from the result of `initialize`."""
        self._negotiated_revision = negotiated_revision(answer) or None
