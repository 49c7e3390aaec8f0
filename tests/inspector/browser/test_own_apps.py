"""Pages that accord makes work in the frame of the inspector: a chart is drawn, and its button calls its tool."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    return ("examples/sales.py",)


async def test_a_chart_is_drawn_and_refreshes(page: Page) -> None:
    await page.wait_for_function("() => location.hash")
    await page.goto("#/apps/sales.py")
    await page.get_by_label("Arguments of the call").first.fill('{"year": 2026}')
    await page.get_by_role("button", name="Call the tool and open its app").first.click()
    app = page.frame_locator("iframe")
    await expect(app.get_by_role("heading", name="Orders and returns")).to_be_visible()
    chart = app.get_by_role("img", name="Bar chart of orders, returns by month: 12 rows")
    before = await chart.text_content()
    await app.get_by_role("button", name="Refresh").click()
    await expect(chart).not_to_have_text(str(before))
