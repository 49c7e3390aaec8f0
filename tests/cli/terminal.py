"""A program at a terminal of its own: what it shows there, and what a person types. stdout goes to a pipe."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

SECONDS = 100

TAKE_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Ctrl-C reaches those whose terminal it is."""


class Terminal:
    """Runs Python, by default `accord`, with stdin and stderr on a pseudo-terminal, as the leader of its session.

    With `is_whole`, stdout is on it too.
    """

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        python: Sequence[str] = ("-m", "accord"),
        is_whole: bool = False,
        **environment: str,
    ) -> None:
        self._ours, theirs = os.openpty()
        self.shown = ""
        self._seen = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_THE_TERMINAL, sys.executable, *python, *arguments],
            stdin=theirs,
            stdout=theirs if is_whole else subprocess.PIPE,
            stderr=theirs,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm", **environment},
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._ours)

    def expect(self, text: str) -> str:
        """Wait until `text` is shown, after what was expected before; everything shown up to there."""
        deadline = time.monotonic() + SECONDS
        while (found := self.shown.find(text, self._seen)) < 0:
            more = time.monotonic() < deadline and self._read()
            assert more, f"{text!r} is not shown:\n{self.shown[self._seen :]}"
        before, self._seen = self.shown[self._seen : found], found + len(text)
        return before

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._ours, text.encode() + b"\n")

    def press(self, key: str) -> None:
        """Type as it is: `\\x03` is Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self._ours, key.encode())

    def signal(self, number: signal.Signals) -> None:
        """What `kill` does."""
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """The exit code, stdout, and the rest of what is shown."""
        said = "" if self.process.stdout is None else self.process.stdout.read().decode()
        code = self.process.wait(SECONDS)
        while self._read():
            continue
        return code, said, self.shown[self._seen :]

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], SECONDS)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux ends a terminal this way
            return False
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
