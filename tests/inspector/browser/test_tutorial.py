"""The story of docs/inspecting.md, as a user goes through it; `--update` writes its pictures."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.inspector.browser.conftest import OpenPage
from tests.inspector.browser.process import InspectProcess
from tests.test_docs import blocks, edit

ROOT = Path(__file__).parent.parent.parent.parent
DOCUMENT = ROOT / "docs" / "inspecting.md"
PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1180, "height": 720}


class Pictures:
    """The pictures of the page: they are made in every run, and stored with `--update`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names: list[str] = []

    async def take(self, page: Page, name: str, *, height: int = SIZE["height"]) -> None:
        await page.set_viewport_size({"width": SIZE["width"], "height": height})
        await page.evaluate("scrollTo(0, 0)")
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        await page.screenshot(path=self._folder / f"{name}.png", animations="disabled", caret="hide")
        self.names.append(f"{name}.png")


@asynccontextmanager
async def inspected(folder: Path) -> AsyncIterator[InspectProcess]:
    process = await InspectProcess.start(folder, "weather.py", folder=folder)
    try:
        yield process
    finally:
        await process.stop()


def block_of(file: str) -> str:
    """Return a file that the page shows."""
    [found] = [each.text for each in blocks(DOCUMENT.read_text("utf-8")) if each.file == file]
    return found


def write_server(folder: Path, *, fixed: bool) -> None:
    """Write the server of the page, as it is before or after the change."""
    (folder / "weather.py").write_text(block_of("weather.py"), "utf-8")
    for each in blocks(DOCUMENT.read_text("utf-8")):
        if fixed and each.edits == "weather.py":
            assert edit(folder / "weather.py", each, "inspecting.md") == []


async def call(page: Page, city: str, days: str) -> Locator:
    """Call the tool with the form, and return its result."""
    await page.goto("#/tools/weather.py/forecast")
    await page.get_by_label("city").fill(city)
    await page.get_by_label("days").fill(days)
    await page.get_by_role("button", name="Call", exact=True).click()
    result = page.get_by_role("region", name=re.compile("^forecast (done|tool error|failed)"))
    await expect(result).to_be_visible()
    return result


@pytest.mark.timeout(300)
async def test_a_user_finds_a_fault_fixes_it_compares_and_saves_a_test(
    open_page: OpenPage, tmp_path: Path, update: bool
) -> None:
    pictures = Pictures(PICTURES if update else tmp_path)
    write_server(tmp_path, fixed=False)
    async with inspected(tmp_path) as process:
        page = await open_page(process.link, viewport=SIZE, color_scheme="light")
        await expect(page.get_by_role("link", name="forecast")).to_be_visible()
        await find_the_fault(page, pictures)
        await page.goto("#/sessions/weather.py")
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Save", exact=True).click()
        await (await download.value).save_as(tmp_path / "before.jsonl")
        write_server(tmp_path, fixed=True)
        await connect_again(page)
        await compare(page, tmp_path / "before.jsonl", pictures)
        assert ast.dump(ast.parse(await copy_test(page))) == ast.dump(ast.parse(block_of("test_weather.py")))
        await page.goto("about:blank")  # the process ends before the page
    named = re.findall(r"\(pictures/([\w-]+\.png)\)", DOCUMENT.read_text("utf-8"))
    assert sorted(named) == sorted(pictures.names)
    assert {path.name for path in PICTURES.glob("inspecting-*.png")} == set(named)


async def find_the_fault(page: Page, pictures: Pictures) -> None:
    result = await call(page, "Oslo", "2")
    await expect(result).to_contain_text("21")
    await expect(result).not_to_contain_text("19")
    await pictures.take(page, "inspecting-call", height=900)
    await result.get_by_role("link", name="Its messages in the timeline").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Timeline")
    await expect(page.get_by_role("main")).to_contain_text('"days": 2')
    await pictures.take(page, "inspecting-timeline")
    failed = await call(page, "oslo", "2")
    await expect(failed).to_contain_text("KeyError")
    await failed.get_by_role("link", name="stderr of the server").click()
    await expect(page.get_by_text("FORECASTS[city]")).to_be_visible()
    await expect(page.get_by_role("main")).to_contain_text("FORECASTS[city]")


async def connect_again(page: Page) -> None:
    await page.goto("#/servers/weather.py")
    await page.get_by_role("button", name="Disconnect").click()
    await page.get_by_role("button", name="Connect", exact=True).click()
    await expect(page.get_by_role("button", name="Disconnect")).to_be_visible()


async def compare(page: Page, session: Path, pictures: Pictures) -> None:
    await page.goto("#/sessions/weather.py")
    await page.locator("input[type=file]").set_input_files(session)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Timeline")
    await page.goto("#/sessions/weather.py")
    saved = page.get_by_role("region", name="before.jsonl")
    await saved.get_by_role("button", name="Replay and compare").click()
    differences = page.get_by_role("region", name="Differences of the replay")
    await expect(differences).to_contain_text("2 differences")
    await pictures.take(page, "inspecting-compare", height=900)


async def copy_test(page: Page) -> str:
    result = await call(page, "Oslo", "2")
    await expect(result).to_contain_text("19")
    await result.get_by_role("button", name="pytest").click()
    return await result.get_by_label("pytest", exact=True).inner_text()
