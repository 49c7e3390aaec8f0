"""One HTTP request of a client, as the proxy passes it on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from msgspec import UNSET, Raw

from accord.dev.exchange import Exchange
from accord.dev.http_upstream import UpstreamLost, UpstreamRefused
from accord.dev.rewriting import members, with_id
from accord.messages import envelope
from accord.messages.base import JSONObject, RequestId
from accord.messages.envelope import MalformedMessage
from accord.messages.meta import PROTOCOL_VERSION
from accord.transport.asgi.request import Receive, Scope
from accord.wire.headers import NAME, PARAM_PREFIX, encode_value, mirrored, parameter_headers

_LAST_EVENT_ID = b"last-event-id"


class ProxiedRequest:
    """A request, and how far its response is."""

    def __init__(self, scope: Scope, body: bytes) -> None:
        self.method: str = scope["method"]
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        self.target: bytes = scope.get("raw_path", scope["path"].encode()) + query
        self.headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self.body: bytes = body
        self.exchange: Exchange | None = None
        """The JSON-RPC request in the body."""
        self.notification: str | None = None
        self.cancelled_id: RequestId | None = None
        """The id of the request that the body cancels."""
        self.is_answer: bool = False
        """Whether the body answers a question of a process."""
        self.answer: bytes = b""
        """The JSON-RPC response that the client has received."""
        self.status: int = 0
        """The HTTP status that the client has received; 0 before."""
        self.has_started: bool = False
        self.is_event_stream: bool = False
        self.last_event_id: bytes = b""
        self.endpoint: bytes = b""
        """The URL that the client posts to, if this is the stream of HTTP+SSE: it stays with its process."""
        self.stopped: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        """What ends the response, or None for a stream that moves to the current process."""
        self._is_repeated = False
        if self.method == "POST":
            self._classify()

    @property
    def is_stream(self) -> bool:
        """Return whether the response stays open until the client closes it."""
        return self.method == "GET" or (self.exchange is not None and self.exchange.is_listening)

    @property
    def is_accepted(self) -> bool:
        """Return whether the response to the request comes elsewhere: on the stream of HTTP+SSE."""
        return self.status == 202

    def _classify(self) -> None:
        try:
            incoming = envelope.read(self.body)
        except MalformedMessage:
            return
        if incoming.method is UNSET:
            self.is_answer = True
        elif incoming.id is UNSET or incoming.id is None:
            self.notification = incoming.method
            if incoming.method == "notifications/cancelled":
                self.cancelled_id = _request_id(members(incoming.params))
        else:
            params = incoming.params if incoming.params is not UNSET else Raw(b"{}")
            per_request = PROTOCOL_VERSION.encode() in self.body
            self.exchange = Exchange(incoming.id, incoming.method, self.body, params, per_request)

    def call(self, params: JSONObject, schema: Any) -> None:
        """Replace the call by one of another tool, whose input schema tells which arguments are repeated in headers."""
        assert self.exchange is not None
        self.body = with_id(envelope.read(self.body), self.exchange.id, params)
        if any(name == NAME for name, _ in self.headers):
            repeated = {NAME: encode_value(params["name"])}
            with suppress(ValueError):  # a schema that repeats nothing
                found = parameter_headers(mirrored(schema), params["arguments"])
                repeated |= {name.lower().encode(): value for name, value in found.items()}
            others = [each for each in self.headers if each[0] != NAME and not each[0].startswith(PARAM_PREFIX)]
            self.headers = others + [(name, value.encode()) for name, value in repeated.items()]

    def resumed_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers, with the id of the last event that the client has received."""
        if not self.last_event_id:
            return self.headers
        return [each for each in self.headers if each[0] != _LAST_EVENT_ID] + [(_LAST_EVENT_ID, self.last_event_id)]

    def may_repeat(self, failure: UpstreamLost) -> bool:
        """Return whether the request may be sent again, once: it was not received, or changes nothing."""
        is_first, self._is_repeated = not (self._is_repeated or self.has_started), True
        is_safe = self.exchange is not None and self.exchange.is_repeatable
        return is_first and (is_safe or isinstance(failure, UpstreamRefused))

    def stop(self, final: bytes | None) -> None:
        """End the response, or move the stream."""
        if not self.stopped.done():
            self.stopped.set_result(final)

    def resume(self) -> None:
        """Note that the stream has moved, and may be stopped again."""
        self.stopped = asyncio.get_running_loop().create_future()


def _request_id(params: JSONObject) -> RequestId | None:
    id = params.get("requestId")
    return id if isinstance(id, str | int) else None


async def wait_disconnect(receive: Receive) -> None:
    """Wait until the client closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
