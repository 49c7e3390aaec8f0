"""Streamable HTTP, the client's side: each message is a POST of its own.

From 2026-07-28 on that is all. Before, `initialize` may open a session: its id goes with whatever follows, a GET holds
the stream of what the server says unasked, and DELETE ends it. Which of the two a message belongs to is seen from the
message itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from accord.errors import AccordError, ConnectionLost, SessionEnded
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.base import Message, Unanswered
from accord.transport.http.backlog import Backlog
from accord.transport.http.bodies import beginning
from accord.transport.http.failures import refused
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.intake import Intake
from accord.transport.http.messages import Outgoing, look
from accord.transport.http.posts import Post, Posts
from accord.transport.http.settings import HTTPSettings
from accord.transport.http.standing import Mirrors, Standing
from accord.transport.http.unasked import Unasked

log: logging.Logger = logging.getLogger("accord")

_CANCELLED = "notifications/cancelled"
_INITIALIZED = "notifications/initialized"
_LEAD = 0.1
"""Seconds that requests wait at most for the stream of what is told unasked, once, at the opening."""


class StreamableTransport:
    """Reaches the server at `url`. `name` is what to call it in errors."""

    def __init__(
        self, url: str, *, name: str = "", settings: HTTPSettings | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        settings = settings or HTTPSettings()
        self._name = name or url
        self._limits = limits
        self._intake = Intake(limits)
        self._fetcher = Fetcher(url, settings, limits)
        self._standing = Standing()
        self._backlog = Backlog()
        self._posts = Posts(
            self._fetcher,
            self._standing,
            self._intake,
            self._backlog,
            limits,
            settings.connections,
            self._on_session_ended,
        )
        self._unasked = Unasked(self._fetcher, self._standing, self._intake, limits, self._name, self._on_session_ended)
        self._loop: asyncio.AbstractEventLoop
        self._lane: deque[tuple[Outgoing, bytes]] = deque()
        self._lane_task: asyncio.Task[None] | None = None
        self._held: list[Post] | None = None  # requests that wait until `initialized` is taken
        self._telling: set[asyncio.Task[None]] = set()
        self._ended: SessionEnded | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def mirrors(self) -> Mirrors | None:
        """Which arguments of a tool stand in headers too, by its name; set by the client."""
        return self._standing.mirrors

    @mirrors.setter
    def mirrors(self, mirrors: Mirrors | None) -> None:
        self._standing.mirrors = mirrors

    @property
    def on_answer(self) -> Callable[[bytes], None] | None:
        """Takes answers at once; set by whoever receives."""
        return self._intake.on_answer

    @on_answer.setter
    def on_answer(self, on_answer: Callable[[bytes], None] | None) -> None:
        self._intake.on_answer = on_answer

    async def open(self) -> None:
        """Get ready; nothing is connected before the first message."""
        self._loop = asyncio.get_running_loop()
        await self._fetcher.open()

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        return self._intake.take()

    def flush(self) -> None:
        """Nothing waits: each message has a request of its own."""

    async def drain(self) -> None:
        await self._backlog.below(self._limits.pending_bytes)

    def lost(self) -> ConnectionLost:
        return self._ended or ConnectionLost(f"{self._name}: the connection was closed")

    # --- out ---------------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        out = look(message)
        if self._closing is not None:
            return
        if out.method is None:
            self._tell_at_once(out, message)
        elif out.id is None:
            self._notify(out, message)
        else:
            self._ask(Post(out, message, self._name))

    def _ask(self, post: Post) -> None:
        if self._ended is not None:
            self._intake.put(Unanswered(post.id, self._ended))
        elif self._held is not None:
            self._held.append(post)
        else:
            self._posts.start(post)

    def _tell_at_once(self, out: Outgoing, message: bytes) -> None:
        """An answer of ours: what it answers may hold up everything else."""
        task = asyncio.get_running_loop().create_task(self._tell(out, message))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _notify(self, out: Outgoing, message: bytes) -> None:
        """Notifications go one after the other: some count on their order."""
        if out.method == _CANCELLED and not self._cancel(out):
            return
        if out.method == _INITIALIZED:
            self._held = []
        self._lane.append((out, message))
        if self._lane_task is None:
            # A client may notify between two runs of its loop.
            self._lane_task = self._loop.create_task(self._run_lane())

    def _cancel(self, out: Outgoing) -> bool:
        """Close the response to the request that is given up; whether the server has to be told as well."""
        id = out.params.cancelled if out.params is not None else None
        if self._held is not None and any(post.id == id for post in self._held):  # it was not sent
            self._held = [post for post in self._held if post.id != id]
            return False
        found = self._posts.in_flight.get(id) if isinstance(id, int | str) else None
        if found is None:
            return True
        self._posts.cancel(found)
        return not found.names_revision

    async def _run_lane(self) -> None:
        try:
            while self._lane:
                await self._tell_next(*self._lane.popleft())
        finally:
            self._lane_task = None

    async def _tell_next(self, out: Outgoing, message: bytes) -> None:
        try:
            await self._tell(out, message)
        finally:
            if out.method == _INITIALIZED:
                await self._session_stands()

    async def _session_stands(self) -> None:
        """The server knows that we are ready: it may be listened to, and asked.

        Some servers ask on that stream whatever they ask, and drop it while there is none: so it has a moment's lead.
        """
        if self._closing is None:
            self._unasked.start()
            await self._unasked.stands(_LEAD)
        held, self._held = self._held, None
        for post in held or ():
            self._ask(post)

    async def _tell(self, out: Outgoing, message: bytes) -> None:
        """Send what gets no answer. That it was not taken harms nobody but the one who waits for it: it is logged."""
        what = f"{out.method or 'an answer'} to {self._name}"
        self._backlog.add(len(message))
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                await self._deliver(out, message, what)
        except (AccordError, TimeoutError) as exc:
            log.warning("accord: %s", str(exc) or f"{what}: not taken in {self._limits.connect_seconds:g} s")
        finally:
            self._backlog.remove(len(message))

    async def _deliver(self, out: Outgoing, message: bytes, what: str) -> None:
        session = self._standing.session
        response = await self._fetcher.fetch("POST", self._standing.headers(out), message, what=what)
        if response.status < 300:
            response.release()
            return
        error = refused(response, await beginning(response), what, self._fetcher.secrets)
        response.close()
        if response.status == 404 and session is not None:
            self._on_session_ended()
        raise error

    # --- the end -----------------------------------------------------------------------------------------------

    def _on_session_ended(self) -> None:
        """The server does not know our session any more: this connection is over."""
        if self._ended is None and self._closing is None:
            self._ended = SessionEnded(f"{self._name}: the server has ended the session")
            self._ending = asyncio.get_running_loop().create_task(self._end_session())

    async def _end_session(self) -> None:
        """What was sent and not responded to is about to be refused too; what is being answered is lost."""
        refused = [post.task for post in self._posts.in_flight.values() if post.task and not post.responded]
        if refused:
            await asyncio.wait(refused, timeout=self._limits.close_seconds)
        await self._unasked.end()
        await self._posts.end(ConnectionLost(f"{self._name}: the session ended before the answer"))
        self._intake.end()
        self._backlog.end()

    async def close(self) -> None:
        """Close what is open, send what was said, and end the session; in bounded time."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._intake.end()
        self._backlog.end()
        try:
            if self._ending is not None:
                self._ending.cancel()
            await self._unasked.end()
            await self._posts.end()
            await self._say_the_rest()
            await self._end_on_the_server()
        finally:
            await self._fetcher.close()

    async def _say_the_rest(self) -> None:
        tasks = [*self._telling, *([self._lane_task] if self._lane_task is not None else [])]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._limits.close_seconds / 2)
            for task in late:
                task.cancel()

    async def _end_on_the_server(self) -> None:
        """End the session: "Clients that no longer need a particular session [...] SHOULD send an HTTP DELETE"."""
        if self._standing.session is None or self._ended is not None:
            return
        try:
            async with asyncio.timeout(self._limits.close_seconds / 2):
                headers = self._standing.of_session()
                response = await self._fetcher.fetch("DELETE", headers, what=f"the end of {self._name}")
                response.close()
        except (AccordError, TimeoutError) as exc:
            log.debug("accord: the session was not ended on the server: %s", exc)
