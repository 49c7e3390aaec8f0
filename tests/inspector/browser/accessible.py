"""The accessibility of a page in a state that a test brought it to."""

from __future__ import annotations

from playwright.async_api import Page

from tests.inspector.browser.test_accessibility import axe, problems_of, settle


async def assert_accessible(page: Page) -> None:
    """Fail for what the rules of axe find, in light and dark, and for what is too wide at 320 px."""
    size = page.viewport_size or {"width": 1280, "height": 720}
    await page.evaluate(axe())
    try:
        for scheme, width in (("light", size["width"]), ("dark", 320)):
            await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": size["height"]})
            await settle(page)
            problems = await problems_of(page)
            assert not problems, "\n".join([scheme, *problems])
    finally:
        await page.emulate_media(color_scheme="light")
        await page.set_viewport_size({"width": size["width"], "height": size["height"]})
