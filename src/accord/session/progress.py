"""Progress of requests in both directions: sent within the rate limit, and received.

"The progress value MUST increase with each notification" (basic, Progress). Notifications beyond the rate are held; the
last one is sent when the rate allows it, or else before the response.
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
    """The progress notifications of one session."""

    def __init__(
        self, state: SessionState, in_flight: Mapping[RequestId, PendingRequest], notify: Callable[..., bytes]
    ) -> None:
        self._state = state
        self._in_flight = in_flight
        self._notify = notify
        self._pace = Pace(state.limits.progress_per_second)

    def receive(self, raw: Raw | UnsetType) -> Event:
        """Process a progress notification of the peer. Raises `InvalidParams`."""
        params = codec.decode_params(ProgressParams, raw)
        state = self._state
        request = self._in_flight.get(params.progress_token)
        if request is None or request.meta is None:  # "MUST only reference tokens that were provided"
            return state.drop("progress of nothing in flight", f"token {params.progress_token!r}")
        if request.last_progress is not None and params.progress <= request.last_progress:
            return state.drop("progress that does not increase", request.method.name)
        request.last_progress = params.progress
        state.stats.progress_received += 1
        return ProgressReceived(request, params.progress, params.total, params.message)

    def report(
        self, request: PendingRequest, progress: float, total: float | None, message: str | None, now: float
    ) -> bytes | None:
        """Return a progress notification, or None if the peer did not ask for progress or the rate limit holds it."""
        token = request.meta.progress_token if request.meta is not None else None
        increases = isfinite(progress) and (request.last_progress is None or progress > request.last_progress)
        stats = self._state.stats
        if token is None or not increases or request.stage != "active":
            stats.progress_held += token is not None
            return None
        request.last_progress = progress
        if total is not None and not isfinite(total):  # JSON has no infinity
            total = None
        params = ProgressParams(progress_token=token, progress=progress, total=total, message=message)
        request.held_report = self._notify(
            "notifications/progress", params, meta=request.message_meta, rules=request.rules
        )
        released = self.release_held(request, now)
        stats.progress_held += released is None
        return released

    def release_held(self, request: PendingRequest, now: float) -> bytes | None:
        """Return the held notification, once the rate allows it."""
        due = self._pace.step(request.report_due, now)
        if due is None or request.held_report is None:
            return None
        request.report_due = due
        return self.pop_held(request)

    def delay(self, request: PendingRequest, now: float) -> float:
        """Return the seconds until the rate allows another notification."""
        return self._pace.wait(request.report_due, now)

    def pop_held(self, request: PendingRequest) -> bytes | None:
        """Return the held notification regardless of the rate; None for a cancelled request."""
        held, request.held_report = request.held_report, None
        if request.stage == "cancelled":
            return None
        self._state.stats.progress_sent += held is not None
        return held
