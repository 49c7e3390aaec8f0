"""The screen Model view: tokens of the tools of a server, names that look alike, hidden characters."""

from __future__ import annotations

import sys

import pytest
from playwright.async_api import Page, expect

from tests.inspector.browser.accessible import assert_accessible

SERVER = """
from accord import Server

server = Server("odd", version="1")


@server.tool(description="Looks\\u200b like any other.<img src=x onerror=alert(1)>")
def get_user(name: str) -> str:
    return name


@server.tool(name="getUser", description="words " * 300)
def other(name: str) -> str:
    return name


server.run()
"""


@pytest.fixture(scope="module")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    file = tmp_path_factory.mktemp("server") / "odd.py"
    file.write_text(SERVER, encoding="utf-8")
    return (f"{sys.executable} {file}", "examples/everything.py")


async def open_screen(page: Page) -> None:
    await page.goto("#/model/odd.py")
    await expect(page.get_by_role("list", name="Tools")).to_be_visible()


async def test_tools_are_sorted_by_their_tokens(page: Page) -> None:
    await open_screen(page)
    tools = page.get_by_role("list", name="Tools").get_by_role("button")
    await expect(tools.nth(0)).to_contain_text("getUser")
    await page.get_by_label("Sort by").select_option("hidden characters")
    await expect(tools.nth(0)).to_contain_text("get_user")
    await expect(page.get_by_role("table", name="Tokens by field")).to_contain_text("inputSchema")


async def test_names_that_look_alike_are_shown(page: Page) -> None:
    await open_screen(page)
    alike = page.get_by_role("region", name="Names that look alike")
    await expect(alike).to_contain_text("they differ only in case and separators")


async def test_hidden_characters_are_visible_and_html_is_text(page: Page) -> None:
    await open_screen(page)
    tool = page.get_by_role("list", name="Tools").get_by_role("button", name="get_user")
    await tool.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("mark.hidden-characters")).to_have_text(r"\u200b")
    definition = page.locator("#main pre")
    await expect(definition).to_contain_text("<img src=x onerror=alert(1)>")
    assert "\u200b" not in await definition.inner_text()
    await expect(page.locator("#main img")).to_have_count(0)
    await expect(page.get_by_role("table", name="Tokens by argument")).to_contain_text("name")
    await assert_accessible(page)


async def test_everything_has_a_catalogue(page: Page) -> None:
    await page.goto("#/model/everything.py")
    await page.get_by_role("button", name="Connect", exact=True).click()
    await expect(page.get_by_role("list", name="Tools").get_by_role("listitem").nth(10)).to_be_visible()
