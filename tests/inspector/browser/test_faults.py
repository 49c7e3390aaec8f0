"""What the page does when something else fails: the inspector ends, the token is replaced, a tab is hidden."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Locator, Page, Route, expect

from accord import Server
from accord.inspector import Inspector
from accord.limits import DEFAULT_LIMITS
from accord.server.http.serving.address import Address, bind
from accord.server.http.serving.serve import serving

from tests.inspector.browser.conftest import OpenPage, ProblemsOfTest


class Served(NamedTuple):
    inspector: Inspector
    base: str

    @property
    def link(self) -> str:
        return self.inspector.link(self.base)

    @property
    def streams(self) -> int:
        """How many pages listen."""
        return len(self.inspector._streams)


@asynccontextmanager
async def served(port: int = 0, target: Server | str | None = None) -> AsyncIterator[Served]:
    """Serve the inspector of a target, or of a server in this process."""
    sockets = bind(Address("127.0.0.1", port))
    async with Inspector(target or _shop()) as inspector, serving(inspector, sockets, DEFAULT_LIMITS):
        yield Served(inspector, f"http://127.0.0.1:{sockets[0].getsockname()[1]}")


def _shop() -> Server:
    server = Server("shop")

    @server.tool
    def price(item: str) -> int:
        return len(item)

    return server


async def reached(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def alert(page: Page, text: str) -> Locator:
    return page.get_by_role("alert").filter(has_text=text)


async def test_a_page_whose_token_was_replaced_says_what_to_do(open_page: OpenPage, problems: ProblemsOfTest) -> None:
    async with served() as here:
        page = await open_page(here.link)
        problems.expect("status of 401")
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (connected)")
        here.inspector.replace_token()
        await expect(alert(page, "open the link in the terminal again")).to_be_visible()
        await page.goto(here.link)
        await expect(page.get_by_role("alert")).to_have_count(0)
        await page.close()


async def test_a_page_without_a_token_says_what_to_do(open_page: OpenPage) -> None:
    async with served() as here:
        page = await open_page(here.base)
        await expect(alert(page, "this page needs the link that accord inspect printed")).to_be_visible()
        assert here.streams == 0
        await page.close()


async def test_a_page_without_its_inspector_says_so_and_goes_on_when_it_is_there_again(
    open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    async with served() as here:
        page = await open_page(here.link)
        problems.expect("Failed to load resource|ERR_")
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (connected)")
    await expect(alert(page, "the inspector does not answer")).to_be_visible()
    async with served(int(re.findall(r":(\d+)", here.base)[0])) as again:
        await expect(alert(page, "the token is missing or was replaced")).to_be_visible()
        await page.goto(again.link)
        await expect(page.get_by_role("alert")).to_have_count(0)
        await page.close()


async def test_two_tabs_show_the_same_state(open_page: OpenPage) -> None:
    async with served() as here:
        first, second = await open_page(here.link), await open_page(here.link)
        for page in (first, second):
            await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (connected)")
            await page.goto(f"{here.base}/#/servers")
        await first.get_by_role("button", name="Disconnect").click()
        await expect(second.get_by_role("button", name="Connect", exact=True)).to_be_visible()
        await second.get_by_role("button", name="Connect", exact=True).click()
        await expect(first.get_by_role("button", name="Disconnect")).to_be_visible()
        await first.close()
        await second.close()


async def test_a_reload_keeps_the_connection_and_the_token(open_page: OpenPage) -> None:
    async with served() as here:
        page = await open_page(here.link)
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (connected)")
        await page.reload()
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (connected)")
        assert here.inspector.workspace.server("shop").describe().connections == 1
        assert "token" not in page.url
        await page.close()


HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def test_a_hidden_tab_closes_its_stream_and_a_visible_one_opens_it(open_page: OpenPage) -> None:
    """A browser has six connections per origin, which many hidden tabs would take."""
    async with served() as here:
        page = await open_page(here.link)
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (connected)")
        await reached(lambda: here.streams == 1)
        await page.evaluate(HIDE, True)
        await reached(lambda: here.streams == 0)
        await here.inspector.workspace.server("shop").disconnect()
        await page.evaluate(HIDE, False)
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (idle)")
        await page.close()


async def test_the_inspector_ends_while_a_page_is_open(open_page: OpenPage, problems: ProblemsOfTest) -> None:
    async with served() as here:
        page = await open_page(here.link)
        problems.expect("Failed to load resource|ERR_")
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop (connected)")
        await reached(lambda: here.streams == 1)
        loop = asyncio.get_running_loop()
        before = loop.time()
    assert loop.time() - before < DEFAULT_LIMITS.grace_seconds
    await page.close()


DYING = """
import os
from accord import Server

server = Server("dying")

@server.tool
def end() -> str:
    os._exit(3)
"""


async def test_the_call_that_ended_the_server_stays_in_sight(open_page: OpenPage, tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    async with served(target=str(tmp_path / "dying.py")) as here:
        page = await open_page(here.link)
        await page.get_by_role("link", name="end").click()
        await page.get_by_role("button", name="Call", exact=True).click()
        await expect(page.get_by_text("dying.py is not connected")).to_be_visible()
        await expect(page.get_by_role("heading", name="end", exact=True)).to_be_visible()
        await expect(page.get_by_role("region", name="end failed").get_by_text("exited with code 3")).to_be_visible()
        await page.close()


async def test_the_error_of_an_older_load_is_not_shown(open_page: OpenPage, problems: ProblemsOfTest) -> None:
    async with served() as here:
        page = await open_page(here.link)
        chosen = page.get_by_role("combobox", name="Server")
        await expect(chosen).to_contain_text("shop (connected)")
        asked, released, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            asked.set()
            await released.wait()
            await route.fulfill(status=409, json={"error": "shop is not connected", "cure": ""})
            answered.set()

        problems.expect("status of 409")
        await page.route("**/api/tools/list", hold)
        server = here.inspector.workspace.server("shop")
        await server.disconnect()
        await server.connect()
        await reached(asked.is_set)
        await server.disconnect()
        await expect(page.get_by_role("button", name="Connect", exact=True)).to_be_visible()
        released.set()
        await reached(answered.is_set)
        await page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
        await expect(page.get_by_role("alert")).to_have_count(0)
        await page.close()
