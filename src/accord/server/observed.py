"""A server that a telemetry is told of: the requests that it serves, those that it sends, and how long clients stay.

Made in the place of the plain parts where `Server(telemetry=...)` asks for it, so that others pay nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import UNSET, Raw

from accord.errors import ProtocolError
from accord.limits import Limits
from accord.messages.meta import TRACE
from accord.server.audience import Audience
from accord.server.calling import Calling
from accord.server.dispatch import Dispatch
from accord.server.offer import Offer
from accord.server.peer import Line, Peer
from accord.server.results import Packer
from accord.session.exchange import Exchange
from accord.session.served import code_of
from accord.telemetry.base import NOWHERE, Operation, Place, SessionOver, Telemetry
from accord.telemetry.incoming import carried, read, text
from accord.telemetry.watch import Watch
from accord.transport.asgi.request import Request
from accord.transport.connection import Connection
from accord.transport.conversation import Conversation
from accord.transport.stdio import StdioTransport
from accord.wire.headers import SESSION_ID

if TYPE_CHECKING:
    from accord.server.asking.call import Call
    from accord.server.server import Server
    from accord.session.session import Session
    from accord.transport.base import Way

_arrived: ContextVar[Request | None] = ContextVar("accord_arrived", default=None)
"""The HTTP request that is being answered, on a server with a telemetry."""

_PIPE = Place(transport="pipe")
_HTTP = Place(transport="tcp", protocol="http")

_DIGITS = 16
"""Of a digest: enough to tell sessions apart, and no way back to the id, which is a secret."""


class ObservedCalling(Calling):
    """The functions of a running server, whose failures are told."""

    async def reach(
        self, offer: Offer, name: str, arguments: Any, exchange: Exchange, peer: Peer, call: Call | None
    ) -> Any:
        """As `Calling.reach`."""
        with watch_of(self.server).handling():
            return await super().reach(offer, name, arguments, exchange, peer, call)

    async def run(self, offer: Offer, arguments: Any, call: Call | None, prefix: str = "") -> Any:
        """As `Calling.run`."""
        with watch_of(self.server).handling():
            return await super().run(offer, arguments, call, prefix)


class ObservedDispatch(Dispatch):
    """The verbs of a running server, watched."""

    caller: ClassVar[type[Calling]] = ObservedCalling

    async def handle(self, exchange: Exchange, peer: Peer) -> Any:
        """As `Dispatch.handle`. A subscription is no operation: it takes as long as the client stays."""
        if exchange.method.stays:
            return await super().handle(exchange, peer)
        watch = watch_of(self._server)
        with watch.over(_served(exchange, peer)) as operation:
            exchange.goes_on = partial(watch.go_on, operation)
            try:
                result = await super().handle(exchange, peer)
            except ProtocolError as error:
                operation.code = code_of(error, exchange.rules)
                raise
            operation.answered(result)
            return result


def watch_of(server: Server) -> Watch:
    """What watches a server that has a telemetry."""
    assert server.watched is not None, "only a server with a telemetry is observed"
    return server.watched.watch


class ObservedLine:
    """The way back to a client, where what the server asks is watched. Else as `Conversation`."""

    def __init__(self, conversation: Conversation, watch: Watch) -> None:
        self._conversation = conversation
        self._watch = watch
        self.session: Session = conversation.session
        self.way: Way = conversation.way
        self.report: Callable[[Exchange, float, float | None, str | None], None] = conversation.report
        self.notify: Callable[..., None] = conversation.notify
        self.close_stream: Callable[[Exchange, int | None], None] = conversation.close_stream
        self.restart: Callable[[Exchange], Coroutine[Any, Any, None]] = conversation.restart

    @property
    def ready(self) -> asyncio.Event:
        """As `Conversation.ready`."""
        return self._conversation.ready

    async def ask(self, name: str, params: Any = None, *, of: Exchange | None = None, **options: Any) -> Raw:
        """As `Conversation.ask`, with the trace context in `_meta`."""
        with self._watch.over(Operation("client", name, place=_place(self.way))) as operation:
            raw = await self._conversation.ask(
                name, params, meta=operation.carrier or None, of=of, on_sent=operation.sent, **options
            )
            operation.answered(raw)
            return raw


class Watched:
    """The parts of one server that a telemetry is told of."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.watch: Watch = Watch(telemetry)

    def dispatch(self, server: Server, packer: Packer, limits: Limits, audience: Audience) -> Dispatch:
        """The verbs. Arguments as for `Dispatch`."""
        return ObservedDispatch(server, packer, limits, audience)

    def line(self, conversation: Conversation) -> Line:
        """The way back to a client."""
        return ObservedLine(conversation, self.watch)

    def arrive(self, request: Request) -> None:
        """An HTTP request is about to be answered in this context."""
        _arrived.set(request)

    def leave(self, conversation: Conversation, began: float) -> None:
        """A client that stayed since `began`, in the seconds of its loop, is gone."""
        seconds = asyncio.get_running_loop().time() - began
        place = _place(conversation.way) if isinstance(conversation, Connection) else _HTTP
        revision = conversation.session.agreed.revision
        self.watch.session(SessionOver("server", seconds, revision, place))


# --- what is known of a request --------------------------------------------------------------------------------


def _served(exchange: Exchange, peer: Peer) -> Operation:
    sent = read(exchange)
    return Operation(
        "server",
        exchange.method.name,
        name=text(sent.name),
        uri=text(sent.uri),
        id=exchange.id,
        revision=exchange.rules.revision,
        place=_place(peer.line.way),
        arguments=None if sent.arguments is UNSET else sent.arguments,
        carrier=sent.carrier if "traceparent" in sent.carrier else {**sent.carrier, **_carried_by_http()},
    )


def _carried_by_http() -> dict[str, str]:
    """The trace context of the HTTP request, for clients that know of no other."""
    if (request := _arrived.get()) is None:
        return {}
    found = {key: request.headers.get(key.encode()) for key in TRACE}
    return carried({key: value.decode("latin-1") for key, value in found.items() if value is not None})


def _place(way: Any) -> Place:
    if (request := _arrived.get()) is None:
        return _PIPE if isinstance(way, StdioTransport) else NOWHERE
    address, port = request.scope.get("client") or ("", None)
    session = request.headers.get(SESSION_ID)
    return Place(
        transport="tcp",
        protocol="http",
        protocol_version=request.scope.get("http_version", ""),
        address=address,
        port=port,
        session="" if session is None else hashlib.sha256(session).hexdigest()[:_DIGITS],
    )
