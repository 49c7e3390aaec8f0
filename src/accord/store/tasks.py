"""The contract of a store of tasks, and tasks in memory.

A task is one record. The server process that runs its handler is the *runner* of the task, and only the runner saves
the record; other processes read it, and send their clients' answers and cancellations to the runner through the store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from accord.errors import INTERNAL_ERROR, StoreFull
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import codec
from accord.messages.bounds import AccountMemory
from accord.messages.tasks import TERMINAL_STATUSES, TaskStatus

RECORD_BYTES = 1_024
"""What a record counts in addition to its JSON."""

MAX_INPUTS = 100
"""Limit of the inputs of one task that its runner has not taken, or not removed from the store."""

UNREADABLE = (
    "the record of this task cannot be read: it is damaged, or of another version of accord; "
    "whether the task took effect is unknown"
)


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
    """Empty for a record that could not be read."""
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
    def head(self) -> TaskRecord:
        """The record with its state alone, as a list of tasks shows it."""
        return msgspec.structs.replace(
            self, params=b"", capabilities=b"{}", questions={}, asked=[], once={}, result=None, error=None
        )

    @property
    def size(self) -> int:
        """The bytes that it counts."""
        held = sum(
            map(len, (self.params, self.capabilities, self.result or b"", self.error or b"", self.message or ""))
        )
        texts = (*self.questions.values(), *self.once.values(), *(each.answer or b"" for each in self.asked))
        return RECORD_BYTES + held + sum(map(len, texts))


class TaskInput(msgspec.Struct, frozen=True):
    """What a client sends to a running task: the answers by key, as JSON, or None to cancel it."""

    id: str
    answers: dict[str, bytes] | None = None

    @property
    def size(self) -> int:
        """The bytes that it counts."""
        return RECORD_BYTES + sum(map(len, (self.answers or {}).values()))


def unreadable_record(id: str, owner: str, account: str, now: float, expires_at: float) -> TaskRecord:
    """Return what stands for a record that cannot be read: a task that has failed, and says why."""
    return TaskRecord(
        id=id,
        owner=owner,
        account=account,
        revision="",
        tool="",
        params=b"",
        capabilities=b"{}",
        created_at=now,
        updated_at=now,
        ttl=None if expires_at == float("inf") else expires_at - now,
        poll=None,
        status="failed",
        message=UNREADABLE,
        error=codec.encode({"code": INTERNAL_ERROR, "message": UNREADABLE}),
    )


def too_many_inputs() -> StoreFull:
    """Return the error for a task with `MAX_INPUTS` inputs that its runner has not taken."""
    return StoreFull(f"too many answers: {MAX_INPUTS} wait for the process that runs the task; try again later")


def no_room(most: int) -> StoreFull:
    """Return the error for a store with `TaskLimits.kept_bytes` bytes."""
    return StoreFull(f"the tasks have over {most:,} bytes (TaskLimits.kept_bytes)")


class Tasks(Protocol):
    """A store of tasks. The public contract for custom stores.

    Every method may raise `StoreError`, and then has no effect; `create`, `save` and `send` raise `StoreFull` where
    there is no room. A record is durable once `create` or `save` returns, and is dropped after its `expires_at`. One
    that cannot be read is a task that has failed, with an error that says so. Several event loops call the methods at
    once.
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
        """Store a new record."""

    async def save(self, record: TaskRecord) -> None:
        """Store a record in place of the previous one, if its runner is still the same."""

    async def load(self, id: str) -> TaskRecord | None:
        """Return a record; None for an unknown or expired one."""

    async def count(self, account: str) -> tuple[int, int]:
        """Return the number of records of an account, and of all."""
        ...

    async def page(self, owner: str, after: str, most: int) -> Sequence[TaskRecord]:
        """Return the first `most` records of an owner whose ids are after `after`, in the order of ids. A
        `TaskRecord.head` of each is enough, so that a list does not read all results.
        """
        ...

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        """Make `runner` the runner of all tasks that have not ended and whose runner has, and return them; each task is
        returned to one caller only.
        """
        ...

    async def send(self, input: TaskInput) -> None:
        """Store what a client sends to a task whose runner is another process, until that takes it. A task that has
        ended takes nothing.
        """

    async def take(self, runner: str) -> Sequence[TaskInput]:
        """Remove and return what clients have sent to the tasks of a runner, in order. A store that survives the
        process removes it with the next call, when the runner has saved it; so an answer may arrive twice.
        """
        ...


