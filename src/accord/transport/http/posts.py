"""Requests of ours in flight over Streamable HTTP: each is a POST, and its answer the response to it.

The answer is one JSON body, or comes in a stream of events; a stream that breaks before it is taken up again by GET
where the server has given an event id to come back to. Whatever goes wrong fails that one request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from accord.errors import AccordError, ConnectionLost, HTTPError, NotExecuted, RemoteProtocolError, SessionEnded
from accord.limits import Limits
from accord.messages.envelope import RequestId
from accord.transport.base import Unanswered
from accord.transport.http.backlog import Backlog
from accord.transport.http.bodies import beginning, finish, is_json, is_stream, whole
from accord.transport.http.failures import ends_session, refused
from accord.transport.http.fetcher import STREAM_ONLY, Fetcher
from accord.transport.http.intake import Intake
from accord.transport.http.messages import STAYS, Outgoing, answers, error_in
from accord.transport.http.standing import INITIALIZE, Standing
from accord.transport.http.stream import EventStream
from accord.wire.lines import Unreadable
from accord.wire.sse import Event

if TYPE_CHECKING:
    from aiohttp import ClientResponse

log: logging.Logger = logging.getLogger("accord")

_RESUMES = 5
"""How often in a row a stream may fail to be taken up again."""


class Post:
    """One request in flight."""

    __slots__ = ("answered", "begun", "id", "message", "names_revision", "out", "responded", "session", "task", "what")

    def __init__(self, out: Outgoing, message: bytes, url: str) -> None:
        assert out.id is not None
        self.id: RequestId = out.id
        self.out: Outgoing = out
        self.message: bytes = message
        self.names_revision: bool = out.version is not None
        self.what: str = f"{out.method} to {url}"
        self.session: str | None = None
        """The session that it was sent in."""
        self.task: asyncio.Task[None] | None = None
        self.begun: bool = False
        """Whether its task has run at all."""
        self.responded: bool = False
        """Whether the server has begun to respond."""
        self.answered: bool = False


class Posts:
    """The requests of one connection. `on_session_ended` is called when the server does not know our session."""

    def __init__(
        self,
        fetcher: Fetcher,
        standing: Standing,
        intake: Intake,
        backlog: Backlog,
        limits: Limits,
        most: int,
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._standing = standing
        self._intake = intake
        self._backlog = backlog
        self._limits = limits
        self._most = most
        self._on_session_ended = on_session_ended
        self._waiting: deque[Post] = deque()
        self._running = 0  # those that count
        self.in_flight: dict[RequestId, Post] = {}

    def start(self, post: Post) -> None:
        """Send a request, or have it wait for its turn."""
        self.in_flight[post.id] = post
        self._backlog.add(len(post.message))
        if post.out.method in STAYS:
            self._run(post, self._serve(post))
        elif self._running < self._most:
            self._running += 1
            self._run(post, self._serve(post))
        else:
            self._waiting.append(post)

    def _run(self, post: Post, work: Coroutine[Any, Any, None]) -> None:
        post.task = asyncio.get_running_loop().create_task(work)

    def cancel(self, post: Post) -> None:
        """Close the response to a request, or do not send it."""
        self._forget(post)
        if post.task is None:
            self._waiting.remove(post)
            return
        post.task.cancel()
        if not post.begun:  # it never will
            self._follow(post)

    def _forget(self, post: Post) -> None:
        if self.in_flight.get(post.id) is post:
            del self.in_flight[post.id]
        self._responded(post)

    def _responded(self, post: Post) -> None:
        if not post.responded:
            post.responded = True
            self._backlog.remove(len(post.message))

    async def end(self, error: ConnectionLost | None = None) -> None:
        """Close all of them; with an error, that is what they get."""
        posts = list(self.in_flight.values())
        for post in posts:
            self.cancel(post)
            if error is not None:
                self._intake.put(Unanswered(post.id, error))
        tasks = [post.task for post in posts if post.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.close_seconds / 2)

    # --- one request -------------------------------------------------------------------------------------------

    async def _serve(self, post: Post) -> None:
        """One request, whatever happens to it."""
        post.begun = True
        try:
            await self._exchange(post)
        except AccordError as exc:
            self._fail(post, exc)
        except Exception as exc:
            log.exception("accord: a defect in a request over HTTP: %s", post.what)
            self._fail(post, ConnectionLost(f"{post.what}: {exc!r}"))
        finally:
            self._forget(post)
            self._follow(post)

    def _fail(self, post: Post, error: AccordError) -> None:
        if not post.answered:
            self._intake.put(Unanswered(post.id, error))

    def _follow(self, post: Post) -> None:
        """A request has ended: the turn is that of the next that waits."""
        if post.out.method in STAYS:
            return
        if self._waiting and not self._intake.ended:
            follower = self._waiting.popleft()
            self._run(follower, self._serve(follower))
        else:
            self._running -= 1

    async def _exchange(self, post: Post) -> None:
        headers = self._standing.headers(post.out)
        post.session = None if post.names_revision or post.out.method == INITIALIZE else self._standing.session
        response = await self._fetcher.fetch("POST", headers, post.message, what=post.what)
        self._responded(post)
        try:
            if is_stream(response):
                await self._stream(post, response)
            elif response.status == 200 and is_json(response):
                self._began(post, response)
                await self._one(post, response)
            else:
                await self._refused(post, response)
        except BaseException:
            response.close()  # "closing the SSE response stream is itself the cancellation signal"
            raise
        response.release()

    def _began(self, post: Post, response: ClientResponse) -> None:
        if post.out.method == INITIALIZE:
            self._standing.began(response)

    async def _one(self, post: Post, response: ClientResponse) -> None:
        """A body that is the answer."""
        data = await whole(response, self._limits.line_bytes, post.what)
        await self._intake.room()
        if not self._take(post, data):
            raise refused(response, data, post.what, self._fetcher.secrets)

    async def _refused(self, post: Post, response: ClientResponse) -> None:
        """A response that is no answer, or one that says in its body what is wrong. Raises that."""
        has_json = is_json(response)
        data = await (whole(response, self._limits.line_bytes, post.what) if has_json else beginning(response))
        status = refused(response, data, post.what, self._fetcher.secrets)
        if post.session is not None and ends_session(response.status, data):
            self._on_session_ended()
            raise SessionEnded(f"{status}; the session has ended") from status
        is_ours = has_json and answers(data, post.id) is True
        if is_ours and post.out.method != INITIALIZE:
            self._take(post, data)
            return
        error = error_in(data) if has_json else None
        if error is None or (status.final and not is_ours):
            raise status
        raise error from status  # whoever opens a connection goes by the status too

    def _take(self, post: Post, data: bytes) -> bool:
        """Hand on a message that came in response to a request; whether it was the answer."""
        found = answers(data, post.id)
        if found is False:
            self._intake.put(data)
            return False
        post.answered = True
        if found is not True:
            self._intake.put(Unanswered(post.id, found))
            return True
        if post.out.method == INITIALIZE:
            self._standing.initialized(data)
        self._intake.answer(data)
        return True

    # --- its stream --------------------------------------------------------------------------------------------

    async def _stream(self, post: Post, response: ClientResponse) -> None:
        """Read the stream to the answer, over as many responses as it takes."""
        self._began(post, response)
        stream = EventStream(self._limits.line_bytes, self._intake.room)

        def take(event: Event | Unreadable) -> bool:
            if isinstance(event, Unreadable):
                raise RemoteProtocolError(f"{post.what}: {event.reason} (Limits.line_bytes)")
            return event.event == "message" and self._take(post, event.data)

        while not await self._read(post, stream, response, take):
            response.close()
            response = await self._resumed(post, stream)
        await finish(response)
        response.release()

    async def _read(
        self, post: Post, stream: EventStream, response: ClientResponse, take: Callable[[Event | Unreadable], bool]
    ) -> bool:
        """Whether the answer came; if not, the stream can be taken up again."""
        try:
            if await stream.read(response, take, post.what):
                return True
            lost = ConnectionLost(f"{post.what}: the stream ended before the answer")
        except ConnectionLost as exc:
            if post.answered:
                return True
            lost = exc
        if post.names_revision or stream.last_id is None:  # "Resumable SSE streams [...] are not supported"
            raise lost
        return False

    async def _resumed(self, post: Post, stream: EventStream) -> ClientResponse:
        """The response that the stream goes on in. Raises `ConnectionLost` when there is none."""
        while True:
            await self._wait(post, stream)
            headers = {**STREAM_ONLY, **self._standing.of_session(), "Last-Event-ID": stream.last_id or ""}
            try:
                response = await self._fetcher.fetch("GET", headers, what=post.what)
            except NotExecuted as exc:
                error: AccordError = exc
            else:
                if is_stream(response):
                    return response
                error = refused(response, await beginning(response), post.what, self._fetcher.secrets)
                response.close()
                if response.status == 404 and post.session is not None:
                    self._on_session_ended()
            if (isinstance(error, HTTPError) and error.status < 500) or stream.failed() >= _RESUMES:
                raise ConnectionLost(f"{error}; its stream had broken before the answer") from error

    async def _wait(self, post: Post, stream: EventStream) -> None:
        """The pause that the server asks for. Raises `ConnectionLost` when that is too long."""
        if stream.pause > self._limits.retry_seconds:
            raise ConnectionLost(
                f"{post.what}: the server closed the stream and asks to come back in {stream.pause:g} s; "
                f"the limit is {self._limits.retry_seconds:g} s (Limits.retry_seconds)"
            )
        await asyncio.sleep(stream.pause)
