"""Reading: one task receives messages, acts on their events, and runs handlers itself until one waits.

Then another task reads on (`run_eagerly`). If the peer does not read its responses, reading pauses, within limits.

Leader and follower: the reading task awaits a handler itself, and passes the reading on when the handler first waits.

Most handlers never wait, and a task for each costs more than they do. So the task that reads awaits the handler itself;
at its first real suspension `suspended` is called, once, to let another task read on. The handler still runs inside a
task, so that `asyncio.timeout`, task groups and cancellation work, and in a context of its own, so that the next call
does not see its context variables.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import copy_context
from types import coroutine
from typing import Any, TypeVar

from accord.errors import ConnectionLost
from accord.limits import Limits
from accord.session import events
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.transport.base import Message, SkippedMessage, Transport, answer_overhead, delivers_answers
from accord.transport.deadlines import resume

T = TypeVar("T")


@coroutine
def run_eagerly(handler: Coroutine[Any, Any, T], suspended: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await `handler`; call `suspended` when it first waits. Raises the errors of `handler`."""
    run = copy_context().run
    try:
        rest = resume(handler, run(handler.send, None), run)
    except StopIteration as stop:
        result: T = stop.value
        return result
    suspended()
    return (yield from rest)


log: logging.Logger = logging.getLogger("accord")

Serve = Callable[[PendingRequest], Coroutine[Any, Any, bytes | None]]
EventHandlers = Mapping[type, Callable[[Any], None]]


class ReadLoop:
    """The reading tasks of one connection, which also run its handlers.

    `serve` returns the response to a request, if there is one; `react` has the handlers of all other events; `on_lost`
    is called at the end of the input.
    """

    def __init__(
        self,
        session: Session,
        transport: Transport,
        limits: Limits,
        serve: Serve,
        react: EventHandlers,
        on_lost: Callable[[ConnectionLost], None],
    ) -> None:
        self._session = session
        self._transport = transport
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._serve = serve
        self._event_handlers = react
        self._on_lost = on_lost
        self._inbox: deque[Message] = deque()
        self._events: deque[events.Event] = deque()
        self._reader: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        if delivers_answers(transport):
            transport.on_answer = self.receive_answer
        self.closing: bool = False
        """Whether this side closes the connection: then its end is not a loss."""
        self.unsent_bytes: int = 0
        """Bytes of responses since the peer last read all of them."""
        self._answer_bytes = answer_overhead(transport)

    def send_answer(self, message: bytes) -> None:
        """Send a response. If the peer reads none, reading stops at the limit of unsent bytes."""
        self._transport.send(message)
        self.unsent_bytes += len(message) + self._answer_bytes

    def start_reader(self) -> None:
        """Let another task read from here on; the previous one ends when its handler has ended.

        Messages that were already read are processed at once, with a task for each request: if one handler waits,
        others of the same kind probably will, and a step of the event loop for each costs more than the tasks.
        """
        while self.unsent_bytes < self._limits.pending_bytes and (event := self._next_event()) is not None:
            if type(event) is events.RequestReceived:
                task = event.pending.driver = self._loop.create_task(self._answer(event.pending))
                self._track(task)
            else:
                self._event_handlers[type(event)](event)
        self._reader = self._loop.create_task(self._read())
        self._track(self._reader)

    def receive_answer(self, message: bytes) -> None:
        """Process the response to a request of this side at once: a wait in the reading task costs a step of the event
        loop."""
        for event in self._session.receive(message):
            self._event_handlers[type(event)](event)

    async def end(self, seconds: float) -> None:
        """Cancel all tasks; they have so many seconds to clean up."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        self._transport.flush()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _track(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if task is self._reader and not self.closing:
                self._on_lost(ConnectionLost("the task that reads was cancelled"))
        elif (exc := task.exception()) is not None:
            log.error("accord: a defect in the driver of %s", self._transport.name, exc_info=exc)
            self._on_lost(ConnectionLost(f"the driver failed: {exc!r}"))

    def _next_event(self) -> events.Event | None:
        """Return the next event of the received messages, or None."""
        pending, inbox = self._events, self._inbox
        while not pending and inbox:
            message = inbox.popleft()
            if isinstance(message, bytes):
                received = self._session.receive(message)
                if len(received) == 1:  # nearly always
                    return received[0]
                pending.extend(received)
            elif isinstance(message, SkippedMessage):
                pending.extend(self._session.receive_unreadable(message.reason, message.head, message.tail))
            else:
                pending.append(self._session.fail_unanswered(message.id, message.error))
        return pending.popleft() if pending else None

    async def _read(self) -> None:
        task = asyncio.current_task()
        event: events.Event | None
        while self._reader is task:
            if self.unsent_bytes >= self._limits.pending_bytes and self._may_wait():
                self.unsent_bytes = 0
                await self._transport.drain()
            if not self._inbox and not self._events:
                event = None  # the last request is not kept while the next message is awaited
                self._transport.flush()
                messages = await self._transport.receive()
                if not messages:
                    self._on_lost(self._transport.lost())
                    break
                self._inbox.extend(messages)
                continue
            event = self._next_event()
            if event is None:
                continue
            if type(event) is events.RequestReceived:
                event.pending.driver = task
                answer = await run_eagerly(self._serve(event.pending), self.start_reader)
                if answer is not None:
                    self.send_answer(answer)
                if self._reader is task and task is not None and task.cancelling() and not self.closing:
                    self.start_reader()  # the handler has cancelled its own task, which is this one
            else:
                self._event_handlers[type(event)](event)

    async def _answer(self, request: PendingRequest) -> None:
        answer = await self._serve(request)
        if answer is not None:
            self.send_answer(answer)

    def _may_wait(self) -> bool:
        """Return whether reading may stop until the peer has read its responses. Not while the peer owes responses, up
        to a limit: it may have stopped reading for the same reason, and two such peers would wait for ever."""
        return not self._session.outgoing or self.unsent_bytes >= self._limits.line_bytes
