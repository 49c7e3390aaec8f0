"""A child process and its descendants: watched for its exit, and certainly ended after `end`.

The child leads a session, hence a process group, of its own. A wrapper (`npx`, `uvx`, a shell) that exits leaves its
server behind in that group, so signals go to the group, and the end is an empty group. Processes that still live when
the interpreter exits are killed then.

A child process gets the environment variables that programs need to run, without the secrets beside them.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

_POLL_SECONDS = 0.02
_LONGEST_PAUSE = 0.2
_AFTER_EXIT_SECONDS = 1.0
_AFTER_KILL_SECONDS = 1.0


class ProcessGroup:
    """A process that was started with `start_new_session`; created in the event loop that watches it."""

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
        self._process = process
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._owner = os.getpid()
        self._empty = False
        self.exited: asyncio.Event = asyncio.Event()
        for group in [group for group in _RUNNING if group._loop.is_closed()]:
            group._reap()
        _RUNNING.add(self)
        self._watch()

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the process itself; negative for a signal, `None` while it runs."""
        return self._process.returncode if self.exited.is_set() else None

    async def wait_ended(self, seconds: float) -> bool:
        """Wait until the process and all of its group have ended; return False after a timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self.exited.wait()
                pause = _POLL_SECONDS
                while self._has_members():
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
        except TimeoutError:
            return False
        return True

    async def end(self, seconds: float) -> None:
        """Wait, send SIGTERM, wait, kill: each wait takes at most `seconds`. Its stdin should be closed."""
        try:
            if await self.wait_ended(seconds):
                return
            self._signal(signal.SIGTERM)
            if await self.wait_ended(seconds):
                return
        finally:
            self.kill()
        await self.wait_ended(_AFTER_KILL_SECONDS)

    def terminate(self) -> None:
        """Send SIGTERM, without waiting."""
        if not self._empty and self._owner == os.getpid():
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the remaining processes, without waiting; only in the process that started it, not in a fork."""
        if not self._empty and self._owner == os.getpid():
            self._signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def _watch(self) -> None:
        try:
            pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not Linux, or an old version
            self._poll()
        else:
            self._loop.add_reader(pidfd, self._on_pidfd, pidfd)

    def _on_pidfd(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
        self._on_exited()

    def _poll(self) -> None:
        if self._process.poll() is None:
            self._loop.call_later(_POLL_SECONDS, self._poll)
        else:
            self._on_exited()

    def _on_exited(self) -> None:
        # The others in the group get SIGTERM while the leader still holds the number of the group.
        if sys.platform != "win32":
            self._signal(signal.SIGTERM)
        self._process.wait()
        self.exited.set()
        if self._has_members():  # they got SIGTERM and still hold the pipes, and with them the calls
            self._loop.call_later(_AFTER_EXIT_SECONDS, self._kill_members)
        self._on_exit()

    def _kill_members(self) -> None:
        if self._has_members():
            self.kill()

    def _reap(self) -> None:
        """Remove what is left of a process whose event loop was closed before it was seen to end."""
        if self._process.poll() is not None:
            self._has_members()

    def _has_members(self) -> bool:
        if not self._empty and not self._group_accepts_signals():
            self._empty = True
            _RUNNING.discard(self)
        return not self._empty

    def _group_accepts_signals(self) -> bool:
        if sys.platform == "win32":
            return False
        try:
            while os.waitpid(-self._process.pid, os.WNOHANG)[0]:  # as process 1 this process inherits the orphans
                continue
        except ChildProcessError:
            pass
        try:
            os.killpg(self._process.pid, 0)
        except OSError:
            return False
        return _has_living_members(self._process.pid)

    def _signal(self, number: signal.Signals) -> None:
        try:
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self._process.pid, number)
        except OSError:
            return  # it has ended in the meantime


def _has_living_members(group: int) -> bool:
    """Return whether the group has a process other than zombies, which remain where process 1 does not reap."""
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    for stat in stats:
        try:
            state, _, its_group = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except OSError:  # it has ended in the meantime
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return not stats  # without /proc, a group that accepts signals counts as alive


_RUNNING: set[ProcessGroup] = set()


@atexit.register
def _kill_running() -> None:
    for group in list(_RUNNING):
        group.kill()


_POSIX = (
    "HOME LOGNAME PATH SHELL TERM USER TMPDIR LANG LANGUAGE LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION "
    "LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME"
)
"""The variables of the locale, and no other `LC_*`: ssh passes on any `LC_*`, and people use them for other
purposes."""
_WINDOWS = (
    "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA "
    "PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE WINDIR"
)
_SAFE = frozenset((_WINDOWS if sys.platform == "win32" else _POSIX).split())


def child_environment(given: Mapping[str, str] | None, *, inherit: bool) -> dict[str, str]:
    """Return the environment of a child: a safe subset of the current one, or with `inherit` all of it, and `given`."""
    inherited = {name: value for name, value in os.environ.items() if inherit or _is_safe(name, value)}
    return inherited | dict(given or {})


def left_out(given: Mapping[str, str] | None) -> list[str]:
    """Return the names of the variables that a child does not get, unless it inherits all of them."""
    return sorted(name for name, value in os.environ.items() if not _is_safe(name, value) and name not in (given or {}))


def _is_safe(name: str, value: str) -> bool:
    # A value that begins with "()" is a shell function, which old shells execute at their start.
    return name.upper() in _SAFE and not value.startswith("()")
