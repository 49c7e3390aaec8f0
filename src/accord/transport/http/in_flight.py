"""The requests of this client in flight over Streamable HTTP: their states, the limit on them, and their ends."""

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
    """The state of a request."""

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
        """Whether it needs a slot."""
        self.what: str = f"{out.method} to {url}"
        self.session: str | None = None
        """The session in which it was sent."""
        self.state: PostState = PostState.QUEUED
        self.task: asyncio.Task[None] | None = None
        self.server_requests: set[RequestId] = set()
        """Ids of the server's requests in the stream of this request."""


SendPost: TypeAlias = Callable[[PostRequest], Awaitable[None]]
"""Sends a request, and processes the response."""


class InFlightRequests:
    """The requests of one connection; at most `most` are sent at once."""

    def __init__(
        self, inbox: HTTPInbox, backlog: Backlog, session_state: ClientSessionState, limits: Limits, most: int
    ) -> None:
        self._inbox = inbox
        self._backlog = backlog
        self._session_state = session_state
        self._limits = limits
        self._slots = asyncio.Semaphore(most)
        self._in_flight: dict[RequestId, PostRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusal: SessionEnded | None = None
        self._complaints = Complaints()

    def get(self, id: object) -> PostRequest | None:
        """Return the request in flight with this id, or None."""
        return self._in_flight.get(id) if type(id) is int or type(id) is str else None

    def start(self, post: PostRequest, send: SendPost) -> None:
        """Send a request, once there is a free slot."""
        if self._refusal is not None:
            self._inbox.put(UnansweredRequest(post.id, self._refusal))
            return
        self._in_flight[post.id] = post
        self._backlog.add(len(post.message))
        post.task = asyncio.get_running_loop().create_task(self._serve(post, send))
        self._tasks.add(post.task)
        post.task.add_done_callback(self._tasks.discard)

    async def _serve(self, post: PostRequest, send: SendPost) -> None:
        """Send one request, and fail it for any exception."""
        try:
            if post.needs_slot:
                await self._slots.acquire()
            post.state = PostState.SENT
            await send(post)
        except AccordError as exc:
            self.fail(post, exc)
        except Exception as exc:
            log.exception("accord: a defect in a request over HTTP: %s", post.what)
            self.fail(post, ConnectionLost(f"{post.what}: {exc!r}"))
        finally:
            self._finish(post)

    # --- responses ---------------------------------------------------------------------------------------------

    def responded(self, post: PostRequest) -> None:
        """Record that the server has begun to respond."""
        if post.state is PostState.SENT:
            post.state = PostState.ANSWERING
            self._backlog.remove(len(post.message))

    def receive(self, post: PostRequest, data: bytes, *, streamed: bool = False) -> bool:
        """Process a message in the response to a request; return whether it ends the request."""
        received = parse_received(data)
        if received.is_answer_to(post.id):
            self._finish_with_answer(post, data)
            return True
        error = received.error
        if error is not None and self._ends_request(received, streamed):
            self.fail(post, error)
            return True
        if error is None and received.is_orphan:
            if streamed:
                excerpt = data[:100].decode(errors="replace")
                self.fail(post, RemoteProtocolError(f"{post.what}: the answer cannot be read; it begins {excerpt!r}"))
            return streamed
        if received.is_request and not self._accept_server_request(post, received):
            return False
        self._forward(received, data)
        return False

    def _ends_request(self, received: ReceivedMessage, streamed: bool) -> bool:
        """Return whether an error without the id of a request ends the request of the response.

        A server that refuses a request before it reads it does not know its id; many put one of their own there.
        """
        return received.has_no_id or (not streamed and self.get(received.id) is None)

    def _accept_server_request(self, post: PostRequest, received: ReceivedMessage) -> bool:
        """Return whether the server may send requests in this stream, and record the request."""
        if post.names_revision:  # "The server MUST NOT send JSON-RPC requests on the stream"
            text = "accord: %s: the server sent the request %.100r, which is not allowed here: dropped"
            self._complaints.log("question", text, post.what, received.method)
            return False
        if len(post.server_requests) < self._limits.requests_in_flight and isinstance(received.id, int | str):
            post.server_requests.add(received.id)
        return True

    def receive_unsolicited(self, data: bytes) -> None:
        """Process a message of a stream that belongs to no request.

        "The server MUST NOT send a JSON-RPC response on the stream": a message that can only be a response, without the
        id of a request, is dropped.
        """
        received = parse_received(data)
        if received.is_orphan and received.error is None:
            text = "accord: dropped an invalid message of the server's GET stream: %r"
            self._complaints.log("orphan", text, data[:200])
        else:
            self._forward(received, data)

    def _forward(self, received: ReceivedMessage, data: bytes) -> None:
        """Deliver a message that does not belong to the request of its stream; it may be the response to another
        one."""
        other = self.get(received.id)
        if other is not None and received.is_answer_to(other.id):
            self._finish_with_answer(other, data)
            self.cancel(other)
        else:
            self._inbox.put(data)

    # --- end of one request ------------------------------------------------------------------------------------

    def _finish_with_answer(self, post: PostRequest, data: bytes) -> None:
        if post.sent.method == INITIALIZE:
            self._session_state.on_initialize_result(data)
        self._inbox.put_answer(data)
        self._finish(post)

    def fail(self, post: PostRequest, error: AccordError) -> None:
        """Fail a request, unless it has ended."""
        if post.state is not PostState.DONE:
            self._inbox.put(UnansweredRequest(post.id, error))
            self._finish(post)

    def cancel(self, post: PostRequest) -> None:
        """Close the response to a request, or do not send it."""
        self._finish(post)
        if post.task is not None:
            post.task.cancel()

    def _finish(self, post: PostRequest) -> None:
        """End a request, and free its slot."""
        if post.state is PostState.DONE:
            return
        if post.state is not PostState.ANSWERING:
            self._backlog.remove(len(post.message))
        if post.needs_slot and post.state is not PostState.QUEUED:
            self._slots.release()
        post.state = PostState.DONE
        del self._in_flight[post.id]

    def fail_unanswered(self, request_id: RequestId | None, error: AccordError) -> None:
        """Fail the request in whose stream the server sent a request, because the server refused the answer: it would
        never end."""
        for post in [post for post in self._in_flight.values() if request_id in post.server_requests]:
            self.fail(
                post,
                ConnectionLost(f"{post.what}: the server sent a request, and did not accept the response: {error}"),
            )
            self.cancel(post)

    # --- end of all requests -----------------------------------------------------------------------------------

    async def refuse(self, error: SessionEnded) -> None:
        """Send no further request; wait until the sent ones have a response, in bounded time."""
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
        """End all requests; with an error, they fail with it."""
        for post in list(self._in_flight.values()):
            if error is not None:
                self.fail(post, error)
            self._finish(post)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.close_seconds / 2)
