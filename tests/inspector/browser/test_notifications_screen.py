"""The screen Notifications: log levels, subscriptions, counts."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.inspector.browser.test_questions_screen import SERVER, call, connect


async def test_log_messages_are_shown_from_a_level_on(page: Page) -> None:
    await connect(page)
    await page.goto(f"#/notifications/{SERVER}")
    await page.get_by_label("The server sends").select_option("debug and above")
    await expect(page.locator("#announcements")).to_contain_text("from debug on")
    await call(page, "test_tool_with_logging")
    table = page.get_by_role("region", name="Log messages, the latest first")
    await expect(table).to_contain_text("Tool execution completed")
    await page.get_by_label("Show").select_option("error and above")
    await expect(table).to_have_count(0)
    await page.get_by_label("Show").select_option("debug and above")
    await expect(table).to_contain_text("Tool execution started")


async def test_a_subscription_counts_its_events_until_it_is_closed(page: Page) -> None:
    await connect(page)
    await page.goto(f"#/notifications/{SERVER}")
    await page.get_by_label("URIs of resources").fill("test://watched-resource")
    await page.get_by_label("prompts", exact=True).check()  # a list that the page has not read
    await page.get_by_role("button", name="Subscribe", exact=True).click()
    region = page.get_by_role("region", name="Subscriptions")
    await expect(region).to_contain_text("0 events")
    await call(page, "touch")
    await expect(region).to_contain_text("1 events")
    await region.get_by_role("button", name="Close the subscription").click()
    await expect(region).to_contain_text("ended: closed here")
    await expect(page.get_by_role("region", name="Changed lists")).to_contain_text("first read")
