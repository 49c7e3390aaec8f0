"""The response to one POST: one JSON body, or events as soon as there is something to say before the answer.

It is the way of what belongs to the request. Who subclasses it says what a stream is (`begin`), and what happens when
the handler waits for the first time (`suspended`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol

from accord.session.exchange import Exchange
from accord.transport.asgi.answer import Headers, respond
from accord.transport.asgi.request import Receive, Send
from accord.transport.conversation import Conversation
from accord.transport.patience import rest


class Outgoing(Protocol):
    """A stream of messages that has an end."""

    def send(self, message: bytes) -> None:
        """Queue a message."""

    def end(self, message: bytes | None) -> None:
        """Queue the last one, if there is one."""

    async def drain(self) -> None:
        """Return when little is left to write."""


class Response:
    """The response to one POST, whatever that brought."""

    __slots__ = ("conversation", "headers", "out", "receive", "response", "writing")

    name = "HTTP"

    def __init__(self, conversation: Conversation, receive: Receive, response: Send) -> None:
        self.conversation: Conversation = conversation
        self.receive: Receive = receive
        self.response: Send = response
        self.headers: Headers = ()
        """Headers of the response, of either kind."""
        self.out: Outgoing | None = None
        self.writing: asyncio.Task[None] | None = None
        """What writes the stream, if there is one."""

    # --- the way of what belongs to the POST -------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        self.stream().send(message)

    def stream(self) -> Outgoing:
        """The stream, begun if it was not."""
        if self.out is None:
            self.out, writes = self.begin()
            self.writing = asyncio.get_running_loop().create_task(writes)
            self.writing.add_done_callback(self.written)
        return self.out

    def flush(self) -> None:
        """Nothing is held."""

    async def drain(self) -> None:
        if self.out is not None:
            await self.out.drain()

    async def finish(self, message: bytes | None, status: int = 200) -> None:
        """Send the answer, and end the response."""
        if self.out is None and message is not None:
            return await respond(self.response, status, message, self.headers)
        self.stream().end(message)  # one without events, where there is nothing to say
        if self.writing is not None:
            await self.writing
        return None

    # --- what is different from era to era ---------------------------------------------------------------------

    def begin(self) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
        """A stream, and what writes it to its end."""
        raise NotImplementedError  # each era has a stream of its own

    def written(self, writing: asyncio.Task[None]) -> None:
        """The stream was written to its end, or the client is gone."""


class Post(Response):
    """The response to a POST that brought one request."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange, conversation: Conversation, receive: Receive, response: Send) -> None:
        super().__init__(conversation, receive, response)
        self.exchange: Exchange = exchange

    async def serve(self) -> bytes | None:
        """Have the request handled in this task; its answer, or None when it was cancelled."""
        self.exchange.way = self
        answer = self.conversation.answer(self.exchange)
        try:
            waits_for = answer.send(None)
        except StopIteration as done:  # most handlers never wait, and so never need what is for those that do
            message: bytes | None = done.value
            return message
        else:
            return await self._wait(answer, waits_for)
        finally:
            self.exchange.way = None

    async def _wait(self, answer: Coroutine[Any, Any, bytes | None], waits_for: Any) -> bytes | None:
        """From the first wait of the handler on, until which nobody could have cancelled it."""
        self.exchange.driver = asyncio.current_task()
        self.suspended()
        try:
            return await unless_cancelled(self.exchange, rest(answer, waits_for))
        finally:
            self.exchange.driver = None
            self.done()

    def suspended(self) -> None:
        """The handler waits for the first time."""

    def done(self) -> None:
        """A handler that has waited has ended."""


async def unless_cancelled(exchange: Exchange, answer: Awaitable[bytes | None]) -> bytes | None:
    """The answer to a request that this task, its `driver`, serves; None where the request was cancelled meanwhile."""
    try:
        return await answer
    except asyncio.CancelledError:
        if exchange.stage == "active":  # not we, but who runs this task, wants its end
            raise
        exchange.driver.uncancel()
        return None
