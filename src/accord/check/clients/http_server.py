"""The scripted server over Streamable HTTP: one endpoint, with sessions and GET if the revision has them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from accord.check.clients.conversation import ClientConversation
from accord.check.clients.http_listener import ClientExchange, HTTPListener, ScriptedResponse
from accord.check.clients.run import PATH
from accord.check.clients.scripted_server import ScriptedServer
from accord.check.probes.message_log import decode_json, message_objects
from accord.errors import HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION
from accord.messages.revision import RULES
from accord.wire.sse import encode
from accord.wire.transcript import SENT

JSON, EVENTS = "application/json", "text/event-stream"

_STATUS: Mapping[Any, int] = {
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""The HTTP status of errors, in revisions that define it."""

_NO_SESSION = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Bad Request: there is no session"}}'


class ScriptedHTTPServer:
    """Serves a `ScriptedServer` over HTTP."""

    def __init__(self, stand: ScriptedServer) -> None:
        self.server: ScriptedServer = stand
        self._rules = RULES[stand.revision]
        self._sessions: dict[str, ClientConversation] = {}
        self.listener: HTTPListener = HTTPListener(self._answer, stand.memory)

    @property
    def target(self) -> str:
        """The URL for the client."""
        return self.listener.url + PATH

    async def open(self) -> None:
        """Listen."""
        await self.listener.open()
        if self.server.authorization is not None:
            await self.server.authorization.open(self.listener.url)

    async def close(self) -> None:
        """Close the ports and all connections."""
        await self.listener.close()
        if self.server.authorization is not None:
            await self.server.authorization.close()

    async def _answer(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        if self.server.scenario.http is not None and await self.server.scenario.http(self, exchange, response):
            self.server.mark_intervention()
        elif self.server.authorization is not None and await self.server.authorization.answer(exchange, response):
            return
        elif exchange.path != PATH:
            await response.send(404)
        elif exchange.verb == "POST":
            await self._post(exchange, response)
        elif exchange.verb == "GET" and self._rules.handshake:
            await self._get(exchange, response)
        elif exchange.verb == "DELETE" and self._rules.handshake:
            await response.send(204 if self.end_session(exchange) else 404)
        else:
            await response.send(405, allow="POST")

    # --- messages --------------------------------------------------------------------------------------------------

    async def _post(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        conversation = self._conversation(exchange)
        if conversation is None:
            await response.send(404)
            return
        requests = conversation.receive(exchange.body, exchange.number)
        if not requests:
            await response.send(202)
            return
        if self._lacks_session(conversation, exchange):
            conversation.log.add(SENT, _NO_SESSION, stream=exchange.number)
            await response.send(400, _NO_SESSION, content_type=JSON)
            return
        way = PostReplyChannel(
            self,
            exchange,
            response,
            len(requests),
            self._session_header(conversation) if _has_initialize(exchange) else None,
        )
        response.on_client_close = lambda: conversation.close_streams(*(request.get("id") for request in requests))
        serving = [self.server.serve(conversation, request, way) for request in requests]
        await asyncio.wait(serving)
        for task in serving:
            task.result()
        if not response.is_finished:  # nothing came for it: the client waits until it hangs up
            await response.client_closed.wait()

    def _conversation(self, exchange: ClientExchange) -> ClientConversation | None:
        """Return the session of a request; without a session id, the last one, which a rule reports."""
        session = exchange.headers.get("mcp-session-id")
        if not self._rules.handshake:
            return self.server.conversations[0] if self.server.conversations else self.server.add_conversation()
        if session in self._sessions:
            return self._sessions[session]
        if _has_initialize(exchange) or not self.server.conversations:
            return self.server.add_conversation()
        return self.server.conversations[-1] if session is None else None

    def _lacks_session(self, conversation: ClientConversation, exchange: ClientExchange) -> bool:
        """Return whether a request is outside a session, so that the client learns that it must initialize."""
        return self._rules.handshake and conversation not in self._sessions.values() and not _has_initialize(exchange)

    def _session_header(self, conversation: ClientConversation) -> Mapping[str, str]:
        """Return the header with a new session id."""
        if not self._rules.handshake:
            return {}
        session = f"check-{conversation.number}-{id(self):x}"
        self._sessions[session] = conversation
        return {"Mcp_Session_Id": session}

    def end_session(self, exchange: ClientExchange) -> bool:
        """End the session of a request, as after a restart; return whether there was one."""
        return self._sessions.pop(exchange.headers.get("mcp-session-id", ""), None) is not None

    @property
    def streams_answers(self) -> bool:
        """Whether responses are event streams by default."""
        return self.server.scenario.stream

    def status(self, raw: bytes) -> int:
        """Return the status of a response with only one JSON-RPC response."""
        if self._rules.handshake:
            return 200
        return next((_STATUS.get(code, 200) for code in _codes(raw)), 200)

    async def _get(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        conversation = self._sessions.get(exchange.headers.get("mcp-session-id", ""))
        if conversation is None:
            await response.send(404)
            return
        await response.start(200, content_type=EVENTS, cache_control="no-store")
        await response.send_chunk(b":\n\n")
        conversation.background_channel = GetReplyChannel(exchange, response)
        await response.client_closed.wait()


class PostReplyChannel:
    """The response to one POST: JSON if the JSON-RPC response comes first, else an event stream."""

    def __init__(
        self,
        endpoint: ScriptedHTTPServer,
        exchange: ClientExchange,
        response: ScriptedResponse,
        answers: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._server = endpoint
        self._answers = answers
        self._headers = headers or {}
        self.response: ScriptedResponse = response
        """The raw response, for scenarios that write bytes."""
        self.stream: int = exchange.number
        """The number of the request."""

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        self._answers -= last
        if self.response.is_finished:
            return
        if last and not self.response.is_started and not self._answers and not self._server.streams_answers:
            status = self._server.status(raw)
            await self.response.send(status, raw, content_type=JSON, **self._headers)
        else:
            await self.start()
            await self.send_event(raw)
            if last and not self._answers:
                await self.response.end()

    async def start(self, **headers: str) -> None:
        """Start the stream if it has not started."""
        if not self.response.is_started:
            kinds = {"content_type": EVENTS, "cache_control": "no-store"}
            await self.response.start(200, **kinds, **self._headers, **headers)

    async def send_event(self, data: bytes, **fields: Any) -> None:
        """Send one event with the given `id` and `retry`."""
        await self.response.send_chunk(encode(data, **fields))

    async def abort(self) -> None:
        """Close the connection."""
        self.response.abort()


class GetReplyChannel:
    """The stream of messages that belong to no request."""

    def __init__(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        self.response: ScriptedResponse = response
        self.stream: int = exchange.number

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        if not self.response.client_closed.is_set():
            await self.response.send_chunk(encode(raw))

    async def abort(self) -> None:
        self.response.abort()


def _has_initialize(exchange: ClientExchange) -> bool:
    return any(each.get("method") == "initialize" for each in message_objects(decode_json(exchange.body)))


def _codes(raw: bytes) -> list[Any]:
    return [
        each["error"].get("code") for each in message_objects(decode_json(raw)) if isinstance(each.get("error"), dict)
    ]
