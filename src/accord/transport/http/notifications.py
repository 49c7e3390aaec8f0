"""Sending what gets no answer: a notification, or an answer of ours.

That a notification was not taken harms nobody, and is logged. For an answer of ours somebody waits: it is sent again
where that may help, and else the request fails in whose stream the server asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from accord.errors import AccordError, HTTPError, NotExecuted
from accord.limits import Limits
from accord.transport.http.event_stream import read_excerpt
from accord.transport.http.failures import Complaints, response_error
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.in_flight import InFlightRequests
from accord.transport.http.inbox import ANSWER_BYTES, Backlog
from accord.transport.http.messages import SentMessage
from accord.transport.http.session_state import ClientSessionState

log: logging.Logger = logging.getLogger("accord")

_PAUSES = (0.1, 0.5, 2)
"""Seconds before an answer that was not taken is sent again."""


class NotificationSender:
    """Of one connection. `on_session_ended` is called when the server does not know our session."""

    def __init__(
        self,
        fetcher: Fetcher,
        standing: ClientSessionState,
        backlog: Backlog,
        posts: InFlightRequests,
        limits: Limits,
        name: str,
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._session_state = standing
        self._backlog = backlog
        self._in_flight = posts
        self._limits = limits
        self._name = name
        self._complaints = Complaints()
        self._on_session_ended = on_session_ended

    async def send(self, out: SentMessage, message: bytes) -> None:
        """Send one message."""
        what = f"{out.method or 'an answer'} to {self._name}"
        size = len(message) + (ANSWER_BYTES if out.method is None else 0)
        self._backlog.add(size)
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                await (self._post if out.method is not None else self._send_answer)(out, message, what)
        except (AccordError, TimeoutError) as exc:
            why = str(exc) or f"{what}: not taken in {self._limits.connect_seconds:g} s"
            self._complaints.log(out.method or "answer", "accord: %s", why)
        finally:
            self._backlog.remove(size)

    async def _send_answer(self, out: SentMessage, message: bytes, what: str) -> None:
        try:
            await self._post_with_retries(out, message, what)
        except AccordError as exc:
            self._in_flight.fail_unanswered(out.id, exc)
            raise

    async def _post_with_retries(self, out: SentMessage, message: bytes, what: str) -> None:
        for pause in _PAUSES:
            try:
                return await self._post(out, message, what)
            except (NotExecuted, HTTPError) as exc:
                if isinstance(exc, HTTPError) and exc.status < 500:
                    raise
                log.info("accord: %s; once more in %g s", exc, pause)
            await asyncio.sleep(pause)
        return await self._post(out, message, what)

    async def _post(self, out: SentMessage, message: bytes, what: str) -> None:
        session = self._session_state.session
        response = await self._fetcher.fetch("POST", self._session_state.message_headers(out), message, what=what)
        if response.status < 300:
            response.release()
            return
        error = response_error(response, await read_excerpt(response), what, self._fetcher.redactor)
        response.close()
        if response.status == 404 and session is not None:
            self._on_session_ended()
        raise error
