"""Lines to and from a child process, raw: partial lines, bytes that are no text, an input that ends early."""

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
"""How long after the end of its output its exit code and its last words may come."""
_BY_SIGNAL = (-signal.SIGTERM, -signal.SIGKILL)


class _Pipe(asyncio.BaseProtocol):
    """Knows whether the pipe is closed: a transport that is may not be told to abort."""

    is_closed = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True


class ChildWire:
    """A server that is our child process. What it is sent goes out as it is, with a newline from `send` alone."""

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
        """Whether we ended it, before it was closed."""
        self.grace: float = _CLOSE_SECONDS
        """Seconds that it has to end by itself, and again once it is told to."""

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
        """What is sent meanwhile waits: a line that is written in pieces stays whole."""
        held = self._queued = []
        try:
            yield
        finally:
            self._queued = None
            self.write(b"".join(held))

    def write(self, data: bytes) -> None:
        """Send bytes as they are: half a line, several, what is no text."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    def end_input(self) -> None:
        """Let it see the end of its input, once all is written."""
        if self._writer is not None:
            self._writer.close()

    def pause(self) -> None:
        """Read nothing more of what it writes, until `resume`."""
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        if self._reader is not None:
            self._reader.resume()

    def terminate(self) -> None:
        """Tell it to end (SIGTERM)."""
        self.was_signalled = True
        if self._group is not None:
            self._group.terminate()

    def kill(self) -> None:
        """End it at once, without a word."""
        self.was_signalled = True
        if self._group is not None:
            self._group.kill()

    async def wait_for_exit(self, seconds: float) -> bool:
        """Wait until its process has ended, with all that it started; false when that takes longer."""
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
        """Whether it ended by a signal of ours only, long after its input."""
        return not self.was_signalled and self.exit_code in _BY_SIGNAL

    @property
    def close_reason(self) -> str:
        code = self.exit_code
        return f"the server {'closed its output and still runs' if code is None else describe_exit(code)}"

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
        """Whoever waits is told how the process ended, and what it said last: both come a moment later."""
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
