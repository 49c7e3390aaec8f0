"""The screen Raw requests: text is checked, sent as it is, and its response shown."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.inspector.browser.conftest import ProblemsOfTest
from tests.inspector.browser.test_questions_screen import SERVER, connect


async def open_screen(page: Page) -> None:
    await connect(page)
    await page.goto(f"#/raw/{SERVER}")
    await expect(page.get_by_label("Text, sent as it is")).to_be_visible()


async def test_a_message_of_the_open_session_and_its_response_are_rows(page: Page) -> None:
    await open_screen(page)
    await page.get_by_label("Text, sent as it is").fill('{"jsonrpc": "2.0", "id": "raw-7", "method": "ping"}')
    await page.keyboard.press("Control+Enter")
    rows = page.get_by_role("region", name="What was sent and received")
    await expect(rows).to_contain_text('{"jsonrpc": "2.0", "id": "raw-7", "method": "ping"}')
    await expect(rows).to_contain_text('"id":"raw-7","result":{}')
    await rows.get_by_role("link").first.click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Timeline")


async def test_a_message_that_does_not_match_is_sent_only_anyway(page: Page) -> None:
    await open_screen(page)
    await page.get_by_label("Handshake").select_option("2025-11-25")
    await page.get_by_role("button", name="Open a connection of its own").click()
    await expect(page.get_by_role("radio", name="connection")).to_be_checked()
    await page.get_by_label("Text, sent as it is").fill('{"jsonrpc": "2.0", "id": 1.0, "method": "tools/call"}')
    await page.get_by_role("button", name="Send", exact=True).click()
    problems = page.get_by_role("alert")
    await expect(problems).to_contain_text("It does not match 2025-11-25")
    await problems.get_by_role("button", name="Send anyway").click()
    rows = page.get_by_role("region", name="What was sent and received")
    await expect(rows).to_contain_text('"id": 1.0')
    await expect(rows).to_contain_text("-32600")


async def test_an_id_of_the_client_is_an_error_with_a_cure(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect("status of 4")
    await open_screen(page)
    await page.get_by_role("radio", name="the open session").check()
    await page.get_by_label("Text, sent as it is").fill('{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text('"raw-1"')
