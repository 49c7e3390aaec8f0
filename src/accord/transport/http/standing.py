"""Where a client stands with a server: its session and revision, and the headers that say so on each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from accord.errors import LocalProtocolError
from accord.transport.http.fetcher import SESSION
from accord.transport.http.messages import Outgoing, agreed
from accord.wire.headers import encode_value, parameters

if TYPE_CHECKING:
    from aiohttp import ClientResponse

INITIALIZE = "initialize"

_encoded = lru_cache(maxsize=1_000)(encode_value)

_VERSION = "MCP-Protocol-Version"

Mirrors = Callable[[str], Mapping[str, tuple[str, ...]]]
"""From the name of a tool to the arguments that stand in headers too, by the path to each."""


class Standing:
    """What a client has to say of itself."""

    def __init__(self) -> None:
        self.session: str | None = None
        """The id of the session, if the server keeps one."""
        self.mirrors: Mirrors | None = None
        self._agreed: str | None = None  # what `initialize` agreed on
        self._named: str | None = None  # what the last request named that names its revision itself

    def headers(self, message: Outgoing) -> dict[str, str]:
        """The headers of one message. Raises `LocalProtocolError` for arguments that no header can carry."""
        version = message.version
        if version is not None:
            self._named = version
            return self._of_request(message, version)
        if message.method == INITIALIZE:
            return {}
        if self._agreed is None and self._named is not None:
            return {_VERSION: self._named, "Mcp-Method": message.method or ""}
        return self.of_session()

    def _of_request(self, message: Outgoing, version: str) -> dict[str, str]:
        """Of a request that names its revision: "MUST include the request metadata headers on each POST"."""
        method = message.method or ""
        headers = {_VERSION: version, "Mcp-Method": method}
        name = message.name
        if name is None:
            return headers
        try:
            headers["Mcp-Name"] = _encoded(name)
            mirrored = self.mirrors(name) if self.mirrors is not None and method == "tools/call" else None
            if mirrored and message.params is not None:
                headers |= parameters(mirrored, bytes(message.params.arguments))
        except ValueError as exc:
            raise LocalProtocolError(f"{method} of {name!r:.100} cannot be sent over HTTP: {exc}") from exc
        return headers

    def of_session(self) -> dict[str, str]:
        """The headers of whatever belongs to the session."""
        headers = {} if self.session is None else {SESSION: self.session}
        if self._agreed is not None:
            headers[_VERSION] = self._agreed
        return headers

    def began(self, response: ClientResponse) -> None:
        """`initialize` is being answered: with a session or without."""
        id = response.headers.get(SESSION)
        # "The session ID MUST only contain visible ASCII characters"
        self.session = id if id and id.isascii() and id.isprintable() and " " not in id else None

    def initialized(self, answer: bytes) -> None:
        """`initialize` is answered: with a revision."""
        self._agreed = agreed(answer) or None
