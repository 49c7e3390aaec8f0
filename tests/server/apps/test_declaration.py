"""Pages of a server: their metadata, which tools show them, who lists these, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import APPS, CSP, AppPage, Client, DeclarationError, Provided, Provider, Server, ToolChange
from accord.messages.apps import APP_MIME_TYPE, MAX_PAGE_BYTES
from accord.messages.revision import HANDSHAKE
from accord.middleware import CallNext, Request
from accord.types import CallToolResult, Tool

from tests.server.raw import META, raw_peer

PAGE = "<!doctype html>\n<title>Sales</title>\n<script data-accord></script>\n<p>Sales</p>\n"
URI = "ui://shop/sales"
WITH_META = ("2025-06-18", "2025-11-25")


@dataclass
class Sales:
    total: int


def shop(**options: Any) -> Server:
    server = Server("shop")
    page = server.add_ui(URI, PAGE, **options)

    @server.tool(ui=page)
    def sales(year: int) -> Sales:
        return Sales(year)

    @server.tool(ui=page, visibility=["app"])
    def refresh(year: int) -> Sales:
        return Sales(year + 1)

    return server


def refused(page: Path | str, **options: Any) -> str:
    with pytest.raises(DeclarationError) as caught:
        Server("shop").add_ui(URI, page, **options)
    return str(caught.value)


def html(body: str, head: str = "<script data-accord></script>") -> str:
    return f"<!doctype html>\n{head}\n{body}"


async def names(server: Server, revision: str, *, shows: bool) -> list[str]:
    async with Client(server, revisions=[revision], extensions=[APPS] if shows else []) as client:
        return [tool.name for tool in await client.list_tools()]


# --- metadata ------------------------------------------------------------------------------------------------------


async def test_the_page_carries_policy_permissions_domain_and_border_and_the_tool_its_uri() -> None:
    csp = CSP(connect=["https://api.example.com", "wss://live.example.com:8443"], resource=["https://*.example.com"])
    server = shop(csp=csp, permissions=["camera", "clipboard_write"], domain="shop.example.com", border=False)
    async with Client(server, extensions=[APPS]) as client:
        (listed,) = await client.list_resources()
        (contents,) = (await client.read_resource(URI)).contents
        tools = {tool.name: tool.meta for tool in await client.list_tools()}
    ui = {
        "csp": {
            "connectDomains": ["https://api.example.com", "wss://live.example.com:8443"],
            "resourceDomains": ["https://*.example.com"],
        },
        "permissions": {"camera": {}, "clipboardWrite": {}},
        "domain": "shop.example.com",
        "prefersBorder": False,
    }
    assert (listed.mime_type, listed.meta) == (APP_MIME_TYPE, {"ui": ui})
    assert (contents.uri, contents.mime_type, contents.meta) == (URI, APP_MIME_TYPE, {"ui": ui})
    assert tools == {
        "sales": {"ui": {"resourceUri": URI}},
        "refresh": {"ui": {"resourceUri": URI, "visibility": ["app"]}},
    }
    assert listed.size == len((contents.text or "").encode())


async def test_a_page_that_requests_nothing_has_no_metadata() -> None:
    async with Client(shop()) as client:
        (contents,) = (await client.read_resource(URI)).contents
    assert contents.meta is None


async def test_a_page_of_a_file_is_served_with_the_bridge_inside(tmp_path: Path) -> None:
    (tmp_path / "sales.html").write_text(PAGE, "utf-8")
    server = Server("shop")
    page = server.add_ui(URI, tmp_path / "sales.html")
    assert page.document.startswith("<!doctype html>\n<title>Sales</title>\n<script>var accord")
    assert page.document.endswith("</script>\n<p>Sales</p>\n")
    assert "data-accord" not in page.document


def test_the_bridge_is_at_most_5_kb() -> None:
    page = Server("shop").add_ui(URI, PAGE)
    assert len(page.document.encode()) - len(PAGE.encode()) <= 5_000


def test_a_comment_or_a_string_is_not_the_place_of_the_bridge() -> None:
    text = html("<!-- <script data-accord></script> --><script>const a = '<script data-accord>'</script>")
    page = Server("shop").add_ui(URI, text)
    assert page.document.count("<script data-accord>") == 2
    assert page.document.count("ui/initialize") == 1


async def test_a_mounted_server_keeps_pages_and_tools_together() -> None:
    outer = Server("mall")
    outer.mount(shop(), "shop")
    async with Client(outer, extensions=[APPS]) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        page = await client.read_ui(tools["shop_sales"])
        (listed,) = await client.list_resources()
    assert page.uri == listed.uri == "ui://shop/shop/sales"
    assert "ui/initialize" in page.html


async def test_further_metadata_of_a_tool_stays() -> None:
    server = Server("shop")
    page = server.add_ui(URI, PAGE)
    server.tool(name="sales", ui=page, meta={"com.example/a": 1})(lambda: "1")
    async with Client(server) as client:
        (tool,) = await client.list_tools()
    assert tool.meta == {"com.example/a": 1, "ui": {"resourceUri": URI}}


# --- negotiation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", WITH_META)
async def test_a_session_lists_tools_of_pages_only_if_its_client_shows_pages(revision: str) -> None:
    server = shop()
    assert await names(server, revision, shows=True) == ["sales", "refresh"]
    assert await names(server, revision, shows=False) == ["sales"]
    assert await names(server, revision, shows=True) == ["sales", "refresh"]


@pytest.mark.parametrize("revision", sorted({*HANDSHAKE} - {*WITH_META}))
async def test_where_tools_have_no_metadata_no_session_lists_tools_of_pages(revision: str) -> None:
    assert await names(shop(), revision, shows=True) == ["sales"]


async def test_in_2026_07_28_the_list_is_the_same_for_every_client() -> None:
    server = shop()
    found = []
    for capabilities in ({}, {"extensions": {APPS.name: {}}}):
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}
        async with raw_peer(server, "2026-07-28") as peer:
            found.append((await peer.ask("tools/list", {"_meta": meta}))["result"]["tools"])
    assert found[0] == found[1]
    assert [tool["name"] for tool in found[0]] == ["sales", "refresh"]


async def test_visibility_is_not_access_control() -> None:
    async with Client(shop(), revisions=["2025-11-25"]) as client:
        assert (await client.call_tool("refresh", {"year": 1})).data == {"total": 2}


async def test_the_server_declares_the_extension() -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        async with Client(shop(), revisions=[revision]) as client:
            assert (client.server_capabilities.extensions or {}).keys() == {APPS.name}
    async with Client(Server("plain")) as client:
        assert client.server_capabilities.extensions is None


async def test_pages_of_the_list_stay_whole_where_a_tool_is_hidden() -> None:
    server = Server("shop", limits=shop().limits)
    for number in range(250):
        server.tool(name=f"tool{number}", visibility=["app"] if number % 5 == 0 else None)(lambda: "x")
    assert len(await names(server, "2025-11-25", shows=False)) == 200
    assert len(await names(server, "2025-11-25", shows=True)) == 250


async def test_a_changed_tool_of_pages_stays_hidden() -> None:
    server = shop()
    server.change_tool("refresh", ToolChange(name="reload"))
    assert await names(server, "2025-11-25", shows=False) == ["sales"]


APP_ONLY = Tool(name="poll", input_schema={"type": "object"}, meta={"ui": {"visibility": ["app"]}})


class AppTools(Provider):
    async def tools(self) -> list[Provided]:
        return [Provided(APP_ONLY, lambda arguments: "polled")]


def declares_raw(server: Server) -> None:
    server.tool(name="poll", meta=APP_ONLY.meta)(lambda: "polled")


def declares_with_a_schema(server: Server) -> None:
    server.add_tool(APP_ONLY, lambda arguments: "polled")


def provides(server: Server) -> None:
    server.add_provider(AppTools())


def mounts_a_provider(server: Server) -> None:
    inner = Server("inner")
    inner.add_provider(AppTools())
    server.mount(inner)


def changes(server: Server) -> None:
    server.tool(name="poll")(lambda: "polled")
    server.change_tool("poll", ToolChange(meta=APP_ONLY.meta))


DECLARATIONS = [declares_raw, declares_with_a_schema, provides, mounts_a_provider, changes]


@pytest.mark.parametrize("declare", DECLARATIONS)
async def test_a_tool_of_pages_is_hidden_however_it_was_declared(declare: Any) -> None:
    server = shop()
    declare(server)
    for revision in WITH_META:
        assert await names(server, revision, shows=False) == ["sales"]
        assert {*await names(server, revision, shows=True)} == {"sales", "refresh", "poll"}
    assert {*await names(server, "2026-07-28", shows=False)} == {"sales", "refresh", "poll"}
    async with Client(server, revisions=["2025-11-25"]) as client:
        assert (await client.call_tool("poll")).text == "polled"


@pytest.mark.parametrize("declare", DECLARATIONS)
async def test_a_search_finds_no_tool_of_pages_however_it_was_declared(declare: Any) -> None:
    server = shop()
    declare(server)
    server.search_tools(1)
    async with Client(server, extensions=[APPS]) as client:
        listed = {tool.name for tool in await client.list_tools()}
        assert listed == {"search_tools", "call_tool", "refresh", "poll"}
        found = (await client.call_tool("search_tools", {"query": ""})).data
    assert [tool["name"] for tool in found["tools"]] == ["sales"]


async def test_a_tool_of_pages_that_middleware_makes_of_another_is_hidden() -> None:
    server = shop()
    server.tool(name="poll")(lambda: "polled")

    @server.middleware
    async def for_pages(request: Request, call_next: CallNext) -> Any:
        found = await call_next(request)
        if request.method != "tools/list":
            return found
        return [msgspec.structs.replace(each, meta=APP_ONLY.meta) if each.name == "poll" else each for each in found]

    assert await names(server, "2025-11-25", shows=False) == ["sales"]
    assert {*await names(server, "2025-11-25", shows=True)} == {"sales", "refresh", "poll"}


async def test_a_change_shows_a_tool_of_pages_to_models() -> None:
    server = shop()
    server.change_tool("refresh", ToolChange(meta={"ui": {"visibility": ["model", "app"]}}))
    assert {*await names(server, "2025-11-25", shows=False)} == {"sales", "refresh"}


async def test_a_search_does_not_find_tools_of_pages_which_stay_listed() -> None:
    server = shop()
    server.search_tools(1)
    async with Client(server, extensions=[APPS]) as client:
        assert {tool.name for tool in await client.list_tools()} == {"search_tools", "call_tool", "refresh"}
        found = (await client.call_tool("search_tools", {"query": ""})).data
    assert [tool["name"] for tool in found["tools"]] == ["sales"]


async def test_every_tool_returns_text_as_well() -> None:
    server = Server("shop")
    page = server.add_ui(URI, PAGE)

    @server.tool(ui=page)
    def raw() -> CallToolResult:
        return CallToolResult(content=[], structured_content={"total": 1})

    @server.tool(ui=page)
    def typed() -> Sales:
        return Sales(1)

    async with Client(server) as client:
        assert (await client.call_tool("raw")).text == '{"total":1}'
        assert (await client.call_tool("typed")).text == '{"total":1}'


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ('<script src="https://cdn.example/d3.js"></script>', "CSP(resource=['https://cdn.example'])"),
        ("<script type=module>import {a} from 'https://esm.example/a'</script>", "CSP(resource=['https://esm.example'"),
        ('<script type=importmap>{"imports": {"a": "https://e.example/a"}}</script>', "CSP(resource=['https://e.exam"),
        ("<script>import('https://esm.example/a')</script>", "CSP(resource=['https://esm.example'])"),
        ('<link rel="stylesheet" href="//cdn.example/a.css">', "CSP(resource=['https://cdn.example'])"),
        ('<img srcset="data:, 1x, https://i.example/a.png 2x">', "CSP(resource=['https://i.example'])"),
        ('<p style="background: url(https://i.example/a.png)">', "CSP(resource=['https://i.example'])"),
        ("<style>@import 'https://f.example/a.css'</style>", "CSP(resource=['https://f.example'])"),
        ('<svg><use href="https://i.example/a.svg#b"/></svg>', "CSP(resource=['https://i.example'])"),
        ('<script>fetch("https://api.example/v1")</script>', "CSP(connect=['https://api.example'])"),
        ("<script>new WebSocket('wss://live.example:99/')</script>", "CSP(connect=['wss://live.example:99'])"),
        ('<iframe src="https://v.example/1"></iframe>', "CSP(frame=['https://v.example'])"),
        ('<base href="https://b.example/a/">', "CSP(base_uri=['https://b.example'])"),
        ('<img src="http://i.example/a.png">', "write https:// in place of http://"),
        ('<img src="https://localhost:8000/a.png">', "do not reach the user's machine"),
        ('<img src="http://127.0.0.1/a.png">', "do not reach the user's machine"),
        ("<script src=app.js></script>", "put it into the page"),
        ('<script src="data:text/javascript,1"></script>', "put it into the page"),
        ('<object data="a.swf"></object>', "blocked by all hosts"),
        ('<img src="https://[x/">', "invalid"),
    ],
)
def test_a_load_that_hosts_block_is_an_error_with_element_line_and_option(body: str, part: str) -> None:
    message = refused(html(body))
    assert message.startswith(f"{URI}, line 3: <"), message
    assert part in message


@pytest.mark.parametrize(
    ("body", "csp"),
    [
        ('<img src="https://a.i.example/a.png">', CSP(resource=["https://*.i.example"])),
        ('<img src="https://i.example:443/a.png">', CSP(resource=["https://i.example"])),
        ('<IMG SRC="HTTPS://I.EXAMPLE/a.png">', CSP(resource=["https://i.example"])),
        ('<base href="https://b.example/a/"><img src="c.png">', CSP(base_uri=["https://b.example"], resource=["https://b.example"])),
        ('<img src="data:image/png;base64,AA=="><a href="https://x.example">x</a>', CSP()),
        ('<script type="application/json">{"a": "fetch(\'https://x.example\')"}</script>', CSP()),
        ("<p>fetch('https://x.example')</p><!-- <img src=https://x.example> -->", CSP()),
        ('<svg><use href="#a"/></svg><link rel="author" href="https://x.example">', CSP()),
    ],
)  # fmt: skip
def test_a_load_inside_the_policy_is_no_error(body: str, csp: CSP) -> None:
    Server("shop").add_ui(URI, html(body), csp=csp)


@pytest.mark.parametrize(
    ("body", "csp"),
    [
        ('<img src="https://i.example/a.png">', CSP(resource=["https://*.i.example"])),
        ('<img src="https://evili.example/a.png">', CSP(resource=["https://i.example"])),
        ('<img src="https://i.example:8443/a.png">', CSP(resource=["https://i.example"])),
        ('<script>fetch("https://i.example")</script>', CSP(resource=["https://i.example"])),
        ("<script>new WebSocket('wss://i.example')</script>", CSP(connect=["https://i.example"])),
    ],
)
def test_a_policy_allows_no_more_than_it_says(body: str, csp: CSP) -> None:
    assert "which hosts block" in refused(html(body), csp=csp)


SOURCES = (
    "*",
    "https:",
    "'unsafe-eval'",
    "https://a.example; script-src *",
    "https://a.example https://b.example",
    "https://a.example\n",
    "https://a.example,b",
    "https://a.example/path",
    "https://user@a.example",
    "https://*.example",
    "https://a.*.example.com",
    "https://a.example:0",
    "https://a.example:65536",
    "https://a.example:*",
    "https://ä.example",
    "https://2130706433",
    "https://0x7f.1",
    "http://a.example",
    "ws://a.example",
    "https://localhost",
    "https://a.localhost:3000",
    "http://127.0.0.1:8000",
    "https://[::1]",
    "https://0.0.0.0",
    "data:",
    "",
)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("option", ["connect", "resource", "frame", "base_uri"])
def test_a_source_that_is_not_a_public_https_origin_is_an_error(option: str, source: str) -> None:
    assert f"CSP({option}=[{source!r}])" in refused(PAGE, csp=CSP(**{option: [source]}))


@pytest.mark.parametrize(
    ("page", "options", "part"),
    [
        ("sales.html", {}, "for a file write Path('sales.html')"),
        ("<title>x</title><script data-accord></script>", {}, "<!doctype html>"),
        ("<!doctype html><p>Sales", {}, "add <script data-accord></script> to its <head>"),
        (html("<script data-accord></script>"), {}, "there 2 times"),
        (html("x" * MAX_PAGE_BYTES), {}, "more than 1,048,576"),
        (PAGE, {"permissions": ["bluetooth"]}, "not 'bluetooth'"),
        (PAGE, {"permissions": "camera"}, "not 'camera'"),
        (PAGE, {"domain": "a.example; x"}, "not a domain"),
        (PAGE, {"csp": {"connect": []}}, "is no CSP"),
        (PAGE, {"csp": CSP(connect="https://a.example")}, "connect=['https://a.example']"),
    ],
)
def test_a_declaration_that_hosts_would_refuse_is_an_error(page: str, options: dict[str, Any], part: str) -> None:
    assert part in refused(page, **options)


def test_pages_with_a_handshake_of_their_own_need_no_bridge() -> None:
    server = Server("shop")
    server.add_ui("ui://a", html("<script>send('ui/initialize')</script>", head=""))
    text = html("<script type=module src='https://esm.example/app.js'></script>", head="")
    server.add_ui("ui://b", text, csp=CSP(resource=["https://esm.example"]))


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "latin.html").write_bytes(b"<!doctype html>\xe4")
    assert "cannot be read: No such file" in refused(tmp_path / "none.html")
    assert "is not UTF-8" in refused(tmp_path / "latin.html")


@pytest.mark.parametrize("uri", ["ui://", "https://a.example", "ui://a/{b}", "UI"])
def test_a_uri_that_no_page_can_have_is_an_error(uri: str) -> None:
    with pytest.raises(DeclarationError, match="begins with ui://"):
        Server("shop").add_ui(uri, PAGE)


def test_many_errors_are_listed_in_one_and_counted() -> None:
    message = refused(html("\n".join(f"<img src='https://i{number}.example'>" for number in range(12))))
    assert message.count("\n") == 10
    assert message.endswith("and 2 more")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"ui": "ui://shop/sales"}, "is no page"),
        ({"visibility": "app"}, "is a list of"),
        ({"visibility": []}, "is a list of"),
        ({"visibility": ["user"]}, "is a list of"),
        ({"visibility": ["app"], "meta": {"ui": {}}}, "leave it out"),
    ],
)
def test_wrong_options_of_a_tool_are_errors(options: dict[str, Any], part: str) -> None:
    with pytest.raises(DeclarationError, match=part):
        Server("shop").tool(name="a", **options)(lambda: "1")


def test_a_page_of_another_server_is_an_error() -> None:
    page: AppPage = Server("other").add_ui(URI, PAGE)
    with pytest.raises(DeclarationError, match="page of another server"):
        Server("shop").tool(name="a", ui=page)(lambda: "1")


@pytest.mark.parametrize("option", ["ui_", "visibilty"])
def test_a_misspelled_option_is_corrected(option: str) -> None:
    options: Any = {option: None}
    with pytest.raises(DeclarationError, match=r"did you mean (ui|visibility)="):
        Server("shop").tool(name="a", **options)(lambda: "1")


# --- cost ----------------------------------------------------------------------------------------------------------


def loaded(program: str) -> Sequence[str]:
    code = f"import sys\n{program}\nprint(*(name for name in sys.modules if '.apps' in name))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_a_server_without_pages_loads_nothing_for_them() -> None:
    program = "from accord import Server\ns = Server('a')\n@s.tool\ndef f(x: int) -> int: return x\ns.registry.view"
    assert loaded(program) == []
    assert "accord.messages.apps" in loaded(
        "from accord import Server\nServer('a').add_ui('ui://a', '''" + PAGE + "''')"
    )
