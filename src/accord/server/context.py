"""What a handler may know and do about the request it serves."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Protocol

from accord.messages import codec
from accord.messages.meta import Params

if TYPE_CHECKING:
    from accord.messages.content import ResourceContents
    from accord.messages.envelope import RequestId
    from accord.messages.identity import Implementation
    from accord.server.dispatch import Dispatch
    from accord.server.server import Server
    from accord.session.exchange import Exchange
    from accord.session.session import Session


class Done:
    """Something that has happened already; awaiting it changes nothing."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE = Done()


class Line(Protocol):
    """The way back to the peer that a context needs; a connection is one."""

    session: Session

    def report(self, exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
        """Send progress."""


class Context:
    """Filled in for a parameter annotated with it: `async def forecast(city: str, ctx: Context)`.

    It is good for one call; it is never part of the tool's schema.
    """

    __slots__ = ("_dispatch", "_exchange", "_line", "server")

    def __init__(self, server: Server, dispatch: Dispatch, exchange: Exchange, line: Line) -> None:
        self.server: Server = server
        self._dispatch = dispatch
        self._exchange = exchange
        self._line = line

    @property
    def request_id(self) -> RequestId:
        """The id of the request, with its JSON type."""
        return self._exchange.id

    @property
    def revision(self) -> str:
        """The revision this request is served in: "2025-11-25"."""
        return self._exchange.rules.revision

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request, as it came."""
        return codec.decode_params(Params, self._exchange.params).meta or {}

    @property
    def client(self) -> Implementation | None:
        """What the client says it is. For display and logs, never for decisions."""
        if self._exchange.meta is not None and self._exchange.meta.client_info is not None:
            return self._exchange.meta.client_info
        peer = self._line.session.peer
        return peer.info if peer is not None else None

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> Done:
        """Tell the client how far this is (basic, Progress). Nothing happens where it did not ask to be told.

        `progress` must grow from call to call; reports that come faster than the limit allows are coalesced. Works
        from a plain `def` handler too. It never waits: `await` on it is allowed, not needed.
        """
        self._line.report(self._exchange, progress, total, message)
        return _DONE

    async def read_resource(self, uri: str) -> list[ResourceContents]:
        """Read a resource of this server. Raises `ResourceNotFound`, and what its function raises."""
        return await self._dispatch.read(uri, self._exchange, self._line)
