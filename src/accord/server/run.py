"""A running server: one connection from its opening to its end, and the process around it.

End of input, SIGTERM and Ctrl-C shut the server down: it accepts no new requests, answers running ones within the grace
period, and exits. A second signal exits at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accord.errors import DeclarationError, LifespanError
from accord.server.core.dispatch import Dispatcher
from accord.server.core.peer import ClientNotifications, Peer
from accord.server.core.results import ResultEncoder
from accord.server.notify.subscription_index import SubscriptionIndex, make_subscription_index
from accord.session.session import Session
from accord.transport.base import Transport
from accord.transport.connection import Connection
from accord.transport.deadlines import HandlerAbandoned
from accord.transport.session_driver import Handler
from accord.transport.stdio import StdioTransport

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.server import Server
    from accord.session.pending_request import PendingRequest

log: logging.Logger = logging.getLogger("accord.server")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_LIBRARY_PATHS = (
    os.path.dirname(os.path.dirname(__file__)),
    contextlib.__file__,
    os.path.dirname(asyncio.__file__),
)
"""Paths of frames that are omitted from the traceback of a lifespan."""

_EXIT_SECONDS = 1.0
"""Seconds that remaining threads of handlers may delay the end of the process."""


async def serve(
    server: Server, transport: Transport, stop: asyncio.Event | None = None, principal: Principal | None = None
) -> None:
    """Serve one connection until it ends, or until `stop` is set; for a principal, or for the client that started the
    server.

    Raises `LifespanError`; the caller then closes the transport, and reports the error on it.
    """
    await transport.open()  # from now on, printed text must not reach the wire
    await server.lifetimes.enter()
    subscription_index = server.change_bus.join(
        lambda: make_subscription_index(server.registry, server.profile, server.limits)
    )
    try:
        await _serve(server, transport, subscription_index, stop, principal)
    finally:
        server.change_bus.leave(subscription_index)


async def _serve(
    server: Server,
    transport: Transport,
    subscription_index: SubscriptionIndex,
    stop: asyncio.Event | None,
    principal: Principal | None,
) -> None:
    profile = server.profile()
    session = Session(
        "server", profile, revisions=server.revisions, limits=server.limits, methods=server.extension_methods.methods
    )
    instrumentation = server.instrumentation
    make_dispatcher = Dispatcher if instrumentation is None else instrumentation.make_dispatcher
    dispatcher = make_dispatcher(server, ResultEncoder(profile.raw_info), server.limits, subscription_index)
    notifications = ClientNotifications(
        lambda event: dispatcher.receive_notification(event, peer),
        server.extension_methods.registrations,
        server.limits,
    )
    connection = Connection(
        session,
        transport,
        dispatcher.handle if principal is None else _handler_for(principal, dispatcher),
        on_notification=notifications.receive,
        limits=server.limits,
    )
    peer = Peer(
        connection if instrumentation is None else instrumentation.wrap_channel(connection),
        "" if principal is None else principal.id,
    )
    connection.handler_argument = peer
    peer.local, peer.identity = principal is None, principal
    began = asyncio.get_running_loop().time()
    connection.resources.push_async_callback(server.lifetimes.leave)
    connection.resources.push_async_callback(_close_round_trips, server, peer)
    connection.resources.push_async_callback(notifications.finish, server.limits.close_seconds / 2)
    connection.start_reading()
    try:
        with subscription_index.with_peer(peer):
            await _wait_for_end(connection, stop)
            subscription_index.flush()  # changes are sent before the connection ends
            if not await connection.finish(server.limits.grace_seconds):
                why = f"the server has ended; the call had {server.limits.grace_seconds:g} s to finish"
                connection.end_requests(list(connection.session.incoming.values()), why)
    finally:
        await connection.close()
        dispatcher.close()
        if instrumentation is not None:
            instrumentation.client_disconnected(connection, began)


def _handler_for(principal: Principal, dispatcher: Dispatcher) -> Handler:
    """Return the handler of the requests of a connection that belongs to a principal."""

    def handle(pending: PendingRequest, peer: Peer) -> Coroutine[Any, Any, Any]:
        pending.principal = principal
        return dispatcher.handle(pending, peer)

    return handle


async def _close_round_trips(server: Server, peer: Peer) -> None:
    if server.active_round_trips is not None:
        await server.active_round_trips.close(peer, server.limits.close_seconds)


async def _wait_for_end(connection: Connection, stop: asyncio.Event | None) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (connection.ended, stop) if event is not None]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def run_stdio(server: Server) -> None:
    """Serve this process's stdin and stdout until the connection ends. Raises `SystemExit` for a lifespan that fails to
    start.
    """
    try:
        run_to_end(serve_stdio(server), asyncio.new_event_loop())
    except LifespanError as exc:
        raise SystemExit(failed_start(exc)) from None


def failed_start(error: LifespanError) -> str:
    """Return why a server could not start: the traceback of the program's code, and the error in one line.

    `SystemExit` of it ends the process with 1, over stdio and HTTP alike.
    """
    if error.__cause__ is None:
        return f"accord: {error}"
    trace = traceback.TracebackException.from_exception(error.__cause__)
    own = [frame for frame in trace.stack if not frame.filename.startswith(_LIBRARY_PATHS)]
    if own:
        trace.stack = traceback.StackSummary.from_list(own)
    return f"{''.join(trace.format())}accord: {error}"


def run_to_end(serving: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    """Run `serving` on a loop of its own, and keep remaining tasks and threads of handlers from delaying the process's
    end.
    """
    try:
        loop.run_until_complete(serving)
        _end_tasks(loop)
    finally:
        loop.close()
        _bound_thread_shutdown()


def _bound_thread_shutdown() -> None:
    """Bound the time that remaining threads may delay the end of the process.

    Accord's own threads are daemons and do not; without others nothing is done.
    """
    left = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    if left:
        ending = threading.Event()
        # As concurrent.futures does: called when the main thread ends, before the process waits for other threads.
        threading._register_atexit(ending.set)  # type: ignore[attr-defined]
        threading.Thread(target=_exit_after_threads, args=(left, ending, _uncaught()), daemon=True).start()


def _exit_after_threads(left: Sequence[threading.Thread], ending: threading.Event, before: object) -> None:
    ending.wait()
    until = time.monotonic() + _EXIT_SECONDS
    for thread in left:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in left):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
                stream.flush()
        os._exit(0 if _uncaught() is before else 1)


def _uncaught() -> object:
    """Return the exception that ended the program, if any."""
    return getattr(sys, "last_value", None)


def check_transport(name: str, options: Mapping[str, object]) -> None:
    """Raise `DeclarationError` for an unknown transport, and for options that `run` has in other libraries."""
    if options:
        address = f"{options.get('host', '')}:{options.get('port', 8000)}"
        raise DeclarationError(
            f'run() has no option {next(iter(options))}=: write run(http="{address}"), and other settings of HTTP as '
            "options=HTTPOptions(...)"
        )
    if name != "stdio":
        raise DeclarationError(f"there is no transport {name!r}: run() serves stdio, run(http=':8000') serves HTTP")


def check_no_running_loop() -> None:
    """Raise `DeclarationError` on a running event loop, where `run` cannot start its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise DeclarationError(
        "run() cannot serve on a running event loop, as in a coroutine or a notebook: "
        "write `await server.run_async()` there"
    )


