"""`server.run(http=...)`: the application at its address, from the line at the start to the last answer.

SIGTERM and Ctrl-C mean: take nothing new, finish what runs within `Limits.grace_seconds`, end streams properly, go.
A second one means now.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from socket import socket
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.errors import LifespanError, StoreError
from accord.limits import Limits
from accord.server.http.access_log import AccessLog, LogWriter
from accord.server.http.options import HTTPOptions
from accord.server.http.serving import startup_messages
from accord.server.http.serving.address import Address, bind, bound_address, is_loopback, is_unspecified, parse_address
from accord.server.http.serving.asgi_server import ASGIServer
from accord.server.http.serving.descriptors import raise_descriptor_limit
from accord.server.http.serving.protocol import Application
from accord.server.http.serving.shutdown import ShutdownSignals
from accord.server.run import failed_start, run_to_end

if TYPE_CHECKING:
    from accord.server.server import Server

_MARGIN = 1.0
"""Seconds that the end may take beyond its limits, before the process is left as it is."""


class DrainableApplication(Protocol):
    """An ASGI application that can be asked to end."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    async def drain(self, seconds: float) -> bool:
        """Refuse what is new, end streams, and wait for what runs; whether it was done in time."""
        ...

    async def close(self) -> None:
        """Let go of what it holds; whatever still runs is cancelled."""
        ...


def run_http(server: Server, address: str, options: HTTPOptions | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises `DeclarationError`; `SystemExit` where the address cannot be had, or the
    store cannot be read.
    """
    where = parse_address(address)
    try:
        sockets = bind(where)
    except OSError as exc:
        raise SystemExit(f"accord: {exc.strerror}") from None
    raise_descriptor_limit()
    try:
        run_to_end(_serve(server, where, sockets, options or HTTPOptions()), new_loop())
    except LifespanError as exc:
        raise SystemExit(failed_start(exc)) from None
    except StoreError as exc:
        raise SystemExit(f"accord: {exc}") from None


async def serve_http(server: Server, address: str, options: HTTPOptions | None = None) -> None:
    """As `run_http`, on a loop that runs, until the task is cancelled as well. Raises `OSError` for the address."""
    where = parse_address(address)
    await _serve(server, where, bind(where), options or HTTPOptions())


async def _serve(server: Server, where: Address, sockets: Sequence[socket], options: HTTPOptions) -> None:
    where = bound_address(where, sockets)
    local = is_loopback(sockets)
    if not local and not is_unspecified(sockets):  # whoever listens at 192.168.1.5 means to be called so
        options = msgspec.structs.replace(options, hosts=(*options.hosts, str(where)))

    def started() -> None:
        startup_messages.write_stderr(startup_messages.start_line(server.name, server.revisions, where, options))
        if not local and server.auth is None:
            startup_messages.write_stderr(startup_messages.warning_line(where))

    app = server.asgi(options)
    await app.start()  # what is wrong with its store is said now, not to the first client
    limits = server.limits
    if options.public_url is not None:  # all connections come from the proxy
        limits = msgspec.structs.replace(limits, http_connections_per_address=None)
    await serve_app(app, sockets, limits, started, access_log=options.access_log)


async def serve_app(
    app: DrainableApplication,
    sockets: Sequence[socket],
    limits: Limits,
    started: Callable[[], None],
    *,
    access_log: bool = False,
) -> None:
    """Serve an application on bound sockets, until it is asked to end; then end it, within the limits."""
    with ExitStack() as undo:
        stopping = undo.enter_context(ShutdownSignals(limits.grace_seconds + 2 * limits.close_seconds + _MARGIN))
        async with serving(app, sockets, limits, _logged(app, undo, limits) if access_log else app):
            started()
            await stopping.requested.wait()


@asynccontextmanager
async def serving(
    app: DrainableApplication, sockets: Sequence[socket], limits: Limits, entrance: Application | None = None
) -> AsyncIterator[None]:
    """Serve an application on bound sockets while this is entered; `entrance` stands in front of it, if given."""
    listening = ASGIServer(entrance or app, limits)
    try:
        await listening.start(sockets)
        yield
        listening.stop_accepting()
        await app.drain(limits.grace_seconds)
    finally:
        listening.stop_accepting()
        await app.close()  # what has not ended is told so, and then written
        await listening.finish(limits.close_seconds)


def _logged(app: DrainableApplication, undo: ExitStack, limits: Limits) -> AccessLog:
    writer = LogWriter()
    undo.callback(writer.close, limits.close_seconds / 2)
    return AccessLog(app, writer)


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
