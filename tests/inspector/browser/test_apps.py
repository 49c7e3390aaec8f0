"""Apps: they get input and result, reach only their own server, and change nothing without the user."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.inspector.browser.conftest import ProblemsOfTest

BLOCKED = r"Content Security Policy|Unsafe attempt|Failed to navigate|sandboxed|another host: .*evil|Failed to load"


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    return ("tests/inspector/browser/app_server.py",)


async def test_an_app_gets_its_data_and_nothing_else(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect(BLOCKED)
    await page.goto("#/apps/app_server.py")
    await page.get_by_role("textbox").first.fill('{"zone": "Oslo"}')
    await page.get_by_role("button", name="Call the tool and open its app").click()
    output = page.frame_locator("iframe").locator("output")
    await expect(output).to_contain_text("origin null")
    for text in (
        "tool clock",
        'input {"zone":"Oslo"}',
        "result noon in Oslo",
        "now noon",
        "model_only apps cannot call 'model_only'",
        "storage refused",
        "parent refused",
        "top refused",
        "127.0.0.1 refused",
        "localhost refused",
    ):
        await expect(output).to_contain_text(text)
    assert await page.locator("iframe").get_attribute("height") == "300"
    await expect(page.get_by_text("Ignored, because they are not origins")).to_contain_text("'unsafe-eval'")
    await page.get_by_role("button", name="Show what it blocked").click()
    await expect(page.get_by_text("connect-src: http://127.0.0.1")).to_be_visible()


@pytest.mark.parametrize(("button", "outcome"), [("Decline", "the user declined"), ("Approve this call", "to 1.5")])
async def test_the_user_approves_a_call_that_may_change_something(
    page: Page, problems: ProblemsOfTest, button: str, outcome: str
) -> None:
    problems.expect(BLOCKED)
    await page.goto("#/apps/app_server.py")
    await page.get_by_role("button", name="Call the tool and open its app").click()
    frame = page.frame_locator("iframe")
    await expect(frame.locator("output")).to_contain_text("origin null")
    await frame.get_by_role("button", name="Change").click()
    dialog = page.get_by_role("alertdialog")
    await expect(dialog).to_contain_text("the app wants to call change")
    await expect(dialog).to_contain_text('{"to":1.5}')
    await dialog.get_by_role("button", name=button).click()
    await expect(frame.locator("output")).to_contain_text(f"change {outcome}" if button == "Decline" else outcome)