async def serve_stdio(server: Server) -> None:
    """Serve this process's stdin and stdout on the running loop."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    _on_signals(loop, stop)
    transport = StdioTransport(server.limits, exit_when_stuck=True)
    try:
        await serve(server, transport, stop)
    finally:
        await transport.close()
        for number in _SIGNALS:
            with contextlib.suppress(NotImplementedError):  # Windows
                loop.remove_signal_handler(number)


def _on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    def handle_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, handle_signal, number)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            with contextlib.suppress(ValueError):  # only the main thread may
                signal.signal(number, lambda number, _: loop.call_soon_threadsafe(handle_signal, number) and None)


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel remaining tasks of handlers, and let them handle it briefly."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=_EXIT_SECONDS / 4))
    loop.run_until_complete(loop.shutdown_asyncgens())
    if left := asyncio.all_tasks(loop):
        loop.run_until_complete(_end_uncancellable(left))


async def _end_uncancellable(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Report tasks that do not end when they are cancelled, and end their coroutines: asyncio would report each as
    "Task was destroyed but it is pending!".
    """
    for task in tasks:
        log.error(
            "accord: %s does not end when it is cancelled, and is ended with the process: it must not catch "
            "asyncio.CancelledError without raising it again",
            _end_coroutine(task.get_coro()),
        )
        task._log_destroy_pending = False  # type: ignore[attr-defined]


def _end_coroutine(coroutine: Any) -> str:
    """End a suspended coroutine, and return where in the program's code it was."""
    try:
        coroutine.throw(HandlerAbandoned())
    except BaseException as exc:  # of the program's code, while it ends
        trace = traceback.extract_tb(exc.__traceback__)
        own = [frame for frame in trace if not frame.filename.startswith(_LIBRARY_PATHS)]
        if own:
            return f"the handler at {own[-1].filename}:{own[-1].lineno}"
    return f"the handler {getattr(coroutine, '__qualname__', coroutine)}"
