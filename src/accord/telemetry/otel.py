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
"""The version of the instrumentation: that of accord."""


class OpenTelemetry:
    """Spans and metrics by OpenTelemetry's conventions for MCP. Needs `pip install 'accord[otel]'`, and an SDK that
    the program configures: without one, nothing is recorded.

    The providers and the propagator default to the global ones. `record` enables what may contain secrets: "arguments"
    of tools and prompts, "results" of tools. `methods` limits the telemetry to some methods: {"tools/call"}. Raises
    `DeclarationError` if OpenTelemetry is not installed, and for an unknown value of `record`.
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
        for name, value in (("record", record), ("methods", methods)):
            if isinstance(value, str):
                raise DeclarationError(f"{name} is a set of texts: {name}={{{value!r}}}")
        if unknown := {*record} - {"arguments", "results"}:
            raise DeclarationError(f"record={sorted(unknown)} is not known; there are 'arguments' and 'results'")
        spans, durations = _recorders()
        self._spans: SpanRecorder = spans(VERSION, tracer_provider, propagator, record)
        self._durations: DurationRecorder = durations(VERSION, meter_provider)
        self._methods = None if methods is None else frozenset(methods)

    def begin(self, operation: Operation) -> None:
        """Begin a span and make it current."""
        if self._methods is None or operation.method in self._methods:
            self._spans.begin(operation)

    def go_on(self, operation: Operation, before: Operation) -> None:
        """Make the span of another request current."""
        self._spans.go_on(operation, before)

    def raised(self, operation: Operation, error: BaseException) -> None:
        """Record an exception of a handler."""
        self._spans.raised(operation, error)

    def end(self, operation: Operation) -> None:
        """Record the duration, and end the span."""
        if self._methods is not None and operation.method not in self._methods:
            return
        try:
            self._durations.operation(operation)  # before the span ends, so that an exemplar of the metric refers to it
        finally:
            self._spans.end(operation)

    def session(self, session: SessionOver) -> None:
        """Record the duration of a session."""
        self._durations.session(session)


def _recorders() -> tuple[type[SpanRecorder], type[DurationRecorder]]:
    """Return the classes that need OpenTelemetry. Raises `DeclarationError` if it is not installed."""
    try:
        from accord.telemetry.durations import DurationRecorder
        from accord.telemetry.spans import SpanRecorder
    except ImportError as exc:
        raise DeclarationError("OpenTelemetry is not installed; `pip install 'accord[otel]'` brings it") from exc
    return SpanRecorder, DurationRecorder
