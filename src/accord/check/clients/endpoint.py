"""The scripted server over Streamable HTTP: one endpoint, with sessions and a GET where the revision has them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from accord.check.clients.conversation import Conversation
from accord.check.clients.run import PATH
from accord.check.clients.stand import Stand
from accord.check.clients.web import Exchange, Reply, Site
from accord.check.record import decoded, objects
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
"""Of errors, where a revision tells them by the status too."""

_UNOPENED = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Bad Request: there is no session"}}'


class Endpoint:
    """Serves a stand over HTTP."""

    def __init__(self, stand: Stand) -> None:
        self.stand: Stand = stand
        self._rules = RULES[stand.revision]
        self._sessions: dict[str, Conversation] = {}
        self.site: Site = Site(self._answer, stand.room)

    @property
    def target(self) -> str:
        """The URL for the client."""
        return self.site.url + PATH

    async def open(self) -> None:
        """Listen."""
        await self.site.open()

    async def close(self) -> None:
        """Close the port, and cut every connection."""
        await self.site.close()

    async def _answer(self, exchange: Exchange, reply: Reply) -> None:
        if self.stand.scene.http is not None and await self.stand.scene.http(self, exchange, reply):
            self.stand.turned()
        elif exchange.path != PATH:
            await reply.whole(404)
        elif exchange.verb == "POST":
            await self._post(exchange, reply)
        elif exchange.verb == "GET" and self._rules.handshake:
            await self._get(exchange, reply)
        elif exchange.verb == "DELETE" and self._rules.handshake:
            await reply.whole(204 if self.forget(exchange) else 404)
        else:
            await reply.whole(405, allow="POST")

    # --- messages --------------------------------------------------------------------------------------------------

    async def _post(self, exchange: Exchange, reply: Reply) -> None:
        conversation = self._conversation(exchange)
        if conversation is None:
            await reply.whole(404)
            return
        requests = conversation.hear(exchange.body, exchange.number)
        if not requests:
            await reply.whole(202)
            return
        if self._is_unopened(conversation, exchange):
            conversation.record.add(SENT, _UNOPENED, stream=exchange.number)
            await reply.whole(400, _UNOPENED, content_type=JSON)
            return
        way = Post(self, exchange, reply, len(requests), self._named(conversation) if _opens(exchange) else None)
        reply.on_gone = lambda: conversation.hung_up(*(request.get("id") for request in requests))
        serving = [self.stand.serve(conversation, request, way) for request in requests]
        await asyncio.wait(serving)
        for task in serving:
            task.result()
        if not reply.done:  # nothing came for it: the client waits until it hangs up
            await reply.gone.wait()

    def _conversation(self, exchange: Exchange) -> Conversation | None:
        """That of its session; one that forgets to name its session is taken for the last one, which a rule tells."""
        session = exchange.headers.get("mcp-session-id")
        if not self._rules.handshake:
            return self.stand.conversations[0] if self.stand.conversations else self.stand.conversation()
        if session in self._sessions:
            return self._sessions[session]
        if _opens(exchange) or not self.stand.conversations:
            return self.stand.conversation()
        return self.stand.conversations[-1] if session is None else None

    def _is_unopened(self, conversation: Conversation, exchange: Exchange) -> bool:
        """Whether it stands outside of any session: so a client finds out that it has to open one."""
        return self._rules.handshake and conversation not in self._sessions.values() and not _opens(exchange)

    def _named(self, conversation: Conversation) -> Mapping[str, str]:
        """The header that names a new session."""
        if not self._rules.handshake:
            return {}
        session = f"check-{conversation.number}-{id(self):x}"
        self._sessions[session] = conversation
        return {"Mcp_Session_Id": session}

    def forget(self, exchange: Exchange) -> bool:
        """End the session of a request, as if the server had been started anew; whether there was one."""
        return self._sessions.pop(exchange.headers.get("mcp-session-id", ""), None) is not None

    @property
    def streams(self) -> bool:
        """Whether answers come as streams by themselves."""
        return self.stand.scene.stream

    def status(self, raw: bytes) -> int:
        """The status for an answer that is alone in its body."""
        if self._rules.handshake:
            return 200
        return next((_STATUS.get(code, 200) for code in _codes(raw)), 200)

    async def _get(self, exchange: Exchange, reply: Reply) -> None:
        conversation = self._sessions.get(exchange.headers.get("mcp-session-id", ""))
        if conversation is None:
            await reply.whole(404)
            return
        await reply.begin(200, content_type=EVENTS, cache_control="no-store")
        await reply.piece(b":\n\n")
        conversation.standing = Standing(exchange, reply)
        await reply.gone.wait()


class Post:
    """The response to one POST: JSON where the answer comes first, else a stream of events."""

    def __init__(
        self,
        endpoint: Endpoint,
        exchange: Exchange,
        reply: Reply,
        answers: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._answers = answers
        self._headers = headers or {}
        self.reply: Reply = reply
        """For scenes that want to say it in bytes."""
        self.stream: int = exchange.number
        """The number of the request."""

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        self._answers -= last
        if self.reply.done:
            return
        if last and not self.reply.begun and not self._answers and not self._endpoint.streams:
            status = self._endpoint.status(raw)
            await self.reply.whole(status, raw, content_type=JSON, **self._headers)
        else:
            await self.begin()
            await self.event(raw)
            if last and not self._answers:
                await self.reply.end()

    async def begin(self, **headers: str) -> None:
        """Begin the stream, if it has not begun."""
        if not self.reply.begun:
            kinds = {"content_type": EVENTS, "cache_control": "no-store"}
            await self.reply.begin(200, **kinds, **self._headers, **headers)

    async def event(self, data: bytes, **fields: Any) -> None:
        """One event: `id`, `retry`, `event` as they are given."""
        await self.reply.piece(encode(data, **fields))

    async def drop(self) -> None:
        """Cut the connection."""
        self.reply.cut()


class Standing:
    """The stream of what belongs to no request."""

    def __init__(self, exchange: Exchange, reply: Reply) -> None:
        self.reply: Reply = reply
        self.stream: int = exchange.number

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        if not self.reply.gone.is_set():
            await self.reply.piece(encode(raw))

    async def drop(self) -> None:
        self.reply.cut()


def _opens(exchange: Exchange) -> bool:
    return any(each.get("method") == "initialize" for each in objects(decoded(exchange.body)))


def _codes(raw: bytes) -> list[Any]:
    return [each["error"].get("code") for each in objects(decoded(raw)) if isinstance(each.get("error"), dict)]
