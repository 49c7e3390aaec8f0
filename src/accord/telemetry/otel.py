"""`OpenTelemetry`: spans and metrics of requests, for `Server(telemetry=...)` and `Client(telemetry=...)`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from accord.errors import DeclarationError
from accord.telemetry.base import Operation, SessionOver

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

    from accord.telemetry.durations import DurationRecorder
    from accord.telemetry.spans import SpanRecorder

VERSION = "0.1.0"
"""Of the instrumentation: that of accord."""


class OpenTelemetry:
    """Spans and metrics by OpenTelemetry's conventions for MCP. Needs `pip install 'accord[otel]'`, and to be seen
    anywhere an SDK that the program sets up: without one, nothing is recorded.

    The providers and the propagator are the global ones if none are given. `record` names what may hold secrets and is
    left out otherwise: "arguments" of tools and prompts, "results" of tools. `methods` restricts what is told of to
    some methods: {"tools/call"}. Raises `DeclarationError` where OpenTelemetry is not installed, and for what `record`
    does not know.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
        record: Collection[Literal["arguments", "results"]] = (),
        methods: Collection[str] | None = None,
    ) -> None:
        for name, given in (("record", record), ("methods", methods)):
            if isinstance(given, str):
                raise DeclarationError(f"{name} is a set of texts: {name}={{{given!r}}}")
        if unknown := {*record} - {"arguments", "results"}:
            raise DeclarationError(f"record={sorted(unknown)} is not known; there are 'arguments' and 'results'")
        spans, durations = _parts()
        self._spans: SpanRecorder = spans(VERSION, tracer_provider, propagator, record)
        self._durations: DurationRecorder = durations(VERSION, meter_provider)
        self._methods = None if methods is None else frozenset(methods)

    def begin(self, operation: Operation) -> None:
        """Begin a span, as the current one."""
        if self._methods is None or operation.method in self._methods:
            self._spans.begin(operation)

    def go_on(self, operation: Operation, before: Operation) -> None:
        """Make the span of another request the current one."""
        self._spans.go_on(operation, before)

    def raised(self, operation: Operation, error: BaseException) -> None:
        """Record what a handler raised."""
        self._spans.raised(operation, error)

    def end(self, operation: Operation) -> None:
        """Count the duration, and end the span."""
        if self._methods is not None and operation.method not in self._methods:
            return
        try:
            self._durations.operation(operation)  # within the span: an exemplar of the metric leads to it
        finally:
            self._spans.end(operation)

    def session(self, session: SessionOver) -> None:
        """Count the duration of a session."""
        self._durations.session(session)


def _parts() -> tuple[type[SpanRecorder], type[DurationRecorder]]:
    """What needs OpenTelemetry. Raises `DeclarationError` where it is not installed."""
    try:
        from accord.telemetry.durations import DurationRecorder
        from accord.telemetry.spans import SpanRecorder
    except ImportError as exc:
        raise DeclarationError("OpenTelemetry is not installed; `pip install 'accord[otel]'` brings it") from exc
    return SpanRecorder, DurationRecorder
