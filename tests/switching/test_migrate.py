"""`accord migrate`: what is rewritten, what is left, and that a program stays one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from accord import Client
from accord.compat.name_map import COMPAT_MODULES, FOREIGN_PACKAGES, MODULES, REPLACEMENTS
from accord.migrate.imports import public_names
from accord.migrate.rewrite import rewrite

from tests.quick import TESTS, in_peer_folder
from tests.switching.sources import PROGRAMS, SOURCES, Origin, folder


def compat(text: str) -> str:
    return rewrite(text).text


def native(text: str) -> str:
    return rewrite(text, native=True).text


def left(text: str, *, native: bool = True) -> list[tuple[int, str]]:
    return [(one.line, one.text) for one in rewrite(text, native=native).manual_steps]


def files(origin: Origin) -> list[Path]:
    return sorted(folder(origin).rglob("*.py"))


# --- the table ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", COMPAT_MODULES)
def test_every_name_that_a_module_promises_is_there(module: str) -> None:
    there = vars(__import__(module, fromlist=["x"]))
    assert [name for name in public_names(module) if name not in there] == []


def test_the_table_leads_to_modules_of_ours_only() -> None:
    assert set(MODULES.values()) == set(COMPAT_MODULES)
    assert {module.partition(".")[0] for module in MODULES} <= set(FOREIGN_PACKAGES)


def test_nothing_is_advised_against_that_has_a_name_here() -> None:
    assert not {name for module in COMPAT_MODULES for name in public_names(module)} & set(REPLACEMENTS)


# --- import lines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("from fastmcp import FastMCP", "from accord.compat.fastmcp import FastMCP"),
        ("from fastmcp import (\n    Context,  # of a call\n    FastMCP,\n)  # all",
         "from accord.compat.fastmcp import (\n    Context,  # of a call\n    FastMCP,\n)  # all"),
        ("import mcp.types as types", "import accord.compat.types as types"),
        ("import fastmcp", "import accord.compat.fastmcp as fastmcp"),
        ("import os, mcp.types as t", "import os, accord.compat.types as t"),
        ("from mcp import types", "from accord.compat import types"),
        ("from mcp.server.fastmcp.prompts import base", "from accord.compat import mcpserver as base"),
        ("from mcp.server.mcpserver import MCPServer as Server",
         "from accord.compat.mcpserver import MCPServer as Server"),
        ("if x:\n    from mcp.types import Tool, types",
         "if x:\n    from accord.compat.types import Tool\n    from mcp.types import types"),
        ("import httpx\nfrom fastmcp_else import x", "import httpx\nfrom fastmcp_else import x"),
        ("from .fastmcp import FastMCP", "from .fastmcp import FastMCP"),
        ('é = "ü"; from fastmcp import FastMCP', 'é = "ü"; from accord.compat.fastmcp import FastMCP'),
        ("from fastmcp import FastMCP\r\nx = 1\r\n", "from accord.compat.fastmcp import FastMCP\r\nx = 1\r\n"),
    ],
)  # fmt: skip
def test_an_import_line_leads_to_the_same_names_here(line: str, becomes: str) -> None:
    assert compat(line) == becomes


def test_what_has_no_name_here_is_reported_with_its_line_and_what_to_write() -> None:
    text = "import os\nfrom fastmcp.server.transforms.search import BM25SearchTransform\n"
    assert compat(text) == text
    ((line, why),) = left(text)
    assert (line, "search_tools(budget=" in why) == (2, True)


def test_a_missing_attribute_is_an_error() -> None:
    ((line, why),) = left("import fastmcp\n\nprint(fastmcp.nothing.home)\n", native=False)
    assert (line, why.startswith("fastmcp.nothing:")) == (3, True)


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(SyntaxError):
        rewrite("from fastmcp import")


# --- accord's own words --------------------------------------------------------------------------------------------

WEATHER = '''\
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.session import ServerSession
from mcp.types import TextContent

mcp = FastMCP("Weather", json_response=True)  # as it is called


@mcp.tool()
async def forecast(city: str, ctx: Context[ServerSession, None]) -> TextContent:
    """The weather."""
    db = ctx.request_context.lifespan_context.db
    await ctx.info(message=f"asked for {city}", logger_name="weather")
    answer = await ctx.elicit(message="Sure?", schema=Sure)
    return TextContent(type="text", text=db.weather(city))


mcp.add_tool(search)
mcp.run(transport="streamable-http")
'''

WEATHER_HERE = '''\
from accord import Context, Server
from accord import TextContent

mcp = Server("Weather")  # as it is called


@mcp.tool()
async def forecast(city: str, ctx: Context) -> TextContent:
    """The weather."""
    db = ctx.lifespan.db
    await ctx.info(data=f"asked for {city}", logger="weather")
    answer = await ctx.elicit(message="Sure?", type=Sure)
    return TextContent(text=db.weather(city))


mcp.tool(search)
mcp.run(http=":8000")
'''


def test_plain_constructs_become_accords_own() -> None:
    assert native(WEATHER) == WEATHER_HERE
    assert left(WEATHER) == []


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("mcp = FastMCP()", 'mcp = Server("FastMCP")'),
        ("mcp = FastMCP(json_response=True)", 'mcp = Server("FastMCP")'),
        ("mcp = FastMCP(debug=True, instructions='x')", "mcp = Server(\"FastMCP\", instructions='x')"),
        ('mcp = FastMCP("x"); mcp.run("stdio")', 'mcp = Server("x"); mcp.run()'),
        ('mcp = FastMCP("x"); mcp.run(transport="http", host="0.0.0.0", port=9000)',
         'mcp = Server("x"); mcp.run(http="0.0.0.0:9000")'),
        ('mcp = FastMCP("x"); mcp.mount(other, namespace="a")', 'mcp = Server("x"); mcp.mount(other, prefix="a")'),
    ],
)  # fmt: skip
def test_a_server_is_made_and_run_with_the_names_of_accord(line: str, becomes: str) -> None:
    assert native(f"from fastmcp import FastMCP\n{line}\n") == f"from accord import Server\n{becomes}\n"


@pytest.mark.parametrize(
    "line",
    [
        'mcp = FastMCP("x", auth=provider)',
        'mcp = FastMCP("x"); mcp.add_transform(t)',
        'mcp = FastMCP("x"); mcp.run(transport="http", path="/x")',
        'mcp = FastMCP("x"); mcp.run(transport="http", port=port)',
        'mcp = FastMCP(**options)',
        'mcp = FastMCP("x")\n@mcp.tool(output_schema={})\ndef f(): ...',
        'mcp = FastMCP("x")\n@mcp.tool(annotations={"readOnlyHint": True})\ndef f(): ...',
        'mcp = FastMCP("x")\n@mcp.resource("files://{path*}")\ndef f(path): ...',
        'mcp = FastMCP("x")\nclass Plain: ...\n@mcp.tool\ndef f() -> Plain: ...',
        'mcp = FastMCP("x")\n@mcp.tool\ndef f(ctx: Context): ctx.get_state("a")',
        'mcp = FastMCP("x")\n@mcp.tool\ndef f(ctx: Context): g(ctx.log("a", level="info"))',
        'mcp: FastMCP[State] = FastMCP("x")',
    ],
)  # fmt: skip
def test_what_is_not_certain_keeps_its_names_and_is_reported(line: str) -> None:
    text = f"from fastmcp import Context, FastMCP\n{line}\n"
    assert native(text) == text.replace("from fastmcp", "from accord.compat.fastmcp")
    assert left(text)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("mcp.add_middleware(m)", "async def middleware(request: accord.Request, call_next)"),
        ('FastMCP("x", mask_error_details=True)', "write middleware=[MaskErrors()]"),
        ("async def f(ctx: Context): await ctx.set_state('a', 1)", 'ctx.state["a"] = 1'),
        ("from fastmcp.server.middleware import MiddlewareContext", "accord.Request"),
        ("from fastmcp.server.middleware.timing import TimingMiddleware", "accord.Timing()"),
        ("@mcp.completion\ndef f(ref, argument, context): ...", '@prompt.complete("argument")'),
        ("FastMCP('y', stateless_http=True)", "HTTPOptions(stateless=True)"),
        ("mcp.get_context()", "give the function a parameter"),
        ("mcp.enable('a')", "accord's Server has it as well"),
        ("mcp.dance()", "accord's Server has no such attribute"),
    ],
)
def test_what_stays_is_reported_with_what_to_write(line: str, says: str) -> None:
    ((_, why),) = left(f'from fastmcp import Context, FastMCP\nmcp = FastMCP("x")\n{line}\n')
    assert says in why


async def test_a_completion_is_reported_and_the_program_starts_and_completes_as_before() -> None:
    text = """from fastmcp import FastMCP
