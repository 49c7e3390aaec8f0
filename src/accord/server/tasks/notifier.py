"""Notifications about tasks: to the session that has created a task (2025-11-25), or to its subscribers (2026-07-28).

A task that runs here announces each change. One that runs elsewhere (another process, another event loop) is looked up
in the store at an interval, as long as it has a subscriber here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from accord.messages import codec
from accord.messages.revision import RULES
from accord.redaction import describe_redacted
from accord.server.core.fair_semaphore import FairSemaphore
from accord.server.tasks.wire import core_task, detailed_task

if TYPE_CHECKING:
    from accord.server.notify.change_bus import ChangeBus
    from accord.server.notify.subscriber import Subscriber
    from accord.server.tasks.running_task import RunningTask
    from accord.store.tasks import TaskRecord

log: logging.Logger = logging.getLogger("accord.server")

_METHOD, _CORE_METHOD = "notifications/tasks", "notifications/tasks/status"

_NOTIFY_SECONDS = 0.05
"""The shortest interval between two notifications about one task, but for its end."""

_LOOK_SECONDS = 0.5
"""The interval at which subscribed tasks that run elsewhere are looked up."""

_LOOKS = 4
"""Limit of the tasks that are looked up at once: each may have a large result."""

_READS = 4
"""Limit of the states that are loaded at once for clients that read again. Clients take turns."""

_MISSED_LOOKS = 10
"""How often a task may be found without a subscriber before it is looked up no longer: a subscription begins only after
its tasks are granted."""


LoadTask = Callable[[str], Awaitable["TaskRecord | None"]]
"""Returns a task, by its id. Raises any error of the store."""

ComparableState = tuple[Any, ...]
"""The fields of a task whose change is notified."""


def subscription_key(id: str) -> str:
    """Return the key of a task in the subscription index, which no URI can be."""
    return f" task {id}"


def comparable_state(record: TaskRecord) -> ComparableState:
    """Return the fields of a task whose change is notified."""
    return record.status, record.message, record.updated_at, tuple(record.questions)


def is_missed(record: TaskRecord, state: ComparableState) -> bool:
    """Return whether a new subscriber of a task has missed a notification: if that has ended, or has changed since it
    had this state.
    """
    return record.ended or comparable_state(record) != state


def _method(record: TaskRecord) -> str:
    """Return the method of the notifications about a task."""
    rules = RULES.get(record.revision)  # a record that cannot be read has none
    return _CORE_METHOD if rules is not None and rules.requested_tasks else _METHOD


def _params(record: TaskRecord) -> bytes:
    """Return the params of a notification with the state of a task."""
    return codec.encode(core_task(record) if _method(record) == _CORE_METHOD else detailed_task(record))


class _Watched(msgspec.Struct):
    """A subscribed task that runs elsewhere."""

    state: ComparableState
    """The state that its subscribers know."""
    missed: int = 0
    """How often it had no subscriber."""


class TaskNotifier:
    """Sends the notifications about tasks on one event loop. `load` returns a task, `load_elsewhere` only one that does
    not run here; None for one that is gone.
    """

    def __init__(self, change_bus: ChangeBus, load: LoadTask, load_elsewhere: LoadTask) -> None:
        self._change_bus = change_bus
        self._load = load
        self._load_elsewhere = load_elsewhere
        self._loop = asyncio.get_running_loop()
        self._timers: dict[RunningTask, asyncio.TimerHandle] = {}
        """Tasks with a recent notification."""
        self._late: set[RunningTask] = set()
        """Those of them that have changed since."""
        self._watched: dict[str, _Watched] = {}
        self._watching: asyncio.Task[None] | None = None
        self._looks = asyncio.Semaphore(_LOOKS)
        self._reads = FairSemaphore(_READS)
        self._is_closed = False

    # --- tasks that run here -----------------------------------------------------------------------------------

    def changed(self, task: RunningTask) -> None:
        """Send the state of a task: its end at once, other changes at an interval."""
        if task.record.ended:
            self._notify(task)
        elif task in self._timers:
            self._late.add(task)
        else:
            self._timers[task] = self._loop.call_later(_NOTIFY_SECONDS, self._after_interval, task)
            self._notify(task)

    def _after_interval(self, task: RunningTask) -> None:
        del self._timers[task]
        if task in self._late:
            self._late.discard(task)
            self.changed(task)

    def forget(self, task: RunningTask) -> None:
        """Send nothing more about a task."""
        self._late.discard(task)
        timer = self._timers.pop(task, None)
        if timer is not None:
            timer.cancel()

    def _notify(self, task: RunningTask) -> None:
        if not task.is_core:
            self._notify_subscribers(task.record)
        elif (session := self._session(task)) is not None:
            self.notify(session, task.record)

    def _session(self, task: RunningTask) -> Subscriber | None:
        index = self._change_bus.indexes.get(self._loop)
        return None if index is None else index.session(task.call.peer)

    def _subscribers(self, id: str) -> list[Subscriber]:
        index = self._change_bus.indexes.get(self._loop)
        return [] if index is None else index.subscribers(subscription_key(id))

    def _notify_subscribers(self, record: TaskRecord) -> None:
        params = b""
        for subscriber in self._subscribers(record.id):
            if subscriber.queue.principal != record.owner:
                continue
            if subscriber.queue.is_waiting:
                self._notify_later(subscriber, record)
                continue
            params = params or _params(record)
            subscriber.notify(_METHOD, params)

    def notify(self, subscriber: Subscriber, record: TaskRecord) -> None:
        """Send the state of a task to one subscriber."""
        if subscriber.queue.is_waiting:
            self._notify_later(subscriber, record)
        else:
            subscriber.notify(_method(record), _params(record))

    def _notify_later(self, subscriber: Subscriber, record: TaskRecord) -> None:
        """Queue the id of a task alone: its states may be large, and only the last one matters."""
        load = partial(self._load_params, subscriber, record.id)
        subscriber.queue.send_later(subscriber, _method(record), record.id.encode(), load)

    async def _load_params(self, subscriber: Subscriber, id: str) -> bytes | None:
        """Return the state of a task, for a client that reads again. Its end must not be lost, so after an error of the
        store it is read again.
        """
        while subscriber.open and not self._is_closed:
            try:
                async with self._reads.slot(subscriber.queue.peer.account):
                    record = await self._load(id)
                    return None if record is None else _params(record)
            except Exception as error:  # of any store
                log.error("accord: a subscribed task cannot be read: %s", describe_redacted(error))
                await asyncio.sleep(_LOOK_SECONDS)
        return None

    # --- tasks that run elsewhere ------------------------------------------------------------------------------

    def watch(self, record: TaskRecord) -> None:
        """Notify the subscribers of a task that runs elsewhere, until it has ended or has no subscriber."""
        watched = self._watched.setdefault(record.id, _Watched(comparable_state(record)))
        watched.missed = 0
        if self._watching is None:
            self._watching = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            while self._watched:
                await asyncio.sleep(_LOOK_SECONDS)
                # each is awaited, also after an error: the next looks would otherwise wait behind these ones
                looks = [self._look(id, each) for id, each in list(self._watched.items())]
                found = await asyncio.gather(*looks, return_exceptions=True)
                errors = [each for each in found if isinstance(each, Exception)]
                if errors:  # of any store: the next look tries again
                    log.error("accord: subscribed tasks cannot be read: %s", describe_redacted(errors[0]))
        finally:
            self._watching = None

    async def _look(self, id: str, watched: _Watched) -> None:
        watched.missed = 0 if self._subscribers(id) else watched.missed + 1
        if watched.missed:
            if watched.missed > _MISSED_LOOKS:
                self._watched.pop(id, None)
            return
        async with self._looks:
            record = await self._load_elsewhere(id)
            if record is not None and comparable_state(record) != watched.state:
                watched.state = comparable_state(record)
                self._notify_subscribers(record)
        if record is None or record.ended:
            self._watched.pop(id, None)

    def close(self) -> None:
        """Stop looking up tasks."""
        self._is_closed = True
        if self._watching is not None:
            self._watching.cancel()
