"""OpenTelemetry with its real SDK, keeping in memory what it records."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from accord.telemetry.otel import OpenTelemetry


class Recorder:
    """What one telemetry has recorded."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.telemetry = OpenTelemetry(
            tracer_provider=self.tracers, meter_provider=MeterProvider([self._reader]), **options
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that have ended, in this order."""
        return list(self._exporter.get_finished_spans())

    def of(self, kind: SpanKind, name: str) -> list[ReadableSpan]:
        """Those of one kind and name."""
        return [span for span in self.spans if span.kind is kind and span.name == name]

    def server(self, name: str) -> ReadableSpan:
        """The one span of who serves `name`."""
        (span,) = self.of(SpanKind.SERVER, name)
        return span

    def client(self, name: str) -> ReadableSpan:
        """The one span of who asks for `name`."""
        (span,) = self.of(SpanKind.CLIENT, name)
        return span

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        ]


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    """Whether one span is the parent of another, in one trace."""
    return (
        child.parent is not None
        and child.parent.span_id == parent.context.span_id
        and child.context.trace_id == parent.context.trace_id
    )
