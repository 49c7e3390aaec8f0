"""The screens Tools, Resources and Prompts, with the server that uses every feature."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.inspector.browser.conftest import OpenPage
from tests.waiting import until


@pytest.fixture(autouse=True)
def at_tools(page: Page) -> None:
    """All tests share the page."""


async def open_tool(page: Page, name: str) -> None:
    await page.goto(f"#/tools/everything.py/{name}")
    await expect(page.get_by_role("heading", name=name, exact=True, level=2)).to_be_visible()
    await expect(page.get_by_role("main")).not_to_have_attribute("aria-busy", "true")


async def call_and_wait(page: Page, button: str = "Call", state: str = "done") -> None:
    """Call what is selected, and wait for the result: that of an earlier call may still be shown."""
    messages = page.locator("section.call").get_by_role("link", name="Its messages in the timeline")
    before = await messages.get_attribute("href") if await messages.count() else None
    await page.get_by_role("button", name=button, exact=True).click()
    await expect(messages).not_to_have_attribute("href", before or "")
    await expect(page.locator(".call .state")).to_have_text(state)


async def test_tools_are_listed_and_found_by_searching(page: Page) -> None:
    await page.goto("#/tools/everything.py")
    tools = page.get_by_role("region", name="Tools")
    await expect(tools.get_by_role("link", name="test_simple_text")).to_be_visible()
    await tools.get_by_role("searchbox").fill("weather coming")
    await expect(tools.get_by_role("link")).to_have_count(1)
    await tools.get_by_role("link", name="measure").click()
    await expect(page.get_by_text("The server says: read-only")).to_be_visible()
    await tools.get_by_role("searchbox").fill("")


async def test_a_tool_is_called_with_the_values_of_the_form(page: Page) -> None:
    await open_tool(page, "measure")
    await page.get_by_label("city", exact=True).fill("Oslo")
    await page.get_by_label("days", exact=True).fill("2")
    await call_and_wait(page)
    structured = page.get_by_role("region", name="Structured content")
    await expect(structured).to_contain_text('"celsius": 21.0')
    await page.get_by_role("button", name="Repeat").click()
    await expect(page.get_by_text("Calls: 2")).to_be_visible()


TYPE_FAST = """([city, days]) => {
  const type = (field, text) => {
    for (let length = 1; length <= text.length; length += 1) {
      field.value = text.slice(0, length);
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
  };
  type(days, "12");
  type(city, "Oslo");
  type(days, "3");
}"""


async def test_typing_faster_than_the_page_draws_sets_each_field_once(page: Page) -> None:
    await open_tool(page, "measure")
    fields = [await page.get_by_label(name, exact=True).element_handle() for name in ("city", "days")]
    await page.evaluate(TYPE_FAST, fields)
    await page.get_by_role("button", name="JSON text").click()
    text = await page.get_by_role("textbox", name="JSON text").input_value()
    assert json.loads(text) == {"city": "Oslo", "days": 3}
    assert text.count("city") == text.count("days") == 1
    await page.get_by_role("textbox", name="JSON text").fill("{}")
    await page.get_by_role("button", name="Form", exact=True).click()


async def test_an_error_is_at_its_field_and_the_value_can_be_sent_anyway(page: Page) -> None:
    await open_tool(page, "measure")
    city, days = page.get_by_label("city", exact=True), page.get_by_label("days", exact=True)
    await city.fill("Oslo")
    await days.fill("99")
    await expect(days).to_have_attribute("aria-invalid", "true")
    await page.get_by_role("button", name="Call", exact=True).click()
    await call_and_wait(page, "Send anyway", state="tool error")
    await expect(page.locator(".call .block")).to_contain_text("expected integer <= 14, got integer 99")
    await days.fill("3,5")
    await expect(days).to_have_value("3,5")
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.get_by_text("not sent: a field has a text that is not valid")).to_be_visible()
    await days.fill("3")
    await expect(page.get_by_text("not sent:")).to_have_count(0)


async def test_form_and_text_edit_one_document(page: Page) -> None:
    await open_tool(page, "measure")
    await page.get_by_role("button", name="JSON text").click()
    text = page.get_by_label("JSON text", exact=True)
    written = '{"days":   9007199254740993, "city":"\\u004fslo", "days": 2}'
    await text.fill(written)
    await page.get_by_role("button", name="Form", exact=True).click()
    await expect(page.get_by_label("city", exact=True)).to_have_value("Oslo")
    await expect(page.get_by_label("days", exact=True)).to_have_value("2")
    await expect(page.get_by_text("appears twice")).to_be_visible()
    await page.get_by_label("days", exact=True).fill("4")
    await page.get_by_role("button", name="JSON text").click()
    await expect(text).to_have_value(written[:-2] + "4}")
    await text.fill("{")
    await expect(page.get_by_text("Line 1, column 2")).to_be_visible()
    await text.fill("{}")
    await page.get_by_role("button", name="Form", exact=True).click()


@pytest.mark.parametrize(
    ("tool", "selector"),
    [
        ("test_image_content", "img.content-image[src^='blob:']"),
        ("test_audio_content", "audio[src^='blob:']"),
        ("test_multiple_content_types", "a:has-text('Read it as a resource')"),
    ],
)
async def test_content_is_shown(page: Page, tool: str, selector: str) -> None:
    await open_tool(page, tool)
    await call_and_wait(page)
    await expect(page.locator(selector)).to_be_visible()


async def test_progress_and_log_messages_are_shown(page: Page) -> None:
    await open_tool(page, "test_tool_with_logging")
    await call_and_wait(page)
    await expect(page.get_by_text("Log messages: 3")).to_be_visible()
    await open_tool(page, "test_tool_with_progress")
    await call_and_wait(page)
    await expect(page.get_by_role("progressbar")).to_be_visible()


async def test_an_error_of_a_tool_is_a_result(page: Page) -> None:
    await open_tool(page, "test_error_handling")
    await call_and_wait(page, state="tool error")
    await expect(page.locator(".call .block")).to_contain_text("intentionally returns an error")


async def test_a_call_is_saved_edited_and_removed(page: Page) -> None:
    await open_tool(page, "measure")
    await page.get_by_label("city", exact=True).fill("Bergen")
    await call_and_wait(page)
    saved = page.locator("section.call").get_by_label("Save this call as")
    await saved.fill("bergen")
    await saved.press("Enter")
    await expect(page.get_by_text("Saved calls: 1")).to_be_visible()
    await expect(saved).to_have_value("")
    await page.get_by_label("city", exact=True).fill("Oslo")
    await page.get_by_text("Saved calls: 1").click()
    await page.get_by_role("button", name="bergen (measure)").click()
    await expect(page.get_by_label("city", exact=True)).to_have_value("Bergen")
    await page.get_by_role("button", name="Remove the saved call bergen").click()
    await expect(page.get_by_text("Saved calls")).to_have_count(0)


async def test_a_call_is_copied(page: Page) -> None:
    await open_tool(page, "measure")
    await page.get_by_label("city", exact=True).fill("Bergen's")
    await call_and_wait(page)
    call = page.locator("section.call")
    await call.get_by_role("button", name="accord call").click()
    await expect(call.get_by_label("accord call")).to_contain_text("accord call examples/everything.py measure --args")
    await call.get_by_role("button", name="pytest").click()
    await expect(call.get_by_label("pytest", exact=True)).to_contain_text("def test_measure(accord_client):")


async def test_resources_and_templates_are_read(page: Page) -> None:
    await page.goto("#/resources/everything.py")
    await page.get_by_role("region", name="Resources").get_by_role("link").first.click()
    await call_and_wait(page, "Read the resource")
    await page.get_by_role("region", name="Templates").get_by_role("link", name=re.compile("template")).first.click()
    await (
        page.get_by_role("textbox", name="id", exact=True)
        .or_(page.get_by_role("combobox", name="id", exact=True))
        .fill("7")
    )
    await call_and_wait(page, "Read the resource")
    await expect(page.locator(".call .block")).to_contain_text("7")


async def test_a_prompt_is_filled_in(page: Page) -> None:
    await page.goto("#/prompts/everything.py/test_prompt_with_arguments")
    await page.get_by_role("combobox", name="arg1", exact=True).fill("first")
    await page.get_by_role("combobox", name="arg2", exact=True).fill("second")
    await call_and_wait(page, "Get the prompt")
    await expect(page.locator(".call .block").first).to_contain_text("arg1='first', arg2='second'")


async def test_a_narrow_page_has_no_horizontal_scrolling(page: Page, open_page: OpenPage) -> None:
    await open_tool(page, "measure")
    await page.set_viewport_size({"width": 320, "height": 700})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await page.set_viewport_size({"width": 1280, "height": 720})


START = """async (count) => {
  const name = "accord-inspector-token";
  const headers = { "content-type": "application/json", [name]: sessionStorage.getItem(name) };
  const call = { server: "everything.py", kind: "tool", name: "test_simple_text", argumentsJson: "{}" };
  const begun = performance.now();
  for (let at = 0; at < count; at += 1) {
    await fetch("api/calls/start", { method: "POST", headers, body: JSON.stringify(call) });
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  return begun;
}"""


async def test_many_changes_do_not_pile_up_requests(page: Page) -> None:
    """A server that logs all the time changes the calls twenty times a second."""
    await open_tool(page, "test_simple_text")
    held: list[Route] = []
    await page.route("**/api/calls/list", lambda route: held.append(route))  # noqa: PLW0108
    begun = await page.evaluate(START, 30)
    await until(lambda: held)  # the page hears of the calls in its own time
    count = len(held)
    milliseconds = await page.evaluate("performance.now()") - begun
    assert count <= 2 + milliseconds / 2_000  # one, and one more for each two seconds that it takes
    for route in held:  # which may grow meanwhile
        await route.continue_()
    await page.unroute("**/api/calls/list")
    await expect(page.get_by_text(re.compile(r"Calls: \d\d"))).to_be_visible()
