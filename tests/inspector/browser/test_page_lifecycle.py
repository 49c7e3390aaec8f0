"""A page that is closed while a server asks, one of two tabs, and a machine that was suspended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest
from playwright.async_api import Page, expect

from accord import Accepted, Context, Server

from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.inspector.browser.test_faults import served
from tests.waiting import until


@dataclass
class Name:
    name: str


class AskingServer:
    """A server with a tool that asks once a test lets it."""

    def __init__(self) -> None:
        self.may_ask = asyncio.Event()
        self.server = Server("shop")
        self.server.tool(self.order)

    async def order(self, ctx: Context) -> str:
        await self.may_ask.wait()
        answer = await ctx.elicit("Who orders?", Name)
        return f"for {answer.data.name}" if isinstance(answer, Accepted) else "for nobody"


async def call_order(page: Page) -> None:
    await page.get_by_role("link", name="order", exact=True).click()
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.locator(".call .state")).to_have_text("running")


async def test_a_server_that_asks_while_no_page_is_open_is_answered_by_the_next_one(open_page: OpenPage) -> None:
    asking = AskingServer()
    async with served(target=asking.server) as here:
        first = await open_page(here.link)
        await call_order(first)
        await first.close()
        await until(lambda: here.streams == 0)
        asking.may_ask.set()
        await until(lambda: len(here.inspector.workspace.questions.open()) == 1)
        page = await open_page(here.link)
        await page.get_by_role("link", name="Server requests 1 open").click()
        card = page.get_by_role("region", name="Elicitation: a form")
        await expect(card).to_contain_text("Who orders?")
        await card.get_by_label("name", exact=True).fill("Ada")
        await card.get_by_role("button", name="Accept").click()
        await expect(card).to_have_count(0)
        await page.goto(f"{here.base}/#/tools/shop/order")
        await page.get_by_text("Calls: 1").click()
        await page.get_by_role("button", name="order, done").click()
        await expect(page.locator(".call .block")).to_contain_text("for Ada")
        await page.close()


async def test_a_question_is_answered_in_one_of_two_tabs(open_page: OpenPage) -> None:
    asking = AskingServer()
    async with served(target=asking.server) as here:
        first = await open_page(here.link)
        await call_order(first)
        second = await first.context.new_page()
        await second.goto(here.link)
        for page in (first, second):
            await page.goto(f"{here.base}/#/questions/shop")
        asking.may_ask.set()
        for page in (first, second):
            await expect(page.get_by_role("button", name="Decline")).to_be_visible()
        await second.get_by_role("button", name="Decline").click()
        for page in (first, second):
            await expect(page.get_by_role("button", name="Decline")).to_have_count(0)
            await page.goto(f"{here.base}/#/tools/shop/order")
            await expect(page.get_by_text("Calls: 1")).to_be_visible()
            await expect(page.get_by_role("alert")).to_have_count(0)
        await expect(first.locator(".call .block")).to_contain_text("for nobody")
        await second.close()
        await first.close()


@contextmanager
def suspended(processes: list[int]) -> Iterator[None]:
    """Stop processes, and let them go on."""
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in processes:
            os.kill(each, signal.SIGCONT)


async def renderers(page: Page) -> list[int]:
    """Return the numbers of the processes of pages."""
    assert page.context.browser is not None
    session = await page.context.browser.new_browser_cdp_session()
    processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    await session.detach()
    return [each["id"] for each in processes if each["type"] == "renderer"]


async def test_a_suspended_page_shows_what_changed_meanwhile(open_page: OpenPage, problems: ProblemsOfTest) -> None:
    async with served() as here:
        page = await open_page(here.link)
        problems.expect("status of 409")  # it may ask for the tools of a connection that has ended since
        chosen = page.get_by_role("combobox", name="Server")
        await expect(chosen).to_contain_text("shop (connected)")
        processes = await renderers(page)
        assert processes
        server = here.inspector.workspace.server("shop")
        with suspended(processes):
            for _ in range(5):
                await server.disconnect()
                await server.connect()
            await server.disconnect()
        await expect(chosen).to_contain_text("shop (idle)")
        await expect(page.get_by_role("alert")).to_have_count(0)
        await page.close()


def children(pid: int) -> list[int]:
    """Return the numbers of the processes that a process started."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError), open(f"/proc/{pid}/task/{task}/children") as file:
            found += map(int, file.read().split())
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the processes that a process started")
async def test_a_suspended_inspector_goes_on_where_it_was(inspect: Inspect, open_page: OpenPage) -> None:
    inspector = await inspect("examples/everything.py")
    page = await open_page(inspector.link)
    await page.get_by_role("link", name="test_simple_text").click()
    call = page.get_by_role("button", name="Call", exact=True)
    await expect(call).to_be_enabled()
    processes = [inspector.process.pid, *children(inspector.process.pid)]
    assert len(processes) == 2
    with suspended(processes):
        await call.click()
        await page.get_by_role("link", name="measure").click()  # the page itself answers
        await expect(page.get_by_role("heading", name="measure", exact=True, level=2)).to_be_visible()
    await page.get_by_role("link", name="test_simple_text").click()
    await expect(page.locator(".call .state")).to_have_text("done")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.get_by_role("button", name="Repeat").click()
    await expect(page.get_by_text("Calls: 2")).to_be_visible()
