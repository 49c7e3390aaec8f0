"""The stream that the answer to a request comes in: one that breaks before is taken up again by GET.

That takes a server that has given an event id to come back to, and a revision through 2025-11-25.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from accord.errors import ConnectionLost, RemoteProtocolError
from accord.limits import Limits
from accord.transport.http.bodies import beginning, is_stream
from accord.transport.http.failures import refused
from accord.transport.http.fetcher import STREAM_ONLY, Fetcher
from accord.transport.http.intake import Intake
from accord.transport.http.posts import Post, Posts, State
from accord.transport.http.standing import Standing
from accord.transport.http.stream import EventStream
from accord.wire.lines import Unreadable
from accord.wire.sse import Event

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_RESUMES = 5
"""How often in a row a stream may fail to be taken up again."""
_REST_SECONDS = 1
"""How long a stream is read after the answer: mostly it ends at once, and its connection can be used again."""


class Resumption:
    """Reads the streams of the requests of one connection."""

    def __init__(self, fetcher: Fetcher, standing: Standing, intake: Intake, posts: Posts, limits: Limits) -> None:
        self._fetcher = fetcher
        self._standing = standing
        self._intake = intake
        self._posts = posts
        self._limits = limits

    async def read(self, post: Post, response: ClientResponse) -> None:
        """Hand on what comes, to the answer and over as many responses as it takes. Raises `ConnectionLost`."""
        stream = EventStream(self._limits.line_bytes, self._intake.room)
        lost = await self._read(post, stream, response)
        while lost is not None:
            # "Resumable SSE streams [...] are not supported" from 2026-07-28 on.
            if post.names_revision or stream.last_id is None or stream.failures >= _RESUMES:
                raise lost
            await self._wait(post, stream)
            lost = await self._resume(post, stream)

    async def _read(self, post: Post, stream: EventStream, response: ClientResponse) -> ConnectionLost | None:
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
        return None if post.state is State.DONE else lost

    async def _read_on(self, post: Post, stream: EventStream, response: ClientResponse) -> None:
        """To the end, or a moment after the answer. Raises `TimeoutError` then."""
        async with asyncio.timeout(None) as patience:

            def take(event: Event | Unreadable) -> bool:
                if isinstance(event, Unreadable):
                    raise RemoteProtocolError(f"{post.what}: {event.reason} (Limits.line_bytes)")
                if event.event == "message" and self._posts.take(post, event.data, streamed=True):
                    patience.reschedule(asyncio.get_running_loop().time() + _REST_SECONDS)
                return False

            await stream.read(response, take, post.what)

    async def _resume(self, post: Post, stream: EventStream) -> ConnectionLost | None:
        """Go on where the stream broke: why the answer did not come, or None. Raises `ConnectionLost` if it cannot."""
        headers = {**STREAM_ONLY, **self._standing.of_session(), "Last-Event-ID": stream.last_id or ""}
        try:
            response = await self._fetcher.fetch("GET", headers, what=post.what)
        except ConnectionLost as exc:
            stream.failed()
            return _broken(exc)
        if is_stream(response):
            return await self._read(post, stream, response)
        return await self._refused(post, stream, response)

    async def _refused(self, post: Post, stream: EventStream, response: ClientResponse) -> ConnectionLost:
        """A server that is ill may get well; one that does not have the stream any more will not.

        404 may mean that the session is gone as well: the next request will say so.
        """
        try:
            error = refused(response, await beginning(response), post.what, self._fetcher.secrets)
        finally:
            response.close()
        if error.status < 500:
            raise _broken(error)
        stream.failed()
        return _broken(error)

    async def _wait(self, post: Post, stream: EventStream) -> None:
        """The pause that the server asks for. Raises `ConnectionLost` when that is too long."""
        if stream.pause > self._limits.retry_seconds:
            raise ConnectionLost(
                f"{post.what}: the server closed the stream and asks to come back in {stream.pause:g} s; "
                f"the limit is {self._limits.retry_seconds:g} s (Limits.retry_seconds)"
            )
        await asyncio.sleep(stream.pause)


def _broken(error: Exception) -> ConnectionLost:
    """The request itself was sent, whatever became of the GET."""
    lost = ConnectionLost(f"{error}; its stream had broken before the answer")
    lost.__cause__ = error
    return lost
