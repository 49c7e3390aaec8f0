"""Text of a server is text: on every screen, a server whose every field is hostile runs, loads and opens nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.async_api import Dialog, Page, expect

from tests.inspector.browser.browser import opened_screen
from tests.inspector.browser.conftest import ProblemsOfTest

SERVER = Path(__file__).parent / "hostile_server.py"

NEVER_CLICKED = "Remove|Disconnect|Delete|Log out|Clear|Stop"
"""Buttons that end what the test looks at."""

CLICKS = 25
"""On each screen."""

CLICK_NEXT = """(never) => {
    window.clicked ??= new WeakSet();
    const all = document.querySelectorAll("main button:enabled, main summary, main a");
    const next = [...all].find((each) => !window.clicked.has(each) && each.checkVisibility()
        && !new RegExp(never).test(each.textContent));
    if (next) {
        window.clicked.add(next);
        next.click();
    }
    return next !== undefined;
}"""

FOUND = r"""() => {
    const found = [];
    if (window.ran !== undefined) found.push(`a script ran ${window.ran} times`);
    for (const script of document.scripts) {
        if (!script.src.startsWith(location.origin + "/")) found.push(`a script: ${script.outerHTML}`);
    }
    for (const element of document.querySelectorAll("*")) {
        for (const { name, value } of element.attributes) {
            if (name.startsWith("on")) found.push(`a handler: ${name}=${value}`);
            // What scripts of the page set as `element.style.height` shows as an attribute: numbers of lengths.
            const isStyle = name === "style" && !/^[-\w:;.,% ()]*$/.test(value);
            if (isStyle || /url\(/.test(value) || name === "srcdoc") found.push(`an attribute: ${name}=${value}`);
            if (["href", "src", "action", "data", "xlink:href", "formaction"].includes(name)) {
                const url = new URL(value, document.baseURI);
                const isOwn = [location.origin, `http://localhost:${location.port}`].includes(url.origin);
                const isLink = element.localName === "a" && ["http:", "https:"].includes(url.protocol);
                if (!isOwn && !isLink && !["blob:"].includes(url.protocol)) found.push(`a URL: ${name}=${value}`);
            }
        }
    }
    for (const name of ["iframe", "object", "embed", "base", "style", "plaintext", "marquee"]) {
        for (const element of document.querySelectorAll(name)) {
            if (name !== "iframe" || !element.sandbox.length || element.sandbox.contains("allow-same-origin")) {
                found.push(`an element: ${element.outerHTML.slice(0, 200)}`);
            }
        }
    }
    return found.map((each) => each.slice(0, 300));
}"""


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    return (f"{sys.executable} {SERVER}",)


async def screens(page: Page) -> list[str]:
    """Return the addresses of all screens."""
    links = page.get_by_role("navigation", name="Screens").get_by_role("link")
    await expect(links.first).to_be_visible()
    return [str(await link.get_attribute("href")) for link in await links.all()]


async def settle(page: Page) -> None:
    """Wait until the page has drawn what it has."""
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def click_all(page: Page) -> None:
    """Click what can be clicked on a screen, one after the other."""
    for _ in range(CLICKS):
        if not await page.evaluate(CLICK_NEXT, NEVER_CLICKED):
            return
        await settle(page)


@pytest.mark.timeout(600)
async def test_no_text_of_a_server_runs_or_loads_anything(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect(r"status of 4\d\d")  # commands that this server fails
    dialogs: list[str] = []

    async def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        await dialog.dismiss()

    page.on("dialog", dismiss)
    await expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    await page.wait_for_function("() => location.hash")
    main = page.get_by_role("main")
    await expect(main).to_contain_text("<script>")
    for screen in await screens(page):
        await opened_screen(page, screen)
        await click_all(page)
        assert await page.evaluate(FOUND) == [], screen
    assert dialogs == []
    assert len(page.context.pages) == 1, "no window was opened"


async def test_hidden_characters_do_not_hide(page: Page) -> None:
    await page.goto("#/servers")
    server = page.get_by_role("main").get_by_role("region").first
    await expect(server.get_by_text("connected", exact=True)).to_be_visible()
    text = await server.inner_text()
    assert "\u202e" not in text
    assert "\x1b" not in text
