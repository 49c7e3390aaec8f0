"""The driver of the relay over stdio: it starts and ends processes, moves messages, and measures time."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from accord.client.target import Command
from accord.dev import attach_server
from accord.dev.actions import (
    Action,
    CallEnded,
    CallStarted,
    Finished,
    Restart,
    ShowLine,
    StartFailed,
    ToHost,
    TookOver,
    ToProcess,
)
from accord.dev.attach_server import AttachServer
from accord.dev.program import Program
from accord.dev.relay import Relay
from accord.dev.reporter import Reporter
from accord.dev.settings import DevSettings
from accord.errors import ConnectError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.base import Transport
from accord.transport.subprocess import SubprocessTransport


class StdioReloader:
    """A host on `host`, connected with the processes of `command`, one after the other.

    `show` receives each line for the developer, `show_stderr` each line that a process writes to stderr.
    """

    def __init__(
        self,
        command: Command,
        host: Transport,
        settings: DevSettings,
        *,
        show: Callable[[str], None],
        show_stderr: Callable[[str], None],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.relay: Relay = Relay(str(command), prefix=f"accord-dev-{secrets.token_hex(8)}", search=settings.search)
        self.reloads: int = 0
        """The number of times that a process has taken over from another."""
        self._command = command
        self._host = host
        self._settings = settings
        self._show = show
        self._show_stderr = show_stderr
        self._limits = limits
        self._program: Program
        self._attached: AttachServer
        self._reporter: Reporter
        self._transports: dict[int, SubprocessTransport] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}  # of a start, or of a grace
        self._starts: dict[int, float] = {}
        self.starts: int = 0
        """The number of processes that were started; each has its number as its generation."""
        self._starting: int | None = None
        self._has_active = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        """The tasks that end processes."""
        self._progressed = asyncio.Event()  # set after each message

    async def run(self) -> None:
        """Serve the host until it closes the connection."""
        await self._host.open()
        with tempfile.TemporaryDirectory(prefix="accord-dev-") as folder:
            self._program = Program(self._command, self._settings, Path(folder))
            self._attached = await attach_server.opened(self._program, self._show)
            self._reporter = Reporter(self._program.name, self._show, self._attached.publish)
            await self._serve()

    async def _serve(self) -> None:
        try:
            await self._start()
            self._spawn(self._program.watch(self.reload))
            await self._read_host()
            await self._finish()
        finally:
            await self._close()

    async def reload(self) -> None:
        """Start a new process, which takes over when it is ready."""
        if self._starting is not None:
            generation, self._starting = self._starting, None
            self._perform(self.relay.abandon(generation))
            self._begin_end(generation, at_once=True)
        if self._settings.stop_first:
            await self._stop()
        await self._start()

    async def _stop(self) -> None:
        """End all processes, after their grace, or as soon as they have finished their requests."""
        self._has_active = False
        self._perform(self.relay.retire())
        # not until no request waits: new ones wait for the next process
        await self._wait_until(lambda: not self.relay.is_retiring, self._settings.grace_seconds)
        await asyncio.gather(*(self._end(generation) for generation in list(self._transports)), *self._ending)

    # --- processes ------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self.starts += 1
        generation, loop = self.starts, asyncio.get_running_loop()
        self._starts[generation] = loop.time()
        transport = self._program.transport(self._show_stderr, limits=self._limits)
        self._starting = generation
        self._timers[generation] = loop.call_later(self._settings.start_seconds, self._start_timed_out, generation)
        try:
            await transport.open()
        except ConnectError as exc:
            self._perform(self.relay.start(generation))
            self._perform(self.relay.process_ended(generation, str(exc)))
            return
        self._transports[generation] = transport
        self._spawn(self._read_process(generation, transport))
        self._perform(self.relay.start(generation))

    def _start_timed_out(self, generation: int) -> None:
        if generation == self._starting:
            reason = f"it was not ready within {self._settings.start_seconds:g} s"
            self._perform(self.relay.process_ended(generation, reason))

    def _begin_end(self, generation: int, *, at_once: bool = False) -> None:
        ending = self._spawn(self._end(generation, at_once=at_once))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _end(self, generation: int, *, at_once: bool = False) -> None:
        """End a process. Its remaining requests fail."""
        if (timer := self._timers.pop(generation, None)) is not None:
            timer.cancel()
        transport = self._transports.pop(generation, None)
        if transport is None:
            return
        self._perform(self.relay.expire(generation))
        if at_once:
            transport.terminate()
        await transport.close()

    def _expire(self, generation: int) -> None:
        self._perform(self.relay.expire(generation))
        self._begin_end(generation, at_once=True)

    async def _wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._progressed.clear()
                    await self._progressed.wait()

    # --- messages -------------------------------------------------------------------------------------------------

    async def _read_host(self) -> None:
        while messages := await self._host.receive():
            for message in messages:
                if isinstance(message, bytes):
                    self._perform(self.relay.receive_host(message))
                else:
                    self._reporter.line(f"a message of the host was skipped: {message}")
            for transport in list(self._transports.values()):
                transport.flush()
                await transport.drain()
            self._host.flush()

    async def _read_process(self, generation: int, transport: SubprocessTransport) -> None:
        while messages := await transport.receive():
            for message in messages:
                if isinstance(message, bytes):
                    self._perform(self.relay.receive_process(generation, message))
                else:
                    self._reporter.line(f"a message of the program was skipped: {message}")
            self._host.flush()
            transport.flush()
            await self._host.drain()
        if generation in self._transports:
            self._perform(self.relay.process_ended(generation, str(transport.lost())))
            await self._end(generation)

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, ToHost):
                self._host.send(action.message)
            elif isinstance(action, ToProcess):
                if (transport := self._transports.get(action.generation)) is not None:
                    transport.send(action.message)
            else:
                self._report_action(action)
        self._progressed.set()

    def _report_action(self, action: Action) -> None:
        if isinstance(action, CallStarted):
            self._reporter.call_started(action.id, action.what, action.message)
        elif isinstance(action, CallEnded):
            self._reporter.call_ended(action.id, action.outcome, action.message)
        elif isinstance(action, TookOver):
            self._took_over(action)
        elif isinstance(action, StartFailed):
            self._start_failed(action)
        elif isinstance(action, Finished):
            self._begin_end(action.generation)
        elif isinstance(action, Restart):
            self._has_active = False
            self._reporter.restarts(action.reason)
            self._spawn(self._start())
        elif isinstance(action, ShowLine):
            self._reporter.line(action.text)

    def _took_over(self, action: TookOver) -> None:
        loop = asyncio.get_running_loop()
        self._starting = None if self._starting == action.generation else self._starting
        if (timer := self._timers.pop(action.generation, None)) is not None:
            timer.cancel()
        self._has_active = True
        began = self._starts.pop(action.generation)
        if action.generation > 1:
            self.reloads += 1
            self._reporter.reloaded(action, loop.time() - began, lambda: self.relay.list_requests)
        if action.retired is not None:
            grace = loop.call_later(self._settings.grace_seconds, self._expire, action.retired)
            self._timers[action.retired] = grace

    def _start_failed(self, action: StartFailed) -> None:
        if action.generation == self._starting:
            self._starting = None
        else:
            self._has_active = False
        self._reporter.start_failed(action.reason, runs=self._has_active)
        self._begin_end(action.generation, at_once=True)

    # --- the end --------------------------------------------------------------------------------------------------

    async def _finish(self) -> None:
        """Wait for the answers to the host's last requests, within the limits of a server's shutdown."""
        await self._wait_until(lambda: self.relay.is_idle, self._limits.grace_seconds)
        await self._host.drain()

    async def _close(self) -> None:
        self._reporter.close()
        for timer in self._timers.values():
            timer.cancel()
        transports, self._transports = list(self._transports.values()), {}
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(
            *(each.close() for each in transports), self._host.close(), self._attached.close(), return_exceptions=True
        )
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
