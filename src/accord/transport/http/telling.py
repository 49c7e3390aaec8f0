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
from accord.transport.http.backlog import ANSWER_BYTES, Backlog
from accord.transport.http.bodies import beginning
from accord.transport.http.failures import Complaints, refused
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.messages import Outgoing
from accord.transport.http.posts import Posts
from accord.transport.http.standing import Standing

log: logging.Logger = logging.getLogger("accord")

_PAUSES = (0.1, 0.5, 2)
"""Seconds before an answer that was not taken is sent again."""


class Telling:
    """Of one connection. `on_session_ended` is called when the server does not know our session."""

    def __init__(
        self,
        fetcher: Fetcher,
        standing: Standing,
        backlog: Backlog,
        posts: Posts,
        limits: Limits,
        name: str,
        on_session_ended: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._standing = standing
        self._backlog = backlog
        self._posts = posts
        self._limits = limits
        self._name = name
        self._complaints = Complaints()
        self._on_session_ended = on_session_ended

    async def tell(self, out: Outgoing, message: bytes) -> None:
        """Send one message."""
        what = f"{out.method or 'an answer'} to {self._name}"
        size = len(message) + (ANSWER_BYTES if out.method is None else 0)
        self._backlog.add(size)
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                await (self._deliver if out.method is not None else self._answer)(out, message, what)
        except (AccordError, TimeoutError) as exc:
            why = str(exc) or f"{what}: not taken in {self._limits.connect_seconds:g} s"
            self._complaints.log(out.method or "answer", "accord: %s", why)
        finally:
            self._backlog.remove(size)

    async def _answer(self, out: Outgoing, message: bytes, what: str) -> None:
        try:
            await self._deliver_if_possible(out, message, what)
        except AccordError as exc:
            self._posts.not_taken(out.id, exc)
            raise

    async def _deliver_if_possible(self, out: Outgoing, message: bytes, what: str) -> None:
        for pause in _PAUSES:
            try:
                return await self._deliver(out, message, what)
            except (NotExecuted, HTTPError) as exc:
                if isinstance(exc, HTTPError) and exc.status < 500:
                    raise
                log.info("accord: %s; once more in %g s", exc, pause)
            await asyncio.sleep(pause)
        return await self._deliver(out, message, what)

    async def _deliver(self, out: Outgoing, message: bytes, what: str) -> None:
        session = self._standing.session
        response = await self._fetcher.fetch("POST", self._standing.headers(out), message, what=what)
        if response.status < 300:
            response.release()
            return
        error = refused(response, await beginning(response), what, self._fetcher.secrets)
        response.close()
        if response.status == 404 and session is not None:
            self._on_session_ended()
        raise error
