"""A client with telemetry of its requests, of the server's requests, and of its sessions.

These classes replace the plain ones only with `Client(telemetry=...)`, so that other clients have no overhead. A
request that is sent more than once, after a reconnect or for input, is one operation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Raw

from accord.client.requests import Requests
from accord.client.target import Command, Remote
from accord.messages.meta import InputResponseParams, Result
from accord.session.pending_request import PendingRequest
from accord.telemetry.base import UNKNOWN_TRANSPORT, Operation, SessionOver, Telemetry, TransportInfo
from accord.telemetry.recorder import TelemetryRecorder, read, text_or_empty
from accord.transport.connection import Connection
from accord.transport.session_driver import Handler

P = TypeVar("P", bound=InputResponseParams)
R = TypeVar("R", bound=Result)

_PORTS = {"http": 80, "https": 443}


class InstrumentedRequests(Requests):
    """The requests of one client, with telemetry."""

    def __init__(self, recorder: TelemetryRecorder, transport_info: TransportInfo, *args: Any) -> None:
        super().__init__(*args)
        self._recorder = recorder
        self._transport_info = transport_info
        self._session_tasks: set[asyncio.Task[None]] = set()

    async def raw(self, method: str, params: Any = None, *, operation: Operation | None = None, **options: Any) -> Raw:
        """Send a request, as `Requests.raw` does; `operation` is the operation that it is a part of."""
        if operation is not None:
            return await self._send(operation, method, params, options)
        with self._recorder.operation(self._operation(method, params)) as operation:
            raw = await self._send(operation, method, params, options)
            operation.answered(raw)
            return raw

    async def _send(self, operation: Operation, method: str, params: Any, options: Mapping[str, Any]) -> Raw:
        meta = {**operation.carrier, **(options.get("meta") or {})}
        return await super().raw(method, params, on_sent=operation.sent, **{**options, "meta": meta})

    async def _with_input(
        self,
        first: Callable[..., Awaitable[R]],
        method: str,
        type_: type[R],
        params: P,
        total: float | None,
        options: Mapping[str, Any],
    ) -> R:
        with self._recorder.operation(self._operation(method, params)) as operation:
            result = await super()._with_input(first, method, type_, params, total, {**options, "operation": operation})
            operation.answered(result)
            return result

    def _operation(self, method: str, params: Any) -> Operation:
        fields = params if isinstance(params, Mapping) else _fields(params)
        return Operation(
            "client",
            method,
            name=text_or_empty(fields.get("name")),
            uri=text_or_empty(fields.get("uri")),
            place=self._transport_info,
            arguments=fields.get("arguments"),
        )

    async def use(self, connection: Connection) -> None:
        """Use a connection, as `Requests.use` does, and record its session when it has ended."""
        await super().use(connection)
        if self._transport_info.protocol and not connection.session.rules.handshake:
            return  # such requests are independent: there is no session that could end
        task = asyncio.get_running_loop().create_task(self._record_session(connection))
        self._session_tasks.add(task)
        task.add_done_callback(self._session_tasks.discard)

    async def _record_session(self, connection: Connection) -> None:
        started, revision = time.perf_counter(), connection.revision
        try:
            await connection.ended.wait()
        finally:
            error = None if connection.closing else connection.transport.lost()
            self._recorder.session(
                SessionOver("client", time.perf_counter() - started, revision, self._transport_info, error)
            )


class ClientInstrumentation:
    """The instrumented parts of one client."""

    def __init__(self, telemetry: Telemetry, target: Any) -> None:
        self._recorder = TelemetryRecorder(telemetry)
        self._transport_info = transport_info_of(target)

    def requests(self, *args: Any) -> Requests:
        """Return instrumented requests. The arguments are those of `Requests`."""
        return InstrumentedRequests(self._recorder, self._transport_info, *args)

    def handler(self, handler: Handler) -> Handler:
        """Return the instrumented handler of the server's requests."""

        async def handle(request: PendingRequest, connection: Any) -> Any:
            with self._recorder.operation(_operation_of(request, self._transport_info)) as operation:
                operation.began = True
                result = await handler(request, connection)
                operation.answered(result)
                return result

        return handle


def _operation_of(request: PendingRequest, transport_info: TransportInfo) -> Operation:
    return Operation(
        "server",
        request.method.name,
        id=request.id,
        revision=request.rules.revision,
        place=transport_info,
        carrier=read(request).carrier,
    )


def _fields(params: Any) -> Mapping[str, Any]:
    return {name: getattr(params, name, None) for name in ("name", "uri", "arguments")}


def transport_info_of(target: Any) -> TransportInfo:
    """Return the transport information of a target."""
    if isinstance(target, Remote):
        url = urlsplit(target.url)
        port = url.port or _PORTS.get(url.scheme.lower())
        return TransportInfo(
            transport="tcp", protocol="http", protocol_version="1.1", address=url.hostname or "", port=port
        )
    return TransportInfo(transport="pipe") if isinstance(target, Command) else UNKNOWN_TRANSPORT
