"""The four metrics of the conventions: how long requests and sessions took, for each side."""

from __future__ import annotations

from opentelemetry.metrics import Histogram, Meter, MeterProvider, get_meter

from accord.telemetry import conventions
from accord.telemetry.base import Operation, SessionOver, Side

_SIDES: tuple[Side, ...] = ("server", "client")


class DurationRecorder:
    """Records durations, in seconds."""

    def __init__(self, version: str, provider: MeterProvider | None) -> None:
        meter = get_meter("accord", version, provider)
        self._operations = {side: _histogram(meter, side, "operation", "MCP requests") for side in _SIDES}
        self._sessions = {side: _histogram(meter, side, "session", "MCP sessions") for side in _SIDES}

    def operation(self, operation: Operation) -> None:
        """A request has ended."""
        self._operations[operation.side].record(operation.seconds, conventions.duration_attributes(operation))

    def session(self, over: SessionOver) -> None:
        """A session has ended."""
        self._sessions[over.side].record(over.seconds, conventions.session_attributes(over))


def _histogram(meter: Meter, side: Side, of: str, what: str) -> Histogram:
    return meter.create_histogram(
        f"mcp.{side}.{of}.duration",
        "s",
        f"The duration of {what} as seen by the {side}.",
        explicit_bucket_boundaries_advisory=conventions.BUCKETS,
    )
