"""A client as a process: started for one scenario, watched, and ended; or an async function in this process."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import IO, Any

from accord.errors import ConnectError, TargetError
from accord.transport.process import ProcessGroup
from accord.transport.subprocess import StderrTail

_STDERR_LINES = 40
_END_SECONDS = 1.0

URL, SERVER, SERVER_WORDS = "{url}", "{server}", "{server*}"
"""The placeholders of a command: the URL; the command line of the server as one word; its words."""


def build_argv(command: str, target: str, words: Sequence[str] = ()) -> list[str]:
    """Return the command line of the client with the target. Raises `TargetError` without a placeholder."""
    try:
        parts = shlex.split(command)
    except ValueError as exc:
        raise TargetError(f"{command!r} is not a command line: {exc}") from exc
    if not any(mark in part for part in parts for mark in (URL, SERVER, SERVER_WORDS)):
        raise TargetError(
            f"{command!r} does not name the server: write {URL}, or over stdio {SERVER}. For a client that "
            f"reads its environment write `env NAME={URL} ...`"
        )
    found: list[str] = []
    for part in parts:
        found += words if part == SERVER_WORDS else [part.replace(URL, target).replace(SERVER, target)]
    return found


class ClientProcess:
    """One process of the client. `on_exit` is called when it has ended."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = list(command)
        self._environment = {**os.environ, **environment}
        self._group: ProcessGroup | None = None
        self._stdin: IO[bytes] | None = None
        self._stderr = StderrTail(_STDERR_LINES, None)
        self._stdout = StderrTail(_STDERR_LINES, None)
        self.exited: asyncio.Event = asyncio.Event()

    def start(self) -> None:
        """Start the process. Raises `ConnectError`."""
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=self._environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            raise ConnectError(f"cannot start {shlex.join(self._command)}: {exc}") from exc
        self._stdin = process.stdin
        for stream, tail in ((process.stdout, self._stdout), (process.stderr, self._stderr)):
            assert stream is not None
            tail.read(os.dup(stream.fileno()))
            stream.close()
        self._group = ProcessGroup(process, self.exited.set)

    @property
    def exit_code(self) -> int | None:
        """The exit code; negative for a signal; None while it runs."""
        return self._group.exit_code if self._group is not None else None

    @property
    def output(self) -> str:
        """The last lines of its stderr; of its stdout if stderr is empty."""
        return self._stderr.text or self._stdout.text

    async def stop(self) -> None:
        """Close its stdin, wait, send SIGTERM, wait, kill."""
        if self._stdin is not None:
            self._stdin.close()
        if self._group is not None:
            await self._group.end(_END_SECONDS)
            self._stderr.close()
            self._stdout.close()


InProcess = Callable[[str], Awaitable[Any]]
"""A client as a function of the target, a URL or a command line; an exception is its failure."""

_TASK_END_SECONDS = 2.0


class InProcessClient:
    """One call of such a function, with the interface of a process."""

    def __init__(self, client: InProcess, target: str) -> None:
        self._client = client
        self._target = target
        self._task: asyncio.Task[None] | None = None
        self.exited: asyncio.Event = asyncio.Event()
        self.exit_code: int | None = None
        self.output: str = ""

    def start(self) -> None:
        """Call the function."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cancel it if it still runs."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_TASK_END_SECONDS)

    async def _run(self) -> None:
        try:
            await self._client(self._target)
            self.exit_code = 0
        except Exception as exc:  # any failure of the client's own is how it ends
            self.output = f"{type(exc).__name__}: {exc}"
            self.exit_code = 1
        finally:
            self.exited.set()
