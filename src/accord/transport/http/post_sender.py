"""One request over Streamable HTTP: a POST, and its answer in the response.

The answer is one JSON body, or comes in a stream of events. Whatever goes wrong fails that one request.

The stream that the answer to a request comes in: one that breaks before is taken up again by GET.

That takes a server that has given an event id to come back to, and a revision through 2025-11-25.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.errors import ConnectionLost, RemoteProtocolError, SessionEnded
from accord.limits import Limits
from accord.transport.http.event_stream import (
    EventStreamReader,
    is_json,
    is_stream,
    read_body,
    read_error_body,
    read_excerpt,
)
from accord.transport.http.failures import ends_session, response_error
from accord.transport.http.fetcher import STREAM_ONLY, Fetcher
from accord.transport.http.in_flight import InFlightRequests, PostRequest, PostState
from accord.transport.http.inbox import HTTPInbox
from accord.transport.http.messages import ReceivedMessage, parse_received
from accord.transport.http.session_state import INITIALIZE, ClientSessionState
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_MAX_RESUMES = 5
"""How often in a row a stream may fail to be taken up again."""
_LINGER_SECONDS = 1
"""How long a stream is read after the answer: mostly it ends at once, and its connection can be used again."""


class Resumption:
    """Reads the streams of the requests of one connection."""

    def __init__(
        self, fetcher: Fetcher, standing: ClientSessionState, intake: HTTPInbox, posts: InFlightRequests, limits: Limits
    ) -> None:
        self._fetcher = fetcher
        self._session_state = standing
        self._inbox = intake
        self._posts = posts
        self._limits = limits

    async def read(self, post: PostRequest, response: ClientResponse) -> None:
        """Hand on what comes, to the answer and over as many responses as it takes. Raises `ConnectionLost`."""
        stream = EventStreamReader(self._limits.line_bytes, self._inbox.wait_capacity)
        lost = await self._read(post, stream, response)
        while lost is not None:
            # "Resumable SSE streams [...] are not supported" from 2026-07-28 on.
            if post.names_revision or stream.last_id is None or stream.failures >= _MAX_RESUMES:
                raise lost
            await self._wait(post, stream)
            lost = await self._resume(post, stream)

    async def _read(
        self, post: PostRequest, stream: EventStreamReader, response: ClientResponse
    ) -> ConnectionLost | None:
        """One response, which is closed then: why the answer did not come, or None."""
        lost = ConnectionLost(f"{post.what}: the stream ended before the answer")
        try:
            await self._read_on(post, stream, response)
        except ConnectionLost as exc:
            lost = exc
        except TimeoutError:
            pass  # it goes on after the answer
        finally:
            response.close()
        return None if post.state is PostState.DONE else lost

    async def _read_on(self, post: PostRequest, stream: EventStreamReader, response: ClientResponse) -> None:
        """To the end, or a moment after the answer. Raises `TimeoutError` then."""
        async with asyncio.timeout(None) as patience:

            def take(event: ServerSentEvent | SkippedMessage) -> bool:
                if isinstance(event, SkippedMessage):
                    raise RemoteProtocolError(f"{post.what}: {event.reason} (Limits.line_bytes)")
                if event.event == "message" and self._posts.receive(post, event.data, streamed=True):
                    patience.reschedule(asyncio.get_running_loop().time() + _LINGER_SECONDS)
                return False

            await stream.read(response, take, post.what)

    async def _resume(self, post: PostRequest, stream: EventStreamReader) -> ConnectionLost | None:
        """Go on where the stream broke: why the answer did not come, or None. Raises `ConnectionLost` if it cannot."""
        headers = {**STREAM_ONLY, **self._session_state.session_headers(), "Last-Event-ID": stream.last_id or ""}
        try:
            response = await self._fetcher.fetch("GET", headers, what=post.what)
        except ConnectionLost as exc:
            stream.count_failure()
            return _stream_broken(exc)
        if is_stream(response):
            return await self._read(post, stream, response)
        return await self._resume_error(post, stream, response)

    async def _resume_error(
        self, post: PostRequest, stream: EventStreamReader, response: ClientResponse
    ) -> ConnectionLost:
        """A server that is ill may get well; one that does not have the stream any more will not.

        404 may mean that the session is gone as well: the next request will say so.
        """
        try:
            error = response_error(response, await read_excerpt(response), post.what, self._fetcher.redactor)
        finally:
            response.close()
        if error.status < 500:
            raise _stream_broken(error)
        stream.count_failure()
        return _stream_broken(error)

    async def _wait(self, post: PostRequest, stream: EventStreamReader) -> None:
        """The pause that the server asks for. Raises `ConnectionLost` when that is too long."""
        if stream.retry_delay > self._limits.retry_seconds:
            raise ConnectionLost(
                f"{post.what}: the server closed the stream and asks to reconnect in {stream.retry_delay:g} s; "
                f"the limit is {self._limits.retry_seconds:g} s (Limits.retry_seconds)"
            )
        await asyncio.sleep(stream.retry_delay)


def _stream_broken(error: Exception) -> ConnectionLost:
    """The request itself was sent, whatever became of the GET."""
    lost = ConnectionLost(f"{error}; its stream had broken before the answer")
    lost.__cause__ = error
    return lost


class PostSender:
    """Of one connection. `on_session_ended` is called when the server does not know our session."""

    def __init__(
        self,
        fetcher: Fetcher,
        standing: ClientSessionState,
        intake: HTTPInbox,
        posts: InFlightRequests,
        limits: Limits,
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._session_state = standing
        self._inbox = intake
        self._posts = posts
        self._limits = limits
        self._on_session_ended = on_session_ended
        self._resumption = Resumption(fetcher, standing, intake, posts, limits)

    async def run(self, post: PostRequest) -> None:
        """Send a request, and hand on what comes in response, to its end."""
        headers = self._session_state.message_headers(post.sent)
        post.session = None if post.names_revision or post.sent.method == INITIALIZE else self._session_state.session
        response = await self._fetcher.fetch("POST", headers, post.message, what=post.what)
        self._posts.responded(post)
        try:
            if is_stream(response):
                self._start_session(post, response)
                await self._resumption.read(post, response)
            elif response.status == 200 and is_json(response):
                self._start_session(post, response)
                await self._receive_json(post, response)
            else:
                await self._receive_error(post, response)
        finally:
            response.close()  # "closing the SSE response stream is itself the cancellation signal"

    def _start_session(self, post: PostRequest, response: ClientResponse) -> None:
        if post.sent.method == INITIALIZE:
            self._session_state.on_initialize_response(response)

    async def _receive_json(self, post: PostRequest, response: ClientResponse) -> None:
        """A body that is the answer."""
        data = await read_body(response, self._limits.line_bytes, post.what)
        await self._inbox.wait_capacity()
        if not self._posts.receive(post, data):
            raise response_error(response, data, post.what, self._fetcher.redactor)

    async def _receive_error(self, post: PostRequest, response: ClientResponse) -> None:
        """A response that is no answer, or one that says in its body what is wrong. Raises that."""
        data = self._fetcher.redactor.redact_error(await read_error_body(response, self._limits.line_bytes))
        status = response_error(response, data, post.what, self._fetcher.redactor)
        found = parse_received(data) if is_json(response) else ReceivedMessage()
        is_ours = found.is_answer_to(post.id)
        if post.session is not None and self._ends_session(response.status, data, is_ours):
            self._on_session_ended()
            raise SessionEnded(f"{status}; the session has ended") from status
        if is_ours and post.sent.method != INITIALIZE:
            self._posts.receive(post, data)
            return
        if found.error is None or (status.final and not is_ours):
            raise status
        raise found.error from status  # whoever opens a connection goes by the status too

    def _ends_session(self, status: int, data: bytes, is_ours: bool) -> bool:
        """An answer may have that status too: the request was served, and must not be sent again in a new session."""
        return ends_session(status, data) and not (is_ours and b"session" not in data.lower())
