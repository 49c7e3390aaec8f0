"""The tasks of one server on one event loop: their creation, their end, and what other processes have of them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.errors import INTERNAL_ERROR, AccordError, InternalError, InvalidParams, StoreError, StoreFull
from accord.limits import Limits
from accord.messages import codec
from accord.redaction import describe_redacted
from accord.server.core.peer import Peer
from accord.server.core.types import LivingServer
from accord.server.tasks.notifier import ComparableState, TaskNotifier, comparable_state
from accord.server.tasks.quotas import TaskQuotas
from accord.server.tasks.running_task import STOPPED, RunningTask, Work
from accord.store.tasks import UNREADABLE, TaskInput, TaskRecord, Tasks

if TYPE_CHECKING:
    from accord.server.core.lifetime import Lifetimes
    from accord.server.input.call import HandlerCall
    from accord.server.notify.change_bus import ChangeBus
    from accord.server.notify.subscriber import Subscriber
    from accord.server.tasks.options import Task

log: logging.Logger = logging.getLogger("accord.server")

_TURN_SECONDS = 0.25
"""The interval at which changes are stored, and inputs from other processes are taken."""

_LONGEST_PAUSE = 2.0
"""The longest time that a step of the turns pauses after failures."""

_ADOPT_SECONDS = 1.0
"""The shortest interval between two searches for tasks of processes that have ended."""


class TaskServer(LivingServer, Protocol):
    """A server as its tasks use it."""

    change_bus: ChangeBus

    @property
    def lifetimes(self) -> Lifetimes:
        """The lifetimes of the server, by event loop."""


Recover = Callable[[TaskRecord], "tuple[HandlerCall, Work] | None"]
"""Returns what runs the handler of an adopted task again; None if it must not run again."""


class _Step:
    """A step of each turn. After a failure it pauses, each time for longer: the store may be broken for hours."""

    def __init__(self, run: Callable[[], Awaitable[None]]) -> None:
        self._run = run
        self._pause = _TURN_SECONDS
        self._next = float("-inf")

    async def run(self, now: float) -> None:
        """Run the step, unless it pauses. Logs any error."""
        if now < self._next:
            return
        try:
            await self._run()
            self._pause = _TURN_SECONDS
        except Exception as error:  # of any store: a later turn tries again
            log.error("accord: the states of tasks cannot be stored: %s", describe_redacted(error))
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._next = now + self._pause


class TaskRunner:
    """The runner of the tasks on one event loop. It opens the store for the lifetime of the server there."""

    def __init__(self, server: TaskServer, store: Tasks, limits: Limits) -> None:
        self.id: str = secrets.token_hex(16)
        self.store: Tasks = store
        self.tasks: dict[str, RunningTask] = {}
        """The tasks that run here, by id."""
        self.asking: dict[tuple[str, str], set[Peer]] = {}
        """The clients that are asked a question, by task and key (2025-11-25). The task may run in another process."""
        self.result_bytes: int = limits.tasks.result_bytes
        self.recover: Recover = lambda record: None
        self._server = server
        self._limits = limits
        self._quotas = TaskQuotas(limits)
        self._changed: dict[RunningTask, None] = {}
        """Tasks with changes that are not stored yet."""
        self._unstored: dict[str, TaskRecord] = {}
        """Tasks that have ended, whose end the store has not taken yet, by id."""
        self._unsaved: dict[str, dict[str, bytes]] = {}
        """Answers from another process that could not be saved, by task: the next turn tries again."""
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        """The event loop of the tasks."""
        self._notifier = TaskNotifier(server.change_bus, self.load, self._load_elsewhere)
        self._turns: asyncio.Task[None] | None = None
        self._adopted = float("-inf")
        self._background: set[asyncio.Task[None]] = set()
        self.closed: bool = False
        """Whether the lifetime of the server has ended, so that there are no further tasks."""

    # --- the lifetime ------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the store, once. Raises `StoreError`."""
        await self._server.lifetimes.current().enter_once(self, self._enter)

    async def _enter(self, stack: AsyncExitStack) -> None:
        await self.store.open(self.id)
        stack.push_async_callback(self._close)

    def start(self, recover: Recover) -> None:
        """Run again what a process that has ended has left, in the background."""
        self.recover = recover
        if self.store.survives:
            self.spawn(self._open_and_adopt())

    async def _open_and_adopt(self) -> None:
        try:
            await self.open()
            await self.adopt()
        except AccordError as error:
            log.error("accord: the tasks of processes that have ended cannot be read: %s", error)

    async def _close(self) -> None:
        """End all tasks, and close the store even if that takes too long: no other process could adopt them."""
        self.closed = True
        try:
            await self._end_tasks()
        finally:
            self._notifier.close()
            for background in (*self._background, *([self._turns] if self._turns else ())):
                background.cancel()
            await self.store.close(self.id)

    async def _end_tasks(self) -> None:
        """End all tasks: those of a store that survives get time to finish first."""
        working = [task.handler for task in self.tasks.values() if task.handler and not task.questions]
        if self.store.survives and working:
            await asyncio.wait(working, timeout=self._limits.grace_seconds / 2)
        left = list(self.tasks.values())
        for task in left:
            task.stop(abandon=self.store.survives and self.recover(task.record) is not None)
        handlers = [task.handler for task in left if task.handler is not None]
        if handlers:
            await asyncio.wait(handlers, timeout=self._limits.close_seconds / 2)
        endings = [task.ending for task in left if task.ending is not None]
        if endings:
            await asyncio.wait(endings, timeout=self._limits.close_seconds / 2)
        for task in left:
            self._stop_timers(task)
        with suppress(StoreError):
            await self._store_ends()

    def spawn(self, work: Any) -> asyncio.Task[None]:
        """Run a coroutine until the end of the server."""
        task: asyncio.Task[None] = self.loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # --- the table of running tasks ----------------------------------------------------------------------------

    async def run(self, call: HandlerCall, record: TaskRecord, options: Task, work: Work) -> TaskRecord | Any:
        """Run a handler. Return the record of the task that its call has become, or else the result of the call.

        Raises `ProtocolError` if the task cannot be created, before the handler runs, and what the handler raises.
        """
        task = call.task = RunningTask(self, record, call)
        call.input = task
        after = 0 if task.is_core else options.after
        if after == 0:
            try:
                await task.create()
            except StoreError as error:
                raise InternalError(f"the call cannot become a task: {error}") from error
            except asyncio.CancelledError:
                self.spawn(task.withdraw())
                raise
            task.start(work)
            return record
        return await self._wait(task, task.start(work), after)

    async def _wait(self, task: RunningTask, handler: asyncio.Task[Any], after: float | None) -> TaskRecord | Any:
        """Wait for the handler until its call becomes a task; it does after `after` seconds."""
        first, record = (handler, task.created), task.record
        try:
            if after is not None:
                await asyncio.wait(first, timeout=after, return_when=asyncio.FIRST_COMPLETED)
                if not handler.done():
                    await task.try_create()
            if not task.is_task:
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            return record if task.is_task else await handler
        except asyncio.CancelledError:  # the client will not learn the id
            self.spawn(task.withdraw())
            raise

    async def add(self, task: RunningTask) -> None:
        """See `TaskTable.add`."""
        await self.open()
        record = task.record
        if self.closed:
            raise InternalError("shutting down; no new tasks are accepted")
        with self._quotas.creation(task, *await self.store.count(record.account)):
            record.runner, record.created_at = self.id, time.time()
            record.updated_at = record.created_at
            await self.store.create(record)
        self._include(task)

    def _include(self, task: RunningTask) -> None:
        record = task.record
        self.tasks[record.id] = task
        self._quotas.add(task)
        if record.ttl is not None:
            seconds = record.expires_at - time.time()
            task.expiry = self.loop.call_later(max(0, seconds), lambda: self.spawn(task.expire()))
        self._start_turns()

    async def save(self, record: TaskRecord) -> None:
        """See `TaskTable.save`. Raises `StoreError` for any error of the store: the task would not get over another."""
        try:
            await self.store.save(record)
        except AccordError:
            raise
        except Exception as error:  # of a store that does not keep to its contract
            raise StoreError(describe_redacted(error)) from error

    def hold(self, task: RunningTask, answers: Iterable[bytes]) -> Callable[[], None]:
        """See `TaskTable.hold`."""
        return self._quotas.hold(task, answers)

    def remove(self, task: RunningTask, *, is_stored: bool) -> None:
        """See `TaskTable.remove`."""
        record = task.record
        if self.tasks.pop(record.id, None) is None:
            return
        if not is_stored:
            self._store_later(record)
        self._stop_timers(task)
        self._changed.pop(task, None)
        self._quotas.remove(task)

    def _stop_timers(self, task: RunningTask) -> None:
        if task.expiry is not None:
            task.expiry.cancel()
        self._notifier.forget(task)

    # --- changes -----------------------------------------------------------------------------------------------

    def changed(self, task: RunningTask) -> None:
        """See `TaskTable.changed`."""
        if not task.record.ended:
            task.record.updated_at = time.time()
            if not task.is_task:
                return
            self._changed[task] = None
        self._notifier.changed(task)

    def watch(self, record: TaskRecord) -> ComparableState:
        """Notify the subscribers of a task, also if it runs elsewhere. Return its state now, for `is_missed`."""
        if not record.ended and record.id not in self.tasks:
            self._notifier.watch(record)
        return comparable_state(record)

    def notify(self, subscriber: Subscriber, record: TaskRecord) -> None:
        """Send the state of a task to one subscriber."""
        self._notifier.notify(subscriber, record)

    async def _load_elsewhere(self, id: str) -> TaskRecord | None:
        """Return a task that does not run here. Raises `StoreError`."""
        record = await self.load(id)
        return None if id in self.tasks else record

    def _start_turns(self) -> None:
        if self._turns is None and not self.closed:  # then the store is closed, or is being closed
            self._turns = self.loop.create_task(self._take_turns())

    async def _take_turns(self) -> None:
        """Store the changes, and take what other processes have received for the tasks, while there are tasks."""
        steps = [_Step(each) for each in (self._store_ends, self._store_changes, self._take_inputs)]
        try:
            while self.tasks or self._unstored:
                await asyncio.sleep(_TURN_SECONDS)
                for step in steps:
                    await step.run(self.loop.time())
        finally:
            self._turns = None

    async def _store_changes(self) -> None:
        """Store the changes; one that cannot be stored delays no other."""
        failures: list[Exception] = []
        for task in list(self._changed):
            self._changed.pop(task, None)
            if task.ending is not None:
                continue
            try:
                await self.store.save(task.record)
            except Exception as error:  # of any store
                self._changed[task] = None
                failures.append(error)
        if failures:
            raise failures[0]

    async def _take_inputs(self) -> None:
        """Give tasks what their clients have sent to other processes. Raises `StoreError` if answers have to wait."""
        await self._receive_again(is_last=False)
        inputs = await self.store.take(self.id)  # removes those that were received before, which count twice until then
        await self._receive_again(is_last=True)
        for input in inputs:
            await self._receive(input)
        if self._unsaved:
            raise StoreError("answers cannot be stored, and are tried again")

    async def _receive_again(self, *, is_last: bool) -> None:
        for id in list(self._unsaved):
            await self._receive(TaskInput(id, self._unsaved.pop(id)), is_last=is_last)

    def _store_later(self, record: TaskRecord) -> None:
        self._unstored[record.id] = record
        self._start_turns()

    async def _store_ends(self) -> None:
        """Store the ends that are not stored yet; one that cannot be stored delays no other."""
        failures: list[Exception] = []
        for id, record in list(self._unstored.items()):
            try:
                if record.expires_at > time.time():
                    await self.store.save(record)
                self._unstored.pop(id, None)
            except Exception as error:  # of any store
                failures.append(error)
        if failures:
            raise failures[0]

    async def send(self, input: TaskInput) -> None:
        """Give a task what a client has sent, wherever it runs. Raises `StoreError`, and `InvalidParams` as
        `RunningTask.receive_answers`.
        """
        task = self.tasks.get(input.id)
        if task is None:
            await self.store.send(input)
        elif input.answers is None:
            await task.cancel()
        else:
            await task.receive_answers(input.answers)

    async def _receive(self, input: TaskInput, *, is_last: bool = False) -> None:
        """Give a task what a client has sent. A task whose answer has no room in the `is_last` try fails: answers that
        wait here count nowhere.
        """
        task = self.tasks.get(input.id)
        if task is None:
            return
        if input.answers is None:
            await task.cancel()
            return
        try:
            await task.receive_answers(input.answers)
        except InvalidParams:
            pass  # an answer that does not fit: its sender has gone on
        except StoreError as error:
            if is_last and isinstance(error, StoreFull):
                await task.fail(f"an answer cannot be kept: {error}")
                return
            keys = {each.key for each in task.record.asked}  # others are ignored, and a client may send many
            asked = {key: answer for key, answer in input.answers.items() if key in keys}
            self._unsaved.setdefault(input.id, {}).update(asked)

    # --- other processes ---------------------------------------------------------------------------------------

    async def load(self, id: str) -> TaskRecord | None:
        """Return a task that runs anywhere. Raises `StoreError`."""
        here = self._find(id)
        if here is not None:
            return here
        await self.open()
        record = await self.store.load(id)
        if record is not None and not record.ended and record.runner != self.id:
            await self.adopt()
            record = await self.store.load(id)
        return record if record is None or record.ended else self._find(id) or record  # adopted meanwhile

    def _find(self, id: str) -> TaskRecord | None:
        """Return a task that runs here, or that has ended here and is not stored yet."""
        task = self.tasks.get(id)
        return self._unstored.get(id) if task is None else task.record

    async def page(self, owner: str, after: str, most: int) -> list[TaskRecord]:
        """Return tasks of an owner as `Tasks.page`, as `load` returns each. Raises `StoreError`."""
        await self.open()
        await self.adopt()
        return [self._find(each.id) or each for each in await self.store.page(owner, after, most)]

    async def adopt(self) -> None:
        """Run again, or fail, the tasks whose processes have ended. That goes on if the caller is cancelled: no other
        runner can adopt them. Raises `StoreError`.
        """
        now = self.loop.time()
        if not self.store.survives or now < self._adopted + _ADOPT_SECONDS:
            return
        self._adopted = now
        await asyncio.shield(self.spawn(self._adopt()))

    async def _adopt(self) -> None:
        adopted = await self.store.adopt(self.id)
        if self.closed:  # the next process adopts them: this one has ended its tasks
            return
        # All run before anything awaits: what clients have sent to them is taken at the next turn.
        failed = [(record, reason) for record in adopted if (reason := self._run_again(record))]
        for record, reason in failed:
            await self._fail(record, reason)

    def _run_again(self, record: TaskRecord) -> str:
        """Run an adopted task again; return the reason if that is not possible."""
        try:
            again = self.recover(record)
        except (AccordError, msgspec.MsgspecError, KeyError) as error:  # damaged, or of another version
            log.error("accord: the record of a task of %r cannot be used: %s", record.tool, describe_redacted(error))
            return UNREADABLE
        if again is None:
            return STOPPED
        call, work = again
        task = call.task = RunningTask(self, record, call)
        call.input = task
        task.resume()
        self._include(task)
        task.start(work)
        return ""

    async def _fail(self, record: TaskRecord, reason: str) -> None:
        """Store that an adopted task has failed, now or later."""
        record.status, record.message, record.updated_at = "failed", reason, time.time()
        record.questions = {}
        record.error = codec.encode({"code": INTERNAL_ERROR, "message": reason})
        try:
            await self.save(record)
        except StoreError as error:
            log.error("accord: the end of a task of %r cannot be stored yet: %s", record.tool, error)
            self._store_later(record)
