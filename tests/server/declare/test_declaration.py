"""The ways to declare things and to run, for those who come from other libraries too."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import pytest

from accord import (
    CallNext,
    Client,
    ConnectionLost,
    Context,
    DeclarationError,
    Depends,
    Request,
    RequireScopes,
    Server,
    SizeLimit,
    Timeout,
    Timing,
    Tool,
    ToolChange,
)

from tests.server.raw import raw_peer


async def test_a_name_may_come_first() -> None:
    server = Server("test")

    @server.tool("first", title="First")
    async def one() -> str:
        return "1"

    @server.tool()
    async def second() -> str:
        return "2"

    @server.prompt("hello", description="Says hello.")
    def two(name: str) -> str:
        return name

    @server.prompt()
    def third(name: str) -> str:
        return name

    async with raw_peer(server) as peer:
        tools = (await peer.ask("tools/list"))["result"]["tools"]
        assert [(tool["name"], tool.get("title")) for tool in tools] == [("first", "First"), ("second", None)]
        prompts = (await peer.ask("prompts/list"))["result"]["prompts"]
        assert [prompt["name"] for prompt in prompts] == ["hello", "third"]


def with_context(arguments: dict[str, Any], ctx: Context) -> str:
    return f"{arguments} {ctx.revision}"


def context_first_is_the_second_that_must_be_given(arguments: dict[str, Any], somebody) -> str:  # type: ignore[no-untyped-def]
    return f"{arguments} {somebody.revision}"


def by_keyword(arguments: dict[str, Any], *, ctx: Context | None = None) -> str:
    return f"{arguments} {cast(Context, ctx).revision}"


def without(arguments: dict[str, Any], verbose: bool = False) -> str:
    return f"{arguments} {verbose}"


def positional(arguments: dict[str, Any], /) -> str:
    return f"{arguments} False"


class Handler:
    async def __call__(self, arguments: dict[str, Any], ctx: Context) -> str:
        return f"{arguments} {ctx.revision}"


async def early(word: str, arguments: dict[str, Any]) -> str:
    return f"{arguments} {word}"


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (with_context, "2025-11-25"),
        (context_first_is_the_second_that_must_be_given, "2025-11-25"),
        (by_keyword, "2025-11-25"),
        (without, "False"),
        (positional, "False"),
        (Handler(), "2025-11-25"),
        (partial(Handler()), "2025-11-25"),
        (partial(early, "word"), "word"),
    ],
)
async def test_a_handler_of_a_raw_tool_gets_what_it_asks_for(handler: Any, text: str) -> None:
    server = Server("test")
    server.add_tool(Tool(name="raw", input_schema={"type": "object"}), handler)
    async with raw_peer(server) as peer:
        assert (await peer.call("raw", a=1))["content"][0]["text"] == f"{{'a': 1}} {text}"
        for params in ({"name": "raw"}, {"name": "raw", "arguments": None}):
            answer = await peer.ask("tools/call", params)
            assert answer["result"]["content"][0]["text"] == f"{{}} {text}"


@pytest.mark.parametrize("handler", [lambda: "x", lambda arguments, ctx, more: "x"])
def test_a_handler_of_a_raw_tool_that_cannot_work_is_refused(handler: Any) -> None:
    with pytest.raises(DeclarationError, match="arguments"):
        Server("test").add_tool(Tool(name="raw", input_schema={"type": "object"}), handler)


async def test_a_transport_that_there_is_not_is_refused() -> None:
    server = Server("test")
    for run in (server.run, server.run_async):
        with pytest.raises(DeclarationError, match="no transport 'carrier pigeon'"):
            await cast(Any, run)(transport="carrier pigeon")


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"transport": "streamable-http", "port": 9000}, r'no option port=: write run\(http=":9000"\)'),
        ({"transport": "http", "host": "0.0.0.0", "port": 80}, r'no option host=: write run\(http="0\.0\.0\.0:80"\)'),
        ({"path": "/mcp"}, r"no option path=: .*options=HTTPOptions"),
    ],
)
async def test_options_of_other_libraries_are_refused_with_what_to_write(options: Any, cure: str) -> None:
    server = Server("test")
    for run in (server.run, server.run_async):
        with pytest.raises(DeclarationError, match=cure):
            await cast(Any, run)(**options)


@pytest.mark.parametrize("http", [None, "127.0.0.1:0"])
async def test_run_on_a_running_loop_names_the_method_that_works_there(http: str | None) -> None:
    with pytest.raises(DeclarationError, match=r"running event loop.*await server\.run_async\(\)"):
        Server("test").run(http=http)


ASYNC = """
import asyncio, os, signal, sys
from accord import Server

