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
from accord.dev import terminal_lines
from accord.dev.actions import TookOver
from accord.dev.change_loop import watch_changes
from accord.dev.file_watcher import FileWatcher
from accord.dev.http_proxy import HTTPProcess, ReloadingProxy
from accord.dev.import_report import VARIABLE
from accord.dev.settings import DevSettings
from accord.dev.stdio import command_files
from accord.dev.unavailable import failed_call
from accord.errors import AccordError, ConnectError, TargetError
from accord.limits import DEFAULT_LIMITS
from accord.server.http.serving.address import bind, bound_address, is_loopback, parse_address
from accord.server.http.serving.serve import serving
from accord.transport.subprocess import SubprocessTransport

_REPORT = "imports"
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
        self.url: str = ""
        self._command = command
        self._address = address
        self._settings = settings
        self._show = show
        self._show_stderr = show_stderr
        self._proxy = ReloadingProxy(str(command), settings.start_seconds, self._show_call)
        self._folder = Path()  # private files of this run
        self._transports: dict[HTTPProcess, SubprocessTransport] = {}
        self._starting: asyncio.Task[None] | None = None
        self._generation = 0
        self._surface: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
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
            try:
                await self._serve(sockets)
            finally:
                await self._close()

    async def _serve(self, sockets: Sequence[socket]) -> None:
        async with serving(self._proxy, sockets, DEFAULT_LIMITS):
            self._show(f"{self._command} at {self.url}")
            self.started.set()
            self._begin_start()
            paths = [*command_files(self._command), *self._settings.watch]
            await watch_changes(FileWatcher(paths, self._folder / _REPORT), self._files_changed)

    async def _files_changed(self, changed: set[str]) -> None:
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
        if self._settings.stop_first and (current := self._proxy.current) is not None:
            self._proxy.lose(current, "it was stopped", is_expected=True)
            await self._retire(current)
        self._begin_start()

    def _begin_start(self) -> None:
        self._starting = self._spawn(self._start())

    # --- processes ------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        began = asyncio.get_running_loop().time()
        self._generation += 1
        process = HTTPProcess(self._generation)
        if self._proxy.current is None:
            self._proxy.is_expected = True
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
            await self._end(process)
            return
        except asyncio.CancelledError:
            self._spawn(self._end(process))
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

        events = self._folder / "events.db"
        return SubprocessTransport(
            [*self._command.argv, "--http", "127.0.0.1:0", "--events", f"sqlite:{events}"],
            name=str(self._command),
            env={**(self._command.env or {}), VARIABLE: str(self._folder / _REPORT), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=self._command.cwd,
            inherit_env=True,
            on_stderr=on_stderr,
        )

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
        reason, is_current = str(transport.lost()), process is self._proxy.current
        restarts = is_current and process.answered
        self._proxy.lose(process, reason, is_expected=restarts)
        process.ended.set()
        if restarts:
            self._show(f"{self._command} ended and starts again: {reason}")
            self._begin_start()
        elif is_current:
            self._failed(reason)
        await self._end(process)

    def _take_over(self, process: HTTPProcess, seconds: float) -> None:
        old = self._proxy.current
        changes, announced = self._proxy.take_over(process)
        if process.generation > 1:
            self.reloads += 1
            took_over = TookOver(process.generation, None if old is None else old.generation, changes, announced)
            for line in terminal_lines.reload_lines(str(self._command), took_over, seconds):
                self._show(line)
        if old is not None:
            self._spawn(self._retire(old))

    async def _retire(self, process: HTTPProcess) -> None:
        """Let a process finish its calls within the grace, and end it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.grace_seconds):
                while not process.is_finished:
                    process.progressed.clear()
                    await process.progressed.wait()
        for request in process.calls:
            if request.exchange is not None:
                reason = "reloaded: the process of the earlier version was ended during this call; whether it took "
                request.stop(failed_call(request.exchange, reason + "effect is unknown"))
        await self._end(process)
        if process in self._proxy.retired:
            self._proxy.retired.remove(process)

    def _failed(self, reason: str) -> None:
        runs = self._proxy.current is not None
        if not runs:
            self._proxy.failure = f"{self._command} does not run: {reason}"
            self._proxy.is_expected = False
            self._proxy.changed.set()
        self._show(terminal_lines.failed_line(str(self._command), reason, runs=runs))

    async def _end(self, process: HTTPProcess) -> None:
        if (transport := self._transports.pop(process, None)) is not None:
            transport.terminate()
            await transport.close()

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._end(process) for process in list(self._transports)), return_exceptions=True)

    def _show_call(self, what: str, outcome: str, seconds: float) -> None:
        self._show(terminal_lines.call_line(what, outcome, seconds))

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
