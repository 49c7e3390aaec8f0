"""A server that sends much: the page answers meanwhile, shows a part, has the rest as a file, and stays small."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.inspector.browser.browser import opened_screen
from tests.inspector.browser.test_accessibility import screens, settle

FILE = Path(__file__).parent / "heavy_server.py"
SERVER = "heavy_server.py"

RESULT = 50_000_000
"""Characters of the large result."""
FLOOD, SIZE = 10_000, 5_000
"""The number of log messages, and the characters of each: with the result, 100 MB."""
MOST_GROWTH = 50 << 20
"""Bytes by which the page may grow: the figure of the issue."""


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    return (f"{sys.executable} {FILE}",)


async def used_bytes(page: Page) -> int:
    """Return the memory of the page's scripts and of what they hold, without garbage."""
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    usage = await session.send("Runtime.getHeapUsage")
    await session.detach()
    return int(usage["usedSize"] + usage.get("embedderHeapUsedSize", 0) + usage.get("backingStorageSize", 0))


async def call(page: Page, tool: str, **arguments: int) -> None:
    """Fill in the form of a tool, and call it."""
    await page.goto(f"#/tools/{SERVER}/{tool}")
    await expect(page.get_by_role("heading", name=tool, exact=True, level=2)).to_be_visible()
    for name, value in arguments.items():
        await page.get_by_label(name, exact=True).fill(str(value))
    await page.get_by_role("button", name="Call", exact=True).click()


async def visit_all(page: Page) -> None:
    """Open all screens, one after the other, and wait until each has what it requested."""
    for screen in await screens(page):
        await opened_screen(page, screen)


async def draw_all(page: Page) -> None:
    """Open all screens, and wait until each is drawn: while the flood goes on, the server answers nothing else."""
    for screen in await screens(page):
        await page.goto(screen)
        await settle(page)


async def cancel_flood(page: Page) -> int:
    """Cancel the flood, and return the number of messages that the server sent."""
    await page.goto(f"#/tools/{SERVER}/flood")
    await page.locator("section.call").get_by_role("button", name="Cancel").click()
    await expect(page.locator(".call .state")).to_have_text("cancelled", timeout=300_000)
    await page.goto(f"#/notifications/{SERVER}")
    last = page.get_by_role("region", name="Log messages, the latest first").get_by_text("were sent")
    await expect(last).to_be_visible(timeout=300_000)
    return int((await last.inner_text()).strip('"').split()[0]) + 1


@pytest.mark.timeout(600)
async def test_a_hundred_megabytes_leave_the_page_small_and_complete(page: Page, tmp_path: Path) -> None:
    await page.wait_for_function("() => location.hash")
    await visit_all(page)  # their modules are loaded
    before = await used_bytes(page)

    await call(page, "large", size=RESULT)
    await expect(page.locator(".call .state")).to_have_text("done", timeout=300_000)
    await expect(page.get_by_text(f"the first 100,000 of {RESULT:,} characters")).to_be_visible()
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Save the result").click()
    file = tmp_path / "result.json"
    await (await downloading.value).save_as(file)
    (block,) = json.loads(file.read_bytes())["content"]
    assert len(block["text"]) == RESULT
    assert block["text"].endswith("the end")

    await call(page, "flood", count=FLOOD, size=SIZE)
    # It is sent when what the traffic file still waits for, the large result, is written.
    await expect(page.locator("section.call")).to_contain_text("lorem", timeout=300_000)
    await draw_all(page)
    sent = await cancel_flood(page)
    await expect(page.get_by_role("heading", name=f"All notifications: {sent}", exact=True)).to_be_visible()
    await expect(page.get_by_text(f"info: {sent}", exact=True)).to_be_visible()
    await page.goto("#/timeline")
    await page.get_by_role("searchbox", name="Filter").fill("method:notifications/message")
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid).to_have_attribute("aria-rowcount", str(sent + 1), timeout=300_000)
    await page.get_by_role("searchbox", name="Filter").fill("")
    await visit_all(page)
    after = await used_bytes(page)
    assert after - before < MOST_GROWTH
