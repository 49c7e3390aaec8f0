"""Reports of progress on their way out: from any thread, and no more often than the session lets them go."""

from __future__ import annotations

import asyncio
import threading
from math import isfinite

from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.transport.base import MessageSink


class ProgressReporter:
    """The reports of one connection. One that is held goes out when the rate allows it, or before the answer."""

    def __init__(self, session: Session, way: MessageSink) -> None:
        self._session = session
        self._sink = way
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: set[PendingRequest] = set()  # whose report is held, with a timer

    def report(self, exchange: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        """As `Connection.report`."""
        if threading.get_ident() == self._thread:
            self._report(exchange, progress, total, message)
        else:
            self._loop.call_soon_threadsafe(self._report, exchange, progress, total, message)

    def _report(self, exchange: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        self._send(exchange, self._session.report(exchange, progress, total, message, self._loop.time()))

    def _release(self, exchange: PendingRequest) -> None:
        self._waiting.discard(exchange)
        self._send(exchange, self._session.progress.release_held(exchange, self._loop.time()))

    def _send(self, exchange: PendingRequest, message: bytes | None) -> None:
        if message is not None:
            (exchange.sink or self._sink).send(message)
        if exchange.held_report is None or exchange in self._waiting:
            return
        wait = self._session.progress.delay(exchange, self._loop.time())
        if isfinite(wait):
            self._waiting.add(exchange)
            self._loop.call_later(wait, self._release, exchange)
