"""What `accord.compat` takes over, and what it refuses with the words to write instead."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from unittest.mock import ANY

import pytest
from hypothesis import given, strategies as st

import accord
from accord import Client, ElicitResult, ProtocolError, ToolError
from accord.compat import fastmcp, mcpserver, types
from accord.compat.differ import Different
from accord.compat.fastmcp import FastMCP
from accord.compat.http import ResourceSecurity, escapes_base
from accord.compat.mcpserver import Elicit, FastMCP as FastMCP1, MCPServer, Resolve
from accord.limits import HTTPLimits, Limits
from accord.messages.tools import ListToolsResult
from accord.testing.http import served_over_http

from tests.server.http.http_clients import Legacy
from tests.server.http.raw import Direct
from tests.switching.sources import ROOT

SERVERS = (FastMCP, FastMCP1, MCPServer)


# --- types -------------------------------------------------------------------------------------------------------


def test_a_type_of_theirs_is_ours_in_both_spellings() -> None:
    made = types.CallToolResult(content=[types.TextContent(type="text", text="hi")], isError=True, _meta={"a": 1})
    assert made == accord.CallToolResult(content=[accord.TextContent(text="hi")], is_error=True, meta={"a": 1})
    assert type(made) is accord.CallToolResult
    assert isinstance(made.content[0], types.TextContent)
    assert made.content[0].type == "text"
    assert types.ToolAnnotations(readOnlyHint=True) == types.ToolAnnotations(read_only_hint=True)


def test_contents_are_distinguished_by_what_they_hold() -> None:
    text = types.TextResourceContents(uri="a:b", mimeType="text/plain", text="hi")
    assert isinstance(text, types.TextResourceContents)
    assert not isinstance(text, types.BlobResourceContents)


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(Different, match="TextContent has no 'texts' in accord; it has text, annotations, meta"):
        types.TextContent(texts="hi")
    with pytest.raises(Different, match="TextContent has no 'type' in accord"):
        types.TextContent(type="image", text="hi")
    with pytest.raises(Different, match="by name"):
        types.TextContent("hi")


class Theirs:
    """As FastMCP has middleware."""

    async def __call__(self, context: Any, call_next: Any) -> Any:
        return await call_next(context)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        return await call_next(context)


def test_a_name_that_is_not_here_cannot_be_imported_and_says_what_to_write() -> None:
    with pytest.raises(ImportError, match=r"Middleware is not in accord.compat.fastmcp: write .*accord.Request"):
        from accord.compat.fastmcp import Middleware  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from accord.compat.fastmcp import Nothing  # type: ignore[attr-defined]  # noqa: F401


async def test_a_server_of_theirs_takes_our_middleware() -> None:
    mcp = FastMCP("x")
    mcp.add_middleware(accord.MaskErrors())

    @mcp.tool
    def fails() -> str:
        raise KeyError("secret")

    async with Client(mcp) as client:
        assert "an internal error" in (await client.call_tool("fails")).text


# --- middleware of mcp 2 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_middleware_of_mcp_sees_requests_as_json_and_results_as_types(revision: str) -> None:
    seen: list[Any] = []
    kinds = (accord.CallToolResult, accord.GetPromptResult, ListToolsResult)

    async def watch(ctx: mcpserver.ServerRequestContext, call_next: mcpserver.CallNext) -> mcpserver.HandlerResult:
        result = await call_next(ctx)
        (kind,) = [one for one in kinds if isinstance(result, one)]
        seen.append((ctx.method, (ctx.params or {}).get("name"), kind))
        return result

    mcp = MCPServer("x", middleware=[watch])
    mcp.tool("double")(lambda number: 2 * number)
    mcp.prompt("ask")(lambda: "hello")
    async with Client(mcp, revisions=[revision]) as client:
        assert (await client.call_tool("double", {"number": 2})).text == "4"
        assert (await client.get_prompt("ask")).messages[0].content.text == "hello"  # type: ignore[union-attr]
        assert [tool.name for tool in await client.list_tools()] == ["double"]
    assert seen == [
        ("tools/call", "double", accord.CallToolResult),
        ("prompts/get", "ask", accord.GetPromptResult),
        ("tools/list", None, ListToolsResult),
    ]


async def test_middleware_of_mcp_changes_arguments_and_results_and_refuses() -> None:
    mcp = MCPServer("x")

    @mcp.tool()
    def double(number: int) -> int:
        return 2 * number

    async def change(ctx: mcpserver.ServerRequestContext, call_next: mcpserver.CallNext) -> mcpserver.HandlerResult:
        if ctx.method != "tools/call" or ctx.params is None:
            return await call_next(ctx)
        number = ctx.params["arguments"]["number"]
        if number == 0:
            raise mcpserver.MCPError(-32602, "not nothing")
        if number == 1:
            return {"content": [{"type": "text", "text": "one"}], "structuredContent": {"result": 0}}
        if number == 2:
            return types.CallToolResult(content=[types.TextContent(type="text", text="two")], is_error=True)
        return await call_next(dataclasses.replace(ctx, params={**ctx.params, "arguments": {"number": 100}}))

    mcp.middleware.append(change)
    assert mcp.middleware == [change]
    async with Client(mcp, revisions=["2025-11-25"]) as client:
        with pytest.raises(ProtocolError, match="not nothing"):
            await client.call_tool("double", {"number": 0})
        results = [await client.call_tool("double", {"number": number}) for number in (1, 2, 3)]
    assert [(one.is_error or False, one.text) for one in results] == [(False, "one"), (True, "two"), (False, "200")]


async def test_a_tool_that_fails_is_a_result_for_middleware_of_mcp() -> None:
    mcp, seen = MCPServer("x"), []

    @mcp.tool()
    def fail() -> str:
        raise ToolError("not today")

    async def watch(ctx: mcpserver.ServerRequestContext, call_next: mcpserver.CallNext) -> mcpserver.HandlerResult:
        result = await call_next(ctx)
        seen.append(getattr(result, "is_error", None))
        return result

    mcp.middleware.append(watch)
    async with Client(mcp) as client:
        result = await client.call_tool("fail")
    assert (result.is_error, result.text, seen) == (True, "not today", [True])


async def test_middleware_of_mcp_may_list_the_tools_and_gets_an_error_for_what_is_missing() -> None:
    mcp = MCPServer("x")
    mcp.tool("double")(lambda number: 2 * number)
    names: list[str] = []

    async def look(ctx: mcpserver.ServerRequestContext, call_next: mcpserver.CallNext) -> mcpserver.HandlerResult:
        names.extend(tool.name for tool in await mcp.list_tools())
        if ctx.method == "tools/call":
            await ctx.session.send_ping()
        return await call_next(ctx)

    mcp.middleware.append(look)
    async with Client(mcp) as client:
        await client.list_tools()
        result = await client.call_tool("double", {"number": 1})
    assert (names, result.is_error) == (["double", "double"], True)
    assert "middleware has no ctx.session in accord" in result.text


async def test_the_list_of_middleware_is_accords_own_decorator_as_well() -> None:
    mcp, seen = MCPServer("x"), []
    mcp.tool("double")(lambda number: 2 * number)

    @mcp.middleware
    async def watch(request: accord.Request, call_next: accord.CallNext) -> Any:
        seen.append(request.name)
        return await call_next(request)

    async with Client(mcp) as client:
        await client.call_tool("double", {"number": 1})
    assert seen == ["double"]


# --- what else programs use --------------------------------------------------------------------------------------


async def test_an_output_schema_by_hand_is_listed_and_checked() -> None:
    mcp = FastMCP("x")
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    mcp.tool(name="good", output_schema=schema)(lambda: {"number": 1})
    mcp.tool(name="bad", output_schema=schema)(lambda: {"number": "many"})
    async with Client(mcp) as client:
        assert [tool.output_schema for tool in await client.list_tools()] == [schema, schema]
        assert (await client.call_tool("good")).structured_content == {"number": 1}
        bad = await client.call_tool("bad")
    assert (bad.is_error, "output schema does not allow" in bad.text) == (True, True)


async def test_the_tool_manager_knows_the_tools() -> None:
    mcp = FastMCP1("x")

    @mcp.tool()
    def double(number: int) -> int:
        """Twice."""
        return 2 * number

    (tool,) = mcp._tool_manager.list_tools()
    assert (tool.name, tool.description, tool.fn(2), list(tool.parameters["properties"])) == (
        "double",
        "Twice.",
        4,
        ["number"],
    )
    assert list(mcp._tool_manager._tools) == ["double"]
    assert (await mcp._tool_manager.call_tool("double", {"number": 3})).data == 6
    assert mcp._tool_manager.add_tool(lambda: "", name="other").name == "other"
    mcp._tool_manager.remove_tool("double")
    assert mcp._tool_manager.get_tool("double") is None


@pytest.mark.parametrize("make", SERVERS)
async def test_a_custom_route_is_beside_the_server(make: Any) -> None:
    mcp = make("x")

    @mcp.custom_route("/things/{name}", methods=["GET"])
    async def thing(request: Any) -> Any:
        from starlette.responses import PlainTextResponse

        return PlainTextResponse(request.path_params["name"])

    app = mcp.http_app() if make is FastMCP else mcp.streamable_http_app()
    statuses = [await _status(app, *what) for what in ROUTED]
    assert statuses == [(200, b"a"), (405, b"Method Not Allowed"), (403, ANY), (404, ANY), (200, b"ok\n")]


@pytest.mark.parametrize("make", [FastMCP, MCPServer])
async def test_bodies_for_custom_routes_count_for_the_limit_of_their_address(make: Any) -> None:
    mcp, first, done = make("x"), asyncio.Event(), asyncio.Event()
    mcp.limits = Limits(http=HTTPLimits(bodies_bytes_per_address=1 << 20))

    @mcp.custom_route("/hook", methods=["POST"])
    async def hook(request: Any) -> Any:
        from starlette.responses import PlainTextResponse

        size = len(await request.body())
        first.set()
        await done.wait()
        return PlainTextResponse(str(size))

    app, body = mcp.asgi(), b"x" * 700_000
    waiting = asyncio.create_task(_status(app, "POST", "/hook", "localhost", body))
    await first.wait()
    async with asyncio.timeout(60):
        status, text = await _status(app, "POST", "/hook", "localhost", body)
    assert status == 503
    assert b"HTTPLimits.bodies_bytes_per_address" in text
    done.set()
    assert await waiting == (200, b"700000")
    assert await _status(app, "POST", "/hook", "localhost", body) == (200, b"700000")


async def test_a_client_that_disconnects_from_a_custom_route_is_no_error_of_the_program() -> None:
    mcp = FastMCP("x")

    @mcp.custom_route("/hook", methods=["POST"])
    async def hook(request: Any) -> Any:
        raise AssertionError(await request.body())

    parts = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"x", "more_body": True}]

    async def receive() -> Any:
        return parts.pop()

    async def send(message: Any) -> None: ...

    scope = {"type": "http", "method": "POST", "path": "/hook", "headers": [(b"host", b"localhost")]}
    await mcp.asgi()({**scope, "query_string": b"", "client": ("127.0.0.1", 1)}, receive, send)
    assert not parts


async def test_a_body_for_a_custom_route_that_does_not_arrive_is_given_up() -> None:
    mcp = FastMCP("x")
    mcp.limits = Limits(http=HTTPLimits(body_seconds=0.05))

    @mcp.custom_route("/hook", methods=["POST"])
    async def hook(request: Any) -> Any:
        raise AssertionError(await request.body())

    parts, sent = [{"type": "http.request", "body": b"x", "more_body": True}], []

    async def receive() -> Any:
        return parts.pop() if parts else await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/hook", "headers": [(b"host", b"localhost")]}
    app = mcp.asgi()
    async with asyncio.timeout(60):
        await app({**scope, "query_string": b"", "client": ("127.0.0.1", 1)}, receive, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert b"HTTPLimits.body_seconds" in sent[1]["body"]
    (budget,) = app._bodies.values()
    assert budget.total == 0


async def test_a_custom_route_may_take_longer_over_a_body_than_the_body_to_arrive() -> None:
    from starlette.responses import PlainTextResponse

    mcp, sent = FastMCP("x"), []
    mcp.limits = Limits(http=HTTPLimits(body_seconds=0.2))

    @mcp.custom_route("/hook", methods=["POST"])
    async def hook(request: Any) -> Any:
        size = 0
        async for part in request.stream():
            size += len(part)
            await asyncio.sleep(0.15)  # as to write it elsewhere
        return PlainTextResponse(str(size))

    parts = [{"type": "http.request", "body": b"x", "more_body": more} for more in (False, True, True, True)]

    async def receive() -> Any:
        await asyncio.sleep(0)
        return parts.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/hook", "headers": [(b"host", b"localhost")]}
    await mcp.asgi()({**scope, "query_string": b"", "client": ("127.0.0.1", 1)}, receive, send)
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"4")


ROUTED = [
    ("GET", "/things/a", "localhost"),
    ("POST", "/things/a", "localhost"),
    ("GET", "/things/a", "evil.example"),
    ("GET", "/nothing", "localhost"),
    ("GET", "/health", "localhost"),
]


async def _status(app: Any, method: str, path: str, host: str, body: bytes = b"") -> tuple[int, bytes]:
    """What an application of ASGI answers."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    about = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": ""}
    scope = {**about, "method": method, "path": path, "query_string": b"", "headers": [(b"host", host.encode())]}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


