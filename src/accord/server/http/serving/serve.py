"""`server.run(http=...)`: serves the application at an address until the process is asked to stop.

The first SIGTERM or Ctrl-C starts the shutdown: refuse new work, finish running requests within `Limits.grace_seconds`,
end streams, exit; while the server starts, end its lifespan and exit. A second one exits at once. A thread enforces the
deadline even if the event loop is blocked. Previous signal handlers are restored. At start the server writes its
address to stderr, and a warning if other machines can use it without authentication.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from socket import socket
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.errors import LifespanError, StoreError
from accord.limits import Limits
from accord.server.http.access_log import AccessLog, LogWriter
from accord.server.http.options import HTTPOptions
from accord.server.http.serving.address import Address, bind, bound_address, is_loopback, is_unspecified, parse_address
from accord.server.http.serving.asgi_server import ASGIServer, raise_descriptor_limit
from accord.server.http.serving.protocol import Application
from accord.server.run import failed_start, run_to_end
from accord.transport.hangup import current_line_of, write_stderr_nowait

if TYPE_CHECKING:
    from accord.server.server import Server

_SIGNALS = [signal.SIGTERM, signal.SIGINT]
if sys.platform == "win32":
    _SIGNALS.append(signal.SIGBREAK)

_STUCK = 1
"""The exit code of a process whose event loop did not react."""


class ShutdownSignals:
    """Signal handlers, as a context manager on the running loop. `requested` is set at the first signal; `seconds` is
    the most that the shutdown may take.

    Only the main thread receives signals: on another one, `requested` stays unset.
    """

    def __init__(self, seconds: float) -> None:
        self.requested: asyncio.Event = asyncio.Event()
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._serving = threading.get_ident()
        self._previous_handlers: dict[int, Any] = {}
        self._stopped = threading.Event()
        self._write = -1
        self._number = 0

    def __enter__(self) -> ShutdownSignals:
        if threading.current_thread() is threading.main_thread():
            read, self._write = os.pipe()
            threading.Thread(target=self._watch, args=(read,), name="accord stop watch", daemon=True).start()
            # Not `loop.add_signal_handler`: a blocked loop would never call it.
            self._previous_handlers = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._stopped.set()
        if self._write >= 0:
            os.close(self._write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._number:
            os._exit(128 + number)
        self._number = number
        os.write(self._write, b"!")  # a signal may interrupt any code: the thread does the rest

    def _watch(self, read: int) -> None:
        signalled = os.read(read, 1)
        os.close(read)
        if not signalled:
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.requested.set)
        if not self._stopped.wait(self._seconds):
            write_stderr_nowait(
                f"accord: the server did not end within {self._seconds:g} s, its event loop is at "
                f"{current_line_of(self._serving)}; the process ends\n"
            )
            os._exit(_STUCK)


def start_line(name: str, revisions: Sequence[str], address: Address, options: HTTPOptions) -> str:
    """Return the line with address, revisions and allowed hosts and origins."""
    gate = options.gate()
    public = f", public {options.public_url}" if options.public_url else ""
    forms = "Streamable HTTP without sessions" if options.stateless else "Streamable HTTP, and HTTP+SSE at /sse"
    return (
        f"accord: {name} at http://{address}{options.path}{public}; revisions {', '.join(revisions)}; "
        f"{forms}; hosts {', '.join(gate.hosts.patterns)}; "
        f"origins {', '.join(gate.origins.patterns)}"
    )


def warning_line(address: Address) -> str:
    """Return the warning for a server that other machines can reach without authentication."""
    return (
        f"accord: warning: {address} can be reached from other machines, and whoever reaches it may use all of it; "
        "give the server auth=APIKeys({...}), or listen at 127.0.0.1"
    )


def write_stderr(line: str) -> None:
    """Write one line to stderr, if the process has one."""
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


_MARGIN = 1.0
"""Seconds that the shutdown may take beyond its limits, before the process exits."""


class DrainableApplication(Protocol):
    """An ASGI application that can shut down."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    async def drain(self, seconds: float) -> bool:
        """Refuse new work, end streams, and wait for running requests. Return whether they ended in time."""
        ...

    async def close(self) -> None:
        """Release all resources, and cancel what still runs."""
        ...


