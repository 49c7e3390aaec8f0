"""The lifetime of a running server: its lifespan, and the dependencies that last as long.

One task enters and exits all of them. It starts with the first connection on an event loop and ends with the last, or
with the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from contextvars import copy_context
from inspect import isasyncgenfunction
from typing import TYPE_CHECKING, Any

from accord.errors import LifespanError, describe
from accord.redaction import describe_redacted
from accord.server.core.exit_stack import FastExitStack
from accord.server.core.per_loop import PerLoop
from accord.server.core.watchdog import WATCHDOG
from accord.transport.deadlines import is_cancelled

if TYPE_CHECKING:
    from accord.server.core.types import Lifespan, LivingServer
    from accord.server.depends.dependencies import DependencyStep


log: logging.Logger = logging.getLogger("accord.server")

Job = tuple[Callable[[AsyncExitStack], Awaitable[Any]], "asyncio.Future[Any]"]


class Lifetime:
    """The lifetime of one server on one event loop."""

    def __init__(self, server: LivingServer) -> None:
        self.value: Any = None
        """The value that the lifespan yielded."""
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self._opened: dict[Any, asyncio.Future[Any]] = {}
        self._ended = False
        self._context = copy_context()  # not the context of the call that first needs a dependency

    @property
    def idle(self) -> bool:
        """Whether nothing was entered, so that there is nothing to exit."""
        return self._task is None

    async def start(self) -> None:
        """Enter the lifespans. Raises `LifespanError`."""
        server = self._server
        try:
            if server.lifespan is not None:
                self.value = await self._enter_lifespan(server.lifespan)
            for lifespan in server.lifespans:
                await self._enter_lifespan(lifespan)
        except (Exception, asyncio.CancelledError) as exc:
            if is_cancelled(exc):
                raise
            await self.stop()
            why = describe_redacted(exc)  # clients of the outer server of a mounted one receive this text
            raise LifespanError(f"the lifespan of {server.name!r} failed to start: {why}") from exc

    async def _enter_lifespan(self, lifespan: Lifespan) -> Any:
        manager: Any = asynccontextmanager(lifespan) if isasyncgenfunction(lifespan) else lifespan
        return await self._enter(lambda stack: stack.enter_async_context(manager(self._server)))

    async def get_dependency(self, step: DependencyStep, given: dict[str, Any]) -> Any:
        """Return a dependency of the server's lifetime, created on first use. Raises what it raises; the next call then
        tries again.
        """
        made = self._opened.get((step.key, step.make))
        if made is not None and made.done():
            return made.result()

        async def open(stack: AsyncExitStack) -> Any:
            entered = FastExitStack()
            value = await step.open(entered, given)
            stack.push_async_callback(entered.close)
            return value

        return await self.enter_once((step.key, step.make), open)

    async def start_mounted(self, lifetimes: Lifetimes) -> None:
        """Keep a mounted server running as long as this one. Raises `LifespanError`."""

        async def open(stack: AsyncExitStack) -> MountedLifetime:
            mounted = MountedLifetime(lifetimes)
            stack.push_async_callback(mounted.end)
            return mounted

        mounted: MountedLifetime = await self.enter_once(lifetimes, open)
        await mounted.start()

    async def stop(self) -> None:
        """Exit everything in reverse order; cancel what takes longer than `Limits.grace_seconds`. Errors are logged,
        since no caller is left to receive them.
        """
        self._ended = True
        if self._task is None:
            return
        limits = self._server.limits
        self._jobs.put_nowait(None)
        if (await asyncio.wait((self._task,), timeout=limits.grace_seconds))[1]:
            log.error("accord: %r did not end within %g s; it is cancelled", self._server.name, limits.grace_seconds)
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=limits.close_seconds)

    async def enter_once(self, key: Any, open: Callable[[AsyncExitStack], Awaitable[Any]]) -> Any:
        """Return what `open` returns, called once for a key; what it adds to the stack is exited at the end.

        Raises what `open` raises; the next call then tries again.
        """
        made = self._opened.get(key)
        if made is None:
            made = self._opened[key] = self._enter(open)
            made.add_done_callback(lambda done: self._forget_failed(key, done))
        return made.result() if made.done() else await asyncio.shield(made)

    def _forget_failed(self, key: Any, made: asyncio.Future[Any]) -> None:
        if made.cancelled() or made.exception() is not None:
            self._opened.pop(key, None)

    def _enter(self, open: Callable[[AsyncExitStack], Awaitable[Any]]) -> asyncio.Future[Any]:
        """Enter something in the task that will exit it. Raises `LifespanError` if the lifetime has ended."""
        name = self._server.name
        if self._ended:
            raise LifespanError(f"the server {name!r} has shut down")
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"lifetime of {name}", context=self._context)
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put_nowait((open, opened))
        return opened

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                while (job := await self._jobs.get()) is not None:
                    await _run_job(job, stack)
        except Exception as exc:
            log.error("accord: %r failed to end: %s", self._server.name, describe(exc), exc_info=exc)
        finally:
            self._ended = True
            self._give_up()

    def _give_up(self) -> None:
        """Cancel the jobs that the task has not started."""
        with suppress(asyncio.QueueEmpty):
            while True:
                if (job := self._jobs.get_nowait()) is not None:
                    job[1].cancel()


async def _run_job(job: Job, stack: AsyncExitStack) -> None:
    open, opened = job
    try:
        value = await open(stack)
    except BaseException as exc:
        if is_cancelled(exc):
            opened.cancel()
            raise
        if not opened.done():
            opened.set_exception(exc)
    else:
        if not opened.done():
            opened.set_result(value)


class MountedLifetime:
    """The part of a mounted server in the lifetime of the server around it.

    The mounted server starts in a task of its own: other mounted servers, and dependencies, do not wait for its
    lifespan.
    """

    def __init__(self, lifetimes: Lifetimes) -> None:
        self._lifetimes = lifetimes
        self._starting: asyncio.Task[Lifetime] | None = None
        self._ended = False
        self._context = copy_context()

    async def start(self) -> None:
        """Start the server, if it does not run. Raises `LifespanError`; the next call then tries again."""
        starting = self._starting
        if starting is None or (starting.done() and not _has_started(starting)):
            if self._ended:
                raise LifespanError("the server around it has shut down")
            starting = self._starting = asyncio.create_task(self._lifetimes.enter(), context=self._context)
        if not starting.done():
            await asyncio.shield(starting)

    async def end(self) -> None:
        """Let the server end, unless others use it too."""
        self._ended = True
        if (starting := self._starting) is None:
            return
        if not starting.done():
            starting.cancel()
            await asyncio.wait((starting,))
        if _has_started(starting):
            await self._lifetimes.leave()


def _has_started(starting: asyncio.Task[Lifetime]) -> bool:
    return not starting.cancelled() and starting.exception() is None


class Lifetimes:
    """The lifetimes of one server, one for each event loop that serves it."""

    def __init__(self, server: LivingServer) -> None:
        self._server = server
        self._running: PerLoop[_ActiveLifetime] = PerLoop()
        self._ending: PerLoop[asyncio.Future[None]] = PerLoop()

    def current(self) -> Lifetime:
        """Return the lifetime on the running loop. Raises `LifespanError` if the server does not run there."""
        return self.for_loop(asyncio.get_running_loop())

    def for_loop(self, loop: asyncio.AbstractEventLoop) -> Lifetime:
        """Return the lifetime on a loop; callable from any thread. Raises `LifespanError` if the server does not run
        there.
        """
        running = self._running.get(loop)
        if running is None:
            raise LifespanError(f"the server {self._server.name!r} is not running")
        return running.lifetime

    async def enter(self) -> Lifetime:
        """Count one more user of the server on this loop; the first one starts it. Pair with `leave`. Raises
        `LifespanError`, and `DeclarationError` for type hints with unknown names.
        """
        self._server.registry.resolve()
        loop = asyncio.get_running_loop()
        running = self._running.get(loop)
        if running is None:
            running = self._running.add(_ActiveLifetime(self._server, self._ending.get(loop)))
            WATCHDOG.watch(loop)
        running.count += 1
        try:
            await asyncio.shield(running.started)
        except BaseException:
            await self.leave()
            raise
        return running.lifetime

    async def leave(self) -> None:
        """Count one user less; the last one stops the server on this loop."""
        loop = asyncio.get_running_loop()
        running = self._running[loop]
        running.count -= 1
        if not running.count:
            del self._running[loop]
            WATCHDOG.leave(loop)
            await self._end(running.lifetime)

    async def _end(self, lifetime: Lifetime) -> None:
        """Stop a lifetime, even if the caller is cancelled; the next start waits for it."""
        if lifetime.idle:
            return await lifetime.stop()
        return await asyncio.shield(self._ending.add(asyncio.ensure_future(lifetime.stop())))


class _ActiveLifetime:
    def __init__(self, server: LivingServer, before: asyncio.Future[None] | None) -> None:
        self.lifetime = Lifetime(server)
        self.started = asyncio.ensure_future(self._start(before))
        self.started.add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )  # there may be no caller left to retrieve it
        self.count = 0

    async def _start(self, before: asyncio.Future[None] | None) -> None:
        if before is not None:  # resources such as a port or a lock can exist only once at a time
            await asyncio.wait((before,))
        await self.lifetime.start()
