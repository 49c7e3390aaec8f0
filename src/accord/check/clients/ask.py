"""One request of the client while it is answered: what a scene has in hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.check.clients.offer import INFO
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, SERVER_INFO
from accord.messages.revision import Rules

if TYPE_CHECKING:
    from accord.check.clients.conversation import Conversation

_CACHED = frozenset(
    ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
)


class Way(Protocol):
    """Where what we say goes: the stdout of a server, or the response to one POST."""

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        """Send one message; `last` says that it is the answer."""

    async def drop(self) -> None:
        """End the connection, or the stream, without an answer: as a server that dies."""


class Ask:
    """A request of the client. `turn` counts those of its method in this run, from 0."""

    def __init__(self, conversation: Conversation, request: JSONObject, way: Way, turn: int) -> None:
        self.conversation: Conversation = conversation
        self.request: JSONObject = request
        self.way: Way = way
        self.turn: int = turn

    @property
    def id(self) -> Any:
        """Its id."""
        return self.request.get("id")

    @property
    def method(self) -> str:
        """Its method."""
        return str(self.request.get("method"))

    @property
    def params(self) -> JSONObject:
        """Its params, empty where it has none."""
        params = self.request.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def meta(self) -> JSONObject:
        """Its `_meta`, empty where it has none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def rules(self) -> Rules:
        """How the revision behaves."""
        return self.conversation.rules

    @property
    def declared(self) -> JSONObject:
        """The capabilities of the client, as this request or the handshake has them."""
        own = self.meta.get(CLIENT_CAPABILITIES)
        return own if isinstance(own, dict) else self.conversation.declared

    @property
    def trap(self) -> str:
        """A URL of ours that no client should fetch."""
        return self.conversation.stand.trap

    async def usual(self) -> JSONObject:
        """What a good server answers. Raises `Refuse`."""
        return await self.conversation.stand.usual(self)

    def answer(self, result: Any) -> JSONObject:
        """The whole answer with this result, exactly as it is."""
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def dressed(self, result: JSONObject) -> JSONObject:
        """A result with what the revision puts around it."""
        if not self.rules.result_type:
            return result
        hints = {"ttlMs": 0, "cacheScope": "private"} if self.method in _CACHED else {}
        own = result.get("_meta")
        meta = {SERVER_INFO: INFO, **(own if isinstance(own, dict) else {})}
        return {"resultType": "complete", **hints, **result, "_meta": meta}

    async def say(self, message: Any, *, misbehaved: bool = True) -> None:
        """Send anything before the answer: a message, or bytes as they are."""
        await self.conversation.say(message, self.way, misbehaved=misbehaved)

    async def tell(self, method: str, params: JSONObject | None = None, *, misbehaved: bool = False) -> None:
        """Send a notification before the answer."""
        await self.say(notification(method, params), misbehaved=misbehaved)

    async def ask(
        self, method: str, params: JSONObject | None = None, *, id: Any = None, seconds: float = 5.0
    ) -> JSONObject | None:
        """Send a request before the answer, and wait: the client's answer, or None where none came in time."""
        return await self.conversation.ask(method, params, self.way, id=id, seconds=seconds)

    async def cancelled(self, seconds: float = 10.0) -> bool:
        """Wait until the client gives this request up, by a notification or by closing the stream."""
        return await self.conversation.given_up(self, seconds)

    async def wait(self, seconds: float) -> None:
        """Let time pass, as a slow server does."""
        await asyncio.sleep(seconds)


def notification(method: str, params: JSONObject | None = None) -> JSONObject:
    """A notification."""
    message: JSONObject = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def encoded(message: Any) -> bytes:
    """A message as bytes; bytes as they are."""
    return message if isinstance(message, bytes) else msgspec.json.encode(message)