async def main():
    await Server("test").{run}()
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await heard.wait()
    print("the loop goes on", file=sys.stderr)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
@pytest.mark.parametrize("run", ["run_async", "run_stdio_async"])
def test_a_loop_that_runs_already_can_serve_and_gets_its_signals_back(run: str) -> None:
    request = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run(
        [sys.executable, "-c", ASYNC.replace("{run}", run)],
        input=request,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == '{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert done.stderr == "the loop goes on\n"


async def test_one_decorator_may_be_used_for_several_resources() -> None:
    server = Server("test")
    offer = server.resource("test://{a}")

    @offer
    def one(a: str) -> str:
        """The one."""
        return a

    server.remove_resource("test://{a}")

    @offer
    def two(a: str) -> str:
        return a

    async with raw_peer(server) as peer:
        (listed,) = (await peer.ask("resources/templates/list"))["result"]["resourceTemplates"]
        assert (listed["name"], listed.get("description")) == ("two", None)


def test_a_resource_without_its_uri_is_refused_rather_than_left_out() -> None:
    server: Any = Server("notes")
    with pytest.raises(DeclarationError, match=r'write @server.resource\("scheme://path"\)'):

        @server.resource
        def notes() -> str:
            return "none"


async def test_texts_of_uris_and_prompts_are_converted_without_a_report(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("shelf")

    @server.resource("shelf://{row}")
    def row(row: int) -> str:
        return str(row + 1)

    @server.prompt
    def look(row: int) -> str:
        return str(row + 1)

    with caplog.at_level(logging.WARNING, "accord"):
        async with Client(server) as client:
            assert (await client.read_resource("shelf://3")).contents[0].text == "4"
            assert (await client.get_prompt("look", {"row": "3"})).messages[0].content.text == "4"
    assert caplog.text == ""


BAD_OUTPUT = Tool(name="a", input_schema={"type": "object"}, output_schema={"$ref": "#/$defs/nope"})

MISTAKES = [
    (lambda: Server("x").tool(version=2)(plain), "version='2'"),
    (lambda: Server("x").tool(annotations={"readOnlyHint": True})(plain), r"ToolAnnotations\(read_only_hint"),
    (lambda: Depends(plain, scope="session"), "'call' or 'lifespan'"),
    (lambda: Server("x", auth={"key": "ann"}), "auth=APIKeys"),
    (lambda: Server("x", lifespan=object()), "takes the server"),
    (lambda: Server("x").tool("a", name="b"), "given twice, 'a' and 'b'"),
    (lambda: Server("x").add_tool(plain), r"for a function, write server.tool\(f\)"),  # type: ignore[arg-type]
    (lambda: Server("x").add_tool(Tool(name="a", input_schema={})), "'a' has no handler"),
    (
        lambda: Server("x").add_tool(Tool(name="a", input_schema="object"), print),
        "input_schema must be a dict .* not 'object'",
    ),  # type: ignore[arg-type]
    (
        lambda: Server("x").add_tool(Tool(name="a", input_schema={"type": "objekt"}), print),
        r"input_schema is not a valid .* \$.type",
    ),
    (lambda: Server("x").add_tool(Tool(name="a", input_schema={}), print), 'input_schema must say "type": "object"'),
    (
        lambda: Server("x").add_tool(Tool(name="a", input_schema={"type": "array"}), print),
        'input_schema must say "type": "object"',
    ),
    (
        lambda: Server("x").add_tool(BAD_OUTPUT, print),
        "output_schema is not a valid JSON Schema",
    ),
    (lambda: Server("x").tool(output_schema={})(plain), "no option output_schema=: .* `-> YourType`"),  # type: ignore
    (lambda: Server("x").tool(input_schema={})(plain), r"no option input_schema=: .*add_tool"),  # type: ignore
    (lambda: Server("x").prompt(arguments=[])(plain), "no option arguments=: .* annotate them"),  # type: ignore
    (lambda: Server("x").tool(descriptoin="x")(plain), "no option descriptoin=, did you mean description="),  # type: ignore
    (lambda: Server("x").tool(colour="x")(plain), "no option colour=: .* name, description, .* scopes"),  # type: ignore
    (lambda: Server("x").tool(timeout="5")(plain), "timeout= takes seconds, .* not '5'"),  # type: ignore
    (lambda: Server("x").tool(timeout=-1)(plain), "timeout= takes seconds, .* not -1"),
    (lambda: Server("x").resource("notes")(plain), "'notes' has no URI scheme; write 'resource://notes'"),
    (lambda: Server("x").resource("my notes://all")(plain), "'my notes://all' has no URI scheme"),
    (lambda: Server("x").resource("notes/{day}")(lambda day: day), "'notes/{day}' has no URI scheme"),
    (lambda: Server("x").run(http=8000), 'as "127.0.0.1:8000"'),  # type: ignore[arg-type]
    (lambda: Server("x").search_tools(budget="x"), r"search_tools\(4000"),  # type: ignore[arg-type]
    (
        lambda: Server("x").search_tools(always="plain"),
        r"always= must be a set of strings, not a string: .*\{'plain'\}",
    ),
    (lambda: SizeLimit("a"), r"SizeLimit\(200_000\), not 'a'"),  # type: ignore[arg-type]
    (lambda: RequireScopes("admin"), r"RequireScopes\(\{"),  # type: ignore[arg-type]
    (lambda: RequireScopes(tags=["admin"]), r"tags=\{"),  # type: ignore[arg-type]
    (lambda: Server("x").tool(middleware=Timeout(1))(plain), r"write middleware=\[Timeout\(...\)\]"),  # type: ignore
    (lambda: Server("x", middleware=Timing()), r"write middleware=\[Timing\(...\)\]"),  # type: ignore[arg-type]
    (lambda: Server("x", middleware=around), r"write middleware=\[around\]"),  # type: ignore[arg-type]
]


async def around(request: Request, call_next: CallNext) -> Any:
    return await call_next(request)


def plain() -> str:
    return "plain"


@pytest.mark.parametrize(("mistake", "text"), MISTAKES)
def test_names_of_other_libraries_are_refused_with_what_to_write(mistake: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        mistake()


async def test_a_function_is_offered_by_another_name_where_it_is_given() -> None:
    server = Server("x")
    assert server.tool(plain, name="said", tags={"a"}) is plain
    server.prompt(plain, name="asked", title="Asked").complete  # noqa: B018
    async with Client(server) as client:
        assert (await client.call_tool("said")).text == "plain"
        assert [(one.name, one.title) for one in (await client.list_prompts())] == [("asked", "Asked")]


# Names that come later, and names that never come


def ordering() -> Server:
    """A server whose functions name a class that is defined below them."""
    server = Server("ordering")

    @server.tool
    def count(order: Later, ctx: Context, factor: Annotated[int, Depends(factor)]) -> str:
        return f"{order.count * factor} {ctx.revision}"

    @server.prompt
    def ask(order: Later, ctx: Context) -> str:
        return f"{order} {ctx.revision}"

    @server.resource("order://{order}")
    def read(order: LaterNumber, ctx: Context) -> str:
        return f"{order} {ctx.revision}"

    return server


def factor() -> int:
    return 3


EARLY = ordering()
EARLY_SHOWN = repr(EARLY)  # which has looked at what is declared before the names exist
AROUND = Server("around")
AROUND.mount(EARLY, "early")
AROUND_SHOWN = repr(AROUND)

LaterNumber = int


@dataclass
class Later:
    count: int


@pytest.mark.parametrize("server", [EARLY, AROUND])
async def test_a_class_defined_after_the_function_is_known_with_context_and_dependencies(server: Server) -> None:
    prefix = "early_" if server is AROUND else ""
    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["order"]
        assert (await client.call_tool(f"{prefix}count", {"order": {"count": 2}})).text.startswith("6 20")
        shown = await client.get_prompt(f"{prefix}ask", {"order": '{"count": 1}'})
        assert shown.messages[0].content.text.startswith("Later(count=1) 20")
        uri = "order://early/7" if server is AROUND else "order://7"
        assert (await client.read_resource(uri)).contents[0].text.startswith("7 20")


def unresolvable() -> Server:
    server = Server("x")

    @server.tool
    def good() -> str:
        return ""

    @server.tool
    def bad(x: Nope) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    @server.prompt
    def worse(x: NeverImported) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    return server


def test_a_hint_that_names_nothing_is_refused_at_the_start_with_file_and_line() -> None:
    with pytest.raises(DeclarationError) as caught:
        unresolvable().run()
    first, second = str(caught.value).splitlines()
    assert re.match(r".*test_declaration.py:\d+: bad: .*'Nope' is not defined; define it .*TYPE_CHECKING", first)
    assert re.match(r".*test_declaration.py:\d+: worse: .*'NeverImported' is not defined", second)
    line = int(first.split(":")[1])
    assert Path(__file__).read_text().splitlines()[line].strip().startswith("def bad(")


async def test_a_client_in_this_process_is_notified_of_it() -> None:
    with pytest.raises(ConnectionLost, match="bad: an annotation refers to a name that does not exist"):
        async with Client(unresolvable()):
            pass


async def test_an_application_does_not_start_with_it() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    await unresolvable().app({"type": "lifespan"}, receive, send)
    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]
    assert "bad: an annotation refers to a name that does not exist" in sent[0]["message"]


async def test_what_was_removed_need_not_be_resolved() -> None:
    server = unresolvable()
    server.remove_tool("bad")
    server.remove_prompt("worse")
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["good"]


# --- names and timeouts ----------------------------------------------------------------------------------------------


def test_a_lambda_needs_a_name() -> None:
    server = Server("test")
    with pytest.raises(DeclarationError, match="is a lambda, which has no name of its own: give it one") as raised:
        server.tool(lambda: "")
    line = sys._getframe().f_lineno - 1
    assert f"test_declaration.py:{line})" in str(raised.value)
    with pytest.raises(DeclarationError, match=r"the prompt .* is a lambda"):
        server.prompt(lambda: "")
    server.tool(lambda: "", name="named")
    assert list(server.registry.tools) == ["named"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "has an empty name"),
        (5, "has the name 5, which is no string"),
        ("x" * 1_025, "has a name of 1,025 characters, which is longer than 1,024"),
        ("\ud800", r"has the name '\\ud800', which is not valid Unicode"),
    ],
)
def test_a_name_that_no_client_could_use_is_refused_at_its_declaration(name: Any, problem: str) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    server = Server("test")
    with pytest.raises(DeclarationError, match=rf"the tool \(.*test_declaration.py:\d+\) {problem}"):
        server.tool(add, name=name)
    with pytest.raises(DeclarationError, match=problem):
        server.prompt(lambda: "", name=name)
    with pytest.raises(DeclarationError, match=problem):
        server.add_tool(Tool(name=name, input_schema={"type": "object"}), without)
    with pytest.raises(DeclarationError, match=problem):
        ToolChange(name=name)
    assert not server.registry.tools