mcp = FastMCP("x")
@mcp.prompt
def review(language: str): return language
@mcp.completion
def complete(ref, argument, context): return ["python"]
"""
    ((line, why),) = left(text)
    assert line == 5
    assert '@prompt.complete("argument")' in why
    program: dict[str, Any] = {}
    exec(native(text), program)
    async with Client(program["mcp"]) as client:
        assert (await client.complete(prompt="review", argument="language")).values == ["python"]


def test_a_template_has_its_check_with_the_names_of_accord() -> None:
    text = 'from mcp.server import MCPServer\nmcp = MCPServer("x")\n@mcp.resource("f://{name}")\ndef f(name): ...\n'
    assert "from accord import Server" in native(text)
    assert left(text) == []


def test_a_field_in_the_spelling_of_the_wire_is_an_error() -> None:
    text = "from mcp.types import Tool\nprint(result.isError, result.text)\n"
    assert left(text) == [(2, ".isError: accord's types have .is_error")]
    assert left("print(result.isError)") == []


def test_a_name_that_the_program_uses_already_is_not_taken() -> None:
    text = 'from fastmcp import FastMCP\nclass Server: ...\nmcp = FastMCP("x")\n'
    assert "from accord.compat.fastmcp import FastMCP" in native(text)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("origin", SOURCES)
@pytest.mark.parametrize("native", [False, True])
def test_every_example_stays_a_program_and_is_rewritten_once(origin: Origin, native: bool) -> None:
    assert len(files(origin)) > 50
    for file in files(origin):
        once = rewrite(file.read_text(encoding="utf-8"), native=native)
        ast.parse(once.text)
        assert rewrite(once.text, native=native).text == once.text, file.relative_to(PROGRAMS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("native", [False, True])
def test_what_is_not_about_them_is_not_touched(native: bool) -> None:
    for file in sorted(TESTS.rglob("*.py")):
        if not in_peer_folder(file):
            text = file.read_text(encoding="utf-8")
            assert rewrite(text, native=native).text == text, file