def run_http(server: Server, address: str, options: HTTPOptions | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises `DeclarationError`, and `SystemExit` if the address or the store is not
    available.
    """
    parsed = parse_address(address)
    try:
        sockets = bind(parsed)
    except OSError as exc:
        raise SystemExit(f"accord: {exc.strerror}") from None
    raise_descriptor_limit()
    try:
        run_to_end(_serve(server, parsed, sockets, options or HTTPOptions()), new_loop())
    except LifespanError as exc:
        raise SystemExit(failed_start(exc)) from None
    except StoreError as exc:
        raise SystemExit(f"accord: {exc}") from None


async def serve_http(server: Server, address: str, options: HTTPOptions | None = None) -> None:
    """Serve as `run_http`, on a running loop, until SIGTERM, Ctrl-C or cancellation. Raises `OSError`
    for the address.
    """
    parsed = parse_address(address)
    await _serve(server, parsed, bind(parsed), options or HTTPOptions())


async def _serve(server: Server, address: Address, sockets: Sequence[socket], options: HTTPOptions) -> None:
    address = bound_address(address, sockets)
    local = is_loopback(sockets)
    if not local and not is_unspecified(sockets):  # a specific address such as 192.168.1.5 is an allowed host
        options = msgspec.structs.replace(options, hosts=(*options.hosts, str(address)))

    def started() -> None:
        write_stderr(start_line(server.name, server.revisions, address, options))
        if not local and server.auth is None:
            write_stderr(warning_line(address))

    with ExitStack() as exit_stack:
        signals = exit_stack.enter_context(_shutdown_signals(server.limits))
        try:
            app = server.asgi(options)
            if not local:
                app.check_public_url()
            # Report store errors now, not to the first client.
            is_started = await _completes(app.start(), signals.requested)
        except BaseException:
            _close(sockets)
            raise
        if not is_started:
            _close(sockets)
            return
        limits = server.limits
        if options.public_url is not None:  # all connections come from the proxy
            http = msgspec.structs.replace(limits.http, connections_per_address=None)
            limits = msgspec.structs.replace(limits, http=http)
        entrance = _with_access_log(app, exit_stack, limits) if options.access_log else app
        await _serve_until(signals, app, sockets, limits, started, entrance)


def _close(sockets: Sequence[socket]) -> None:
    for each in sockets:
        each.close()


async def _completes(work: Coroutine[Any, Any, Any], stop: asyncio.Event) -> bool:
    """Run `work`, and cancel it when `stop` is set. Return whether it has completed."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))
    if working.cancelled():
        return False
    working.result()
    return True


async def serve_app(
    app: DrainableApplication,
    sockets: Sequence[socket],
    limits: Limits,
    started: Callable[[], None],
    *,
    access_log: bool = False,
) -> None:
    """Serve an application on bound sockets until a signal; then shut down within the limits."""
    with ExitStack() as exit_stack:
        signals = exit_stack.enter_context(_shutdown_signals(limits))
        entrance = _with_access_log(app, exit_stack, limits) if access_log else app
        await _serve_until(signals, app, sockets, limits, started, entrance)


async def _serve_until(
    signals: ShutdownSignals,
    app: DrainableApplication,
    sockets: Sequence[socket],
    limits: Limits,
    started: Callable[[], None],
    entrance: Application,
) -> None:
    async with serving(app, sockets, limits, entrance):
        started()
        await signals.requested.wait()


def _shutdown_signals(limits: Limits) -> ShutdownSignals:
    return ShutdownSignals(limits.grace_seconds + 2 * limits.close_seconds + _MARGIN)


@asynccontextmanager
async def serving(
    app: DrainableApplication, sockets: Sequence[socket], limits: Limits, entrance: Application | None = None
) -> AsyncIterator[None]:
    """Serve an application on bound sockets inside a context; `entrance` is a middleware in front of it, if given."""
    asgi_server = ASGIServer(entrance or app, limits)
    try:
        await asgi_server.start(sockets)
        yield
        asgi_server.stop_accepting()
        await app.drain(limits.grace_seconds)
    finally:
        asgi_server.stop_accepting()
        await app.close()  # running requests fail, and their responses are written
        await asgi_server.finish(limits.close_seconds)


def _with_access_log(app: DrainableApplication, exit_stack: ExitStack, limits: Limits) -> AccessLog:
    writer = LogWriter()
    exit_stack.callback(writer.close, limits.close_seconds / 2)
    return AccessLog(app, writer)


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, of uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
