"""Spans of a server and a client in one process, as OpenTelemetry's conventions for MCP have them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from opentelemetry import baggage, context
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from accord import (
    CacheHint,
    CallNext,
    Client,
    Context,
    Elicit,
    InvalidParams,
    Limits,
    ProtocolError,
    Request,
    RequestTimeout,
    ResourceNotFound,
    Server,
    ToolError,
)
from accord.messages.revision import REVISIONS
from accord.telemetry.conventions import (
    MAX_ERROR_LENGTH,
    MAX_NAME_LENGTH,
    MAX_RECORDED_LENGTH,
    MAX_STACKTRACE_LENGTH,
    MAX_VARIABLES,
)

from tests.telemetry.recorder import Recorder, is_child

S25, S26 = "2025-11-25", "2026-07-28"


def shop(recorder: Recorder, **options: Any) -> Server:
    """A server with a tool for each way to end."""
    server = Server("shop", telemetry=recorder.telemetry, **options)
    tracer = recorder.tracers.get_tracer("shop")

    @server.tool
    async def price(item: str) -> str:
        with tracer.start_as_current_span("look up"):
            return f"{item}: 3"

    @server.tool
    def stock(item: str) -> str:
        with tracer.start_as_current_span("count"):
            return f"{item}: plenty"

    @server.tool
    async def pay() -> str:
        raise ToolError("no money")

    @server.tool
    async def broken() -> str:
        raise ZeroDivisionError("of all things")

    @server.tool
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool
    async def customer() -> str:
        return str(baggage.get_baggage("customer"))

    @server.tool
    async def order(item: str, ctx: Context) -> str:
        answer = await ctx.elicit(f"order {item}?", bool)
        with tracer.start_as_current_span("deliver"):
            return str(getattr(answer, "data", None))

    @server.resource("shop://{item}")
    async def about(item: str) -> str:
        if item != "bread":
            raise ResourceNotFound(f"no {item}", uri=f"shop://{item}")
        return item

    @server.prompt
    def advise(item: str) -> str:
        return f"Shall I buy {item}?"

    return server


@asynccontextmanager
async def connected(recorder: Recorder, revision: str = S26, **options: Any) -> AsyncIterator[Client]:
    """A client and its server, both watched by one telemetry."""
    async with Client(
        shop(recorder),
        revisions=[revision],
        telemetry=recorder.telemetry,
        elicitation=lambda _: {"value": True},
        **options,
    ) as client:
        yield client


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_is_a_client_span_with_a_server_span_below_it(revision: str) -> None:
    recorder = Recorder()
    async with connected(recorder, revision) as client:
        await client.call_tool("price", {"item": "bread"})
    asked, served = recorder.client("tools/call price"), recorder.server("tools/call price")
    assert asked.parent is None
    assert is_child(served, asked)
    expected = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "price",
    }
    for span in (asked, served):
        attributes = dict(span.attributes or {})
        assert str(attributes.pop("jsonrpc.request.id")).isdecimal()
        assert attributes == expected
        assert span.status.status_code is StatusCode.UNSET
    assert dict(asked.attributes or {})["jsonrpc.request.id"] == dict(served.attributes or {})["jsonrpc.request.id"]


@pytest.mark.parametrize("tool", ["price", "stock"])
async def test_what_a_handler_records_is_below_its_request_on_the_loop_and_in_a_thread(tool: str) -> None:
    recorder = Recorder()
    async with connected(recorder) as client:
        await client.call_tool(tool, {"item": "bread"})
    (inner,) = [span for span in recorder.spans if span.kind is SpanKind.INTERNAL]
    assert is_child(inner, recorder.server(f"tools/call {tool}"))


async def test_the_span_of_a_program_is_the_parent_of_its_requests() -> None:
    recorder = Recorder()
    async with connected(recorder) as client:
        with recorder.tracers.get_tracer("agent").start_as_current_span("agent"):
            await client.call_tool("price", {"item": "bread"})
            await client.list_prompts()
    (agent,) = [span for span in recorder.spans if span.name == "agent"]
    assert is_child(recorder.client("tools/call price"), agent)
    assert is_child(recorder.client("prompts/list"), agent)


async def test_a_connection_that_was_opened_inside_a_span_lends_it_to_no_request() -> None:
    recorder = Recorder()
    tracer = recorder.tracers.get_tracer("agent")
    with tracer.start_as_current_span("opening"):
        client = Client(shop(recorder))
        await client.connect()
    await client.call_tool("price", {"item": "bread"})
    await client.close()
    served = recorder.server("tools/call price")
    assert served.parent is None
    assert not served.links


async def test_baggage_reaches_the_handler() -> None:
    recorder = Recorder()
    async with connected(recorder) as client:
        token = context.attach(baggage.set_baggage("customer", "anna"))
        try:
            result = await client.call_tool("customer")
        finally:
            context.detach(token)
    assert result.text == "anna"


async def test_a_program_that_passes_a_trace_on_itself_is_not_overruled() -> None:
    recorder = Recorder()
    given = f"00-{'a' * 32}-{'b' * 16}-01"
    async with connected(recorder) as client:
        await client.call_tool("price", {"item": "bread"}, meta={"traceparent": given})
    parent = recorder.server("tools/call price").parent
    assert parent is not None
    assert (f"{parent.trace_id:x}", f"{parent.span_id:x}") == ("a" * 32, "b" * 16)


async def test_nothing_is_current_after_a_call() -> None:
    recorder = Recorder()
    async with connected(recorder) as client:
        await client.call_tool("pay")
        assert not get_current_span().get_span_context().is_valid


# --- how it ends -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "raised"), [("pay", "accord.errors.ToolError"), ("broken", "ZeroDivisionError")])
async def test_a_tool_that_fails_is_a_tool_error_with_its_exception(tool: str, raised: str) -> None:
    recorder = Recorder()
    async with connected(recorder) as client:
        assert (await client.call_tool(tool)).is_error
    for span in (recorder.server(f"tools/call {tool}"), recorder.client(f"tools/call {tool}")):
        assert dict(span.attributes or {})["error.type"] == "tool_error"
        assert span.status.status_code is StatusCode.ERROR
    (event,) = recorder.server(f"tools/call {tool}").events
    assert dict(event.attributes or {})["exception.type"] == raised


async def test_secrets_in_exceptions_are_in_no_span() -> None:
    recorder, secret = Recorder(), "sk-" + "a1B2" * 8
    server = Server("shop", telemetry=recorder.telemetry)

    @server.tool
    async def pay() -> str:
        raise ValueError(f"refused: api_key={secret}")

    @server.prompt
    async def advise() -> str:
        raise InvalidParams(f"refused: api_key={secret}")

    async with Client(server, telemetry=recorder.telemetry) as client:
        await client.call_tool("pay")
        with pytest.raises(InvalidParams):
            await client.get_prompt("advise")
    events = [dict(event.attributes or {}) for span in recorder.spans for event in span.events]
    assert all("api_key=[redacted]" in str(event["exception.message"]) for event in events)
    assert len(events) == 3
    assert all("Traceback" in str(event["exception.stacktrace"]) for event in events)
    assert secret not in "".join(span.to_json() for span in recorder.spans)


async def test_secrets_in_the_uri_of_a_resource_are_in_no_span() -> None:
    recorder, secret = Recorder(), "sk-" + "a1B2" * 8
    server = Server("shop", telemetry=recorder.telemetry)
    server.resource("db://stock{?token}")(lambda token="": "3")  # type: ignore[misc]
    async with Client(server, telemetry=recorder.telemetry) as client:
        await client.read_resource(f"db://stock?token={secret}")
        with pytest.raises(ResourceNotFound):
            await client.read_resource("https://ann:pa55word1@example.com/stock")
    uris = {str(dict(span.attributes or {})["mcp.resource.uri"]) for span in recorder.spans}
    assert uris == {"db://stock?token=[redacted]", "https://ann:[redacted]@example.com/stock"}


async def test_long_messages_of_a_peer_are_cut_off_in_spans() -> None:
    recorder = Recorder()
    server = Server("shop", telemetry=recorder.telemetry)

    @server.tool
    async def refuse() -> None:
        raise ProtocolError("x" * 300_000)

    @server.tool
    async def fail() -> None:
        raise ValueError("x" * 300_000)

    async with Client(server, telemetry=recorder.telemetry) as client:
        with pytest.raises(ProtocolError):
            await client.call_tool("refuse")
        await client.call_tool("fail")
    assert len(recorder.client("tools/call refuse").status.description or "") == MAX_ERROR_LENGTH
    events = [dict(event.attributes or {}) for span in recorder.spans for event in span.events]
    assert len(events) == 3
    assert {len(str(event["exception.message"])) for event in events} == {MAX_ERROR_LENGTH}
    assert all("Traceback" in str(event["exception.stacktrace"]) for event in events)
    assert all(len(str(event["exception.stacktrace"])) <= MAX_STACKTRACE_LENGTH for event in events)


async def test_recorded_arguments_of_a_prompt_are_few_and_their_names_short() -> None:
    recorder = Recorder(record={"arguments"})
    async with connected(recorder) as client:
        made_up = {f"{number}{'x' * 1000}": "y" for number in range(200)}
        with pytest.raises(InvalidParams):
            await client.get_prompt("advise", made_up)
    (span,) = [span for span in recorder.spans if span.kind is SpanKind.SERVER and span.name.startswith("prompts/get")]
    attributes = dict(span.attributes or {})
    assert attributes["mcp.method.name"] == "prompts/get"
    recorded = [name for name in attributes if name.startswith("gen_ai.prompt.variable.")]
    assert len(recorded) == MAX_VARIABLES
    assert max(map(len, recorded)) == len("gen_ai.prompt.variable.") + MAX_NAME_LENGTH


async def test_recorded_arguments_of_a_prompt_have_one_limit_together() -> None:
    recorder = Recorder(record={"arguments"})
    async with connected(recorder) as client:
        with pytest.raises(InvalidParams):
            await client.get_prompt("advise", {f"{number}": "y" * 50_000 for number in range(50)})
    for span in recorder.spans:
        recorded = [str(value) for name, value in (span.attributes or {}).items() if ".variable." in name]
        assert sum(map(len, recorded)) == MAX_RECORDED_LENGTH


async def test_an_exception_without_a_text_is_recorded() -> None:
    recorder = Recorder()
    server = Server("shop", telemetry=recorder.telemetry)

    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @server.tool
    async def fail() -> None:
        raise Silent

    async with Client(server) as client:
        await client.call_tool("fail")
    (event,) = [dict(event.attributes or {}) for span in recorder.spans for event in span.events]
    assert event["exception.message"] == ""
    assert "Silent" in str(event["exception.type"])


async def test_a_call_that_the_client_got_wrong_is_its_error_and_none_of_the_server() -> None:
    recorder = Recorder()
    async with connected(recorder) as client:
        with pytest.raises(InvalidParams):
            await client.call_tool("nothing")
    asked, served = recorder.client("tools/call nothing"), recorder.server("tools/call")
    assert dict(served.attributes or {})["rpc.response.status_code"] == "-32602"
    assert "error.type" not in dict(served.attributes or {})
    assert served.status.status_code is StatusCode.UNSET
    assert dict(asked.attributes or {})["error.type"] == "-32602"
    assert (asked.status.status_code, asked.status.description) == (StatusCode.ERROR, "no tool 'nothing'")


async def test_an_error_of_the_protocol_that_a_handler_raises_is_its_own() -> None:
    recorder = Recorder()
    server = Server("shop", telemetry=recorder.telemetry)

    @server.prompt
    async def advise() -> str:
        raise InvalidParams("not today")

    async with Client(server) as client:
        with pytest.raises(InvalidParams):
            await client.get_prompt("advise")
    (event,) = recorder.server("prompts/get advise").events
    assert dict(event.attributes or {})["exception.type"] == "accord.errors.InvalidParams"
    (point,) = recorder.points("mcp.server.operation.duration")
    assert point.attributes["gen_ai.prompt.name"] == "advise"


@pytest.mark.parametrize(("revision", "code"), [(S25, "-32002"), (S26, "-32602")])
async def test_a_code_is_that_of_the_revision(revision: str, code: str) -> None:
    recorder = Recorder()
    async with connected(recorder, revision) as client:
        with pytest.raises(ResourceNotFound):
            await client.read_resource("shop://stone")
    for span in (recorder.server("resources/read"), recorder.client("resources/read")):
        assert dict(span.attributes or {})["rpc.response.status_code"] == code
        assert dict(span.attributes or {})["mcp.resource.uri"] == "shop://stone"


async def test_a_call_without_an_answer_in_time_is_a_timeout() -> None:
    recorder = Recorder()
    async with connected(recorder, S25) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("wait", timeout=0.05)
    assert dict(recorder.client("tools/call wait").attributes or {})["error.type"] == "timeout"
    assert dict(recorder.server("tools/call wait").attributes or {})["error.type"] == "cancelled"


async def test_a_call_that_is_cancelled_is_so_on_both_sides() -> None:
    recorder = Recorder()
    async with connected(recorder, S25) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.call_tool("wait")
    for span in (recorder.client("tools/call wait"), recorder.server("tools/call wait")):
        assert dict(span.attributes or {})["error.type"] == "cancelled"
        assert span.status.status_code is StatusCode.ERROR


# --- questions -------------------------------------------------------------------------------------------------


async def test_a_question_of_the_server_is_a_client_span_of_its_own() -> None:
    recorder = Recorder()
    async with connected(recorder, S25) as client:
        await client.call_tool("order", {"item": "bread"})
    asked, served = recorder.client("elicitation/create"), recorder.server("elicitation/create")
    assert is_child(asked, recorder.server("tools/call order"))
    assert is_child(served, asked)


async def test_a_call_with_required_input_is_one_client_span_over_both_of_its_requests() -> None:
    recorder = Recorder()
    async with connected(recorder) as client:
        result = await client.call_tool("order", {"item": "bread"})
    assert result.text == "True"
    first, second = recorder.of(SpanKind.SERVER, "tools/call order")
    asked = recorder.client("tools/call order")
    assert is_child(first, asked)
    assert is_child(second, asked)
    assert dict(first.attributes or {})["accord.asks_for_input"] is True
    assert "accord.asks_for_input" not in dict(second.attributes or {})
    assert all(span.status.status_code is StatusCode.UNSET for span in (first, second, asked))
    (deliver,) = [span for span in recorder.spans if span.name == "deliver"]
    assert is_child(deliver, second)  # "A resumed run belongs to the retry"


async def test_a_question_before_the_handler_begins_is_no_failure() -> None:
    recorder = Recorder()
    server = Server("shop", telemetry=recorder.telemetry)

    @server.tool
    async def delete(sure: Annotated[bool, Elicit("sure?")]) -> str:
        return str(sure)

    async with Client(server, telemetry=recorder.telemetry, elicitation=lambda _: {"value": True}) as client:
        assert (await client.call_tool("delete")).text == "True"
    assert len(recorder.of(SpanKind.SERVER, "tools/call delete")) == 2
    assert not any(span.events for span in recorder.spans)


# --- what may be secret ----------------------------------------------------------------------------------------


async def test_arguments_and_results_are_recorded_only_if_that_is_wanted() -> None:
    plain, full = Recorder(), Recorder(record={"arguments", "results"})
    for recorder in (plain, full):
        async with connected(recorder) as client:
            await client.call_tool("price", {"item": "bread-7391"})
            await client.get_prompt("advise", {"item": "bread-7391"})
    assert "7391" not in repr([(span.name, dict(span.attributes or {}), span.events) for span in plain.spans])
    for call in (full.server("tools/call price"), full.client("tools/call price")):
        assert dict(call.attributes or {})["gen_ai.tool.call.arguments"] == '{"item":"bread-7391"}'
        assert "bread-7391: 3" in str(dict(call.attributes or {})["gen_ai.tool.call.result"])
    for prompt in (full.server("prompts/get advise"), full.client("prompts/get advise")):
        assert dict(prompt.attributes or {})["gen_ai.prompt.name"] == "advise"
        assert dict(prompt.attributes or {})["gen_ai.prompt.variable.item"] == "bread-7391"


async def test_neither_questions_nor_failures_are_results() -> None:
    recorder = Recorder(record={"results"})
    async with connected(recorder) as client:
        await client.call_tool("order", {"item": "bread"})
        await client.call_tool("pay")
    first, second = recorder.of(SpanKind.SERVER, "tools/call order")
    assert "gen_ai.tool.call.result" in dict(second.attributes or {})
    for span in (first, recorder.server("tools/call pay"), recorder.client("tools/call pay")):
        assert "gen_ai.tool.call.result" not in dict(span.attributes or {})


async def test_only_the_methods_that_are_wanted_are_recorded() -> None:
    recorder = Recorder(methods={"tools/call"})
    async with connected(recorder) as client:
        await client.call_tool("price", {"item": "bread"})
        await client.list_prompts()
    assert {span.name for span in recorder.spans} == {"tools/call price", "look up"}
    (point,) = recorder.points("mcp.server.operation.duration")
    assert point.attributes["mcp.method.name"] == "tools/call"


async def test_an_answer_from_the_cache_is_no_request() -> None:
    recorder = Recorder()
    server = Server("shop", telemetry=recorder.telemetry, cache=CacheHint(ttl=60))
    server.prompt(lambda: "hello", name="hello")
    async with Client(server, telemetry=recorder.telemetry) as client:
        await client.list_prompts()
        await client.list_prompts()
    assert recorder.client("prompts/list")
    assert recorder.server("prompts/list")


async def test_calls_at_once_have_traces_of_their_own() -> None:
    recorder = Recorder()
    async with connected(recorder, limits=Limits()) as client:
        await asyncio.gather(*(client.call_tool("price", {"item": str(number)}) for number in range(20)))
    served = recorder.of(SpanKind.SERVER, "tools/call price")
    assert len({span.context.trace_id for span in served}) == 20
    looked = [span for span in recorder.spans if span.name == "look up"]
    assert {span.parent.span_id for span in looked if span.parent} == {span.context.span_id for span in served}


# --- what stands around a handler ------------------------------------------------------------------------------


async def test_what_a_middleware_raises_is_recorded_too() -> None:
    recorder = Recorder()

    async def refuse(request: Request, call_next: CallNext) -> Any:
        raise PermissionError("not you")

    server = shop(recorder, middleware=[refuse])
    async with Client(server) as client:
        assert (await client.call_tool("price", {"item": "bread"})).is_error
    (event,) = recorder.server("tools/call price").events
    assert dict(event.attributes or {})["exception.type"] == "PermissionError"


async def test_a_tool_of_a_mounted_server_has_the_name_it_is_called_by() -> None:
    recorder, inner = Recorder(), Server("inner")
    outer = Server("outer", telemetry=recorder.telemetry)

    @inner.tool
    async def price() -> str:
        raise ValueError("too dear")

    outer.mount(inner, prefix="acme")
    async with Client(outer) as client:
        await client.call_tool("acme_price")
    (event,) = recorder.server("tools/call acme_price").events
    assert dict(event.attributes or {})["exception.type"] == "ValueError"
