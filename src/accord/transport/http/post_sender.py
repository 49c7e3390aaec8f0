"""One request over Streamable HTTP: a POST, and its response.

The response is one JSON body, or an event stream. Any failure fails only this request.

`Resumption` resumes by GET a stream that breaks before the response. This needs a server that sent an event id, and a
revision through 2025-11-25.
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
    report_event,
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
"""Limit of consecutive failures to resume a stream."""
_LINGER_SECONDS = 1
"""Seconds for which a stream is read after the response: mostly it ends at once, and its connection can be reused."""


class Resumption:
    """Reader of the streams of the requests of one connection."""

    def __init__(
        self,
        fetcher: Fetcher,
        session_state: ClientSessionState,
        inbox: HTTPInbox,
        posts: InFlightRequests,
        limits: Limits,
    ) -> None:
        self._fetcher = fetcher
        self._session_state = session_state
        self._inbox = inbox
        self._posts = posts
        self._limits = limits

    async def read(self, post: PostRequest, response: ClientResponse) -> None:
        """Process the events until the response, over one or more HTTP responses. Raises `ConnectionLost`."""
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
        """Read one HTTP response, and close it; return why the response did not arrive, or None."""
        lost: ConnectionLost | None = None
        try:
            await self._read_on(post, stream, response)
        except ConnectionLost as exc:
            lost = exc
        except TimeoutError:
            pass  # the stream continues after the response
        finally:
            response.close()
        if post.state is PostState.DONE:
            return None
        return lost or ConnectionLost(f"{post.what}: the stream ended before the answer")

    async def _read_on(self, post: PostRequest, stream: EventStreamReader, response: ClientResponse) -> None:
        """Read to the end, or for a moment after the response; then raise `TimeoutError`."""

        def take(event: ServerSentEvent | SkippedMessage) -> bool:
            report_event(self._fetcher, response, event)
            if isinstance(event, SkippedMessage):
                raise RemoteProtocolError(f"{post.what}: {event.reason} (Limits.line_bytes)")
            return event.event == "message" and self._posts.receive(post, event.data, streamed=True)

        answered = await stream.read(response, take, post.what)
        if answered and not response.content.at_eof():  # mostly the end of the stream comes with the response
            async with asyncio.timeout(_LINGER_SECONDS):
                while await stream.read_on(response, take, post.what):
                    pass

    async def _resume(self, post: PostRequest, stream: EventStreamReader) -> ConnectionLost | None:
        """Resume the stream; return why the response did not arrive, or None. Raise `ConnectionLost` if the stream
        cannot be resumed."""
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
        """Return an error for a server failure, which may be temporary; raise if the server no longer has the stream.

        404 may mean that the session has ended as well: the next request will report it.
        """
        try:
            body = await read_excerpt(response)
            self._fetcher.report(response, body)
            error = response_error(response, body, post.what, self._fetcher.redactor)
        finally:
            response.close()
        if error.status < 500:
            raise _stream_broken(error)
        stream.count_failure()
        return _stream_broken(error)

    async def _wait(self, post: PostRequest, stream: EventStreamReader) -> None:
        """Wait for the delay that the server sets. Raise `ConnectionLost` if it is too long."""
        if stream.retry_delay > self._limits.client.retry_seconds:
            raise ConnectionLost(
                f"{post.what}: the server closed the stream and asks to reconnect in {stream.retry_delay:g} s; "
                f"the limit is {self._limits.client.retry_seconds:g} s (ClientLimits.retry_seconds)"
            )
        await asyncio.sleep(stream.retry_delay)


def _stream_broken(error: Exception) -> ConnectionLost:
    """Return the error of the request, which was sent, for a failed GET."""
    lost = ConnectionLost(f"{error}; its stream had broken before the answer")
    lost.__cause__ = error
    return lost


class PostSender:
    """The sender of one connection's requests. `on_session_ended` is called if the server no longer knows the
    session."""

    def __init__(
        self,
        fetcher: Fetcher,
        session_state: ClientSessionState,
        inbox: HTTPInbox,
        posts: InFlightRequests,
        limits: Limits,
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._session_state = session_state
        self._inbox = inbox
        self._posts = posts
        self._limits = limits
        self._on_session_ended = on_session_ended
        self._resumption = Resumption(fetcher, session_state, inbox, posts, limits)

    async def run(self, post: PostRequest) -> None:
        """Send a request, and process its response to the end."""
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
            if (session := self._session_state.session) is not None:
                self._fetcher.redactor.add_permanent([session])

    async def _receive_json(self, post: PostRequest, response: ClientResponse) -> None:
        """Process a body that is the response."""
        data = await read_body(response, self._limits.line_bytes, post.what)
        self._fetcher.report(response, data)
        await self._inbox.wait_capacity()
        if not self._posts.receive(post, data):
            raise response_error(response, data, post.what, self._fetcher.redactor)

    async def _receive_error(self, post: PostRequest, response: ClientResponse) -> None:
        """Process a response with an error status or another media type. Raise its error."""
        body = await read_error_body(response, self._limits.line_bytes)
        self._fetcher.report(response, body)
        data = self._fetcher.redactor.redact_error(body)
        status = response_error(response, data, post.what, self._fetcher.redactor)
        received = parse_received(data) if is_json(response) else ReceivedMessage()
        is_response = received.is_answer_to(post.id)
        if post.session is not None and self._ends_session(response.status, data, is_response):
            self._on_session_ended()
            raise SessionEnded(f"{status}; the session has ended") from status
        if is_response and post.sent.method != INITIALIZE:
            self._posts.receive(post, data)
            return
        if received.error is None or (status.final and not is_response):
            raise status
        raise received.error from status  # the opening of a connection also depends on the status

    def _ends_session(self, status: int, data: bytes, is_response: bool) -> bool:
        """Return whether a response ends the session. A response to the request itself may have that status too: the
        request was executed, and must not be sent again in a new session."""
        return ends_session(status, data) and not (is_response and b"session" not in data.lower())
