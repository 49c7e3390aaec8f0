"""One request over Streamable HTTP: a POST, and its answer in the response.

The answer is one JSON body, or comes in a stream of events. Whatever goes wrong fails that one request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.errors import SessionEnded
from accord.limits import Limits
from accord.transport.http.bodies import is_json, is_stream, read_body, read_error_body
from accord.transport.http.failures import ends_session, response_error
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.in_flight import InFlightRequests, PostRequest
from accord.transport.http.inbox import HTTPInbox
from accord.transport.http.messages import ReceivedMessage, parse_received
from accord.transport.http.resumption import Resumption
from accord.transport.http.session_state import INITIALIZE, ClientSessionState

if TYPE_CHECKING:
    from aiohttp import ClientResponse


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
