"""A request over HTTP and the spans around it, inside one process."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import SpanKind

from accord import HTTPOptions, Server

from tests.server.http.http_clients import Modern, Stateful
from tests.server.http.raw import Direct
from tests.telemetry.recorder import Recorder, is_child

TRACE, PARENT = "c" * 32, "d" * 16
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


class Instrumented:
    """What an instrumentation of ASGI does: a span around each request."""

    def __init__(self, recorder: Recorder) -> None:
        self.server = Server("shop", telemetry=recorder.telemetry)
        self.app = self.server.asgi(HTTPOptions(hosts=["*"]))
        self._tracer = recorder.tracers.get_tracer("asgi")

        @self.server.tool
        async def price(item: str) -> str:
            return f"{item}: 3"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with self._tracer.start_as_current_span("POST", kind=SpanKind.SERVER):
            await self.app(scope, receive, send)


async def test_the_span_of_http_is_linked_where_the_request_names_its_parent() -> None:
    recorder = Recorder()
    app = Instrumented(recorder)
    client = Modern(Direct(app))
    answer = await client.post(
        client.request("tools/call", {"name": "price", "arguments": {"item": "bread"}})
        | {
            "params": {
                "name": "price",
                "arguments": {"item": "bread"},
                "_meta": {**client.meta(), "traceparent": TRACEPARENT},
            }
        }
    )
    assert answer.status == 200
    await app.app.close()
    served, around = recorder.server("tools/call price"), recorder.server("POST")
    assert served.parent is not None
    assert (f"{served.parent.trace_id:x}", f"{served.parent.span_id:x}") == (TRACE, PARENT)
    (link,) = served.links
    assert link.context.span_id == around.context.span_id


async def test_the_span_of_http_is_the_parent_where_the_request_names_none() -> None:
    recorder = Recorder()
    app = Instrumented(recorder)
    answer = await Modern(Direct(app)).call("price", {"item": "bread"})
    assert answer.status == 200
    await app.app.close()
    served = recorder.server("tools/call price")
    assert is_child(served, recorder.server("POST"))
    assert not served.links


async def test_a_session_over_http_is_counted_when_it_ends() -> None:
    recorder = Recorder()
    app = Instrumented(recorder)
    client = Stateful(Direct(app))
    await client.initialize()
    await client.raw.send("DELETE", "/mcp", client.headers)
    await app.app.close()
    (point,) = recorder.points("mcp.server.session.duration")
    assert point.count == 1
    assert dict(point.attributes) == {
        "mcp.protocol.version": "2025-11-25",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }


async def test_in_the_revision_without_sessions_there_are_none_to_count() -> None:
    recorder = Recorder()
    app = Instrumented(recorder)
    await Modern(Direct(app)).call("price", {"item": "bread"})
    await app.app.close()
    assert recorder.points("mcp.server.session.duration") == []
    assert len(recorder.points("mcp.server.operation.duration")) == 1