@pytest.mark.parametrize(
    "app",
    [
        lambda: FastMCP("x").http_app(stateless_http=True),
        lambda: FastMCP("x").http_app(stateless=True),
        lambda: fastmcp.create_streamable_http_app(FastMCP("x"), "/mcp", stateless_http=True),
        lambda: FastMCP1("x", stateless_http=True).streamable_http_app(),
        lambda: MCPServer("x").streamable_http_app(stateless_http=True),
    ],
)
def test_a_server_without_sessions_has_none(app: Callable[[], Any]) -> None:
    assert app().options.stateless
    assert not FastMCP1("x").streamable_http_app().options.stateless


def test_settings_say_where_a_server_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastmcp.settings, "port", 9000)
    fastmcp.settings.log_level = "DEBUG"
    assert fastmcp.serving_options({})["port"] == 9000
    assert fastmcp.create_streamable_http_app(FastMCP("x"), "/tools").options.path == "/tools"


async def test_an_application_of_http_sse_serves_its_tools() -> None:
    made = FastMCP("x")
    made.tool(name="double")(lambda number=1: 2 * number)
    app = fastmcp.create_sse_app(made, "/messages/", "/sse")
    client = await (await Legacy.connect(Direct(app))).open()
    listed = await client.ask("tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["double"]
    await client.stream.leave()
    await app.close()


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: FastMCP("x", auth=object()), r"write accord.JWT"),
        (lambda: FastMCP("x", middleware=[object()]), "request: accord.Request, call_next"),
        (lambda: FastMCP("x").add_middleware(Theirs()), r"accord.Request, .* docs/switching.md#middleware"),
        (lambda: FastMCP("x", mask_error_details=True), r"accord\.MaskErrors\(\)"),
        (lambda: FastMCP("x", on_duplicate="replace"), "declared twice"),
        (lambda: FastMCP("x", tasks=True), "task=True at each tool"),
        (lambda: FastMCP("x").resource("a:b", version="1"), "URI of its own"),
        (lambda: MCPServer("x").middleware.insert(0, print) or MCPServer("x").middleware.insert(1, print), "appended"),
        (lambda: fastmcp.create_sse_app(FastMCP("x"), "/messages/", "/events"), "HTTP\\+SSE is at /sse"),
        (lambda: setattr(fastmcp.settings, "mask_error_details", True), "fastmcp.settings.mask_error_details"),
        (lambda: FastMCP("x").add_transform(object()), "ToolChange"),
        (lambda: FastMCP("x").run(transport="websocket"), "no transport 'websocket'"),
        (lambda: FastMCP("x").run(transport="http", middleware=[1]), "around mcp.app"),
        (lambda: MCPServer("x", token_verifier=object()), "belong together"),
        (lambda: MCPServer("x").streamable_http_app(event_store=object()), "HTTPOptions"),
        (lambda: FastMCP1("x", nonsense=1), "nothing of the kind"),
        (lambda: fastmcp.Client("x.py", sampling_handler=print), "pass sampling= to accord.Client"),
    ],
)
def test_what_means_something_else_is_refused_with_what_to_write(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(Different, match=says):
        make()


@pytest.mark.parametrize("name", ["session_id", "list_tools", "input_responses"])
async def test_a_context_says_what_it_has_not(name: str) -> None:
    mcp = FastMCP("x")

    @mcp.tool
    def ask(ctx: fastmcp.Context) -> str:
        return str(getattr(ctx, name))

    async with Client(mcp) as client:
        result = await client.call_tool("ask")
    assert (result.is_error, f"ctx.{name} is not in accord: " in result.text) == (True, True)


def test_what_says_nothing_to_a_client_is_taken() -> None:
    FastMCP("x", dereference_schemas=False)
    MCPServer("x", log_level="DEBUG", debug=True)
    assert FastMCP1("x", json_response=True, stateless_http=True, port=9000).settings.port == 9000


# --- declaring ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "ignores"), [(FastMCP, False), (FastMCP1, True), (MCPServer, True)])
async def test_arguments_that_a_tool_has_not_are_ignored_where_their_library_does(make: Any, ignores: bool) -> None:
    mcp = make("x")

    @mcp.tool()
    def double(number: int) -> int:
        return 2 * number

    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        results = [await client.call_tool("double", {"number": one, "other": 1}) for one in (2, 2.0)]
    assert tool.input_schema["additionalProperties"] is ignores
    assert [result.is_error or result.data for result in results] == ([4, 4] if ignores else [True, True])


@pytest.mark.parametrize("make", SERVERS)
async def test_resources_and_templates_are_plain_text_by_default(make: Any) -> None:
    mcp = make("x")
    mcp.resource("a://b")(lambda: {"c": 1})
    mcp.resource("a://{name}/c", name="named")(lambda name: name)
    async with Client(mcp) as client:
        listed = [*await client.list_resources(), *await client.list_resource_templates()]
        contents = (await client.read_resource("a://b")).contents
    assert [one.mime_type for one in (*listed, *contents)] == ["text/plain"] * 3


async def test_a_title_among_the_annotations_is_the_title_of_the_tool() -> None:
    mcp = FastMCP("x")
    mcp.tool(name="a", annotations=types.ToolAnnotations(title="Nice"))(lambda: "")
    mcp.tool(name="b", annotations={"title": "Nice"}, title="Nicer")(lambda: "")
    async with Client(mcp) as client:
        assert [tool.title for tool in await client.list_tools()] == ["Nice", "Nicer"]


@pytest.mark.parametrize("make", SERVERS)
async def test_what_published_programs_declare_is_taken(make: Any) -> None:
    mcp = make("x")

    @mcp.tool()
    def add(a: int, b: int = None) -> int:  # type: ignore[assignment]  # noqa: RUF013
        return a + (b or 0)

    async def later() -> str:
        return "later"

    @mcp.tool()
    def begin() -> str:
        return later()  # type: ignore[return-value]

    @mcp.tool()
    def draw() -> list:  # type: ignore[type-arg]
        return ["drawn", accord.Image(data=b"x", format="png")]

    async with Client(mcp) as client:
        assert (await client.call_tool("add", {"a": 1})).data == 1
        assert (await client.call_tool("begin")).text == "later"
        assert [block.type for block in (await client.call_tool("draw")).content] == ["text", "image"]


# --- contexts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_state_lasts_as_long_as_the_session(revision: str) -> None:
    mcp = FastMCP("x")

    @mcp.tool
    async def count(ctx: fastmcp.Context) -> int:
        await ctx.set_state("calls", (await ctx.get_state("calls") or 0) + 1)
        return int(await ctx.get_state("calls"))

    async with Client(mcp, revisions=[revision]) as client:
        counted = [(await client.call_tool("count")).data for _ in range(2)]
    async with Client(mcp, revisions=[revision]) as other:
        counted.append((await other.call_tool("count")).data)
    assert counted == ([1, 2, 1] if revision == "2025-11-25" else [1, 1, 1])  # which knows no sessions


async def test_a_dependency_and_a_default_take_the_context() -> None:
    mcp = FastMCP("x")

    def who(ctx: fastmcp.Context) -> str:
        return type(ctx).__module__

    @mcp.tool
    async def name(
        own: fastmcp.Context = fastmcp.CurrentContext(),  # noqa: B008
        module: str = fastmcp.Depends(who),
    ) -> list[str]:
        return [type(own).__module__, module]

    async with Client(mcp) as client:
        assert (await client.call_tool("name")).data == ["accord.compat.fastmcp_context"] * 2


@pytest.mark.parametrize("make", SERVERS)
async def test_what_a_lifespan_yields_is_there_in_a_plain_function(make: Any) -> None:
    async def lifespan(server: Any) -> Any:
        yield {"name": server.name}

    mcp = make("x", lifespan=lifespan)
    kind = fastmcp.Context if make is FastMCP else mcpserver.Context

    @mcp.tool()
    def name(ctx: kind) -> str:  # type: ignore[valid-type]
        return str(ctx.request_context.lifespan_context["name"])  # type: ignore[attr-defined]

    async with Client(mcp) as client:
        assert (await client.call_tool("name")).text == "x"


# --- resolvers ---------------------------------------------------------------------------------------------------


def shop() -> tuple[MCPServer, list[str]]:
    mcp, calls = MCPServer("x"), []

    def price(title: str) -> int:
        calls.append(title)
        return 30

    async def agreed(price: Annotated[int, Resolve(price)]) -> bool | Elicit[bool]:
        return Elicit(f"Pay {price}?", bool)

    @mcp.tool()
    async def buy(title: str, price: Annotated[int, Resolve(price)], sure: Annotated[bool, Resolve(agreed)]) -> str:
        return f"{title}: {price}, {sure}"

    return mcp, calls


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_dependency_runs_once_for_a_call_and_may_request_input(revision: str) -> None:
    mcp, calls = shop()
    async with Client(mcp, revisions=[revision], elicitation=lambda question: True) as client:
        assert (await client.call_tool("buy", {"title": "Dune"})).text == "Dune: 30, True"
    assert calls == ["Dune"]


async def test_a_question_that_is_declined_ends_the_call() -> None:
    mcp, _ = shop()
    async with Client(mcp, elicitation=lambda question: ElicitResult(action="decline")) as client:
        result = await client.call_tool("buy", {"title": "Dune"})
    assert (result.is_error, "did not answer" in result.text) == (True, True)


# --- completion --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", SERVERS)
async def test_completion_is_tested_with_and_without_parentheses(make: Any) -> None:
    mcp = make("x")
    mcp.prompt("review")(lambda language: language)

    @mcp.completion
    def complete(ref: Any, argument: Any, context: Any) -> list[str]:
        return ["python"]

    async with Client(mcp) as client:
        assert (await client.complete(prompt="review", argument="language")).values == ["python"]


@pytest.mark.parametrize("first", ["the prompt", "the function"])
async def test_one_function_completes_what_is_declared_before_and_after_it(first: str) -> None:
    mcp = MCPServer("x")

    def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
        return types.Completion(values=[f"{ref.name}/{argument.name}/{argument.value}/{context and context.arguments}"])

    def review(language: str, code: str) -> str:
        return ""

    steps = [lambda: mcp.prompt()(review), lambda: mcp.completion()(complete)]
    for step in steps if first == "the prompt" else reversed(steps):
        step()
    async with Client(mcp) as client:
        alone = await client.complete(prompt="review", argument="language", value="p")
        known = await client.complete(prompt="review", argument="code", context={"language": "go"})
    assert (alone.values, known.values) == (["review/language/p/None"], ["review/code//{'language': 'go'}"])


async def test_plain_functions_with_resolvers_have_the_threads_of_other_handlers() -> None:
    count = 33  # the executor of the event loop, which the server uses itself, has at most 32 threads
    barrier, mcp = threading.Barrier(count, timeout=20), MCPServer("x")

    def three() -> int:
        return 3

    @mcp.tool()
    def meet(number: Annotated[int, Resolve(three)]) -> str:
        barrier.wait()
        return threading.current_thread().name

    async with Client(mcp) as client:
        results = await asyncio.gather(*(client.call_tool("meet") for _ in range(count)))
    assert all(result.text.startswith("accord-worker-") for result in results)


# --- paths -------------------------------------------------------------------------------------------------------

PARTS = st.sampled_from(["..", ".", "", "a", "b.txt", "..\\..", "C:", "/", "\0", "...", "a..b", "x\\y"])


@given(st.lists(PARTS, max_size=6).map("/".join))
def test_no_path_leads_out_by_what_is_let_through(path: str) -> None:
    if ResourceSecurity().rejected_variable({"path": path}) is None:
        depth = 0
        for part in path.replace("\\", "/").split("/"):
            depth += {"..": -1, "": 0, ".": 0}.get(part, 1)
            assert depth >= 0
        assert not path.startswith(("/", "\\"))
        assert "\0" not in path


def test_a_path_that_stays_inside_is_let_through() -> None:
    assert [escapes_base(path) for path in ("a/../b", "a/..", "..b", "../a", "a/../../b")] == [False] * 3 + [True] * 2


@pytest.mark.parametrize(("make", "checks"), [(FastMCP, True), (MCPServer, True), (FastMCP1, False)])
async def test_a_template_keeps_the_check_that_its_library_has(make: Any, checks: bool) -> None:
    mcp = make("x")

    @mcp.resource("files://{name}")
    def read(name: str) -> str:
        return name

    async with Client(mcp) as client:
        assert (await client.read_resource("files://a.txt")).contents[0].text == "a.txt"
        if not checks:
            assert (await client.read_resource("files://..%2Fa")).contents[0].text == "../a"
            return
        with pytest.raises(ProtocolError, match="no such resource"):
            await client.read_resource("files://..%2Fa")


@pytest.mark.parametrize("make", [FastMCP, MCPServer])
async def test_a_variable_of_another_type_is_checked_as_well(make: Any) -> None:
    mcp = make("x")

    @mcp.resource("files://{name}")
    def read(name: Path) -> str:
        return str(name)

    async with Client(mcp) as client:
        assert (await client.read_resource("files://a.txt")).contents[0].text == "a.txt"
        for uri in ("files://..%2Fa", "files://%2Fetc", "files://a%00"):
            with pytest.raises(ProtocolError, match="no such resource"):
                await client.read_resource(uri)


# --- prompts and resources as tools --------------------------------------------------------------------------------


@pytest.fixture
def restricted() -> FastMCP:
    mcp = FastMCP("x")

    @mcp.resource("plan://secret", scopes={"admin"})
    def plan() -> str:
        return "the plan"

    @mcp.resource("row://secret/{id}", scopes={"admin"})
    def row(id: str) -> str:
        return id

    @mcp.resource("me://name")
    async def name(ctx: fastmcp.Context) -> str:
        return "nobody" if ctx.principal is None else ctx.principal.id

    @mcp.prompt(scopes={"admin"})
    def approve() -> str:
        return "approve it"

    @mcp.prompt
    def greet() -> str:
        return "hello"

    mcp.add_transform(fastmcp.ResourcesAsTools(mcp))
    mcp.add_transform(fastmcp.PromptsAsTools(mcp))
    return mcp


async def texts_of_tools(client: Client) -> dict[str, str]:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_resources", {}),
        ("list_prompts", {}),
        ("read_resource", {"uri": "plan://secret"}),
        ("read_resource", {"uri": "row://secret/1"}),
        ("get_prompt", {"name": "approve"}),
        ("read_resource", {"uri": "me://name"}),
        ("get_prompt", {"name": "greet"}),
    ]
    return {f"{name} {[*arguments.values()]}": await text_of_tool(client, name, arguments) for name, arguments in calls}


