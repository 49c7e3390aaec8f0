"""The client's side of stdio: a server as a child process, from its start to its certain end."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO

from accord.errors import ConnectError, ConnectionLost
from accord.limits import DEFAULT_LIMITS, Limits
from accord.redaction import secret_values
from accord.transport.base import Message
from accord.transport.pipes import LineTransport
from accord.transport.process import ProcessGroup, child_environment
from accord.transport.readers import read_from
from accord.wire.lines import LineReader, SkippedMessage

_SETTLE_SECONDS = 0.5
_STDERR_LINE = 64 << 10
_NAME_LENGTH = 80


class SubprocessTransport(LineTransport):
    """A transport that starts `command` (no shell), over its stdin and stdout.

    The child gets a safe subset of the current environment, or with `inherit_env` all of it, and `env`. The last
    `ClientLimits.stderr_lines` lines of its stderr are kept for errors, and `on_stderr` is called with each line.
    `name` is its name in errors.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str = "",
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        inherit_env: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        on_stderr: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(_shorten(name or display_command(command)), limits)
        self._command = list(command)
        self._given_environment = env or {}
        self._environment = child_environment(env, inherit=inherit_env)
        self._cwd = cwd
        self._stderr = StderrTail(limits.client.stderr_lines, on_stderr)
        self._group: ProcessGroup | None = None
        self._closing: asyncio.Task[None] | None = None
        self._settled = False

    @property
    def on_stderr(self) -> Callable[[str], None] | None:
        """Called with each line of its stderr."""
        return self._stderr.on_line

    @on_stderr.setter
    def on_stderr(self, on_stderr: Callable[[str], None] | None) -> None:
        self._stderr.on_line = on_stderr

    @property
    def secrets(self) -> Collection[str]:
        """Return the values in `env` whose names are those of secrets."""
        return secret_values(self._given_environment)

    async def open(self) -> None:
        """Start the process. Raises `ConnectError` if it cannot start; an immediate exit is reported by `lost()`."""
        process = spawn(self._command, self._environment, self._cwd, self.name)
        self._group = ProcessGroup(process, self._linger)
        self._stderr.read(own_descriptor(process.stderr))
        self._start(own_descriptor(process.stdout), own_descriptor(process.stdin))

    async def receive(self) -> list[Message]:
        messages = await super().receive()
        if not messages:
            await self._settle()
        return messages

    async def close(self) -> None:
        """Close its stdin, wait, send SIGTERM, wait, send SIGKILL, to all of its process group; in bounded time.

        It continues to the end if the caller is cancelled.
        """
        if self._group is not None and self._closing is None:
            self._closing = asyncio.create_task(self._end(self._group))
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def terminate(self) -> None:
        """Send SIGTERM to the process group, before `close`, which then has less to wait for."""
        if self._group is not None:
            self._group.terminate()

    def lost(self) -> ConnectionLost:
        code = self._group.exit_code if self._group is not None else None
        closed = "input" if self._peer_stopped_reading else "output"
        what = f"closed its {closed} but still runs" if code is None else describe_exit(code)
        tail = self._stderr.text
        lines = f"; last lines of stderr:\n{tail}" if tail else "; it wrote nothing to stderr"
        return ConnectionLost(f'server "{self.name}" {what}{lines}', exit_code=code, stderr=tail)

    async def _settle(self) -> None:
        """Wait a moment for the exit code and the last lines of stderr, which follow the end of its output."""
        if self._settled or self._closing is not None or self._group is None:
            return
        self._settled = True
        try:
            async with asyncio.timeout(_SETTLE_SECONDS):
                await self._group.exited.wait()
                await self._stderr.ended.wait()
        except TimeoutError:
            return

    async def _end(self, group: ProcessGroup) -> None:
        try:
            self._inbox.end()
            # Its output is read to the end, and dropped: a child that blocks on a write cannot exit.
            await self._close_sending()
            await group.end(self._limits.close_seconds)
        finally:
            group.kill()
            self._stderr.close()
            await super().close()


def spawn(
    command: Sequence[str], environment: Mapping[str, str], cwd: str | os.PathLike[str] | None, name: str
) -> subprocess.Popen[bytes]:
    """Start a process that leads a session of its own, with pipes. Raises `ConnectError`, which says what to do."""
    try:
        return subprocess.Popen(
            _argv(command, environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, ValueError) as exc:
        raise ConnectError(f'cannot start "{name}": {_hint(exc, command[0], environment, cwd)}') from exc


def _argv(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    if sys.platform == "win32":  # npx is npx.cmd, which only a search with PATHEXT finds
        found = shutil.which(command[0], path=environment.get("PATH"))
        return [found or command[0], *command[1:]]
    return list(command)


def _hint(
    exc: OSError | ValueError, program: str, environment: Mapping[str, str], cwd: str | os.PathLike[str] | None
) -> str:
    if cwd is not None and not os.path.isdir(cwd):
        return f"the directory {os.fspath(cwd)} does not exist"
    if isinstance(exc, PermissionError):
        return f"{program} may not be executed (is it a program, with its executable bit set?)"
    if not isinstance(exc, FileNotFoundError):
        return str(exc)
    if os.path.dirname(program):
        exists = os.path.exists(os.path.join(cwd or "", program))
        return f"the interpreter in the first line of {program} is missing" if exists else f"no such file: {program}"
    return f"{program} is not on PATH ({environment.get('PATH', 'which is not set')})"


class StderrTail:
    """Reader of a child's stderr, which never pauses, so that the child never blocks; keeps the last lines."""

    def __init__(self, lines: int, on_line: Callable[[str], None] | None) -> None:
        self._last: deque[str] = deque(maxlen=lines)
        self.on_line: Callable[[str], None] | None = on_line
        self._lines = LineReader(_STDERR_LINE)
        self.ended: asyncio.Event = asyncio.Event()

    @property
    def text(self) -> str:
        return "\n".join(self._last)

    def read(self, fd: int) -> None:
        self._reader = read_from(fd, lambda data: self._append(self._lines.feed(data)), self._end)

    def close(self) -> None:
        self._reader.close()

    def _end(self) -> None:
        self._append(self._lines.end())
        self.ended.set()

    def _append(self, lines: Sequence[bytes | SkippedMessage]) -> None:
        loop = asyncio.get_running_loop()
        for line in lines:
            text = line.decode(errors="replace").rstrip() if isinstance(line, bytes) else f"({line.reason})"
            self._last.append(text)
            if self.on_line is not None:
                loop.call_soon(self.on_line, text)  # an exception in it is reported, and has no other effect


def own_descriptor(stream: IO[bytes] | None) -> int:
    """Return a duplicate of the descriptor of a pipe that Popen created, and close the original."""
    assert stream is not None
    fd = os.dup(stream.fileno())
    stream.close()
    return fd


def describe_exit(code: int) -> str:
    """Return the exit code of a process as text: `exited with code 1`, `was ended by SIGKILL`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def display_command(command: Sequence[str]) -> str:
    """Return a command line as text: programs and files by their names, without their folders."""
    return shlex.join(os.path.basename(word) or word if os.path.isabs(word) else word for word in command)


def _shorten(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"
