"""`Task`: how a tool runs as a task."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import msgspec

from accord.errors import DeclarationError


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a tool that may run as a task: `@server.tool(task=Task(ttl=3600))`. Times are in seconds.

    Raises `DeclarationError` for a time that is negative or not a number.
    """

    required: bool = False
    """Whether only clients that support tasks may call the tool."""
    ttl: float = 3_600
    """How long the task is kept after its creation, running or ended; then it is cancelled. A client of 2025-11-25 may
    request less."""
    poll: float = 1
    """The longest interval at which clients should poll; a young task asks to be polled more often."""
    after: float | None = 0
    """The call becomes a task if it takes longer than this; None: only by `ctx.run_as_task()`, or when the handler asks
    the user. A client of 2025-11-25 decides itself."""
    restart: bool = False
    """Whether the handler may run again after the server has stopped during the task. Tools that are marked as
    read-only or idempotent always do."""

    def __post_init__(self) -> None:
        for name in ("ttl", "poll", "after"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not 0 <= value < math.inf):
                raise DeclarationError(f"Task({name}=) takes seconds, 0 or more, not {value!r}")
        if self.ttl == 0:
            raise DeclarationError("Task(ttl=) takes seconds, more than 0: the task would be dropped at once")


TaskSupport: TypeAlias = Literal["optional", "required"] | bool | Task
"""The option `task` of a tool: "optional" (or True), "required", or `Task(...)`."""


def task_options(support: Any) -> Task | None:
    """Return the options that `task=` of a tool stands for; None without tasks. Raises `DeclarationError`."""
    if support is None or support is False:
        return None
    if support is True or support == "optional":
        return Task()
    if support == "required":
        return Task(required=True)
    if isinstance(support, Task):
        return support
    raise DeclarationError(f'task= takes "optional", "required" or Task(...), not {support!r}')
