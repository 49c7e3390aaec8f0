"""What a wire is: it carries whatever bytes it is given, and hands over whatever comes.

The processor time of a group of processes, on Linux: whether a server that does not answer is at work.

A server that had to leave the processor to others is not silent: a limit in seconds holds for a machine that has time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from accord.check.engine.report import TransportName
from accord.wire.lines import SkippedMessage

OnMessage: TypeAlias = Callable[[bytes | SkippedMessage, int], None]
"""Is called with each message that comes, and the stream that it came on (HTTP; else 0)."""


class Wire(Protocol):
    """One connection to a peer. `on_message` is set before it is opened; `on_close` is called once, when all is
    over."""

    transport: TransportName
    on_message: OnMessage
    on_close: Callable[[], None]

    async def open(self) -> None:
        """Start. Raises `ConnectError`."""

    def send(self, message: bytes, headers: Mapping[str, str | None]) -> int:
        """Send one message as it is; the number of the stream on which its answer will come. Never raises.

        `headers` are for HTTP, and for nobody else.
        """

    async def close(self) -> None:
        """End it, in bounded time."""

    @property
    def close_reason(self) -> str:
        """Why it ended, in words; what is known now."""

    @property
    def stderr(self) -> str:
        """The last lines that the peer wrote there."""

    @property
    def exit_code(self) -> int | None:
        """How its process ended, if it has one and it did."""


_PROCESSES = Path("/proc")
_TICKS_PER_SECOND = 100.0
"""As Linux reports them to programs, whatever its kernel counts in."""
_STATE, _GROUP, _USER, _SYSTEM = 0, 2, 11, 12
"""Fields of `stat` behind the name of the program."""
_RUNNABLE = ("R", "D")


class ProcessorUse(NamedTuple):
    """What a group of processes has used of the processor."""

    seconds: float
    """By the processes that still run."""
    is_runnable: bool
    """Whether one of their threads runs, or waits for the processor or a disk, just now."""


def processor_use(group: int) -> ProcessorUse | None:
    """Return the use of a group of processes; None on systems that do not tell, and when it is empty."""
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
    """The fields behind the name of the program; none for a process that has just ended."""
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
