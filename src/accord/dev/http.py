"""The driver of live reload over HTTP: it starts and ends the processes behind a `ReloadingProxy`.

Sessions and events are in a SQLite file that all processes share, so that each of them continues the sessions of the
one before.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import Any

from accord.check.surface.surface import surface
from accord.client.client import Client
from accord.client.target import Command
from accord.dev import attach_server
from accord.dev.actions import TookOver
from accord.dev.attach_server import AttachServer
from accord.dev.http_processes import HTTPProcess, HTTPProcesses
from accord.dev.http_proxy import ReloadingProxy
from accord.dev.program import Program
from accord.dev.reporter import Reporter
from accord.dev.settings import DevSettings
from accord.dev.unavailable import expired_reason, failed_call
from accord.errors import AccordError, ConnectError, TargetError
from accord.limits import DEFAULT_LIMITS
from accord.server.http.serving.address import bind, bound_address, is_loopback, parse_address
from accord.server.http.serving.serve import serving
from accord.transport.subprocess import SubprocessTransport

_STARTED = re.compile(r" at http://127\.0\.0\.1:(\d+)(/\S*?)[,;]")


class HTTPReloader:
    """The program in a file, served at an address of this machine."""

    def __init__(
        self,
        command: Command,
        address: str,
        settings: DevSettings,
        *,
        show: Callable[[str], None],
        show_stderr: Callable[[str], None],
    ) -> None:
        if not command.is_file:
            raise TargetError(f"{command}: --http needs FILE.py; any other command is served over stdio")
        self.reloads: int = 0
        """The number of times that a process has taken over from another."""
        self.starts: int = 0
        """The number of processes that were started; each has its number as its generation."""
        self.url: str = ""
        self._command = command
        self._address = address
        self._settings = settings
        self._show = show
        self._show_stderr = show_stderr
        self._processes = HTTPProcesses(str(command), settings.start_seconds)
        self._proxy: ReloadingProxy
        self._attached: AttachServer
        self._reporter: Reporter
        self._folder = Path()  # private files of this run
        self._program: Program
        self._transports: dict[HTTPProcess, SubprocessTransport] = {}
        self._starting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        """The tasks that end processes."""
        self.started: asyncio.Event = asyncio.Event()
        """Set when the address is bound."""

    async def run(self) -> None:
        """Serve until cancelled. Raises `TargetError` for an address that other machines reach."""
        parsed = parse_address(self._address)
        try:
            sockets = bind(parsed)
        except OSError as exc:
            raise TargetError(str(exc.strerror)) from exc
        if not is_loopback(sockets):
            for each in sockets:
                each.close()
            raise TargetError(f"{self._address} can be reached from other machines; accord dev serves 127.0.0.1 only")
        self.url = f"http://{bound_address(parsed, sockets)}/mcp"
        with tempfile.TemporaryDirectory(prefix="accord-dev-") as folder:
            self._folder = Path(folder)
            self._program = Program(self._command, self._settings, self._folder)
            self._attached = await attach_server.opened(self._program, self._show)
            self._reporter = Reporter(self._program.name, self._show, self._attached.publish)
            self._proxy = ReloadingProxy(self._processes, self._reporter, search=self._settings.search)
            try:
                await self._serve(sockets)
            finally:
                await self._close()

    async def _serve(self, sockets: Sequence[socket]) -> None:
        async with serving(self._proxy, sockets, DEFAULT_LIMITS):
            self._reporter.line(f"{self._command} at {self.url}")
            self.started.set()
            self._begin_start()
            await self._program.watch(self.reload)

    async def reload(self) -> None:
        """Start a new process, which takes over when it is ready."""
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
        if self._settings.stop_first:
            await self._stop()
        self._begin_start()

    async def _stop(self) -> None:
        """End all processes, the current one after its calls."""
        if (stopped := self._processes.retire_current()) is not None:
            await self._retire(stopped)
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        await asyncio.gather(*self._ending)

    def _begin_start(self) -> None:
        self._starting = self._spawn(self._start())

    # --- processes ------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        began = asyncio.get_running_loop().time()
        self.starts += 1
        process = HTTPProcess(self.starts)
        if self._processes.current is None:
            self._processes.is_expected = True
        listening = asyncio.Event()
        transport = self._transport(process, listening)
        try:
            async with asyncio.timeout(self._settings.start_seconds):
                await transport.open()
                self._transports[process] = transport
                await self._wait_listening(listening, transport)
                process.surface = await _list_surface(process)
        except (ConnectError, _Ended, TimeoutError) as exc:
            reason = str(exc) or f"it was not ready within {self._settings.start_seconds:g} s"
            self._failed(reason)
            self._begin_end(process)
            return
        except asyncio.CancelledError:
            self._begin_end(process)
            raise
        self._take_over(process, asyncio.get_running_loop().time() - began)
        self._spawn(self._watch_end(process, transport))

    def _transport(self, process: HTTPProcess, listening: asyncio.Event) -> SubprocessTransport:
        def on_stderr(line: str) -> None:
            if not process.port and (found := _STARTED.search(line)):
                process.port, process.path = int(found[1]), found[2]
                listening.set()
            else:
                self._show_stderr(line)

        events = f"sqlite:{self._folder / 'events.db'}"
        return self._program.transport(on_stderr, "--http", "127.0.0.1:0", "--events", events)

    async def _wait_listening(self, listening: asyncio.Event, transport: SubprocessTransport) -> None:
        """Wait until the process listens. Raises `_Ended` if it ends first."""
        ended, ready = asyncio.ensure_future(transport.receive()), asyncio.ensure_future(listening.wait())
        try:
            await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise _Ended(str(transport.lost()))
        finally:
            ended.cancel()
            ready.cancel()
            await asyncio.wait({ended, ready})

    async def _watch_end(self, process: HTTPProcess, transport: SubprocessTransport) -> None:
        while await transport.receive():
            pass  # it writes nothing to stdout
        if process not in self._transports:
            return
        reason, is_current = str(transport.lost()), process is self._processes.current
        restarts = is_current and process.answered
        self._processes.lose(process, reason, is_expected=restarts)
        process.ended.set()
        if restarts:
            self._reporter.restarts(reason)
            self._begin_start()
        elif is_current:
            self._failed(reason)
        await self._end(process)

    def _take_over(self, process: HTTPProcess, seconds: float) -> None:
        old = self._processes.current
        changes, announced = self._processes.take_over(process)
        if process.generation > 1:
            self.reloads += 1
            took_over = TookOver(process.generation, None if old is None else old.generation, changes, announced)
            self._reporter.reloaded(took_over, seconds, lambda: self._proxy.list_requests)
        if old is not None:
            self._spawn(self._retire(old))

    async def _retire(self, process: HTTPProcess) -> None:
        """Let a process finish its calls within the grace, and end it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.grace_seconds):
                while not self._processes.is_finished(process):
                    process.progressed.clear()
                    await process.progressed.wait()
        for request in process.requests:
            if request.endpoint:
                request.stop(b"")  # its client opens another stream
        for request in process.calls:
            if request.exchange is not None:
                request.stop(failed_call(request.exchange, expired_reason()))
        self._processes.lose(process, "it was replaced", is_expected=True)
        await self._end(process)

    def _failed(self, reason: str) -> None:
        runs = self._processes.current is not None
        if not runs:
            self._processes.is_expected = False
            self._processes.fail(reason)
        self._reporter.start_failed(reason, runs=runs)

    def _begin_end(self, process: HTTPProcess) -> None:
        ending = self._spawn(self._end(process))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _end(self, process: HTTPProcess) -> None:
        if (transport := self._transports.pop(process, None)) is not None:
            transport.terminate()
            await transport.close()

    async def _close(self) -> None:
        self._reporter.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, self._attached.close(), return_exceptions=True)
        await asyncio.gather(*(self._end(process) for process in list(self._transports)), return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Ended(Exception):
    """A process ended before it listened."""


async def _list_surface(process: HTTPProcess) -> Any:
    """Return the surface of a process, or None if it may not be listed, as with authentication."""
    try:
        async with Client(f"http://127.0.0.1:{process.port}{process.path}") as client:
            return await surface(client)
    except AccordError:
        return None
