"""The response to one POST: one JSON body, or events as soon as there is something to say before the answer.

It is the way of what belongs to the request. Who subclasses it says what a stream is (`begin`), and what happens when
the handler waits for the first time (`suspended`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from accord.session.exchange import Exchange
from accord.transport.asgi.answer import Headers, respond
from accord.transport.asgi.request import Receive, Send
from accord.transport.conversation import Conversation
from accord.transport.lead import lead


class Outgoing(Protocol):
    """A stream of messages that has an end."""

    def send(self, message: bytes) -> None:
        """Queue a message."""

    def end(self, message: bytes | None) -> None:
        """Queue the last one, if there is one."""

    async def drain(self) -> None:
        """Return when little is left to write."""


class Post:
    """One POST that brought a request."""

    __slots__ = ("conversation", "exchange", "headers", "out", "receive", "response", "writing")

    name = "HTTP"

    def __init__(self, exchange: Exchange, conversation: Conversation, receive: Receive, response: Send) -> None:
        self.exchange: Exchange = exchange
        self.conversation: Conversation = conversation
        self.receive: Receive = receive
        self.response: Send = response
        self.headers: Headers = ()
        """Headers of the response, of either kind."""
        self.out: Outgoing | None = None
        self.writing: asyncio.Task[None] | None = None
        """What writes the stream, if there is one."""

    # --- the way of what belongs to the request ----------------------------------------------------------------

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

    # --- from the request to its answer ------------------------------------------------------------------------

    async def serve(self) -> bytes | None:
        """Have the request handled in this task; its answer, or None when it was cancelled."""
        exchange = self.exchange
        exchange.way = self
        try:
            return await lead(self.conversation.answer(exchange), self._suspended)
        except asyncio.CancelledError:
            if exchange.stage == "active" or exchange.driver is None:  # not we, but who runs this task, wants its end
                raise
            exchange.driver.uncancel()
            return None
        finally:
            if exchange.driver is not None:
                self.done()
                exchange.driver = None
            exchange.way = None

    def _suspended(self) -> None:
        """The handler waits for the first time; before that nobody could have cancelled it."""
        self.exchange.driver = asyncio.current_task()
        self.suspended()

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
        raise NotImplementedError

    def written(self, writing: asyncio.Task[None]) -> None:
        """The stream was written to its end, or the client is gone."""

    def suspended(self) -> None:
        """The handler waits for the first time."""

    def done(self) -> None:
        """A handler that has waited has ended."""
