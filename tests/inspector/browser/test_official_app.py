"""An app on the official SDK of MCP Apps, from a server on the official SDK: it works in the frame of the inspector."""

from __future__ import annotations

import re
import shlex

import pytest
from playwright.async_api import FrameLocator, Page, expect

from tests.inspector.browser.conftest import ProblemsOfTest
from tests.inspector.browser.test_apps import frame_of
from tests.interop.peers import vanilla_app_server

TIME = re.compile(r"^\d{4}-\d\d-\d\dT")


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    return (shlex.join(vanilla_app_server()),)


async def open_app(page: Page) -> FrameLocator:
    """Open the app, and wait until it has the result of the call."""
    await page.wait_for_function("() => location.hash")
    await page.reload()  # no app of another test is open
    await page.get_by_role("navigation", name="Screens").get_by_role("link", name="Apps").click()
    await page.get_by_role("button", name="Call the tool and open its app").click()
    app = page.frame_locator("iframe")
    await expect(app.locator("#server-time")).to_have_text(TIME)
    return app


async def test_an_app_on_the_official_sdk_calls_its_server(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect("status of 428")  # the call needs the approval of the user
    app = await open_app(page)
    time = app.locator("#server-time")
    first = await time.inner_text()
    await app.get_by_role("button", name="Get Server Time").click()
    await page.get_by_role("button", name="Approve this call").click()
    await expect(time).not_to_have_text(first)
    await expect(time).to_have_text(TIME)


async def test_what_an_app_asks_of_its_host_is_shown_and_opens_nothing(page: Page) -> None:
    app = await open_app(page)
    for button in ("Send Message", "Send Log", "Open Link"):
        await app.get_by_role("button", name=button).click()
    messages = page.get_by_role("list", name="Messages of the app")
    for text in ("This is message text.", "This is log text.", "https://modelcontextprotocol.io/"):
        await expect(messages).to_contain_text(text)
    assert len(page.context.pages) == 1


NOTE = """() => addEventListener("message", ({ data }) => {
  if (data.method === "ui/notifications/host-context-changed") document.title = data.params.theme;
})"""


async def test_an_app_follows_the_theme_and_is_asked_to_end(page: Page) -> None:
    await page.emulate_media(color_scheme="light")
    await open_app(page)
    frame = await frame_of(page)
    await frame.evaluate(NOTE)
    await page.emulate_media(color_scheme="dark")
    await frame.wait_for_function("() => document.title === 'dark'")  # the policy of the app refuses to evaluate a text
    async with page.expect_console_message(lambda message: "App is being torn down" in message.text):
        await page.get_by_role("button", name="Close", exact=True).click()
    await expect(page.locator("iframe")).to_have_count(0)
