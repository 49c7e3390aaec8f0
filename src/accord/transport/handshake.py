"""Opening a connection as a client, in bounded time; what is said meanwhile is the session's business."""

from __future__ import annotations

import asyncio

from accord.errors import AccordError, ConnectError
from accord.limits import Limits
from accord.session import events
from accord.session.handshake import ClientHandshake
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.base import Transport

_AWAITED = {
    Phase.NEW: "anything",
    Phase.DISCOVERING: "server/discover",
    Phase.INITIALIZING: "initialize",
    Phase.OPEN: "in time",
    Phase.CLOSED: "any more",
}


class HandshakeDriver:
    """How the opening of one connection goes. `revision` is set once it is open."""

    def __init__(self, session: Session, transport: Transport, limits: Limits) -> None:
        self._session = session
        self._transport = transport
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self.revision: asyncio.Future[str] = self._loop.create_future()

    async def open(self, *, handshake: bool) -> str:
        """Open as a client; the revision agreed on. Raises `ConnectError` or `ConnectionLost`."""
        session, seconds, begin = self._session, self._limits.connect_seconds, self._session.handshake
        assert isinstance(begin, ClientHandshake)
        self._transport.send(begin.start(handshake=handshake))
        knock = self._loop.call_later(self._limits.probe_seconds, self._on_probe_timeout, begin)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self.revision)
        except TimeoutError as exc:
            raise ConnectError(
                f"{self._transport.name} did not answer {_AWAITED[session.phase]} in {seconds:g} s"
            ) from exc
        finally:
            knock.cancel()

    def _on_probe_timeout(self, opening: ClientHandshake) -> None:
        message = opening.on_probe_timeout()
        if message is not None:
            self._transport.send(message)

    def on_opened(self, event: events.ConnectionOpened) -> None:
        """Both sides agree."""
        if event.reply is not None:
            self._transport.send(event.reply)
        if not self.revision.done():
            self.revision.set_result(event.revision)

    def on_failed(self, event: events.HandshakeFailed) -> None:
        """The server cannot or will not be opened."""
        name, why = self._transport.name, str(event.error)
        error = ConnectError(why if name in why else f"{name}: {why}")
        error.__cause__ = event.error
        self.fail(error)

    def fail(self, error: AccordError) -> None:
        """It will not be open any more, if it is not by now."""
        if not self.revision.done():
            self.revision.set_exception(error)
            self.revision.exception()  # seen: nobody may be waiting
