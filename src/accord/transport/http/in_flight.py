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
from accord.transport.base import UnansweredRequest
from accord.transport.http.failures import Complaints
from accord.transport.http.inbox import Backlog, HTTPInbox
from accord.transport.http.messages import SUBSCRIPTION_METHODS, ReceivedMessage, SentMessage, parse_received
from accord.transport.http.session_state import INITIALIZE, ClientSessionState

log: logging.Logger = logging.getLogger("accord")


class PostState(Enum):
    """How far a request is."""

    QUEUED = "it waits for its turn, and nothing was sent"
    SENT = "the server has not begun to respond"
    ANSWERING = "the server has begun to respond"
    DONE = "it is answered, has failed, or was given up"


class PostRequest:
    """One request in flight."""

    __slots__ = (
        "id",
        "message",
        "names_revision",
        "needs_slot",
        "sent",
        "server_requests",
        "session",
        "state",
        "task",
        "what",
    )

    def __init__(self, out: SentMessage, message: bytes, url: str) -> None:
        assert out.id is not None
        self.id: RequestId = out.id
        self.sent: SentMessage = out
        self.message: bytes = message
        self.names_revision: bool = out.revision is not None
        self.needs_slot: bool = out.method not in SUBSCRIPTION_METHODS
        """Whether it needs a turn."""
        self.what: str = f"{out.method} to {url}"
        self.session: str | None = None
        """The session that it was sent in."""
        self.state: PostState = PostState.QUEUED
        self.task: asyncio.Task[None] | None = None
        self.server_requests: set[RequestId] = set()
        """What the server has asked in the stream of this request."""


SendPost: TypeAlias = Callable[[PostRequest], Awaitable[None]]
"""Sends a request, and hands on what comes in response."""


