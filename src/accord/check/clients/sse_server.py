"""The scripted server over HTTP+SSE (2024-11-05): streams for messages to the client, and an endpoint for each."""

from __future__ import annotations

import secrets

from accord.check.clients.conversation import ClientConversation
from accord.check.clients.http_listener import ClientExchange, HTTPListener, ScriptedResponse
from accord.check.clients.http_server import EVENTS
from accord.check.clients.scripted_server import ScriptedServer
from accord.wire.sse import encode

STREAM_PATH = "/sse"
"""The usual path of the stream, by which clients recognize this transport."""
_MESSAGES = "/messages"


class ScriptedSSEServer:
    """Serves a `ScriptedServer` over HTTP+SSE. `endpoint_paths` are the endpoints of its streams."""

    def __init__(self, stand: ScriptedServer) -> None:
        self.server: ScriptedServer = stand
        self.listener: HTTPListener = HTTPListener(self._answer, stand.memory)
        self.endpoint_paths: dict[str, SSEReplyChannel] = {}

    @property
    def path(self) -> str:
        """The path of the stream."""
        return self.server.scenario.path or STREAM_PATH

    @property
    def target(self) -> str:
        """The URL for the client."""
        return self.listener.url + self.path

    async def open(self) -> None:
        """Listen."""
        await self.listener.open()

    async def close(self) -> None:
        """Close the port and all connections."""
        await self.listener.close()

    def new_endpoint_path(self) -> str:
        """Return a new endpoint."""
        return f"{_MESSAGES}?session_id={secrets.token_urlsafe()}"

    async def open_stream(
        self, exchange: ClientExchange, response: ScriptedResponse, place: str, *beginning: bytes
    ) -> None:
        """Open a stream with these first chunks; messages to the endpoint belong to it."""
        conversation = self.server.add_conversation()
        way = self.endpoint_paths[place] = SSEReplyChannel(exchange, response, conversation)
        conversation.background_channel = way
        await response.start(200, content_type=EVENTS, cache_control="no-store")
        for piece in beginning:
            await response.send_chunk(piece)
        await response.client_closed.wait()

    async def _answer(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        if self.server.scenario.http is not None and await self.server.scenario.http(self, exchange, response):
            self.server.mark_intervention()
        elif exchange.verb == "GET" and exchange.path == self.path:
            place = self.new_endpoint_path()
            await self.open_stream(exchange, response, place, encode(place.encode(), event="endpoint"))
        elif exchange.path == self.path:
            await response.send(405, allow="GET")
        else:
            await self._receive(exchange, response)

    async def _receive(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        """Handle a message: "All subsequent client messages MUST be sent as HTTP POST requests to this endpoint"."""
        way = self._stream_of(exchange)
        if way is None or way.closed or exchange.verb != "POST":
            await response.send(404)
            return
        await response.send(202, b"Accepted", content_type="text/plain")
        for request in way.conversation.receive(exchange.body, exchange.number):
            self.server.serve(way.conversation, request, way)

    def _stream_of(self, exchange: ClientExchange) -> SSEReplyChannel | None:
        """Return the session of a message; without the query, that of the last stream, which a rule reports."""
        if exchange.target == _MESSAGES and self.endpoint_paths:
            return [*self.endpoint_paths.values()][-1]
        return self.endpoint_paths.get(exchange.target)


class SSEReplyChannel:
    """One stream and its session."""

    def __init__(self, exchange: ClientExchange, response: ScriptedResponse, conversation: ClientConversation) -> None:
        self.response: ScriptedResponse = response
        self.conversation: ClientConversation = conversation
        self.stream: int = exchange.number

    @property
    def closed(self) -> bool:
        """Whether the stream is closed."""
        return self.response.is_finished or self.response.client_closed.is_set()

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        if not self.closed:
            await self.response.send_chunk(encode(raw, event="message"))

    async def abort(self) -> None:
        """Close the connection."""
        self.response.abort()
