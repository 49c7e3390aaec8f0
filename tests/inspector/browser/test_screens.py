"""All screens with servers of others: what they show is used, in the first and the last revision that each speaks."""

from __future__ import annotations

import json
import shlex
from typing import Any, NamedTuple

import pytest
from playwright.async_api import Page, expect

from tests.inspector.browser.browser import first_tools
from tests.inspector.browser.test_accessibility import RUN_AXE, axe, problems_of, screens, settle
from tests.inspector.browser.test_questions_screen import send
from tests.interop.peers import npm_server, peer_server


class Served(NamedTuple):
    """The revisions of a server, a tool that returns an image, and a prompt with its arguments."""

    first: str
    last: str
    tool: str
    prompt: str
    arguments: tuple[tuple[str, str], ...] = ()


SERVERS = {
    "everything.py": Served("2024-11-05", "2026-07-28", "test_image_content", "test_simple_prompt"),
    "mcp-server-everything": Served("2024-11-05", "2025-11-25", "get-tiny-image", "simple-prompt"),
    "mcp2_server.py": Served("2024-11-05", "2026-07-28", "picture", "plan", (("city", "Oslo"),)),
}

COUNT_COMMANDS = """() => {
    if (window.openCommands !== undefined) return;
    window.openCommands = 0;
    const original = window.fetch;
    window.fetch = async (...parts) => {
        if (String(parts[0]).endsWith("/events")) return original(...parts);
        window.openCommands += 1;
        try {
            return await original(...parts);
        } finally {
            window.openCommands -= 1;
        }
    };
}"""
"""Counts the commands without a response, but for the one of the event stream."""

DARK_PROBLEMS = RUN_AXE.replace("{ resultTypes", '{ runOnly: ["color-contrast", "link-in-text-block"], resultTypes')
"""The rules that depend on the colour scheme."""


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    return ("examples/everything.py", shlex.join(npm_server("everything")), shlex.join(peer_server("mcp2")))


async def shown(page: Page) -> None:
    """Wait until the page has what it requested, and has drawn it."""
    await page.wait_for_function("() => openCommands === 0")
    await settle(page)
    await page.wait_for_function("() => openCommands === 0")
    await settle(page)


async def is_done(page: Page) -> None:
    await expect(page.locator(".call .state")).to_have_text("done")


async def call_tool(page: Page, name: str) -> None:
    await page.goto(f"#/tools/{name}/{SERVERS[name].tool}")
    await page.get_by_role("button", name="Call", exact=True).click()
    await is_done(page)
    await expect(page.locator("img.content-image")).to_be_visible()


async def read_resource(page: Page, name: str) -> None:
    await page.get_by_role("region", name="Resources").get_by_role("link").first.click()
    await page.get_by_role("button", name="Read the resource").click()
    await is_done(page)


async def get_prompt(page: Page, name: str) -> None:
    await page.goto(f"#/prompts/{name}/{SERVERS[name].prompt}")
    for field, value in SERVERS[name].arguments:
        await page.get_by_label(field, exact=True).fill(value)
    await page.get_by_role("button", name="Get the prompt").click()
    await is_done(page)


async def select_message(page: Page, name: str) -> None:
    rows = page.get_by_role("grid", name="Messages").get_by_role("row")
    await rows.filter(has_text="tools/call").first.click()
    entry = page.get_by_role("complementary", name="Selected message")
    await expect(entry.get_by_role("heading")).to_contain_text("tools/call")
    await page.get_by_role("button", name="Compute").click()
    await expect(page.get_by_role("columnheader", name="p95")).to_be_visible()


async def subscribe(page: Page, name: str) -> None:
    """Subscribe to the tools, if they can change: those of mcp do in 2026-07-28 only."""
    (server,) = [each for each in (await send(page, "servers/list"))["servers"] if each["name"] == name]
    if not json.loads(server["capabilitiesJson"])["tools"]["listChanged"]:
        return
    await page.get_by_label("tools", exact=True).check()
    await page.get_by_role("button", name="Subscribe", exact=True).click()
    await expect(page.get_by_role("region", name="Subscriptions")).to_contain_text("0 events")


async def send_raw(page: Page, name: str) -> None:
    """Send the text that is there at first: it fits the revision."""
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.get_by_role("region", name="What was sent and received")).to_contain_text('"id":"raw-1"')


async def compare(page: Page, name: str) -> None:
    await page.goto(f"#/compare/{name}/messages/live/0/live/1")
    await expect(page.locator(".difference")).to_be_visible()


USES: dict[str, Any] = {
    "tools": call_tool,
    "resources": read_resource,
    "prompts": get_prompt,
    "timeline": select_message,
    "notifications": subscribe,
    "raw": send_raw,
    "compare": compare,
}
"""What is done on a screen. Server requests, checks and logins have tests of their own."""


async def problems_in_both_schemes(page: Page) -> list[str]:
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = await problems_of(page)
    await page.emulate_media(color_scheme="dark")
    return [*found, *(f"dark: {each}" for each in await page.evaluate(DARK_PROBLEMS))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("at", ["first", "last"])
@pytest.mark.parametrize("name", SERVERS)
async def test_all_screens_show_a_server(name: str, at: str, page: Page) -> None:
    """Without an error in the console, a violation of the policy, or a request to another host: see `conftest.py`."""
    revision = getattr(SERVERS[name], at)
    await first_tools(page)
    await page.evaluate(COUNT_COMMANDS)
    await page.evaluate(axe())
    connected = await send(page, "servers/connect", server=name, revision=revision)
    assert connected["revision"] == revision
    await page.goto(f"#/servers/{name}")
    found: dict[str, list[str]] = {}
    for screen in await screens(page):
        await page.goto(screen)
        await shown(page)
        id = screen.split("/")[1]
        if id in USES:
            await USES[id](page, name)
            await shown(page)
        if found_here := await problems_in_both_schemes(page):
            found[screen] = found_here
        assert await page.get_by_role("alert").all_inner_texts() == [], screen
    assert not found, "\n".join(f"{screen}: {each}" for screen, all in found.items() for each in all)
