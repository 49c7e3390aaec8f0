"""A request of the client, for the handler of a scenario."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from accord.check.clients.conversation import ClientConversation, ReplyChannel
from accord.check.clients.features import INFO
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, SERVER_INFO
from accord.messages.revision import Rules

_CACHED = frozenset(
    ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
)


class IncomingRequest:
    """A request of the client. `index` counts the requests with its method in this run, from 0; `answer` returns the
    default response.
    """

    def __init__(
        self,
        conversation: ClientConversation,
        request: JSONObject,
        way: ReplyChannel,
        turn: int,
        answer: Callable[[IncomingRequest], Awaitable[JSONObject]],
    ) -> None:
        self.conversation: ClientConversation = conversation
        self.request: JSONObject = request
        self.channel: ReplyChannel = way
        self.index: int = turn
        self._answer = answer

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
        """The rules of the revision."""
        return self.conversation.rules

    @property
    def client_capabilities(self) -> JSONObject:
        """The client capabilities in this request, or in the handshake."""
        own = self.meta.get(CLIENT_CAPABILITIES)
        return own if isinstance(own, dict) else self.conversation.client_capabilities

    @property
    def trap_url(self) -> str:
        """A URL that no client should fetch."""
        return self.conversation.server.trap_url

    async def default_result(self) -> JSONObject:
        """Return the default result. Raises `ScriptedError`."""
        return await self._answer(self)

    def build_response(self, result: Any) -> JSONObject:
        """Return the whole response with this result."""
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def with_result_fields(self, result: JSONObject) -> JSONObject:
        """Return a result with the fields that the revision requires."""
        if not self.rules.result_type:
            return result
        hints = {"ttlMs": 0, "cacheScope": "private"} if self.method in _CACHED else {}
        own = result.get("_meta")
        meta = {SERVER_INFO: INFO, **(own if isinstance(own, dict) else {})}
        return {"resultType": "complete", **hints, **result, "_meta": meta}

    async def send(self, message: Any, *, misbehaved: bool = True) -> None:
        """Send anything before the response: a message, or bytes without changes."""
        await self.conversation.send(message, self.channel, misbehaved=misbehaved)

    async def notify(self, method: str, params: JSONObject | None = None, *, misbehaved: bool = False) -> None:
        """Send a notification before the response."""
        await self.send(build_notification(method, params), misbehaved=misbehaved)

    async def send_request(
        self, method: str, params: JSONObject | None = None, *, id: Any = None, seconds: float = 5.0
    ) -> JSONObject | None:
        """Send a request before the response, and return the response of the client; None after the timeout."""
        return await self.conversation.send_request(method, params, self.channel, id=id, seconds=seconds)

    async def wait_for_cancellation(self, seconds: float = 10.0) -> bool:
        """Wait until the client cancels this request, by a notification or by closing the stream."""
        return await self.conversation.wait_for_cancellation(self.id, seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait, like a slow server."""
        await asyncio.sleep(seconds)


def build_notification(method: str, params: JSONObject | None = None) -> JSONObject:
    """A notification."""
    message: JSONObject = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}