@pytest.mark.parametrize("seconds", [0, 0.0, -1, float("nan"), float("inf"), True, "30"])
def test_a_timeout_that_is_no_time_is_refused_at_its_declaration(seconds: Any) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    server = Server("test")
    with pytest.raises(DeclarationError, match="timeout= takes seconds, more than 0, as in timeout=30, not"):
        server.tool(add, timeout=seconds)
    with pytest.raises(DeclarationError, match="timeout= takes seconds, more than 0, as in timeout=30, not"):
        server.add_tool(Tool(name="raw", input_schema={"type": "object"}), without, timeout=seconds)
    assert not server.registry.tools


@pytest.mark.parametrize(("uri", "cure"), [("notes://all", "notes://all/{day}"), ("notes://{city}", "{day}")])
async def test_a_parameter_that_the_uri_of_a_resource_does_not_provide_is_refused(uri: str, cure: str) -> None:
    def read(day: str, city: str = "Oslo") -> str:
        return day + city

    with pytest.raises(DeclarationError, match=rf"{re.escape(repr(uri))} \(.*test_declaration\.py:\d+\).*requires day"):
        Server("test").resource(uri)(read)
    with pytest.raises(DeclarationError, match=re.escape(cure)):
        Server("test").resource(uri)(read)


async def test_parameters_of_a_resource_that_the_server_fills_need_no_variable() -> None:
    server = Server("test")

    @server.resource("notes://all")
    def read(ctx: Context, shop: Annotated[str, Depends(lambda: "bakery")], day: str = "today") -> str:
        return f"{shop} {day}"

    async with Client(server) as client:
        (contents,) = (await client.read_resource("notes://all")).contents
        assert getattr(contents, "text", None) == "bakery today"
