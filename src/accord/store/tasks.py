"""The contract of a store of tasks, and tasks in memory.

A task is one record. The server process that runs its handler is the *runner* of the task, and only the runner saves
the record; other processes read it, and send their clients' answers and cancellations to the runner through the store.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from accord.errors import StoreError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.tasks import TERMINAL_STATUSES, TaskStatus

_RECORD_BYTES = 1_024
"""What a record counts in addition to its JSON."""


class AskedQuestion(msgspec.Struct, array_like=True):
    """A question of a handler: its key, its digest, and the answer as JSON, once there is one."""

    key: str
    digest: bytes
    answer: bytes | None = None


class TaskRecord(msgspec.Struct):
    """A task with all that is needed to show it, and to run it again. Times are seconds since 1970; bytes are JSON."""

    id: str
    owner: str
    """The principal; empty without authentication: then the id is the secret."""
    account: str
    """The principal or the address whose limits it uses."""
    revision: str
    tool: str
    params: bytes
    """The params of the call."""
    capabilities: bytes
    """The capabilities of the client."""
    created_at: float
    updated_at: float
    ttl: float | None
    """Seconds from the creation until the task may be dropped."""
    poll: float | None
    status: TaskStatus = "working"
    message: str | None = None
    questions: dict[str, bytes] = {}
    """The outstanding input requests, by key."""
    question_count: int = 0
    """The number of keys that were used, which are unique in the life of a task."""
    asked: list[AskedQuestion] = []
    """The questions of the handler, in order, for the next run."""
    once: dict[str, bytes] = {}
    """The values of `ctx.once`."""
    result: bytes | None = None
    error: bytes | None = None
    scopes: list[str] = []
    """The scopes of the principal when the call was made."""
    runner: str = ""
    """The server process that runs the handler."""

    @property
    def ended(self) -> bool:
        """Whether its status does not change any more."""
        return self.status in TERMINAL_STATUSES

    @property
    def expires_at(self) -> float:
        """The time at which it may be dropped."""
        return self.created_at + self.ttl if self.ttl is not None else float("inf")

    @property
    def size(self) -> int:
        """The bytes that it counts."""
        held = len(self.params) + len(self.result or b"") + len(self.error or b"")
        texts = (*self.questions.values(), *self.once.values(), *(each.answer or b"" for each in self.asked))
        return _RECORD_BYTES + held + sum(map(len, texts))


class TaskInput(msgspec.Struct, frozen=True):
    """What a client sends to a running task: the answers by key, as JSON, or None to cancel it."""

    id: str
    answers: dict[str, bytes] | None = None


class Tasks(Protocol):
    """A store of tasks. The public contract for custom stores.

    Every method may raise `StoreError`, and then has no effect. A record is durable once `create` or `save` returns. A
    record is dropped after its `expires_at`.
    """

    @property
    def survives(self) -> bool:
        """Whether records survive the end of the process, and other processes can see them."""
        ...

    async def open(self, runner: str) -> None:
        """Open the store for a runner, which counts as running until `close`, or the end of the process."""

    async def close(self, runner: str) -> None:
        """Finish pending calls; the runner has ended."""

    async def create(self, record: TaskRecord) -> None:
        """Store a new record. Raises `StoreError`, also if there is no room."""

    async def save(self, record: TaskRecord) -> None:
        """Store a record in place of the previous one, if its runner is still the same."""

    async def load(self, id: str) -> TaskRecord | None:
        """Return a record; None for an unknown or expired one."""

    async def count(self, account: str) -> tuple[int, int]:
        """Return the number of records of an account, and of all."""
        ...

    async def page(self, owner: str, after: str, most: int) -> Sequence[TaskRecord]:
        """Return the first `most` records of an owner whose ids are after `after`, in the order of ids."""
        ...

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        """Make `runner` the runner of all tasks that have not ended and whose runner has, and return them; each task is
        returned to one caller only.
        """
        ...

    async def send(self, input: TaskInput) -> None:
        """Store what a client sends to a task whose runner is another process, until that takes it."""

    async def take(self, runner: str) -> Sequence[TaskInput]:
        """Remove and return what clients have sent to the tasks of a runner, in order."""
        ...


class MemoryTasks:
    """`Tasks` in memory: they end with the process. `clock` returns seconds since 1970."""

    survives = False

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, clock: Callable[[], float] = time.time) -> None:
        self._most_bytes = limits.tasks.kept_bytes
        self._clock = clock
        self._records: OrderedDict[str, TaskRecord] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._by_account: dict[str, dict[str, None]] = {}
        self._inputs: list[TaskInput] = []
        self._next_expiry = float("inf")
        """No record expires before this time."""

    async def open(self, runner: str) -> None:
        """See `Tasks.open`."""

    async def close(self, runner: str) -> None:
        """See `Tasks.close`."""

    async def create(self, record: TaskRecord) -> None:
        """See `Tasks.create`."""
        self._drop_expired()
        if self._bytes + record.size > self._most_bytes:
            raise StoreError(f"the tasks in memory have over {self._most_bytes:,} bytes (TaskLimits.kept_bytes)")
        self._records[record.id] = record
        self._by_account.setdefault(record.account, {})[record.id] = None
        self._next_expiry = min(self._next_expiry, record.expires_at)
        self._count(record)

    async def save(self, record: TaskRecord) -> None:
        """See `Tasks.save`."""
        if record.id in self._records:
            self._records[record.id] = record
            self._count(record)

    def _count(self, record: TaskRecord) -> None:
        size = record.size
        self._bytes += size - self._sizes.get(record.id, 0)
        self._sizes[record.id] = size

    async def load(self, id: str) -> TaskRecord | None:
        """See `Tasks.load`."""
        self._drop_expired()
        return self._records.get(id)

    async def count(self, account: str) -> tuple[int, int]:
        """See `Tasks.count`."""
        self._drop_expired()
        return len(self._by_account.get(account, ())), len(self._records)

    async def page(self, owner: str, after: str, most: int) -> Sequence[TaskRecord]:
        """See `Tasks.page`."""
        self._drop_expired()
        own = (self._records[id] for id in self._by_account.get(owner, ()) if id > after)
        return sorted((each for each in own if each.owner == owner), key=lambda each: each.id)[:most]

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        """See `Tasks.adopt`: there are none, since records do not survive their runner."""
        return ()

    async def send(self, input: TaskInput) -> None:
        """See `Tasks.send`."""
        self._inputs.append(input)

    async def take(self, runner: str) -> Sequence[TaskInput]:
        """See `Tasks.take`."""
        taken = [each for each in self._inputs if self._runner_of(each.id) == runner]
        self._inputs = [each for each in self._inputs if self._runner_of(each.id) not in (runner, None)]
        return taken

    def _runner_of(self, id: str) -> str | None:
        record = self._records.get(id)
        return None if record is None or record.ended else record.runner

    def _drop_expired(self) -> None:
        now = self._clock()
        if now < self._next_expiry:
            return
        for id in [id for id, record in self._records.items() if record.expires_at <= now]:
            record = self._records.pop(id)
            self._bytes -= self._sizes.pop(id)
            own = self._by_account[record.account]
            del own[id]
            if not own:
                del self._by_account[record.account]
        self._next_expiry = min((each.expires_at for each in self._records.values()), default=float("inf"))
