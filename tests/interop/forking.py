"""Programs in processes that are forked from one that has their imports, which take most of their time."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

FORKING = Path(__file__).parent / "servers" / "fork_programs.py"


class ForkedPrograms:
    """Runs Python programs. Each runs in a process of its own; programs of one name share their imports."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._parents: dict[tuple[str, ...], Parent] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def run(
        self,
        command: Sequence[str],
        *arguments: str,
        seconds: float,
        input: str = "",
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program, which `command` names with its interpreter. Its `input` has to fit into a pipe.

        Raises `TimeoutExpired`; the process is ended then.
        """
        parent = self._parent(*command)
        wanted = {"arguments": arguments, "environment": {**(environment or os.environ)}}
        with ThreadPoolExecutor(2) as readers:
            streams, reading = pipes(input)
            outputs = [readers.submit(read, end) for end in reading]
            parent.begin(streams, {**wanted, "folder": str(folder or Path.cwd())})
            code = parent.code(seconds)
            output, errors = (each.result() for each in outputs)
        if code is None:
            raise subprocess.TimeoutExpired(command, seconds)
        assert code, f"{command} could not be imported:\n{parent.errors()}"
        return subprocess.CompletedProcess([*command, *arguments], int(code), output, errors)

    def _parent(self, python: str, program: str) -> Parent:
        """Return the process that forks this program; start it for the first one."""
        if (found := self._parents.get((python, program))) is None or found.has_ended:
            found = self._stack.enter_context(Parent(python, program))
            self._parents[python, program] = found
        return found


class Parent:
    """A process that has imported a program, and forks for each run of it."""

    def __init__(self, python: str, program: str) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [python, str(FORKING), program, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,  # of the same kind as those that take their place
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        self._lines = self._control.makefile(encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._lines.close()
        self._control.close()
        with self._process:
            pass

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def errors(self) -> str:
        """Return what it has written to its errors, once it has ended."""
        return self._process.communicate()[1].decode()

    def begin(self, streams: Sequence[int], wanted: Mapping[str, object]) -> None:
        """Have it run with these streams, which are closed here; if it has ended, `code` says so."""
        with suppress(ConnectionError):
            socket.send_fds(self._control, [b"\0"], streams)
            self._control.sendall(f"{json.dumps(wanted)}\n".encode())
        for stream in streams:
            os.close(stream)

    def code(self, seconds: float) -> str | None:
        """Return its exit code: empty, where the process that forks has ended; None, if it took too long."""
        if select.select([self._control], [], [], seconds)[0]:
            with suppress(ConnectionError):
                return self._lines.readline()
            return ""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return None


def pipes(input: str) -> tuple[list[int], list[int]]:
    """Return the input, output and errors of a process, and where the last two are read."""
    (stdin, feeding), (output, stdout), (errors, stderr) = os.pipe(), os.pipe(), os.pipe()
    os.write(feeding, input.encode())
    os.close(feeding)
    return [stdin, stdout, stderr], [output, errors]


def read(end: int) -> str:
    with open(end, encoding="utf-8") as file:
        return file.read()
