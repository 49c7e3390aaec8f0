"""The four metrics of the conventions: the durations of requests and sessions, for each side."""

from __future__ import annotations

from opentelemetry.metrics import Histogram, Meter, MeterProvider, get_meter

from accord.telemetry import conventions
from accord.telemetry.base import Operation, SessionOver, Side

_SIDES: tuple[Side, ...] = ("server", "client")


class DurationRecorder:
    """A recorder of durations, in seconds."""

    def __init__(self, version: str, provider: MeterProvider | None) -> None:
        meter = get_meter("accord", version, provider)
        self._operations = {side: _histogram(meter, side, "operation", "MCP requests") for side in _SIDES}
        self._sessions = {side: _histogram(meter, side, "session", "MCP sessions") for side in _SIDES}
        self._codes: set[str] = set()

    def operation(self, operation: Operation) -> None:
        """Record the duration of a request that ended."""
        attributes = self._with_few_codes(conventions.duration_attributes(operation))
        self._operations[operation.side].record(operation.seconds, attributes)

    def _with_few_codes(self, attributes: conventions.Attributes) -> conventions.Attributes:
        """Replace a code beyond `MAX_CODES`: a peer chooses the codes of its errors, and a metric keeps each value."""
        code = attributes.get(conventions.STATUS_CODE)
        if code is None or code in conventions.STANDARD_CODES or code in self._codes:
            return attributes
        if len(self._codes) < conventions.MAX_CODES:
            self._codes.add(code)
            return attributes
        replaced = attributes.keys() & {conventions.STATUS_CODE, conventions.ERROR_TYPE}
        return {**attributes, **dict.fromkeys(replaced, conventions.OTHER)}

    def session(self, session: SessionOver) -> None:
        """Record the duration of a session that ended."""
        self._sessions[session.side].record(session.seconds, conventions.session_attributes(session))


def _histogram(meter: Meter, side: Side, unit: str, subject: str) -> Histogram:
    return meter.create_histogram(
        f"mcp.{side}.{unit}.duration",
        "s",
        f"The duration of {subject} as seen by the {side}.",
        explicit_bucket_boundaries_advisory=conventions.BUCKETS,
    )
