"""Accessibility of every screen: the rules of axe, reflow, reduced motion, and the keyboard alone."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.inspector.browser.browser import first_tools, hold_requests, opened_screen
from tests.inspector.browser.conftest import Inspect, OpenPage
from tests.interop.peers import npm_package

MODES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "320 px": {"color_scheme": "light", "viewport": {"width": 320, "height": 640}},
    "200 % zoom": {"color_scheme": "dark", "viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
    "forced colours": {"forced_colors": "active"},
}
"""How a page is shown; motion is reduced in all of them."""

RUN_AXE = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return serious.flatMap(({ id, help, nodes }) => nodes.map(({ html, failureSummary }) =>
        `${id}: ${help}: ${html.slice(0, 200)}: ${failureSummary.slice(0, 300)}`));
}"""

TOO_WIDE = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width + 1) return [];
    const all = [...document.querySelectorAll("body *")];
    const wide = all.filter((each) => each.getBoundingClientRect().right > width + 1);
    return wide.map((each) => `${each.localName}.${each.className}`.slice(0, 100));
}"""

MOVING = """() => {
    const found = [];
    for (const element of document.querySelectorAll("*")) {
        const { animationName, animationDuration, transitionDuration } = getComputedStyle(element);
        const isMoving = animationName !== "none" && parseFloat(animationDuration) > 0.01;
        if (isMoving || parseFloat(transitionDuration) > 0.01) found.push(element.outerHTML.slice(0, 100));
    }
    return found;
}"""

LANDMARKS = """() => ({
    main: document.querySelectorAll("main").length,
    navigation: document.querySelectorAll("nav").length,
    header: document.querySelectorAll("header").length,
    titles: document.querySelectorAll("h1").length,
    unnamed: [...document.querySelectorAll("nav:not([aria-label]):not([aria-labelledby])")].length,
})"""


@cache
def axe() -> str:
    return (npm_package("axe-core") / "axe.min.js").read_text("utf-8")


async def screens(page: Page) -> list[str]:
    """Return the addresses of all screens, for the connected server."""
    await page.wait_for_function("() => location.hash")
    links = page.get_by_role("navigation", name="Screens").get_by_role("link")
    await expect(links.first).to_be_visible()
    return [str(await link.get_attribute("href")) for link in await links.all()]


async def settle(page: Page) -> None:
    """Wait until the page has drawn what it has."""
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def problems_of(page: Page) -> list[str]:
    """Return what is wrong with a page as it is now."""
    found = [*await page.evaluate(RUN_AXE), *(f"too wide: {each}" for each in await page.evaluate(TOO_WIDE))]
    found += [f"moving: {each}" for each in await page.evaluate(MOVING)]
    landmarks = await page.evaluate(LANDMARKS)
    if landmarks != {"main": 1, "navigation": 1, "header": 1, "titles": 1, "unnamed": 0}:
        found.append(f"landmarks: {landmarks}")
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", sorted(MODES.keys() - {"light", "dark"}))  # of these, `test_screens` sees more
async def test_no_screen_has_a_serious_problem(mode: str, inspect: Inspect, open_page: OpenPage) -> None:
    page = await open_page((await inspect("examples/everything.py")).link, **MODES[mode])
    await first_tools(page)
    await page.evaluate(axe())
    found: dict[str, list[str]] = {}
    for screen in await screens(page):
        await opened_screen(page, screen)
        if problems := await problems_of(page):
            found[screen] = problems
        first = page.get_by_role("main").locator("a[href^='#/']")
        if await first.count():
            await first.first.click()
            await settle(page)
            if problems := await problems_of(page):
                found[page.url] = problems
    assert not found, "\n".join(f"{screen}: {each}" for screen, all in found.items() for each in all)


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ({"localName": "button"}, "button-name"),
        ({"localName": "p", "textContent": "pale", "className": "pale"}, "color-contrast"),
        ({"localName": "p", "textContent": "broad", "className": "broad"}, "too wide"),
        ({"localName": "nav"}, "landmarks"),
    ],
)
async def test_a_serious_problem_is_found(
    element: dict[str, str], problem: str, inspect: Inspect, open_page: OpenPage
) -> None:
    page = await open_page((await inspect("examples/everything.py")).link)
    await expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    await page.evaluate(axe())
    await page.evaluate(
        """({ localName, ...rest }) => {
            const element = Object.assign(document.createElement(localName), rest);
            if (rest.className === "pale") Object.assign(element.style, { color: "#777", background: "#888" });
            if (rest.className === "broad") element.style.width = "3000px";
            document.querySelector("main").append(element);
        }""",
        element,
    )
    assert any(problem in each for each in await problems_of(page))


async def test_the_palette_opens_and_closes_by_keyboard(page: Page) -> None:
    await page.goto("#/servers")
    link = page.get_by_role("navigation", name="Screens").get_by_role("link", name="Servers")
    await link.focus()
    await page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Command")
    await expect(box).to_be_focused()
    await page.evaluate(axe())
    assert await page.evaluate(RUN_AXE) == []
    await page.keyboard.press("Escape")
    await expect(box).to_be_hidden()
    await expect(link).to_be_focused()


async def test_every_screen_opens_from_the_palette(page: Page) -> None:
    links = page.get_by_role("navigation", name="Screens").get_by_role("link")
    own_text = "(each) => [...each.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join('')"
    titles = [str(await link.evaluate(own_text)).strip() for link in await links.all()]
    assert len(titles) > 1
    for title in titles:
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("combobox", name="Command")).to_be_focused()
        await page.keyboard.type(f"Open {title}")
        options = page.get_by_role("listbox", name="Commands").get_by_role("option")
        await expect(options.get_by_text(f"Open {title}", exact=True)).to_be_visible()
        await expect(options.get_by_text(re.compile(f"^(?!Open {title}$)Open "))).to_have_count(0)  # they are filtered
        for _ in range((await options.all_inner_texts()).index(f"Open {title}")):
            await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_contain_text(title)


async def test_a_screen_that_opens_has_the_focus_and_says_its_name(page: Page) -> None:
    await page.goto("#/servers")
    links = page.get_by_role("navigation", name="Screens").get_by_role("link")
    await links.last.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    title = await page.get_by_role("heading", level=1).inner_text()
    assert title.split(" ")[0] in await page.title()


async def test_everything_that_can_be_clicked_can_be_reached_by_keyboard(page: Page) -> None:
    for screen in await screens(page):
        await opened_screen(page, screen)
        unreachable = await page.evaluate(
            """() => [...document.querySelectorAll("[role=button], [role=link], [role=tab], [role=menuitem]")]
                .filter((each) => each.tabIndex < 0 && !each.closest("[role=tablist], [role=menu], [role=listbox]"))
                .map((each) => each.outerHTML.slice(0, 200))"""
        )
        assert unreachable == [], screen


async def test_a_tool_is_called_by_keyboard_alone(page: Page) -> None:
    """The main path: find a tool, fill in its form, call it, and read the result."""
    await opened_screen(page, "#/tools/everything.py")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    await page.keyboard.type("Tool measure")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="measure", exact=True)).to_be_visible()
    await expect(page.get_by_role("main")).to_be_focused()
    await tab_to(page, page.get_by_label("city").last)
    await page.keyboard.type("Oslo")
    await tab_to(page, page.get_by_role("button", name="Call", exact=True))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("region", name=re.compile("^measure done"))).to_contain_text("clear")


async def test_a_screen_that_is_loaded_late_leaves_the_focus_where_the_user_moved_it(page: Page) -> None:
    await opened_screen(page, "#/servers")
    released = await hold_requests(page, "**/api/traffic/timeline")
    await page.get_by_role("navigation", name="Screens").get_by_role("link", name="Timeline").click()
    box = page.get_by_role("searchbox", name="Filter")
    await box.focus()
    await expect(page.get_by_role("main")).to_have_attribute("aria-busy", "true")
    released.set()
    await expect(page.get_by_role("main")).not_to_have_attribute("aria-busy", "true")
    await expect(box).to_be_focused()
    await page.unroute("**/api/traffic/timeline")


async def test_the_palette_takes_the_key_that_follows_at_once(page: Page) -> None:
    await opened_screen(page, "#/servers")
    focused = await page.evaluate(
        """() => {
            window.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
            return document.activeElement.getAttribute("aria-label");
        }"""
    )
    assert focused == "Command"
    await page.keyboard.press("Escape")


async def tab_to(page: Page, element: Locator) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(80):
        await page.keyboard.press("Tab")
        if await element.evaluate("(each) => each === document.activeElement"):
            return
    raise AssertionError("Tab does not reach the element")


async def test_the_palette_runs_what_was_typed_although_it_is_not_drawn_yet(page: Page) -> None:
    await page.goto("#/servers")
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("combobox", name="Command")
    await expect(palette).to_be_focused()
    await palette.evaluate(
        """(input) => {
            input.value = "Open Timeline";
            input.dispatchEvent(new InputEvent("input"));
            input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
        }"""
    )
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Timeline")


async def test_the_palette_shows_the_selected_command_and_what_arrives_later(page: Page) -> None:
    await page.set_viewport_size({"width": 1000, "height": 400})
    await page.goto("#/servers")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    for _ in range(14):
        await page.keyboard.press("ArrowDown")
    selected = page.locator("#palette-list [aria-selected=true]")
    await expect(selected).to_be_in_viewport(ratio=0.9)
    tool = page.get_by_role("option", name="Tool measure")
    await expect(tool).to_have_count(0)
    await page.evaluate("location.hash = '#/tools/everything.py'")
    await expect(tool).to_have_count(1)
    await page.keyboard.press("Escape")
