"""What the host has negotiated, so that it can be replayed to the next process.

Two forms exist: a session that begins with `initialize` and keeps a log level and subscriptions, and requests that each
carry revision and capabilities in `_meta`. One connection may use both.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw

from accord.dev.rewriting import declaring_list_changes, edit_result, members
from accord.messages.base import JSONObject
from accord.messages.envelope import Incoming
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import BEFORE_OPENING, PER_REQUEST, RULES, Rules

_PER_REQUEST_MARK = f'"{PROTOCOL_VERSION}"'.encode()


class Handshake(msgspec.Struct):
    """A handshake that has succeeded."""

    params: Raw
    revision: str
    capabilities: JSONObject
    instructions: str | None
    ready: bool = False
    """Whether the host has sent `notifications/initialized`."""


class HostSession:
    """The state of the host's side of the connection."""

    def __init__(self) -> None:
        self.handshake: Handshake | None = None
        self.log_level: str | None = None
        self.uris: dict[str, None] = {}
        """The resources that the host has subscribed to in its session."""
        self._last_params: Raw | None = None

    @property
    def is_known(self) -> bool:
        """Return whether a request can be sent in the name of the host."""
        return self.handshake is not None or self._last_params is not None

    @property
    def rules(self) -> Rules:
        """Return the rules for errors without an id, and for batches."""
        if self.handshake is not None:
            return RULES.get(self.handshake.revision, BEFORE_OPENING)
        return BEFORE_OPENING if self._last_params is None else RULES[PER_REQUEST[-1]]

    def note_request(self, message: bytes, incoming: Incoming) -> bool:
        """Remember a request that carries its revision. Return whether it does."""
        if _PER_REQUEST_MARK not in message or incoming.params is UNSET:
            return False
        meta = members(incoming.params).get("_meta") if self._last_params is None else None
        if self._last_params is None and not (isinstance(meta, dict) and meta.get(PROTOCOL_VERSION) in PER_REQUEST):
            return False
        self._last_params = incoming.params
        return True

    def request_meta(self) -> JSONObject | None:
        """Return the `_meta` for a request in the name of the host, or None in a session."""
        if self.handshake is not None or self._last_params is None:
            return None
        meta = members(self._last_params).get("_meta")
        kept = meta.items() if isinstance(meta, dict) else ()
        return {key: value for key, value in kept if key.startswith("io.modelcontextprotocol/client")} | {
            PROTOCOL_VERSION: dict(kept).get(PROTOCOL_VERSION, PER_REQUEST[-1])
        }

    @property
    def revision(self) -> str:
        """Return the revision of the connection."""
        return self.handshake.revision if self.handshake is not None else PER_REQUEST[-1]

    def note_result(self, method: str, params: Raw, message: bytes) -> bytes:
        """Remember the effect of a successful request on the session. Return the response for the host."""
        if method == "initialize":
            return self._note_handshake(params, message)
        if method == "logging/setLevel":
            self.log_level = members(params).get("level")
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            uri = str(members(params).get("uri"))
            self.uris.pop(uri, None)
            if method == "resources/subscribe":
                self.uris[uri] = None
        return message

    def _note_handshake(self, params: Raw, message: bytes) -> bytes:
        def note(result: JSONObject) -> JSONObject:
            capabilities, instructions = result.get("capabilities"), result.get("instructions")
            self.handshake = Handshake(
                params,
                str(result.get("protocolVersion")),
                capabilities if isinstance(capabilities, dict) else {},
                instructions if isinstance(instructions, str) else None,
            )
            self.log_level, self.uris = None, {}
            return declaring_list_changes(result)

        return edit_result(message, note)