async def text_of_tool(client: Client, name: str, arguments: dict[str, Any]) -> str:
    try:
        return (await client.call_tool(name, arguments)).text
    except ProtocolError as error:
        return error.message


async def test_tools_of_prompts_and_resources_have_the_access_of_their_caller(restricted: FastMCP) -> None:
    async with Client(restricted, principal=accord.Principal("ann", frozenset({"admin"}))) as client:
        texts = await texts_of_tools(client)
        assert texts["read_resource ['plan://secret']"] == "the plan"
        assert texts["read_resource ['row://secret/1']"] == "1"
        assert "approve it" in texts["get_prompt ['approve']"]
        assert texts["read_resource ['me://name']"] == "ann"
    async with Client(restricted, principal=accord.Principal("bob")) as client:
        texts = await texts_of_tools(client)
        assert texts["read_resource ['plan://secret']"] == "no resource 'plan://secret'"
        assert texts["read_resource ['row://secret/1']"] == "no resource 'row://secret/1'"
        assert "secret" not in texts["list_resources []"]
        assert "approve" not in texts["list_prompts []"]
        assert texts["get_prompt ['approve']"] == "no prompt 'approve'"
        assert texts["read_resource ['me://name']"] == "bob"
        assert "hello" in texts["get_prompt ['greet']"]
    async with Client(restricted) as client:
        assert (await texts_of_tools(client))["read_resource ['plan://secret']"] == "the plan"