class MemoryTasks:
    """`Tasks` in memory: they end with the process. `clock` returns seconds since 1970."""

    survives = False

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, clock: Callable[[], float] = time.time) -> None:
        self._memory = AccountMemory(limits.tasks.kept_bytes, limits.tasks.kept_bytes)
        self._clock = clock
        self._lock = threading.Lock()
        """Lock for all fields: the event loops of a server have one store. It is held only briefly."""
        self._records: dict[str, TaskRecord] = {}
        self._sizes: dict[str, int] = {}
        self._by_account: dict[str, dict[str, None]] = {}
        self._inputs: dict[str, list[TaskInput]] = {}
        """What the runners have not taken, by the id of the task."""
        self._next_expiry = float("inf")
        """No record expires before this time."""

    async def open(self, runner: str) -> None:
        """See `Tasks.open`."""

    async def close(self, runner: str) -> None:
        """See `Tasks.close`."""

    async def create(self, record: TaskRecord) -> None:
        """See `Tasks.create`."""
        with self._lock:
            self._drop_expired()
            self._check_room(record.account, record.size)
            self._records[record.id] = record
            self._by_account.setdefault(record.account, {})[record.id] = None
            self._next_expiry = min(self._next_expiry, record.expires_at)
            self._count(record)

    async def save(self, record: TaskRecord) -> None:
        """See `Tasks.save`. The end of a task always has room, without a large result."""
        with self._lock:
            if record.id not in self._records:
                return
            growth = record.size - self._sizes[record.id]
            if not record.ended or growth > RECORD_BYTES:
                self._check_room(record.account, growth)
            self._records[record.id] = record
            self._count(record)
            if record.ended:
                self._drop_inputs(record.id)

    def _check_room(self, account: str, growth: int) -> None:
        if growth > 0 and not self._memory.has_room(account, growth):
            raise no_room(self._memory.most)

    def _count(self, record: TaskRecord) -> None:
        size = record.size
        self._memory.add(record.account, size - self._sizes.get(record.id, 0))
        self._sizes[record.id] = size

    async def load(self, id: str) -> TaskRecord | None:
        """See `Tasks.load`."""
        with self._lock:
            self._drop_expired()
            return self._records.get(id)

    async def count(self, account: str) -> tuple[int, int]:
        """See `Tasks.count`."""
        with self._lock:
            self._drop_expired()
            return len(self._by_account.get(account, ())), len(self._records)

    async def page(self, owner: str, after: str, most: int) -> Sequence[TaskRecord]:
        """See `Tasks.page`."""
        with self._lock:
            self._drop_expired()
            own = [self._records[id] for id in self._by_account.get(owner, ()) if id > after]
        return sorted((each for each in own if each.owner == owner), key=lambda each: each.id)[:most]

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        """See `Tasks.adopt`: there are none, since records do not survive their runner."""
        return ()

    async def send(self, input: TaskInput) -> None:
        """See `Tasks.send`."""
        with self._lock:
            record = self._records.get(input.id)
            if record is None or record.ended:
                return
            if len(self._inputs.get(input.id, ())) >= MAX_INPUTS:
                raise too_many_inputs()
            self._check_room(record.account, input.size)
            self._inputs.setdefault(input.id, []).append(input)
            self._memory.add(record.account, input.size)

    async def take(self, runner: str) -> Sequence[TaskInput]:
        """See `Tasks.take`."""
        if not self._inputs:
            return ()
        with self._lock:
            own = [id for id in self._inputs if self._records[id].runner == runner]
            return [input for id in own for input in self._drop_inputs(id)]

    def _drop_inputs(self, id: str) -> Sequence[TaskInput]:
        dropped = self._inputs.pop(id, ())
        if dropped:
            self._memory.add(self._records[id].account, -sum(each.size for each in dropped))
        return dropped

    def _drop_expired(self) -> None:
        now = self._clock()
        if now < self._next_expiry:
            return
        for id in [id for id, record in self._records.items() if record.expires_at <= now]:
            self._drop_inputs(id)
            record = self._records.pop(id)
            self._memory.add(record.account, -self._sizes.pop(id))
            own = self._by_account[record.account]
            del own[id]
            if not own:
                del self._by_account[record.account]
        self._next_expiry = min((each.expires_at for each in self._records.values()), default=float("inf"))
