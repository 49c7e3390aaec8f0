"""Sending of messages without a response: notifications, and responses to the server.

A notification that the server refuses is only logged. The server waits for a response: it is sent again if that may
help, and otherwise the request fails in whose stream the server sent its request. Each response of this side is a POST
with a connection of its own: as many are sent at once as `HTTPSettings.connections`, whatever the server requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

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
"""Seconds before a response that the server did not accept is sent again."""


class NotificationSender:
    """The sender of one connection. `on_session_ended` is called if the server no longer knows the session."""

    def __init__(
        self,
        fetcher: Fetcher,
        session_state: ClientSessionState,
        backlog: Backlog,
        posts: InFlightRequests,
        limits: Limits,
        name: str,
        connections: int,
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._session_state = session_state
        self._backlog = backlog
        self._in_flight = posts
        self._limits = limits
        self._name = name
        self._answer_slots = asyncio.Semaphore(connections)
        self._complaints = Complaints()
        self._on_session_ended = on_session_ended

    async def send(self, out: SentMessage, message: bytes) -> None:
        """Send one message."""
        what = f"{out.method or 'an answer'} to {self._name}"
        size = len(message) + (ANSWER_BYTES if out.method is None else 0)
        self._backlog.add(size)
        try:
            if out.method is None:
                async with self._answer_slots:
                    await self._send_in_time(self._send_answer(out, message, what))
            else:
                await self._send_in_time(self._post(out, message, what))
        except (AccordError, TimeoutError) as exc:
            reason = str(exc) or f"{what}: not taken in {self._limits.client.connect_seconds:g} s"
            self._complaints.log(out.method or "answer", "accord: %s", reason)
        finally:
            self._backlog.remove(size)

    async def _send_in_time(self, sending: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(self._limits.client.connect_seconds):
            await sending

    async def _send_answer(self, out: SentMessage, message: bytes, what: str) -> None:
        try:
            await self._post_with_retries(out, message, what)
        except AccordError as exc:
            self._in_flight.fail_unanswered(out.id, exc)
            raise

    async def _post_with_retries(self, out: SentMessage, message: bytes, what: str) -> None:
        for delay in _PAUSES:
            try:
                return await self._post(out, message, what)
            except (NotExecuted, HTTPError) as exc:
                if isinstance(exc, HTTPError) and exc.status < 500:
                    raise
                log.info("accord: %s; once more in %g s", exc, delay)
            await asyncio.sleep(delay)
        return await self._post(out, message, what)

    async def _post(self, out: SentMessage, message: bytes, what: str) -> None:
        session = self._session_state.session
        response = await self._fetcher.fetch("POST", self._session_state.message_headers(out), message, what=what)
        if response.status < 300:
            response.release()
            return
        body = await read_excerpt(response)
        self._fetcher.report(response, body)
        error = response_error(response, body, what, self._fetcher.redactor)
        response.close()
        if response.status == 404 and session is not None:
            self._on_session_ended()
        raise error
