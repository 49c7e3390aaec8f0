"""A server at work: one connection from its opening to its end, and the process around it.

End of input, SIGTERM and Ctrl-C all mean: take nothing new, answer what runs, within the grace period, and go. A
second signal means now.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from accord.server.dispatch import Dispatch
from accord.server.peer import Peer
from accord.server.results import Packer
from accord.session.session import Session
from accord.transport.base import Transport
from accord.transport.connection import Connection
from accord.transport.stdio import StdioTransport

if TYPE_CHECKING:
    from accord.server.server import Server

_LEAVING = 1.0
"""Seconds that threads of others may hold up the end of the process, once the server has ended."""


async def serve(server: Server, transport: Transport, stop: asyncio.Event | None = None) -> None:
    """Serve one connection until it ends, or until `stop` is set."""
    profile = server.profile()
    session = Session("server", profile, revisions=server.revisions, limits=server.limits, methods=server.extended.rows)
    dispatch = Dispatch(server, Packer(profile.raw_info), server.limits)
    connection = Connection(
        session,
        transport,
        lambda exchange, _: dispatch.handle(exchange, peer),
        on_notification=lambda event: dispatch.hear(event, peer),
        limits=server.limits,
    )
    peer = Peer(connection)
    await connection.start()
    try:
        await _until_over(connection, stop)
        await connection.finish(server.limits.grace_seconds)
    finally:
        await connection.close()
        if server.asked is not None:
            await server.asked.close(peer, server.limits.close_seconds)
        dispatch.close()


async def _until_over(connection: Connection, stop: asyncio.Event | None) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (connection.ended, stop) if event is not None]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def run_stdio(server: Server) -> None:
    """Serve this process's stdin and stdout; returns when that is over."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_serve_stdio(server))
        _end_tasks(loop)
    finally:
        loop.close()
        threading.Thread(target=_leave, daemon=True).start()


def _leave() -> None:
    """Once the interpreter is ending, no thread of a library holds it up for long."""
    threading.main_thread().join()
    time.sleep(_LEAVING)
    os._exit(0)


async def _serve_stdio(server: Server) -> None:
    stop = asyncio.Event()
    _on_signals(asyncio.get_running_loop(), stop)
    await serve(server, StdioTransport(server.limits, exit_when_stuck=True), stop)


def _on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    def asked(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, asked, number)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            with contextlib.suppress(ValueError):  # only the main thread may
                signal.signal(number, lambda number, _: loop.call_soon_threadsafe(asked, number) and None)


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what handlers left behind, and give it one moment to notice."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=_LEAVING / 2))
    loop.run_until_complete(loop.shutdown_asyncgens())
