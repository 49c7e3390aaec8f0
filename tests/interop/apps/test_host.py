"""accord's pages in a host by the official SDK, pages with the official SDK on accord's server, and a published one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest
from playwright.async_api import expect

from accord import APPS, AppDocument, Chart, Client, Form, Server, Table, ToolError
from accord.types import CallToolResult, TextContent

from tests.inspector.browser.test_accessibility import MOVING, RUN_AXE, TOO_WIDE, axe
from tests.interop.apps.conftest import OpenApp, bundle
from tests.interop.peers import vanilla_app_server

HOSTILE = "<img src=x onerror=\"document.title='hacked'\"><script>document.title = 'hacked'</script>"

PAGE = """<!doctype html><html><head><title>Sales</title><script data-accord></script>
<style>p { height: 200px; margin: 0 } body { margin: 0 }</style></head>
<body><p>Sales</p><output></output><button>go</button><script>
const output = document.querySelector("output");
const show = (text) => output.append(`${text}; `);
accord.on("input", (input) => show(`input ${input.year}`));
accord.on("result", (result) => show(`result ${accord.data(result).total}`));
accord.on("context", (context) => show(`theme ${context.theme}`));
accord.on("cancelled", ({ reason }) => show(`cancelled ${reason}`));
accord.on("teardown", () => show("teardown"));
accord.ready.then(() => show(`ready ${accord.host.hostInfo.name}`));
document.querySelector("button").onclick = async () => {
  show(`call ${accord.data(await accord.callTool("refresh", { year: 3 })).total}`);
  await accord.callTool("broken").catch((error) => show(`failed ${error.message}`));
  await accord.openLink("https://example.com/");
  await accord.sendMessage("hello");
  await accord.request("ui/none").catch((error) => show(`error ${error.code}`));
  document.querySelector("p").style.height = "50px";
};
</script></body></html>"""


@dataclass
class Sales:
    month: str
    total: int
    costs: float


@dataclass
class Order:
    """An order."""

    name: Annotated[str, "Who orders"]
    size: Literal["S", "M"]
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    express: bool = False


def shop(page: Any, rows: list[Sales] | None = None) -> Server:
    server = Server("shop")
    ui = server.add_ui("ui://shop/page", page)

    @server.tool(ui=ui)
    def sales(year: int) -> list[Sales]:
        return rows or [Sales("Jan", 100 + year, -20.5), Sales("Feb", 80, 40)]

    @server.tool(ui=ui, visibility=["app"])
    def refresh(year: int) -> dict[str, int]:
        return {"total": year * 2}

    @server.tool(ui=ui, visibility=["app"])
    def again(year: int) -> list[Sales]:
        return [Sales("Mar", 300 + year, 1)]

    @server.tool(visibility=["app"])
    def broken() -> str:
        raise ToolError("it broke")

    @server.tool(visibility=["app"])
    def save(name: str, size: str, count: int, express: bool) -> str:
        return f"saved {name} {size} {count} {express}"

    return server


async def page_of(client: Client, tool: str = "sales") -> AppDocument:
    return await client.read_ui(next(each for each in await client.list_tools() if each.name == tool))


async def test_the_bridge_does_the_handshake_and_passes_everything_on(open_app: OpenApp) -> None:
    async with Client(shop(PAGE), extensions=[APPS]) as client:
        result = CallToolResult(content=[TextContent(text='{"total": 9}')])
        app = await open_app(await page_of(client), call=client.call_tool, input={"year": 5}, result=result)
        output = app.frame.locator("output")
        await expect(output).to_contain_text("theme dark; ready host; input 5; result 9;")
        root = app.frame.locator("html")
        assert await root.get_attribute("data-theme") == "dark"
        assert await root.evaluate("(each) => each.style.cssText") == "color-scheme: dark; --font-sans: monospace;"
        await app.wait("() => window.seen.sizes.at(-1) >= 200")
        await app.frame.get_by_role("button").click()
        await expect(output).to_contain_text("call 6; failed it broke; error -32601;")
        await app.wait("() => window.seen.sizes.at(-1) < 200")  # a page that shrinks says so as well
        assert await app.seen("links") == ["https://example.com/"]
        assert await app.seen("messages") == [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
        assert (await app.seen("app"))["name"] == "Sales"
        await app.page.evaluate("() => window.bridge.sendHostContextChange({ theme: 'light' })")
        await expect(output).to_contain_text("theme light;")
        await app.page.evaluate("() => window.bridge.sendToolCancelled({ reason: 'stop' })")
        await expect(output).to_contain_text("cancelled stop;")
        assert await app.page.evaluate("() => window.bridge.teardownResource({})") == {}
        await expect(output).to_contain_text("teardown")
        assert await app.seen("failed") == []


async def test_a_page_ignores_messages_that_are_not_of_its_host(open_app: OpenApp) -> None:
    async with Client(shop(PAGE), extensions=[APPS]) as client:
        app = await open_app(await page_of(client))
        output = app.frame.locator("output")
        await expect(output).to_contain_text("ready host")
        message = {"jsonrpc": "2.0", "method": "ui/notifications/tool-input", "params": {"arguments": {"year": 666}}}
        await output.evaluate("(each, message) => each.ownerDocument.defaultView.postMessage(message, '*')", message)
        await app.page.evaluate("() => window.bridge.sendToolInput({ arguments: { year: 8 } })")
        await expect(output).to_contain_text("input 8")
        assert "666" not in await output.inner_text()


async def test_a_page_with_the_official_sdk_works_unchanged(open_app: OpenApp) -> None:
    script = bundle("sdk_page.mjs").replace("</script", r"<\/script")
    page = f"<!doctype html><title>x</title><output></output><script type=module>{script}</script>"
    async with Client(shop(page), extensions=[APPS]) as client:
        found = await page_of(client)
        assert found.html == page
        result = await client.call_tool("sales", {"year": 1})
        app = await open_app(found, call=client.call_tool, input={"year": 1}, result=plain(result))
        output = app.frame.locator("output")
        for text in ("theme dark", "input 1", "result [", 'call {"total":14}'):
            await expect(output).to_contain_text(text)


async def test_the_page_of_a_published_server_is_read_and_works(open_app: OpenApp) -> None:
    async with Client(vanilla_app_server(), extensions=[APPS]) as client:
        (tool,) = await client.list_tools()
        assert tool.ui is not None
        found = await client.read_ui(tool)
        app = await open_app(found, call=client.call_tool, result=plain(await client.call_tool(tool.name)))
        await app.frame.get_by_role("button", name="Get Server Time").click()
        await app.wait("() => window.seen.answers.length === 1")
        assert (await app.seen("calls"))[0]["name"] == tool.name


def plain(result: Any) -> CallToolResult:
    """A result as the server sent it."""
    return CallToolResult(content=result.content, structured_content=result.structured_content)


@pytest.mark.parametrize("kind", ["bar", "line"])
async def test_a_chart_draws_rows_and_refreshes_them(open_app: OpenApp, kind: Literal["bar", "line"]) -> None:
    titles = {"total": f"Total {HOSTILE}"}
    page = Chart("month", ["total", "costs"], kind=kind, title="Sales", titles=titles, refresh="again")
    async with Client(shop(page), extensions=[APPS]) as client:
        result = plain(await client.call_tool("sales", {"year": 5}))
        app = await open_app(await page_of(client), call=client.call_tool, input={"year": 5}, result=result)
        image = app.frame.get_by_role("img")
        await expect(image).to_have_attribute("aria-label", re.compile(r"2 rows, from -20\.5 to 105\."))
        shapes = app.frame.locator("svg rect, svg circle")
        await expect(shapes).to_have_count(4)
        assert await app.frame.locator("svg title").first.text_content() == f"Jan, Total {HOSTILE}: 105"
        await app.frame.get_by_text("Data as a table").click()
        await expect(app.frame.get_by_role("row")).to_have_count(3)
        await app.frame.get_by_role("button", name="Refresh").click()
        await expect(shapes).to_have_count(2)
        assert await app.seen("calls") == [{"name": "again", "arguments": {"year": 5}}]
        assert await app.page.title() == "host"
        await accessible(app.page)


async def test_a_table_is_sorted_filtered_and_continued(open_app: OpenApp) -> None:
    rows = [Sales(f"m{number:03}", number * 7 % 250, number / 2) for number in range(250)]
    rows[3] = Sales(HOSTILE, 1000, 0)
    async with Client(
        shop(Table(["month", "total"], title="Sales", refresh="again"), rows), extensions=[APPS]
    ) as client:
        result = plain(await client.call_tool("sales", {"year": 5}))
        app = await open_app(await page_of(client), call=client.call_tool, result=result)
        body = app.frame.locator("tbody tr")
        await expect(body).to_have_count(200)
        await app.frame.get_by_role("button", name="Show 50 more of 250").click()
        await expect(body).to_have_count(250)
        total = app.frame.get_by_role("button", name="total")
        await total.click()
        await total.press("Enter")
        await expect(app.frame.get_by_role("columnheader", name="total")).to_have_attribute("aria-sort", "descending")
        await expect(body.first).to_have_text(f"{HOSTILE}1,000")
        await app.frame.get_by_role("searchbox", name="Filter").fill("m24")
        await expect(body).to_have_count(10)
        await expect(app.frame.get_by_role("status")).to_have_text("10 of 250 rows")
        await accessible(app.page)


async def test_a_form_is_filled_in_checked_and_sent(open_app: OpenApp) -> None:
    async with Client(shop(Form(Order, "save", submit="Save")), extensions=[APPS]) as client:
        result = CallToolResult(content=[], structured_content={"name": "Ann", "express": True})
        app = await open_app(await page_of(client), call=client.call_tool, result=result)
        name = app.frame.get_by_label("name (required)")
        await expect(name).to_have_value("Ann")
        await expect(name).to_have_accessible_description("Who orders")
        count = app.frame.get_by_label("count")
        await count.fill("0")
        await app.frame.get_by_role("button", name="Save").click()
        await expect(app.frame.get_by_role("alert")).to_have_text("Some fields need another value.")
        await expect(count).to_have_attribute("aria-invalid", "true")
        await accessible(app.page)
        await count.fill("2")
        await app.frame.get_by_role("radio", name="M").check()
        await count.press("Enter")
        await expect(app.frame.get_by_text("saved Ann M 2 True")).to_be_visible()
        assert await app.seen("calls") == [
            {"name": "save", "arguments": {"name": "Ann", "size": "M", "count": 2, "express": True}}
        ]
        await accessible(app.page)


async def accessible(page: Any) -> None:
    """Fail for what the rules of axe find in the frame, in light and dark."""
    frame = page.frames[1]
    for theme in ("light", "dark"):
        await page.evaluate("(theme) => window.bridge.sendHostContextChange({ theme })", theme)
        await frame.wait_for_function("(theme) => document.documentElement.dataset.theme === theme", arg=theme)
        await frame.evaluate(axe())
        assert [await frame.evaluate(rule) for rule in (RUN_AXE, TOO_WIDE, MOVING)] == [[], [], []]
