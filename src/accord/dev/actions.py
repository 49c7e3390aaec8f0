"""What the relay asks its driver to do, in order."""

from __future__ import annotations

import msgspec

from accord.check.surface.schema_changes import Change
from accord.messages.base import RequestId


class ToHost(msgspec.Struct, frozen=True):
    """Send a message to the host."""

    message: bytes


class ToProcess(msgspec.Struct, frozen=True):
    """Send a message to a process."""

    generation: int
    message: bytes


class TookOver(msgspec.Struct, frozen=True):
    """A process has taken over: new requests go to it. `retired` is the process before it, which has its grace now."""

    generation: int
    retired: int | None
    changes: tuple[Change, ...] = ()
    """The changes of the surface."""
    announced: tuple[str, ...] = ()
    """The lists whose change was announced to the host."""


class StartFailed(msgspec.Struct, frozen=True):
    """A process could not take over: end it. The last good one, if any, continues."""

    generation: int
    reason: str


class Finished(msgspec.Struct, frozen=True):
    """A process has no more requests to answer: end it."""

    generation: int


class Restart(msgspec.Struct, frozen=True):
    """The active process has ended: start another one."""

    reason: str


class CallStarted(msgspec.Struct, frozen=True):
    """A call went to a process."""

    id: RequestId
    what: str
    """Method and name: `tools/call forecast`."""
    message: bytes


class CallEnded(msgspec.Struct, frozen=True):
    """A call was answered, or cancelled."""

    id: RequestId
    outcome: str
    """`ok`, `tool error`, `error -32602: ...`, `cancelled`."""
    message: bytes


class ShowLine(msgspec.Struct, frozen=True):
    """Show a line to the developer."""

    text: str


Action = ToHost | ToProcess | TookOver | StartFailed | Finished | Restart | CallStarted | CallEnded | ShowLine
