"""Servers over HTTP, each in a process of its own: accord's, and other people's."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 100
"""For a server to begin, and to end; Python SDKs take a few to import."""

WHERE = re.compile(r"http://127\.0\.0\.1:([1-9]\d*)|on port (\d+)")
"""How servers say where they are, once they serve."""


class Serving:
    """A server that serves: `url` is its address, without a path."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process: subprocess.Popen[str] = process
        self._said: list[str] = []
        self._port: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        port = self._port.get(timeout=SECONDS)
        assert port is not None, f"the server ended before it served:\n{self.said}"
        self.url: str = f"http://127.0.0.1:{port}"

    @property
    def said(self) -> str:
        """What it has written so far."""
        return "".join(self._said)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def end(self) -> int:
        """Ask it to end, as an administrator would; its exit code."""
        self.process.terminate()
        code = self.process.wait(SECONDS)
        self.read_all()
        return code

    def read_all(self) -> None:
        """Wait until all is read that it wrote, once it has ended."""
        self._reading.join(SECONDS)

    def _read(self) -> None:
        told = False
        for line in self.process.stdout or ():
            self._said.append(line)
            if not told and (found := WHERE.search(line)):
                told = True
                self._port.put(found[1] or found[2])
        if not told:
            self._port.put(None)


@contextmanager
def serving(command: list[str], port: int = 0) -> Iterator[Serving]:
    """A server that `command` starts; where to listen is its last argument, and in the environment as `PORT`."""
    with subprocess.Popen(
        [*command, f"127.0.0.1:{port}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "PORT": str(port)},
    ) as process:
        served: Serving | None = None
        try:
            served = Serving(process)
            yield served
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if served is not None:
                served.read_all()  # or its output is closed while the thread still reads it


def free_port() -> int:
    """A port that nobody listens at: for servers that do not say which one they were given.

    It is below those that systems give out by themselves, so that none of them, for another test that runs beside
    this one, is the same.
    """
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
