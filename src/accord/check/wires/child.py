"""Raw lines to and from a child process: partial lines, bytes that are not text, early end of stdin."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from subprocess import Popen

from accord.check.engine.report import TransportName
from accord.check.wires.base import OnMessage
from accord.client.target import Command
from accord.transport.process import ProcessGroup, child_environment
from accord.transport.readers import DescriptorReader, read_from
from accord.transport.subprocess import StderrTail, describe_exit, own_descriptor, spawn
from accord.wire.lines import LineReader

LINE_BYTES = 32 << 20
_STDERR_LINES = 50
_CLOSE_SECONDS = 2.0
_SETTLE_SECONDS = 1.0
"""Seconds to wait for the exit code and stderr after the end of stdout."""
_BY_SIGNAL = (-signal.SIGTERM, -signal.SIGKILL)


class _Pipe(asyncio.BaseProtocol):
    """A pipe transport that knows whether it is closed: a closed one must not be aborted."""

    is_closed = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True


class ChildWire:
    """A server as a child process. Messages are sent without changes; only `send` adds a newline."""

    transport: TransportName = "stdio"

    def __init__(self, command: Command, env: Mapping[str, str] | None = None) -> None:
        self.on_message: OnMessage = lambda raw, stream: None
        self.on_close: Callable[[], None] = lambda: None
        self._command = command
        self._env = {**(command.env or {}), **(env or {})}
        self._lines = LineReader(LINE_BYTES)
        self._stderr = StderrTail(_STDERR_LINES, None)
        self._group: ProcessGroup | None = None
        self._reader: DescriptorReader | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._pipe = _Pipe()
        self._queued: list[bytes] | None = None
        self._ended = False
        self._exit_wait: asyncio.Task[None] | None = None
        self.pid: int = 0
        self.was_signalled: bool = False
        """Whether the checker ended it, before it was closed."""
        self.grace: float = _CLOSE_SECONDS
        """Seconds that it has to exit on its own, and again after a signal."""

    async def open(self) -> None:
        command = self._command
        environment = child_environment(self._env, inherit=command.inherit_env)
        process = spawn(command.argv, environment, command.cwd, str(command))
        self.pid = process.pid
        await self._join(process)

    async def _join(self, process: Popen[bytes]) -> None:
        self._group = ProcessGroup(process, lambda: None)
        self._stderr.read(own_descriptor(process.stderr))
        self._reader = read_from(own_descriptor(process.stdout), self._on_data, self._on_output_end)
        loop = asyncio.get_running_loop()
        self._writer, self._pipe = await loop.connect_write_pipe(_Pipe, process.stdin)

    def send(self, message: bytes, headers: Mapping[str, str | None]) -> int:
        if self._queued is None:
            self.write(message + b"\n")
        else:
            self._queued.append(message + b"\n")
        return 0

    @contextlib.contextmanager
    def exclusive_write(self) -> Iterator[None]:
        """Delay other messages, so that a line that is written in parts is not interrupted."""
        held = self._queued = []
        try:
            yield
        finally:
            self._queued = None
            self.write(b"".join(held))

    def write(self, data: bytes) -> None:
        """Send bytes without changes: partial lines, several lines, or bytes that are not text."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    def end_input(self) -> None:
        """Close its stdin after all bytes are written."""
        if self._writer is not None:
            self._writer.close()

    def pause(self) -> None:
        """Stop reading its stdout until `resume`."""
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        if self._reader is not None:
            self._reader.resume()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.was_signalled = True
        if self._group is not None:
            self._group.terminate()

    def kill(self) -> None:
        """Kill it immediately."""
        self.was_signalled = True
        if self._group is not None:
            self._group.kill()

    async def wait_for_exit(self, seconds: float) -> bool:
        """Wait until the process and all its children have ended; return false after the timeout."""
        return self._group is None or await self._group.wait_ended(seconds)

    async def close(self) -> None:
        if self._group is None:
            return
        try:
            self.end_input()
            await self._group.end(self.grace)
        finally:
            self._group.kill()
            if self._exit_wait is not None:
                self._exit_wait.cancel()
            if self._writer is not None and not self._pipe.is_closed:
                self._writer.abort()
            if self._reader is not None:
                self._reader.close()
            self._stderr.close()
            self._finish()

    @property
    def ignored_stdin_end(self) -> bool:
        """Whether only a signal of the checker ended it, long after the end of stdin."""
        return not self.was_signalled and self.exit_code in _BY_SIGNAL

    @property
    def close_reason(self) -> str:
        code = self.exit_code
        return f"the server {'closed its output, but is still running' if code is None else describe_exit(code)}"

    @property
    def stderr(self) -> str:
        return self._stderr.text

    @property
    def exit_code(self) -> int | None:
        return self._group.exit_code if self._group is not None else None

    def _on_data(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self.on_message(line, 0)

    def _on_output_end(self) -> None:
        for line in self._lines.end():
            self.on_message(line, 0)
        self._exit_wait = asyncio.create_task(self._wait_for_exit_code())

    async def _wait_for_exit_code(self) -> None:
        """Report how the process ended, with its last output: both arrive a moment later."""
        if self._group is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_SECONDS):
                    await self._group.exited.wait()
                    await self._stderr.ended.wait()
        self._finish()

    def _finish(self) -> None:
        if not self._ended:
            self._ended = True
            self.on_close()
