"""The stream that the answer to a request comes in: one that breaks before is taken up again by GET.

That takes a server that has given an event id to come back to, and a revision through 2025-11-25.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from accord.errors import ConnectionLost, RemoteProtocolError
from accord.limits import Limits
from accord.transport.http.bodies import is_stream, read_excerpt
from accord.transport.http.event_stream import EventStreamReader
from accord.transport.http.failures import response_error
from accord.transport.http.fetcher import STREAM_ONLY, Fetcher
from accord.transport.http.in_flight import InFlightRequests, PostRequest, PostState
from accord.transport.http.inbox import HTTPInbox
from accord.transport.http.session_state import ClientSessionState
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
                f"{post.what}: the server closed the stream and asks to come back in {stream.retry_delay:g} s; "
                f"the limit is {self._limits.retry_seconds:g} s (Limits.retry_seconds)"
            )
        await asyncio.sleep(stream.retry_delay)


def _stream_broken(error: Exception) -> ConnectionLost:
    """The request itself was sent, whatever became of the GET."""
    lost = ConnectionLost(f"{error}; its stream had broken before the answer")
    lost.__cause__ = error
    return lost
