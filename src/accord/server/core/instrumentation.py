"""Telemetry of a server: the requests that it serves, those that it sends, and the duration of sessions.

These classes replace the plain ones only with `Server(telemetry=...)`, so that other servers pay nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from accord.errors import ProtocolError
from accord.limits import Limits
from accord.messages.meta import TRACE
from accord.server.core.context import RunningServer
from accord.server.core.dispatch import DispatchedServer, Dispatcher
from accord.server.core.invoker import Invoker
from accord.server.core.peer import Peer, PeerChannel
from accord.server.core.registration import Registration
from accord.server.core.results import ResultEncoder
from accord.server.notify.subscription_index import SubscriptionIndex
from accord.session.incoming import code_of
from accord.session.pending_request import PendingRequest
from accord.telemetry.base import UNKNOWN_TRANSPORT, Operation, SessionOver, Telemetry, TransportInfo
from accord.telemetry.recorder import TelemetryRecorder, read, text_or_empty, trace_context
from accord.transport.asgi.request import ASGIRequest
from accord.transport.connection import Connection
from accord.transport.session_driver import SessionDriver
from accord.transport.stdio import StdioTransport
from accord.wire.headers import SESSION_ID

if TYPE_CHECKING:
    from accord.server.input.call import HandlerCall
    from accord.session.session import Session
    from accord.transport.base import MessageSink

_http_request: ContextVar[ASGIRequest | None] = ContextVar("accord_arrived", default=None)
"""The HTTP request that is being answered, on a server with telemetry."""

_PIPE_INFO = TransportInfo(transport="pipe")
_HTTP_INFO = TransportInfo(transport="tcp", protocol="http")

_DIGITS = 16
"""Hex digits of a session's digest: enough to tell sessions apart, without revealing the id, which is a secret."""


class InstrumentedInvoker(Invoker):
    """An invoker that records failed handlers."""

    def __init__(
        self, server: RunningServer, encoder: ResultEncoder, limits: Limits, recorder: TelemetryRecorder
    ) -> None:
        super().__init__(server, encoder, limits)
        self._recorder = recorder

    async def invoke_with_middleware(
        self,
        registration: Registration,
        name: str,
        arguments: Any,
        pending: PendingRequest,
        peer: Peer,
        call: HandlerCall | None,
    ) -> Any:
        """As `Invoker.invoke_with_middleware`."""
        with self._recorder.handling():
            return await super().invoke_with_middleware(registration, name, arguments, pending, peer, call)

    async def invoke_registration(
        self, registration: Registration, arguments: Any, call: HandlerCall | None, prefix: str = ""
    ) -> Any:
        """As `Invoker.invoke_registration`."""
        with self._recorder.handling():
            return await super().invoke_registration(registration, arguments, call, prefix)


class InstrumentedDispatcher(Dispatcher):
    """A dispatcher that records each request as an operation."""

    def __init__(
        self,
        server: DispatchedServer,
        encoder: ResultEncoder,
        limits: Limits,
        subscription_index: SubscriptionIndex,
        recorder: TelemetryRecorder,
    ) -> None:
        self._recorder = recorder
        super().__init__(server, encoder, limits, subscription_index)

    def make_invoker(self, server: RunningServer, encoder: ResultEncoder, limits: Limits) -> Invoker:
        """Return an instrumented invoker."""
        return InstrumentedInvoker(server, encoder, limits, self._recorder)

    async def handle(self, pending: PendingRequest, peer: Peer) -> Any:
        """As `Dispatcher.handle`. A subscription is not recorded as an operation: it lasts as long as the client
        stays.
        """
        if pending.method.stays:
            return await super().handle(pending, peer)
        recorder = self._recorder
        with recorder.operation(_operation_of(pending, peer)) as operation:
            pending.on_resume = partial(recorder.continue_operation, operation)
            try:
                result = await super().handle(pending, peer)
            except ProtocolError as error:
                operation.code = code_of(error, pending.rules)
                raise
            operation.answered(result)
            return result


