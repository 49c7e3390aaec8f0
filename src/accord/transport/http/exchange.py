"""One request over Streamable HTTP: a POST, and its answer in the response.

The answer is one JSON body, or comes in a stream of events. Whatever goes wrong fails that one request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.errors import SessionEnded
from accord.limits import Limits
from accord.transport.http.bodies import is_json, is_stream, said, whole
from accord.transport.http.failures import ends_session, refused
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.intake import Intake
from accord.transport.http.messages import Incoming, incoming
from accord.transport.http.posts import Post, Posts
from accord.transport.http.resumption import Resumption
from accord.transport.http.standing import INITIALIZE, Standing

if TYPE_CHECKING:
    from aiohttp import ClientResponse


class Exchanges:
    """Of one connection. `on_session_ended` is called when the server does not know our session."""

    def __init__(
        self,
        fetcher: Fetcher,
        standing: Standing,
        intake: Intake,
        posts: Posts,
        limits: Limits,
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._standing = standing
        self._intake = intake
        self._posts = posts
        self._limits = limits
        self._on_session_ended = on_session_ended
        self._resumption = Resumption(fetcher, standing, intake, posts, limits)

    async def run(self, post: Post) -> None:
        """Send a request, and hand on what comes in response, to its end."""
        headers = self._standing.headers(post.out)
        post.session = None if post.names_revision or post.out.method == INITIALIZE else self._standing.session
        response = await self._fetcher.fetch("POST", headers, post.message, what=post.what)
        self._posts.responded(post)
        try:
            if is_stream(response):
                self._began(post, response)
                await self._resumption.read(post, response)
            elif response.status == 200 and is_json(response):
                self._began(post, response)
                await self._one(post, response)
            else:
                await self._refused(post, response)
        finally:
            response.close()  # "closing the SSE response stream is itself the cancellation signal"

    def _began(self, post: Post, response: ClientResponse) -> None:
        if post.out.method == INITIALIZE:
            self._standing.began(response)

    async def _one(self, post: Post, response: ClientResponse) -> None:
        """A body that is the answer."""
        data = await whole(response, self._limits.line_bytes, post.what)
        await self._intake.room()
        if not self._posts.take(post, data):
            raise refused(response, data, post.what, self._fetcher.secrets)

    async def _refused(self, post: Post, response: ClientResponse) -> None:
        """A response that is no answer, or one that says in its body what is wrong. Raises that."""
        data = self._fetcher.secrets.hidden_in_error(await said(response, self._limits.line_bytes))
        status = refused(response, data, post.what, self._fetcher.secrets)
        found = incoming(data) if is_json(response) else Incoming()
        is_ours = found.answers(post.id)
        if post.session is not None and self._ends_session(response.status, data, is_ours):
            self._on_session_ended()
            raise SessionEnded(f"{status}; the session has ended") from status
        if is_ours and post.out.method != INITIALIZE:
            self._posts.take(post, data)
            return
        if found.error is None or (status.final and not is_ours):
            raise status
        raise found.error from status  # whoever opens a connection goes by the status too

    def _ends_session(self, status: int, data: bytes, is_ours: bool) -> bool:
        """An answer may have that status too: the request was served, and must not be sent again in a new session."""
        return ends_session(status, data) and not (is_ours and b"session" not in data.lower())
