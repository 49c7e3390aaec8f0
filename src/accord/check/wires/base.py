"""The protocol of a wire, and the processor time of process groups on Linux.

The processor time shows whether a server without a response is running: a timeout in seconds assumes that the machine
has time for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from accord.check.engine.report import TransportName
from accord.wire.lines import SkippedMessage

OnMessage: TypeAlias = Callable[[bytes | SkippedMessage, int], None]
"""Receives each message, with the stream that it came on (HTTP; else 0)."""


class Wire(Protocol):
    """A connection to a peer. `on_message` is set before it is opened; `on_close` is called once, at the end."""

    transport: TransportName
    on_message: OnMessage
    on_close: Callable[[], None]

    async def open(self) -> None:
        """Open the connection. Raises `ConnectError`."""

    def send(self, message: bytes, headers: Mapping[str, str | None]) -> int:
        """Send a message without changes, and return the number of the stream of its response. Never raises. `headers`
        are for HTTP only.
        """

    async def close(self) -> None:
        """Close the connection, in bounded time."""

    @property
    def close_reason(self) -> str:
        """Why the connection ended, as far as known."""

    @property
    def stderr(self) -> str:
        """The last lines of the stderr of the peer."""

    @property
    def exit_code(self) -> int | None:
        """The exit code of its process, if it has one and it has ended."""


_PROCESSES = Path("/proc")
_TICKS_PER_SECOND = 100.0
"""The clock ticks that Linux reports, independent of the kernel."""
_STATE, _GROUP, _USER, _SYSTEM = 0, 2, 11, 12
"""The fields of `stat` after the name of the program."""
_RUNNABLE = ("R", "D")


class ProcessorUse(NamedTuple):
    """The processor time of a process group."""

    seconds: float
    """The time of the processes that still run."""
    is_runnable: bool
    """Whether one of their threads is running, or waits for a processor or a disk."""


def processor_use(group: int) -> ProcessorUse | None:
    """Return the processor time of a process group; None if the system does not report it, or the group is empty."""
    members = [(process, fields) for process, fields in _processes() if fields[_GROUP] == str(group)]
    if not members:
        return None
    ticks = sum(int(fields[_USER]) + int(fields[_SYSTEM]) for _, fields in members)
    return ProcessorUse(ticks / _TICKS_PER_SECOND, any(_is_runnable(process) for process, _ in members))


def _processes() -> Iterator[tuple[Path, list[str]]]:
    for process in _PROCESSES.glob("[0-9]*"):
        fields = _fields(process / "stat")
        if fields:
            yield process, fields


def _is_runnable(process: Path) -> bool:
    return any(fields[_STATE] in _RUNNABLE for stat in process.glob("task/*/stat") if (fields := _fields(stat)))


def _fields(stat: Path) -> list[str]:
    """Return the fields after the name of the program; none if the process has just ended."""
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