class InstrumentedChannel:
    """A channel to a client that records the requests sent to it. Otherwise as `SessionDriver`."""

    def __init__(self, driver: SessionDriver, recorder: TelemetryRecorder) -> None:
        self._driver = driver
        self._recorder = recorder
        self.session: Session = driver.session
        self.sink: MessageSink = driver.sink
        self.report: Callable[[PendingRequest, float, float | None, str | None], None] = driver.report
        self.notify: Callable[..., None] = driver.notify
        self.close_stream: Callable[[PendingRequest, int | None], None] = driver.close_stream
        self.restart: Callable[[PendingRequest], Coroutine[Any, Any, None]] = driver.restart

    @property
    def ready(self) -> asyncio.Event:
        """As `SessionDriver.ready`."""
        return self._driver.ready

    async def request(self, name: str, params: Any = None, *, of: PendingRequest | None = None, **options: Any) -> Raw:
        """As `SessionDriver.request`, with the trace context in `_meta`."""
        with self._recorder.operation(Operation("client", name, place=_transport_info(self.sink))) as operation:
            raw = await self._driver.request(
                name, params, meta=operation.carrier or None, of=of, on_sent=operation.sent, **options
            )
            operation.answered(raw)
            return raw


class ServerInstrumentation:
    """The instrumented parts of one server."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.recorder: TelemetryRecorder = TelemetryRecorder(telemetry)

    def make_dispatcher(
        self, server: DispatchedServer, encoder: ResultEncoder, limits: Limits, subscription_index: SubscriptionIndex
    ) -> Dispatcher:
        """Return an instrumented dispatcher. Arguments as for `Dispatcher`."""
        return InstrumentedDispatcher(server, encoder, limits, subscription_index, self.recorder)

    def wrap_channel(self, driver: SessionDriver) -> PeerChannel:
        """Return the instrumented channel to a client."""
        return InstrumentedChannel(driver, self.recorder)

    def http_request_received(self, request: ASGIRequest) -> None:
        """Store the HTTP request that this context is about to answer."""
        _http_request.set(request)

    def client_disconnected(self, driver: SessionDriver, began: float) -> None:
        """Record the session of a client that was connected since `began`, in seconds of its event loop."""
        seconds = asyncio.get_running_loop().time() - began
        place = _transport_info(driver.sink) if isinstance(driver, Connection) else _HTTP_INFO
        revision = driver.session.agreed.revision
        self.recorder.session(SessionOver("server", seconds, revision, place))


# --- attributes of a request -----------------------------------------------------------------------------------


def _operation_of(pending: PendingRequest, peer: Peer) -> Operation:
    sent = read(pending)
    return Operation(
        "server",
        pending.method.name,
        name=text_or_empty(sent.name),
        uri=text_or_empty(sent.uri),
        id=pending.id,
        revision=pending.rules.revision,
        place=_transport_info(peer.channel.sink),
        arguments=None if sent.arguments is UNSET else sent.arguments,
        carrier=sent.carrier if "traceparent" in sent.carrier else {**sent.carrier, **_carried_by_http()},
    )


def _carried_by_http() -> dict[str, str]:
    """Return the trace context in the headers of the HTTP request, for clients that send none in `_meta`."""
    if (request := _http_request.get()) is None:
        return {}
    found = {key: request.headers.get(key.encode()) for key in TRACE}
    return trace_context({key: value.decode("latin-1") for key, value in found.items() if value is not None})


def _transport_info(sink: Any) -> TransportInfo:
    if (request := _http_request.get()) is None:
        return _PIPE_INFO if isinstance(sink, StdioTransport) else UNKNOWN_TRANSPORT
    address, port = request.scope.get("client") or ("", None)
    session = request.headers.get(SESSION_ID)
    return TransportInfo(
        transport="tcp",
        protocol="http",
        protocol_version=request.scope.get("http_version", ""),
        address=address,
        port=port,
        session="" if session is None else hashlib.sha256(session).hexdigest()[:_DIGITS],
    )
