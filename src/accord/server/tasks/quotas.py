"""Quotas of the tasks on one event loop: how many each account has, and the memory that their handlers hold.

A task outlives the request that has created it, and with that the charge for the body (`BodyCharge`). Its arguments
stay in memory until its handler ends, and so does the session of a client that has ended it meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Raw

from accord.errors import RateLimited, StoreFull
from accord.limits import Limits
from accord.messages.bounds import FIELD_BYTES, AccountMemory, memory_of

if TYPE_CHECKING:
    from accord.server.tasks.running_task import RunningTask


class TaskQuotas:
    """The running tasks of each account and their memory, which is not limited for a client that has started the server
    (an empty account).
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running: Counter[str] = Counter()
        """Running tasks by account."""
        self._creating: Counter[str] = Counter()
        """By account: tasks within the limits that the store does not have yet."""
        self._memory = AccountMemory(limits.http.bodies_bytes, limits.http.bodies_bytes_per_address)
        self._held: dict[RunningTask, tuple[int, Callable[[], None] | None]] = {}
        """By running task: its bytes, and the function that releases its session."""

    @contextmanager
    def creation(self, task: RunningTask, own: int, total: int) -> Iterator[None]:
        """Count a task while it is created; `own` and `total` are the tasks in the store, of its account and of all.

        Raises `RateLimited` for too many tasks, and `StoreFull` for too much memory.
        """
        limits, account = self._limits.tasks, task.record.account
        creating = self._creating[account]
        _check(own + creating, limits.tasks_per_principal, "tasks", "tasks_per_principal")
        _check(total + self._creating.total(), limits.tasks, "tasks of all clients", "tasks")
        running = self._running[account] + creating
        _check(running, limits.running_per_principal, "running tasks", "running_per_principal")
        size = self._memory_of(task)
        self._check_room(account, size)
        self._memory.add(account, size)
        self._creating[account] += 1
        try:
            yield
        finally:
            self._memory.add(account, -size)
            _subtract(self._creating, account, 1)

    def add(self, task: RunningTask) -> None:
        """Count a running task. One that a process has left is counted beyond the limits, too."""
        size, hold = self._memory_of(task), task.call.peer.hold_session
        self._held[task] = size, None if hold is None else hold()
        self._memory.add(task.record.account, size)
        self._running[task.record.account] += 1

    def remove(self, task: RunningTask) -> None:
        """Count a task no longer that has ended."""
        size, release_session = self._held.pop(task)
        self._memory.add(task.record.account, -size)
        _subtract(self._running, task.record.account, 1)
        if release_session is not None:
            release_session()

    def hold(self, task: RunningTask, answers: Iterable[bytes]) -> Callable[[], None]:
        """Count answers, which the handler of a running task may hold until it ends; return the function that no longer
        counts them. Raises `StoreFull`.
        """
        size = 0
        if task.record.account:
            size = sum(memory_of(answer, self._limits.http.body_nodes) for answer in answers)
            self._check_room(task.record.account, size)
        self._grow(task, size)
        return lambda: self._grow(task, -size)

    def _grow(self, task: RunningTask, size: int) -> None:
        if task in self._held:
            held, release_session = self._held[task]
            self._held[task] = held + size, release_session
            self._memory.add(task.record.account, size)

    def _memory_of(self, task: RunningTask) -> int:
        """Return the estimated bytes of the client's data that a task holds: arguments, decoded and in its record, and
        headers.
        """
        params, headers = task.call.pending.params, task.call.pending.headers or ()
        if not task.record.account or not isinstance(params, Raw):
            return 0
        size = memory_of(bytes(params), self._limits.http.body_nodes)
        return size + len(task.record.params) + FIELD_BYTES * len(headers)

    def _check_room(self, account: str, size: int) -> None:
        if not self._memory.has_room(account, size):
            raise StoreFull(
                "too many large tasks are running (HTTPLimits.bodies_bytes); try again when some have ended"
            )


def _check(count: int, most: int, what: str, limit: str) -> None:
    if count >= most:
        raise RateLimited(
            f"too many {what}: the limit is {most:,} (TaskLimits.{limit}); try again when others have ended"
        )


def _subtract(counter: Counter[str], account: str, count: int) -> None:
    counter[account] -= count
    if not counter[account]:
        del counter[account]
