"""`server.run(http=...)`: the application at its address, from the line at the start to the last answer.

SIGTERM and Ctrl-C mean: take nothing new, finish what runs within `Limits.grace_seconds`, end streams properly, go.
A second one means now.

SIGTERM and Ctrl-C while a server serves: the first asks for the end, a second means now.

The end comes even where the event loop is blocked: a thread sees to it. Handlers that were there before are put back.

What a server says on stderr when it begins: one line to find it by, and one more where anybody may use it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
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
"""Exit code of a process whose event loop did not react."""


class ShutdownSignals:
    """Enter it on the loop that runs. `requested` is set when the end is asked for; `seconds` is how long that may
    take.

    Only the main thread hears signals: on another one, `requested` stays unset.
    """

    def __init__(self, seconds: float) -> None:
        self.requested: asyncio.Event = asyncio.Event()
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._serving = threading.get_ident()
        self._previous_handlers: dict[int, Any] = {}
        self._over = threading.Event()
        self._write = -1
        self._number = 0

    def __enter__(self) -> ShutdownSignals:
        if threading.current_thread() is threading.main_thread():
            read, self._write = os.pipe()
            threading.Thread(target=self._watch, args=(read,), name="accord stop watch", daemon=True).start()
            # Not `loop.add_signal_handler`: a loop that is blocked would never call it.
            self._previous_handlers = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._over.set()
        if self._write >= 0:
            os.close(self._write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._number:
            os._exit(128 + number)
        self._number = number
        os.write(self._write, b"!")  # a signal may come amid anything: the rest is for the thread

    def _watch(self, read: int) -> None:
        asked = os.read(read, 1)
        os.close(read)
        if not asked:
            return
        with suppress(RuntimeError):  # the loop is closed, it is over
            self._loop.call_soon_threadsafe(self.requested.set)
        if not self._over.wait(self._seconds):
            write_stderr_nowait(
                f"accord: the server did not end within {self._seconds:g} s, its event loop is at "
                f"{current_line_of(self._serving)}; the process ends\n"
            )
            os._exit(_STUCK)


def start_line(name: str, revisions: Sequence[str], where: Address, options: HTTPOptions) -> str:
    """Where it is, what it speaks, and who is let in."""
    gate = options.gate()
    public = f", public {options.public_url}" if options.public_url else ""
    forms = "Streamable HTTP without sessions" if options.stateless else "Streamable HTTP, and HTTP+SSE at /sse"
    return (
        f"accord: {name} at http://{where}{options.path}{public}; revisions {', '.join(revisions)}; "
        f"{forms}; hosts {', '.join(gate.hosts.patterns)}; "
        f"origins {', '.join(gate.origins.patterns)}"
    )


def warning_line(where: Address) -> str:
    """For a server that others than this machine reach, and that asks nobody who they are."""
    return (
        f"accord: warning: {where} can be reached from other machines, and whoever reaches it may use all of it; "
        "give the server auth=APIKeys({...}), or listen at 127.0.0.1"
    )


def write_stderr(line: str) -> None:
    """One line on stderr, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


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
        write_stderr(start_line(server.name, server.revisions, where, options))
        if not local and server.auth is None:
            write_stderr(warning_line(where))

    app = server.asgi(options)
    await app.start()  # what is wrong with its store is said now, not to the first client
    limits = server.limits
    if options.public_url is not None:  # all connections come from the proxy
        http = msgspec.structs.replace(limits.http, connections_per_address=None)
        limits = msgspec.structs.replace(limits, http=http)
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
