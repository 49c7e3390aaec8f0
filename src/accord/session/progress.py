"""Progress of a request, both ways: what we report, no more often than the limit, and what the peer reports.

"The progress value MUST increase with each notification" (basic, Progress). Reports beyond the rate are held; the
last one held goes out when the rate allows, or else before the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING

from msgspec import Raw, UnsetType

from accord.messages import codec
from accord.messages.envelope import RequestId
from accord.messages.notifications import ProgressParams
from accord.session.events import Event, ProgressReceived
from accord.session.pending_request import PendingRequest
from accord.session.rate import Pace
from accord.session.state import SessionState

if TYPE_CHECKING:
    from accord.session.pending_request import PendingRequest


class ProgressTracker:
    """The reports of one session."""

    def __init__(
        self, state: SessionState, in_flight: Mapping[RequestId, PendingRequest], notify: Callable[..., bytes]
    ) -> None:
        self._state = state
        self._in_flight = in_flight
        self._notify = notify
        self._pace = Pace(state.limits.progress_per_second)

    def receive(self, raw: Raw | UnsetType) -> Event:
        """A report of the peer. Raises `InvalidParams`."""
        params = codec.decode_params(ProgressParams, raw)
        state = self._state
        exchange = self._in_flight.get(params.progress_token)
        if exchange is None or exchange.meta is None:  # "MUST only reference tokens that were provided"
            return state.drop("progress of nothing in flight", f"token {params.progress_token!r}")
        if exchange.last_progress is not None and params.progress <= exchange.last_progress:
            return state.drop("progress that does not increase", exchange.method.name)
        exchange.last_progress = params.progress
        state.stats.progress_received += 1
        return ProgressReceived(exchange, params.progress, params.total, params.message)

    def report(
        self, exchange: PendingRequest, progress: float, total: float | None, message: str | None, now: float
    ) -> bytes | None:
        """A report of ours. None where nobody asked, or it is held back."""
        token = exchange.meta.progress_token if exchange.meta is not None else None
        increases = isfinite(progress) and (exchange.last_progress is None or progress > exchange.last_progress)
        stats = self._state.stats
        if token is None or not increases or exchange.stage != "active":
            stats.progress_held += token is not None
            return None
        exchange.last_progress = progress
        if total is not None and not isfinite(total):  # JSON has no infinity
            total = None
        params = ProgressParams(progress_token=token, progress=progress, total=total, message=message)
        exchange.held_report = self._notify("notifications/progress", params, rules=exchange.rules)
        released = self.release_held(exchange, now)
        stats.progress_held += released is None
        return released

    def release_held(self, exchange: PendingRequest, now: float) -> bytes | None:
        """The report that is held, once the rate allows it."""
        due = self._pace.step(exchange.report_due, now)
        if due is None or exchange.held_report is None:
            return None
        exchange.report_due = due
        return self.pop_held(exchange)

    def delay(self, exchange: PendingRequest, now: float) -> float:
        """Seconds until the rate allows another report."""
        return self._pace.wait(exchange.report_due, now)

    def pop_held(self, exchange: PendingRequest) -> bytes | None:
        """The report that is held, whatever the rate; none of a request that was cancelled."""
        held, exchange.held_report = exchange.held_report, None
        if exchange.stage == "cancelled":
            return None
        self._state.stats.progress_sent += held is not None
        return held
