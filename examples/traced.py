"""A server whose calls are traced; it needs `pip install 'accord[otel]' opentelemetry-sdk`.

accord run examples/traced.py --http :8000                    prints the spans, in place of an exporter
accord call http://127.0.0.1:8000/mcp price item=bread        elsewhere
"""

import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from accord import OpenTelemetry, Server

tracers = TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
trace.set_tracer_provider(tracers)
tracer = trace.get_tracer("shop")

server = Server("shop", telemetry=OpenTelemetry())


@server.tool
async def price(item: str) -> str:
    """Return the price of an item."""
    with tracer.start_as_current_span("look up"):  # stands for the span of an HTTP or database library
        return f"{item}: 3"


if __name__ == "__main__":
    server.run()
