"""The program under development: how its processes are started, and what starts a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from accord.client.target import Command
from accord.dev.file_watcher import FileWatcher
from accord.dev.import_report import VARIABLE
from accord.dev.settings import DevSettings
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.subprocess import SubprocessTransport

DEBOUNCE_SECONDS = 0.05
"""Seconds for which the files must be unchanged before a reload starts: editors write a file in several steps."""

_MOST_SECONDS = 1.0
"""The longest time that a reload waits while files go on to change."""


class Program:
    """A command, with the private folder of this run."""

    def __init__(self, command: Command, settings: DevSettings, folder: Path) -> None:
        self.command: Command = command
        self._settings = settings
        self._is_requested = asyncio.Event()
        self._report = folder / "imports"

    @property
    def name(self) -> str:
        """Return the name of the program for people."""
        return str(self.command)

    def request_reload(self) -> None:
        """Reload soon, as if a file had changed."""
        self._is_requested.set()

    def transport(
        self, on_stderr: Callable[[str], None], *arguments: str, limits: Limits = DEFAULT_LIMITS
    ) -> SubprocessTransport:
        """Return the transport of a new process, which is not started."""
        environment = {**(self.command.env or {}), VARIABLE: str(self._report), "PYTHONDONTWRITEBYTECODE": "1"}
        return SubprocessTransport(
            [*self.command.argv, *arguments],
            name=self.name,
            env=environment,
            cwd=self.command.cwd,
            inherit_env=True,
            limits=limits,
            on_stderr=on_stderr,
        )

    async def watch(self, on_change: Callable[[], Awaitable[None]]) -> None:
        """Call `on_change` after each change of a file and each request, until cancelled."""
        watcher = FileWatcher([*command_files(self.command), *self._settings.watch], self._report)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(watcher.pause):
                    await self._is_requested.wait()
            if watcher.poll():
                await _settle(watcher)
            elif not self._is_requested.is_set():
                continue
            self._is_requested.clear()
            await on_change()


async def _settle(watcher: FileWatcher) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _MOST_SECONDS
    while loop.time() < deadline:
        await asyncio.sleep(DEBOUNCE_SECONDS)
        if not watcher.poll():
            return


def command_files(command: Command) -> list[Path]:
    """Return the files that a command line names: of a FILE.py target the file itself, else all that exist."""
    cwd = Path(command.cwd or ".")
    words = (command.argv[-1].partition(".py:")[0] + ".py",) if command.is_file and ".py:" in command.argv[-1] else ()
    named = (cwd / word for word in (*words, *command.argv[1:]))
    return [path for path in named if path.is_file()]