async def test_tools_of_prompts_and_resources_know_what_is_hidden_from_a_session(restricted: FastMCP) -> None:
    @restricted.tool
    async def hide(ctx: fastmcp.Context) -> str:
        await ctx.disable_components(names=["greet", "me://name"])
        return "hidden"

    async with Client(restricted, revisions=["2025-11-25"]) as client:
        assert (await texts_of_tools(client))["read_resource ['me://name']"] == "nobody"
        await client.call_tool("hide")
        texts = await texts_of_tools(client)
        assert "me://name" not in texts["list_resources []"]
        assert "greet" not in texts["list_prompts []"]
        assert texts["read_resource ['me://name']"] == "no resource 'me://name'"
        assert texts["get_prompt ['greet']"] == "no prompt 'greet'"


async def test_tools_of_prompts_and_resources_without_authentication_need_no_more_than_a_read() -> None:
    mcp = FastMCP("x")

    @mcp.resource("plan://secret", scopes={"admin"})
    def plan() -> str:
        return "the plan"

    mcp.add_transform(fastmcp.ResourcesAsTools(mcp))
    with served_over_http(mcp) as url:
        async with Client(url) as client:
            read = await text_of_tool(client, "read_resource", {"uri": "plan://secret"})
            listed = await text_of_tool(client, "list_resources", {})
    assert read == "no resource 'plan://secret'"
    assert "secret" not in listed


