"""Progress of a request, both ways: what we report, no more often than the limit, and what the peer reports.

"The progress value MUST increase with each notification" (basic, Progress). Reports beyond the rate are held; the
last one held goes out when the rate allows, or else before the answer.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from msgspec import Raw, UnsetType

from accord.messages import codec
from accord.messages.progress import ProgressParams
from accord.session.events import Event, ProgressReceived
from accord.session.rate import Pace

if TYPE_CHECKING:
    from accord.session.exchange import Exchange
    from accord.session.session import Session


class Progress:
    """The reports of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pace = Pace(session.limits.progress_per_second)

    def take(self, raw: Raw | UnsetType) -> Event:
        """A report of the peer. Raises `InvalidParams`."""
        params = codec.decode_params(ProgressParams, raw)
        session = self._session
        exchange = session.outgoing.get(params.progress_token)
        if exchange is None or exchange.meta is None:  # "MUST only reference tokens that were provided"
            return session.drop("progress of nothing in flight", f"token {params.progress_token!r}")
        if exchange.reported is not None and params.progress <= exchange.reported:
            return session.drop("progress that does not increase", exchange.method.name)
        exchange.reported = params.progress
        session.stats.progress_received += 1
        return ProgressReceived(exchange, params.progress, params.total, params.message)

    def report(
        self, exchange: Exchange, progress: float, total: float | None, message: str | None, now: float
    ) -> bytes | None:
        """A report of ours. None where nobody asked, or it is held back."""
        token = exchange.meta.progress_token if exchange.meta is not None else None
        increases = isfinite(progress) and (exchange.reported is None or progress > exchange.reported)
        stats = self._session.stats
        if token is None or not increases or exchange.stage != "active":
            stats.progress_held += token is not None
            return None
        exchange.reported = progress
        if total is not None and not isfinite(total):  # JSON has no infinity
            total = None
        params = ProgressParams(progress_token=token, progress=progress, total=total, message=message)
        exchange.held = self._session.notify("notifications/progress", params, rules=exchange.rules)
        released = self.release(exchange, now)
        stats.progress_held += released is None
        return released

    def release(self, exchange: Exchange, now: float) -> bytes | None:
        """The report that is held, once the rate allows it."""
        due = self._pace.step(exchange.due, now)
        if due is None or exchange.held is None:
            return None
        exchange.due = due
        return self.held(exchange)

    def wait(self, exchange: Exchange, now: float) -> float:
        """Seconds until the rate allows another report."""
        return self._pace.wait(exchange.due, now)

    def held(self, exchange: Exchange) -> bytes | None:
        """The report that is held, whatever the rate; none of a request that was cancelled."""
        held, exchange.held = exchange.held, None
        if exchange.stage == "cancelled":
            return None
        self._session.stats.progress_sent += held is not None
        return held
