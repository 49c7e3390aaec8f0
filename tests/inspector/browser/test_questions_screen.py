"""The screen Server requests: forms, URLs, sampling and roots are answered by hand, and survive a reload."""

from __future__ import annotations

import asyncio
import re
from itertools import count
from typing import Any

from playwright.async_api import Page, expect

from tests.inspector.browser.browser import first_tools
from tests.inspector.browser.conftest import ProblemsOfTest

SERVER = "everything.py"
NUMBERS = count(1)
"""Of the calls: each has an id of its own."""


async def send(page: Page, command: str, **params: Any) -> Any:
    """Send a command as the page does."""
    return await page.evaluate(
        'async ([command, params]) => (await import("./connection.js")).send(command, params)', [command, params]
    )


async def connect(page: Page) -> None:
    """Connect the server in a revision whose server requests need no further calls of the page."""
    await first_tools(page)
    await page.goto("#/servers")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Servers")
    listed = await send(page, "servers/list")
    if listed["servers"][0]["revision"] != "2025-11-25" or listed["servers"][0]["state"] != "connected":
        await send(page, "servers/disconnect", server=SERVER)
        await send(page, "servers/connect", server=SERVER, revision="2025-11-25")
    card = page.get_by_role("region", name=SERVER)  # the page knows: what it shows of the old connection goes
    await expect(card.locator(".state")).to_have_text("connected")
    await expect(card.locator(".facts").first).to_contain_text("2025-11-25")


async def open_screen(page: Page) -> None:
    await connect(page)
    await page.goto(f"#/questions/{SERVER}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Server requests")


async def call(page: Page, tool: str, **arguments: Any) -> str:
    """Call a tool on the open session, and return the id of the request, without waiting for its result."""
    id = f"raw-call-{next(NUMBERS):04}"
    message = {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    await page.evaluate(
        """async (message) => {
            const { send } = await import("./connection.js");
            await send("raw/send", { server: "everything.py", text: JSON.stringify(message) });
        }""",
        message,
    )
    return id


async def result(page: Page, id: str) -> str:
    """The response to `call`, from the traffic."""
    async with asyncio.timeout(60):
        while True:
            rows = (await send(page, "traffic/rows", filter=f"direction:received {id}", count=500))["rows"]
            if rows:
                return str((await send(page, "traffic/entry", row=rows[-1]["row"]))["raw"])
            await asyncio.sleep(0.05)


async def test_a_form_is_answered_and_survives_a_reload(page: Page) -> None:
    await open_screen(page)
    id = await call(page, "test_elicitation", message="Who <b>are</b> you?")
    card = page.get_by_role("region", name="Elicitation: a form")
    await expect(card).to_contain_text("Who <b>are</b> you?")
    await expect(card).to_contain_text(re.compile(r"Remaining time\s*9:\d\d"))
    await expect(page.get_by_role("link", name="Server requests")).to_contain_text("1")
    await card.get_by_label("username").fill("Ada")
    await page.reload()
    await expect(card).to_contain_text("Who <b>are</b> you?")
    await expect(card.get_by_label("username")).to_have_value("Ada")
    await card.get_by_label("email").fill("ada@example.com")
    await card.get_by_role("button", name="Accept").click()
    await expect(card).to_have_count(0)
    assert "Ada" in await result(page, id)
    assert await page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('draft'))") == []


async def test_a_call_that_waits_for_the_user_says_so_and_links_to_the_request(page: Page) -> None:
    await connect(page)
    await page.goto(f"#/tools/{SERVER}/test_elicitation")
    await page.get_by_label("message").fill("Which bread?")
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.get_by_role("link", name="Server requests")).to_contain_text("1")
    await page.get_by_role("link", name="answer its request").click()
    card = page.get_by_role("region", name="Elicitation: a form")
    await expect(card).to_contain_text("Which bread?")
    await card.get_by_role("button", name="Decline").click()
    await expect(card).to_have_count(0)
    await page.reload()
    await page.goto(f"#/tools/{SERVER}/test_elicitation")
    await expect(page.get_by_label("message")).to_have_value("Which bread?")  # what was typed, and the last call
    await expect(page.locator(".call .state")).to_have_text("done")
    await expect(page.get_by_role("link", name="answer its request")).to_have_count(0)
    await page.goto(f"#/tools/{SERVER}/test_sampling")
    await expect(page.get_by_role("heading", name="test_sampling", level=2)).to_be_visible()
    await expect(page.locator(".call .state")).to_have_count(0)  # it was never called