# --- clients -----------------------------------------------------------------------------------------------------


async def test_their_clients_have_their_shapes() -> None:
    mcp = FastMCP("x")

    @mcp.tool
    def fail(how: Literal["now"]) -> str:
        raise ToolError("no")

    @mcp.resource("a:b")
    def held() -> str:
        return "hi"

    async with fastmcp.Client(mcp) as client:
        with pytest.raises(ToolError, match="no"):
            await client.call_tool("fail", {"how": "now"})
        assert (await client.call_tool("fail", {"how": "now"}, raise_on_error=False)).is_error
        assert [one.text for one in await client.read_resource("a:b")] == ["hi"]
    async with mcpserver.create_connected_server_and_client_session(mcp) as session:
        await session.initialize()
        assert [tool.name for tool in (await session.list_tools()).tools] == ["fail"]


def test_nothing_of_this_is_loaded_by_accord_itself() -> None:
    script = "import sys, accord\naccord.Server('x')\nprint([name for name in sys.modules if 'compat' in name])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


async def test_the_example_serves_what_it_did() -> None:
    async with Client(str(ROOT / "examples" / "switched.py")) as client:
        assert (await client.call_tool("forecast", {"city": "Oslo"})).data == {"celsius": 3}
        assert (await client.read_resource("weather://Oslo")).contents[0].text == "Oslo: 3 °C"
        assert [tool.annotations for tool in await client.list_tools()] == [accord.ToolAnnotations(read_only_hint=True)]


def test_the_pages_that_are_named_are_there() -> None:
    sources = [*(ROOT / "src/accord/compat").glob("*.py"), *(ROOT / "src/accord/migrate").glob("*.py")]
    named = {page for file in sources for page in re.findall(r"docs/\w+\.md", file.read_text(encoding="utf-8"))}
    assert len(named) > 5
    assert [page for page in named if not (ROOT / page).exists()] == []


class Config:
    """FastMCP's `TaskConfig`, as far as it is read."""

    mode = "required"
    poll_interval = timedelta(seconds=0.1)


@pytest.mark.parametrize("task", [True, Config()], ids=["True", "TaskConfig"])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_tools_of_fastmcp_run_as_tasks(task: Any, revision: str) -> None:
    server = FastMCP("x")

    @server.tool(task=task)
    async def work() -> str:
        return "worked"

    async with Client(server, revisions=[revision]) as client:
        started = await client.start_tool("work")
        assert started.id
        assert (await started.result()).text == "worked"