class InFlightRequests:
    """The requests of one connection, of which `most` have a turn at once."""

    def __init__(
        self, intake: HTTPInbox, backlog: Backlog, standing: ClientSessionState, limits: Limits, most: int
    ) -> None:
        self._inbox = intake
        self._backlog = backlog
        self._session_state = standing
        self._limits = limits
        self._slots = asyncio.Semaphore(most)
        self._in_flight: dict[RequestId, PostRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusal: SessionEnded | None = None
        self._complaints = Complaints()

    def get(self, id: object) -> PostRequest | None:
        """The request of this id that is in flight."""
        return self._in_flight.get(id) if type(id) is int or type(id) is str else None

    def start(self, post: PostRequest, exchange: SendPost) -> None:
        """Send a request, or have it wait for its turn."""
        if self._refusal is not None:
            self._inbox.put(UnansweredRequest(post.id, self._refusal))
            return
        self._in_flight[post.id] = post
        self._backlog.add(len(post.message))
        post.task = asyncio.get_running_loop().create_task(self._serve(post, exchange))
        self._tasks.add(post.task)
        post.task.add_done_callback(self._tasks.discard)

    async def _serve(self, post: PostRequest, exchange: SendPost) -> None:
        """One request, whatever happens to it."""
        try:
            if post.needs_slot:
                await self._slots.acquire()
            post.state = PostState.SENT
            await exchange(post)
        except AccordError as exc:
            self.fail(post, exc)
        except Exception as exc:
            log.exception("accord: a defect in a request over HTTP: %s", post.what)
            self.fail(post, ConnectionLost(f"{post.what}: {exc!r}"))
        finally:
            self._finish(post)

    # --- what comes in response --------------------------------------------------------------------------------

    def responded(self, post: PostRequest) -> None:
        """The server has begun to respond."""
        if post.state is PostState.SENT:
            post.state = PostState.ANSWERING
            self._backlog.remove(len(post.message))

    def receive(self, post: PostRequest, data: bytes, *, streamed: bool = False) -> bool:
        """Hand on a message that came in response to a request; whether it ends that."""
        found = parse_received(data)
        if found.is_answer_to(post.id):
            self._finish_with_answer(post, data)
            return True
        error = found.error
        if error is not None and self._ends_request(found, streamed):
            self.fail(post, error)
            return True
        if error is None and found.is_orphan:
            if streamed:
                excerpt = data[:100].decode(errors="replace")
                self.fail(post, RemoteProtocolError(f"{post.what}: the answer cannot be read; it begins {excerpt!r}"))
            return streamed
        if found.is_request and not self._accept_server_request(post, found):
            return False
        self._forward(found, data)
        return False

    def _ends_request(self, found: ReceivedMessage, streamed: bool) -> bool:
        """Whether an error that does not name a request tells how that has ended.

        Whoever refuses a request before it is read does not know its id, and many put one of their own there.
        """
        return found.has_no_id or (not streamed and self.get(found.id) is None)

    def _accept_server_request(self, post: PostRequest, found: ReceivedMessage) -> bool:
        """Whether the server may ask in this stream; if so, it is remembered what."""
        if post.names_revision:  # "The server MUST NOT send JSON-RPC requests on the stream"
            why = "accord: %s: the server asks %.100r, which it may not here: dropped"
            self._complaints.log("question", why, post.what, found.method)
            return False
        if len(post.server_requests) < self._limits.requests_in_flight and isinstance(found.id, int | str):
            post.server_requests.add(found.id)
        return True

    def receive_unsolicited(self, data: bytes) -> None:
        """Hand on a message that came in a stream of no request.

        "The server MUST NOT send a JSON-RPC response on the stream": what can only be one and names no request is
        dropped.
        """
        found = parse_received(data)
        if found.is_orphan and found.error is None:
            why = "accord: dropped a message of the server's stream that is none: %r"
            self._complaints.log("orphan", why, data[:200])
        else:
            self._forward(found, data)

    def _forward(self, found: ReceivedMessage, data: bytes) -> None:
        """A message that is not for the request it came with; it may be the answer to another."""
        other = self.get(found.id)
        if other is not None and found.is_answer_to(other.id):
            self._finish_with_answer(other, data)
            self.cancel(other)
        else:
            self._inbox.put(data)

    # --- the end of one ----------------------------------------------------------------------------------------

    def _finish_with_answer(self, post: PostRequest, data: bytes) -> None:
        if post.sent.method == INITIALIZE:
            self._session_state.on_initialize_result(data)
        self._inbox.put_answer(data)
        self._finish(post)

    def fail(self, post: PostRequest, error: AccordError) -> None:
        """There is no answer to a request, unless it was answered before."""
        if post.state is not PostState.DONE:
            self._inbox.put(UnansweredRequest(post.id, error))
            self._finish(post)

    def cancel(self, post: PostRequest) -> None:
        """Close the response to a request, or do not send it."""
        self._finish(post)
        if post.task is not None:
            post.task.cancel()

    def _finish(self, post: PostRequest) -> None:
        """Nobody waits for this request any more: its turn is that of the next."""
        if post.state is PostState.DONE:
            return
        if post.state is not PostState.ANSWERING:
            self._backlog.remove(len(post.message))
        if post.needs_slot and post.state is not PostState.QUEUED:
            self._slots.release()
        post.state = PostState.DONE
        del self._in_flight[post.id]

    def fail_unanswered(self, question: RequestId | None, error: AccordError) -> None:
        """The server has not taken our answer: the request in whose stream it asked would wait for ever."""
        for post in [post for post in self._in_flight.values() if question in post.server_requests]:
            self.fail(post, ConnectionLost(f"{post.what}: the server asked, and did not take the answer: {error}"))
            self.cancel(post)

    # --- the end of all ----------------------------------------------------------------------------------------

    async def refuse(self, error: SessionEnded) -> None:
        """Send nothing more; return when what was sent is responded to, or not in time."""
        self._refusal = error
        posts = list(self._in_flight.values())
        for post in posts:
            if post.state is PostState.QUEUED:
                self.fail(post, error)
                self.cancel(post)
        sent = [post.task for post in posts if post.state is PostState.SENT and post.task is not None]
        if sent:
            await asyncio.wait(sent, timeout=self._limits.close_seconds)

    async def end(self, error: ConnectionLost | None = None) -> None:
        """Close all of them; with an error, that is what they get."""
        for post in list(self._in_flight.values()):
            if error is not None:
                self.fail(post, error)
            self._finish(post)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.close_seconds / 2)