async def test_a_form_is_declined_by_keyboard(page: Page) -> None:
    await open_screen(page)
    await call(page, "test_streaming_elicitation")
    decline = page.get_by_role("button", name="Decline")
    await decline.focus()
    await page.keyboard.press("Enter")
    await expect(decline).to_have_count(0)
    await expect(page.locator("#announcements")).to_contain_text("decline sent")


async def test_a_url_is_whole_and_never_opens_by_itself(page: Page) -> None:
    await open_screen(page)
    id = await call(page, "sign_in")
    link = page.get_by_role("link", name="https://example.com/login")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await page.get_by_role("button", name="Accept").click()
    await expect(link).to_have_count(0)
    assert "on the way" in await result(page, id)
    assert len(page.context.pages) == 1


async def test_an_answer_of_sampling_that_does_not_fit_is_sent_anyway(page: Page) -> None:
    await open_screen(page)
    id = await call(page, "test_sampling", prompt="Say hello")
    request = page.get_by_label("Request, as it goes to the model")
    await expect(request).to_have_value(re.compile("Say hello"))
    answer = page.get_by_label("Answer, as JSON")
    await answer.fill('{"role": "assistant", "content": {"type": "text", "text": "Hi"}}')
    await page.get_by_role("button", name="Send the answer").click()
    await expect(page.get_by_role("alert")).to_contain_text("model")
    await answer.fill('{"role": "assistant", "content": {"type": "text", "text": "Hi"}, "model": "me"}')
    await page.get_by_role("button", name="Send the answer").click()
    await expect(answer).to_have_count(0)
    assert "LLM response: Hi" in await result(page, id)


async def test_the_text_of_an_answer_to_sampling_is_typed_as_text(page: Page) -> None:
    await open_screen(page)
    id = await call(page, "test_sampling", prompt="Say hello")
    await page.get_by_label("Text of the answer").fill('Hello,\n"you"')
    answer = page.get_by_label("Answer, as JSON")
    await expect(answer).to_have_value(re.compile(re.escape(r'"text": "Hello,\n\"you\""')))
    await page.reload()
    await expect(page.get_by_label("Text of the answer")).to_have_value('Hello,\n"you"')
    await page.get_by_role("button", name="Send the answer").click()
    await expect(answer).to_have_count(0)
    assert "Hello," in await result(page, id)


async def test_roots_are_set(page: Page) -> None:
    await open_screen(page)
    await page.get_by_label("Folders, one in a line").fill("/tmp\nfile:///home/me")
    await page.get_by_role("button", name="Set the roots").click()
    await expect(page.locator("#announcements")).to_contain_text("the roots are set")
    assert (await send(page, "roots/get", server=SERVER))["roots"] == ["file:///tmp", "file:///home/me"]


async def test_a_model_is_added_and_a_key_in_the_page_refused(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect("status of 4")
    await open_screen(page)
    await page.get_by_text("Models that answer sampling").click()
    field = page.get_by_label("A model, as JSON")
    await field.fill('{"api": "anthropic", "name": "m", "apiKey": "sk-1"}')
    await page.get_by_role("button", name="Add the model").click()
    await expect(page.get_by_role("alert")).to_contain_text("API key")
    await field.fill('{"api": "chat-completions", "name": "local", "baseUrl": "http://127.0.0.1:9/v1"}')
    await page.get_by_role("button", name="Add the model").click()
    await expect(page.get_by_text("Models that answer sampling: local")).to_be_visible()
