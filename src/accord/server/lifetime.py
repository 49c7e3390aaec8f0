"""As long as a server runs: what its lifespan yields, and the dependencies that last as long.

One task owns all of it, so that everything is left where it was entered. It begins with the first who serves on an
event loop, however many connections there are, and ends with the last; or with the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from inspect import isasyncgenfunction
from typing import TYPE_CHECKING, Any

from accord.errors import LifespanError, describe
from accord.server.depends.entered import Entered

if TYPE_CHECKING:
    from accord.server.depends.plan import Step
    from accord.server.server import Server

log: logging.Logger = logging.getLogger("accord.server")

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any] | AsyncIterator[Any]]
"""Takes the server; what is yielded is `ctx.lifespan`."""

Job = tuple[Callable[[AsyncExitStack], Awaitable[Any]], "asyncio.Future[Any]"]


class Lifetime:
    """One server on one event loop, from its start to its end."""

    def __init__(self, server: Server) -> None:
        self.value: Any = None
        """What its lifespan yielded."""
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self._kept: dict[Any, asyncio.Future[Any]] = {}

    async def start(self) -> None:
        """Enter the lifespan. Raises `LifespanError`."""
        server = self._server
        try:
            if server.lifespan is not None:
                self.value = await self._enter_lifespan(server.lifespan)
            for lifespan in server.lifespans:
                await self._enter_lifespan(lifespan)
        except Exception as exc:
            await self.stop()
            raise LifespanError(f"the lifespan of {server.name!r} failed to start: {describe(exc)}") from exc

    async def _enter_lifespan(self, lifespan: Lifespan) -> Any:
        manager: Any = asynccontextmanager(lifespan) if isasyncgenfunction(lifespan) else lifespan
        return await self._enter(lambda stack: stack.enter_async_context(manager(self._server)))

    async def keep(self, step: Step, given: dict[str, Any]) -> Any:
        """A dependency that lasts, made when it is first needed. Raises what it raises; then it is made anew."""
        made = self._kept.get((step.key, step.make))
        if made is not None and made.done():
            return made.result()

        async def open(stack: AsyncExitStack) -> Any:
            entered = Entered()
            value = await step.open(entered, given)
            stack.push_async_callback(entered.leave)
            return value

        return await self._once((step.key, step.make), open)

    async def adopt(self, server: Server) -> None:
        """Have a mounted server run as long as this one. Raises `LifespanError`."""

        async def open(stack: AsyncExitStack) -> None:
            await server.lifetimes.enter()
            stack.push_async_callback(server.lifetimes.leave)

        await self._once(server, open)

    async def stop(self) -> None:
        """Leave everything, in the reverse order, within `Limits.grace_seconds`; then it is cancelled. What fails is
        logged: nobody is left to be told.
        """
        if self._task is None:
            return
        limits = self._server.limits
        self._jobs.put_nowait(None)
        if (await asyncio.wait((self._task,), timeout=limits.grace_seconds))[1]:
            log.error("accord: %r did not end within %g s; it is cancelled", self._server.name, limits.grace_seconds)
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=limits.close_seconds)

    async def _once(self, key: Any, open: Callable[[AsyncExitStack], Awaitable[Any]]) -> Any:
        made = self._kept.get(key)
        if made is None:
            made = self._kept[key] = asyncio.ensure_future(self._enter(open))
            made.add_done_callback(lambda done: self._forget_failed(key, done))
        return made.result() if made.done() else await asyncio.shield(made)

    def _forget_failed(self, key: Any, made: asyncio.Future[Any]) -> None:
        if made.cancelled() or made.exception() is not None:
            self._kept.pop(key, None)

    async def _enter(self, open: Callable[[AsyncExitStack], Awaitable[Any]]) -> Any:
        """Open something in the task that will close it."""
        if self._task is None:
            self._task = asyncio.create_task(self._own(), name=f"lifetime of {self._server.name}")
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put_nowait((open, opened))
        return await opened

    async def _own(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                while (job := await self._jobs.get()) is not None:
                    await _do(job, stack)
        except Exception as exc:
            log.error("accord: %r failed to end: %s", self._server.name, describe(exc), exc_info=exc)


async def _do(job: Job, stack: AsyncExitStack) -> None:
    open, opened = job
    try:
        value = await open(stack)
    except asyncio.CancelledError:
        opened.cancel()
        raise
    except BaseException as exc:
        if not opened.done():
            opened.set_exception(exc)
    else:
        if not opened.done():
            opened.set_result(value)


class Lifetimes:
    """Those of one server: one for each event loop that it is served on."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._running: dict[asyncio.AbstractEventLoop, _Running] = {}

    def here(self) -> Lifetime:
        """That of this loop. Raises `LifespanError` where the server does not run here."""
        return self.on(asyncio.get_running_loop())

    def on(self, loop: asyncio.AbstractEventLoop) -> Lifetime:
        """That of a loop, from any thread. Raises `LifespanError` where the server does not run there."""
        running = self._running.get(loop)
        if running is None:
            raise LifespanError(f"the server {self._server.name!r} does not run")
        return running.lifetime

    async def enter(self) -> Lifetime:
        """One more serves on this loop; the first starts it. `leave` it. Raises `LifespanError`."""
        loop = asyncio.get_running_loop()
        running = self._running.get(loop)
        if running is None:
            self._running = {each: kept for each, kept in self._running.items() if not each.is_closed()}
            running = self._running[loop] = _Running(self._server)
        running.count += 1
        try:
            await asyncio.shield(running.started)
        except BaseException:
            await self.leave()
            raise
        return running.lifetime

    async def leave(self) -> None:
        """One serves no more; with the last it ends."""
        loop = asyncio.get_running_loop()
        running = self._running[loop]
        running.count -= 1
        if not running.count:
            del self._running[loop]
            await running.lifetime.stop()


class _Running:
    def __init__(self, server: Server) -> None:
        self.lifetime = Lifetime(server)
        self.started = asyncio.ensure_future(self.lifetime.start())
        self.count = 0
