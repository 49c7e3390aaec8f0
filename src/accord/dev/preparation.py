"""The requests that the relay itself sends to a process: the replay of the host's session, and its lists.

The surface of a process is known when its lists are. A list that the process refuses counts as empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from accord.check.surface.surface import LISTS
from accord.dev.host_session import HostSession
from accord.dev.rewriting import LIST_METHODS, members, notification, request
from accord.messages.base import JSONObject, RequestId
from accord.messages.envelope import Incoming

_MOST_PAGES = 1_000


class PreparationFailed(Exception):
    """The process cannot continue the session of the host."""


class Preparation:
    """The replay of a session to one process, and the listing of its surface.

    `replays` is whether the handshake and the state of the session are sent first; otherwise the process has them.
    Each method returns the messages to send.
    """

    def __init__(self, session: HostSession, new_id: Callable[[], RequestId], *, replays: bool) -> None:
        self.done: bool = False
        self.level: str | None = None
        self.uris: dict[str, None] = {}
        """The log level and the subscriptions that were replayed."""
        self._session = session
        self._new_id = new_id
        self._replays = replays
        self._waiting: dict[RequestId, tuple[str, int]] = {}  # method and page
        self._capabilities: JSONObject = session.handshake.capabilities if session.handshake is not None else {}
        self._instructions: str | None = session.handshake.instructions if session.handshake is not None else None
        self._items: dict[str, JSONObject] = {kind: {} for kind in LISTS}

    def owns(self, id: object) -> bool:
        """Return whether a response belongs to a request of this preparation."""
        return id in self._waiting

    @property
    def surface(self) -> JSONObject:
        """Return the surface, for `surface_changes`."""
        return {
            "revision": self._session.revision,
            "instructions": self._instructions,
            "capabilities": self._capabilities,
            **self._items,
        }

    def begin(self) -> list[bytes]:
        """Begin with the handshake, or with the lists."""
        handshake = self._session.handshake
        if handshake is None:
            return [self._request("server/discover")]
        if self._replays:
            return [self._request("initialize", handshake.params)]
        return self._lists()

    def receive(self, incoming: Incoming) -> list[bytes]:
        """Process a response. Raises `PreparationFailed`."""
        method, page = self._waiting.pop(incoming.id)  # type: ignore[arg-type]
        result = members(incoming.result)
        if method == "initialize":
            return self._initialized(incoming, result)
        if method == "server/discover":
            self._note_server(result)
            return self._lists()
        messages = self._page(method, page, result) if method in LIST_METHODS else []
        self.done = not self._waiting
        return messages

    def _initialized(self, incoming: Incoming, result: JSONObject) -> list[bytes]:
        if incoming.error is not UNSET:
            raise PreparationFailed(f"it refused the handshake: {members(incoming.error).get('message')}")
        revision = result.get("protocolVersion")
        if revision != self._session.revision:
            raise PreparationFailed(
                f"it chose the revision {revision!r}, and the session of the host has {self._session.revision}; "
                "reconnect the host"
            )
        self._note_server(result)
        return [notification("notifications/initialized"), *self._state(), *self._lists()]

    def _note_server(self, result: JSONObject) -> None:
        capabilities, instructions = result.get("capabilities"), result.get("instructions")
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        self._instructions = instructions if isinstance(instructions, str) else None

    def _state(self) -> list[bytes]:
        """Return the requests that restore the log level and the subscriptions."""
        self.level, self.uris = self._session.log_level, dict(self._session.uris)
        messages = []
        if self.level is not None and self._capabilities.get("logging") is not None:
            messages.append(self._request("logging/setLevel", {"level": self.level}))
        messages += [self._request("resources/subscribe", {"uri": uri}) for uri in self.uris]
        return messages

    def _lists(self) -> list[bytes]:
        methods = [
            method
            for method, kind in LIST_METHODS.items()
            if self._capabilities.get(LISTS[kind].capability) is not None
        ]
        messages = [self._request(method) for method in methods]
        self.done = not self._waiting
        return messages

    def _page(self, method: str, page: int, result: JSONObject) -> list[bytes]:
        kind = LIST_METHODS[method]
        found = self._items[kind]
        items = result.get(kind)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and isinstance(name := item.get(LISTS[kind].key), str):
                found[name] = item
        cursor = result.get("nextCursor")
        if isinstance(cursor, str) and page < _MOST_PAGES:
            return [self._request(method, {"cursor": cursor}, page + 1)]
        return []

    def _request(self, method: str, params: Any = None, page: int = 1) -> bytes:
        id = self._new_id()
        self._waiting[id] = method, page
        meta = self._session.request_meta()
        if meta is not None and not isinstance(params, msgspec.Raw):
            params = {**(params or {}), "_meta": meta}
        return request(id, method, params)
