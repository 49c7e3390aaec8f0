"""Pages of another origin and of another port attack the inspector: they read nothing, and nothing happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.inspector.browser.process import InspectProcess

ATTACKER = b"<!doctype html><title>Attacker</title><link rel=icon href='data:,'><p>A page of somebody else.</p>"

REFUSED = (
    "ERR_|status of 4|CORS|blocked by|Content Security Policy|Framing|request to another host|Cross-Origin|Refused"
)
"""What the browser says about the attacks."""

FETCHES = """async ({ base, token }) => {
    const found = [];
    const body = JSON.stringify({ server: "sentinel" });
    const types = ["application/json", "text/plain", "application/x-www-form-urlencoded"];
    for (const mode of ["cors", "no-cors"]) {
        for (const type of types) {
            for (const credentials of ["omit", "include"]) {
                for (const path of ["/api/servers/connect", "/api/servers/list", "/api/events", "/api/servers/add"]) {
                    const headers = mode === "cors" ? { "content-type": type, "accord-inspector-token": token }
                        : { "content-type": type };
                    try {
                        const response = await fetch(base + path, { method: "POST", mode, credentials, headers, body });
                        found.push([mode, path, response.type, response.status, await response.text()]);
                    } catch {}
                }
            }
        }
        for (const path of ["/", "/main.js", "/connection.js"]) {
            try {
                const response = await fetch(base + path, { mode });
                found.push([mode, path, response.type, response.status, await response.text()]);
            } catch {}
        }
    }
    return found;
}"""

ELEMENTS = """async ({ base }) => {
    const loaded = [];
    const add = (name, attributes) => new Promise((resolve) => {
        const element = document.createElement(name);
        element.onload = () => { loaded.push([name, attributes]); resolve(); };
        element.onerror = () => resolve();
        Object.assign(element, attributes);
        document.body.append(element);
    });
    await add("script", { src: base + "/main.js" });
    await add("script", { src: base + "/main.js", type: "module" });
    await add("script", { src: base + "/api/servers/list" });
    await add("link", { rel: "stylesheet", href: base + "/style.css" });
    await add("img", { src: base + "/icon.svg" });
    await add("object", { data: base + "/" });
    return loaded;
}"""

FRAME = """async (base) => {
    const frame = document.createElement("iframe");
    frame.src = base + "/";
    const loaded = new Promise((resolve) => { frame.onload = resolve; });
    document.body.append(frame);
    await loaded;
    try { return frame.contentDocument?.body?.innerText ?? "unreadable"; } catch { return "unreadable"; }
}"""

FORM = """({ base, enctype, target }) => {
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", enctype, action: base + "/api/servers/connect", target });
    const field = document.createElement("input");
    Object.assign(field, { name: '{"server":"sentinel","x":"', value: '"}' });
    form.append(field);
    document.body.append(form);
    form.submit();
}"""


@asynccontextmanager
async def attacker(host: str) -> AsyncIterator[str]:
    """Serve the page of an attacker, and yield its address."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n" + ATTACKER)
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a configuration whose server writes the file `started`."""
    made = tmp_path_factory.mktemp("sentinel")
    server = {"command": "sh", "args": ["-c", f"touch {made / 'started'}"]}
    (made / "servers.json").write_text(json.dumps({"mcpServers": {"sentinel": server}}), "utf-8")
    return made


@pytest.fixture(params=["localhost", "127.0.0.1"])
def host(request: pytest.FixtureRequest) -> str:
    """The host of the attacker's page: another origin, or the same host with another port."""
    return str(request.param)


async def nothing_happened(inspector: InspectProcess, folder: Path, open_page: OpenPage) -> None:
    """Assert that no server was added or started."""
    page = await open_page(inspector.link)
    await page.goto("#/servers")
    server = page.get_by_role("region", name="sentinel")
    await expect(server.get_by_text("idle", exact=True)).to_be_visible()
    assert await page.get_by_role("main").get_by_role("region").count() == 1
    assert not (folder / "started").exists()


async def test_a_fetch_of_another_page_is_refused(
    host: str, inspect: Inspect, open_page: OpenPage, folder: Path, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("--config", str(folder / "servers.json"))
    async with attacker(host) as url:
        page = await open_page(url)
        problems.expect(REFUSED)
        # Not even with the token: no page of another origin may use it.
        found = await page.evaluate(FETCHES, {"base": inspector.base, "token": inspector.token})
        assert [each for each in found if each[2] != "opaque" or each[4]] == []
    await nothing_happened(inspector, folder, open_page)


async def test_elements_of_another_page_load_nothing(
    host: str, inspect: Inspect, open_page: OpenPage, folder: Path, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("--config", str(folder / "servers.json"))
    async with attacker(host) as url:
        page = await open_page(url)
        problems.expect(REFUSED)
        assert await page.evaluate(ELEMENTS, {"base": inspector.base}) == []
        text = await page.evaluate(FRAME, inspector.base)
        assert "Servers" not in text
        frames = [await frame.content() for frame in page.frames if frame != page.main_frame]
        assert [content for content in frames if "accord inspector" in content] == []
    await nothing_happened(inspector, folder, open_page)


@pytest.mark.parametrize("enctype", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_form_of_another_page_starts_nothing(
    enctype: str, inspect: Inspect, open_page: OpenPage, folder: Path, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("--config", str(folder / "servers.json"))
    async with attacker("localhost") as url:
        page = await open_page(url)
        problems.expect(REFUSED)
        async with page.expect_response("**/api/servers/connect") as response:
            await page.evaluate(FORM, {"base": inspector.base, "enctype": enctype, "target": "_self"})
        assert (await response.value).status in (403, 415)
    await nothing_happened(inspector, folder, open_page)


async def test_a_window_that_another_page_opens_is_out_of_its_reach(
    inspect: Inspect, open_page: OpenPage, folder: Path, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("--config", str(folder / "servers.json"))
    async with attacker("localhost") as url:
        page = await open_page(url)
        problems.expect(REFUSED)
        async with page.context.expect_page() as opened:
            await page.evaluate("base => { window.opened = window.open(base + '/#/servers'); }", inspector.base)
        window: Page = await opened.value
        await expect(window.get_by_role("alert")).to_contain_text("the link that accord inspect printed")
        assert await window.evaluate("window.opener") is None
        # The opener policy cuts the connection: the attacker sees a closed window.
        assert await page.evaluate("window.opened.closed") is True
    await nothing_happened(inspector, folder, open_page)
