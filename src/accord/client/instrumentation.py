"""A client that a telemetry is told of: what it asks, what it is asked, and how long it is connected.

Made in the place of the plain parts where `Client(telemetry=...)` asks for it, so that others pay nothing. A request
that goes out more than once, as the connection broke or the server asked for input, is one operation.
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
    """The requests of one client, watched."""

    def __init__(self, watch: TelemetryRecorder, place: TransportInfo, *args: Any) -> None:
        super().__init__(*args)
        self._recorder = watch
        self._transport_info = place
        self._session_tasks: set[asyncio.Task[None]] = set()

    async def raw(self, method: str, params: Any = None, *, operation: Operation | None = None, **options: Any) -> Raw:
        """As `Requests.raw`; `operation` is what this request is a part of."""
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
        """As `Requests.use`; and tell of the connection when it has ended."""
        await super().use(connection)
        if self._transport_info.protocol and not connection.session.rules.handshake:
            return  # each request is for itself there: nothing that could end
        task = asyncio.get_running_loop().create_task(self._record_session(connection))
        self._session_tasks.add(task)
        task.add_done_callback(self._session_tasks.discard)

    async def _record_session(self, connection: Connection) -> None:
        began, revision = time.perf_counter(), connection.revision
        try:
            await connection.ended.wait()
        finally:
            error = None if connection.closing else connection.transport.lost()
            self._recorder.session(
                SessionOver("client", time.perf_counter() - began, revision, self._transport_info, error)
            )


class ClientInstrumentation:
    """The parts of one client that a telemetry is told of."""

    def __init__(self, telemetry: Telemetry, target: Any) -> None:
        self._recorder = TelemetryRecorder(telemetry)
        self._transport_info = transport_info_of(target)

    def requests(self, *args: Any) -> Requests:
        """What it asks. Arguments as for `Requests`."""
        return InstrumentedRequests(self._recorder, self._transport_info, *args)

    def handler(self, handler: Handler) -> Handler:
        """What answers the questions of the server."""

        async def handle(exchange: PendingRequest, connection: Any) -> Any:
            with self._recorder.operation(_operation_of(exchange, self._transport_info)) as operation:
                operation.began = True
                result = await handler(exchange, connection)
                operation.answered(result)
                return result

        return handle


def _operation_of(exchange: PendingRequest, place: TransportInfo) -> Operation:
    return Operation(
        "server",
        exchange.method.name,
        id=exchange.id,
        revision=exchange.rules.revision,
        place=place,
        carrier=read(exchange).carrier,
    )


def _fields(params: Any) -> Mapping[str, Any]:
    return {name: getattr(params, name, None) for name in ("name", "uri", "arguments")}


def transport_info_of(target: Any) -> TransportInfo:
    """How a target is reached."""
    if isinstance(target, Remote):
        url = urlsplit(target.url)
        port = url.port or _PORTS.get(url.scheme.lower())
        return TransportInfo(
            transport="tcp", protocol="http", protocol_version="1.1", address=url.hostname or "", port=port
        )
    return TransportInfo(transport="pipe") if isinstance(target, Command) else UNKNOWN_TRANSPORT
