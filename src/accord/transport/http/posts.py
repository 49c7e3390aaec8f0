"""Requests of ours in flight over Streamable HTTP: which there are, whose turn it is, and what ends each of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeAlias

from accord.errors import AccordError, ConnectionLost, RemoteProtocolError, SessionEnded
from accord.limits import Limits
from accord.messages.envelope import RequestId
from accord.transport.base import Unanswered
from accord.transport.http.backlog import Backlog
from accord.transport.http.failures import Complaints
from accord.transport.http.intake import Intake
from accord.transport.http.messages import STAYS, Incoming, Outgoing, incoming
from accord.transport.http.standing import INITIALIZE, Standing

log: logging.Logger = logging.getLogger("accord")


class State(Enum):
    """How far a request is."""

    QUEUED = "it waits for its turn, and nothing was sent"
    SENT = "the server has not begun to respond"
    ANSWERING = "the server has begun to respond"
    DONE = "it is answered, has failed, or was given up"


class Post:
    """One request in flight."""

    __slots__ = ("counts", "id", "message", "names_revision", "out", "questions", "session", "state", "task", "what")

    def __init__(self, out: Outgoing, message: bytes, url: str) -> None:
        assert out.id is not None
        self.id: RequestId = out.id
        self.out: Outgoing = out
        self.message: bytes = message
        self.names_revision: bool = out.version is not None
        self.counts: bool = out.method not in STAYS
        """Whether it needs a turn."""
        self.what: str = f"{out.method} to {url}"
        self.session: str | None = None
        """The session that it was sent in."""
        self.state: State = State.QUEUED
        self.task: asyncio.Task[None] | None = None
        self.questions: set[RequestId] = set()
        """What the server has asked in the stream of this request."""


Exchange: TypeAlias = Callable[[Post], Awaitable[None]]
"""Sends a request, and hands on what comes in response."""


class Posts:
    """The requests of one connection, of which `most` have a turn at once."""

    def __init__(self, intake: Intake, backlog: Backlog, standing: Standing, limits: Limits, most: int) -> None:
        self._intake = intake
        self._backlog = backlog
        self._standing = standing
        self._limits = limits
        self._turns = asyncio.Semaphore(most)
        self._in_flight: dict[RequestId, Post] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusal: SessionEnded | None = None
        self._complaints = Complaints()

    def get(self, id: object) -> Post | None:
        """The request of this id that is in flight."""
        return self._in_flight.get(id) if type(id) is int or type(id) is str else None

    def start(self, post: Post, exchange: Exchange) -> None:
        """Send a request, or have it wait for its turn."""
        if self._refusal is not None:
            self._intake.put(Unanswered(post.id, self._refusal))
            return
        self._in_flight[post.id] = post
        self._backlog.add(len(post.message))
        post.task = asyncio.get_running_loop().create_task(self._serve(post, exchange))
        self._tasks.add(post.task)
        post.task.add_done_callback(self._tasks.discard)

    async def _serve(self, post: Post, exchange: Exchange) -> None:
        """One request, whatever happens to it."""
        try:
            if post.counts:
                await self._turns.acquire()
            post.state = State.SENT
            await exchange(post)
        except AccordError as exc:
            self.fail(post, exc)
        except Exception as exc:
            log.exception("accord: a defect in a request over HTTP: %s", post.what)
            self.fail(post, ConnectionLost(f"{post.what}: {exc!r}"))
        finally:
            self._done(post)

    # --- what comes in response --------------------------------------------------------------------------------

    def responded(self, post: Post) -> None:
        """The server has begun to respond."""
        if post.state is State.SENT:
            post.state = State.ANSWERING
            self._backlog.remove(len(post.message))

    def take(self, post: Post, data: bytes, *, streamed: bool = False) -> bool:
        """Hand on a message that came in response to a request; whether it ends that."""
        found = incoming(data)
        if found.answers(post.id):
            self._answered(post, data)
            return True
        error = found.error
        if error is not None and self._is_meant(found, streamed):
            self.fail(post, error)
            return True
        if error is None and found.is_orphan:
            if streamed:
                excerpt = data[:100].decode(errors="replace")
                self.fail(post, RemoteProtocolError(f"{post.what}: the answer cannot be read; it begins {excerpt!r}"))
            return streamed
        if found.is_request and not self._may_ask(post, found):
            return False
        self._pass_on(found, data)
        return False

    def _is_meant(self, found: Incoming, streamed: bool) -> bool:
        """Whether an error that does not name a request tells how that has ended.

        Whoever refuses a request before it is read does not know its id, and many put one of their own there.
        """
        return found.names_none or (not streamed and self.get(found.id) is None)

    def _may_ask(self, post: Post, found: Incoming) -> bool:
        """Whether the server may ask in this stream; if so, it is remembered what."""
        if post.names_revision:  # "The server MUST NOT send JSON-RPC requests on the stream"
            why = "accord: %s: the server asks %.100r, which it may not here: dropped"
            self._complaints.log("question", why, post.what, found.method)
            return False
        if len(post.questions) < self._limits.requests_in_flight and isinstance(found.id, int | str):
            post.questions.add(found.id)
        return True

    def take_unasked(self, data: bytes) -> None:
        """Hand on a message that came in a stream of no request.

        "The server MUST NOT send a JSON-RPC response on the stream": what can only be one and names no request is
        dropped.
        """
        found = incoming(data)
        if found.is_orphan and found.error is None:
            why = "accord: dropped a message of the server's stream that is none: %r"
            self._complaints.log("orphan", why, data[:200])
        else:
            self._pass_on(found, data)

    def _pass_on(self, found: Incoming, data: bytes) -> None:
        """A message that is not for the request it came with; it may be the answer to another."""
        other = self.get(found.id)
        if other is not None and found.answers(other.id):
            self._answered(other, data)
            self.cancel(other)
        else:
            self._intake.put(data)

    # --- the end of one ----------------------------------------------------------------------------------------

    def _answered(self, post: Post, data: bytes) -> None:
        if post.out.method == INITIALIZE:
            self._standing.initialized(data)
        self._intake.answer(data)
        self._done(post)

    def fail(self, post: Post, error: AccordError) -> None:
        """There is no answer to a request, unless it was answered before."""
        if post.state is not State.DONE:
            self._intake.put(Unanswered(post.id, error))
            self._done(post)

    def cancel(self, post: Post) -> None:
        """Close the response to a request, or do not send it."""
        self._done(post)
        if post.task is not None:
            post.task.cancel()

    def _done(self, post: Post) -> None:
        """Nobody waits for this request any more: its turn is that of the next."""
        if post.state is State.DONE:
            return
        if post.state is not State.ANSWERING:
            self._backlog.remove(len(post.message))
        if post.counts and post.state is not State.QUEUED:
            self._turns.release()
        post.state = State.DONE
        del self._in_flight[post.id]

    def not_taken(self, question: RequestId | None, error: AccordError) -> None:
        """The server has not taken our answer: the request in whose stream it asked would wait for ever."""
        for post in [post for post in self._in_flight.values() if question in post.questions]:
            self.fail(post, ConnectionLost(f"{post.what}: the server asked, and did not take the answer: {error}"))
            self.cancel(post)

    # --- the end of all ----------------------------------------------------------------------------------------

    async def refuse(self, error: SessionEnded) -> None:
        """Send nothing more; return when what was sent is responded to, or not in time."""
        self._refusal = error
        posts = list(self._in_flight.values())
        for post in posts:
            if post.state is State.QUEUED:
                self.fail(post, error)
                self.cancel(post)
        sent = [post.task for post in posts if post.state is State.SENT and post.task is not None]
        if sent:
            await asyncio.wait(sent, timeout=self._limits.close_seconds)

    async def end(self, error: ConnectionLost | None = None) -> None:
        """Close all of them; with an error, that is what they get."""
        for post in list(self._in_flight.values()):
            if error is not None:
                self.fail(post, error)
            self._done(post)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.close_seconds / 2)
