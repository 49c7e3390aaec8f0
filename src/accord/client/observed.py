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
from accord.session.exchange import Exchange
from accord.telemetry.base import NOWHERE, Operation, Place, SessionOver, Telemetry
from accord.telemetry.incoming import read, text
from accord.telemetry.watch import Watch
from accord.transport.connection import Connection
from accord.transport.conversation import Handler

P = TypeVar("P", bound=InputResponseParams)
R = TypeVar("R", bound=Result)

_PORTS = {"http": 80, "https": 443}


class ObservedRequests(Requests):
    """The requests of one client, watched."""

    def __init__(self, watch: Watch, place: Place, *args: Any) -> None:
        super().__init__(*args)
        self._watch = watch
        self._place = place
        self._staying: set[asyncio.Task[None]] = set()

    async def raw(self, method: str, params: Any = None, *, operation: Operation | None = None, **options: Any) -> Raw:
        """As `Requests.raw`; `operation` is what this request is a part of."""
        if operation is not None:
            return await self._send(operation, method, params, options)
        with self._watch.over(self._about(method, params)) as operation:
            raw = await self._send(operation, method, params, options)
            operation.answered(raw)
            return raw

    async def _send(self, operation: Operation, method: str, params: Any, options: Mapping[str, Any]) -> Raw:
        meta = {**operation.carrier, **(options.get("meta") or {})}
        return await super().raw(method, params, on_sent=operation.sent, **{**options, "meta": meta})

    async def _in_rounds(
        self,
        first: Callable[..., Awaitable[R]],
        method: str,
        type_: type[R],
        params: P,
        total: float | None,
        options: Mapping[str, Any],
    ) -> R:
        with self._watch.over(self._about(method, params)) as operation:
            result = await super()._in_rounds(first, method, type_, params, total, {**options, "operation": operation})
            operation.answered(result)
            return result

    def _about(self, method: str, params: Any) -> Operation:
        fields = params if isinstance(params, Mapping) else _fields(params)
        return Operation(
            "client",
            method,
            name=text(fields.get("name")),
            uri=text(fields.get("uri")),
            place=self._place,
            arguments=fields.get("arguments"),
        )

    async def use(self, connection: Connection) -> None:
        """As `Requests.use`; and tell of the connection when it has ended."""
        await super().use(connection)
        if self._place.protocol and not connection.session.rules.handshake:
            return  # each request is for itself there: nothing that could end
        task = asyncio.get_running_loop().create_task(self._stay(connection))
        self._staying.add(task)
        task.add_done_callback(self._staying.discard)

    async def _stay(self, connection: Connection) -> None:
        began, revision = time.perf_counter(), connection.revision
        try:
            await connection.ended.wait()
        finally:
            error = None if connection.closing else connection.transport.lost()
            self._watch.session(SessionOver("client", time.perf_counter() - began, revision, self._place, error))


class Watched:
    """The parts of one client that a telemetry is told of."""

    def __init__(self, telemetry: Telemetry, target: Any) -> None:
        self._watch = Watch(telemetry)
        self._place = place_of(target)

    def requests(self, *args: Any) -> Requests:
        """What it asks. Arguments as for `Requests`."""
        return ObservedRequests(self._watch, self._place, *args)

    def handler(self, handler: Handler) -> Handler:
        """What answers the questions of the server."""

        async def handle(exchange: Exchange, connection: Any) -> Any:
            with self._watch.over(_asked(exchange, self._place)) as operation:
                operation.began = True
                result = await handler(exchange, connection)
                operation.answered(result)
                return result

        return handle


def _asked(exchange: Exchange, place: Place) -> Operation:
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


def place_of(target: Any) -> Place:
    """How a target is reached."""
    if isinstance(target, Remote):
        url = urlsplit(target.url)
        port = url.port or _PORTS.get(url.scheme.lower())
        return Place(transport="tcp", protocol="http", protocol_version="1.1", address=url.hostname or "", port=port)
    return Place(transport="pipe") if isinstance(target, Command) else NOWHERE
