"""A full disk: what could not be stored fails with a reason, nothing else does, and space that is free again is used.

A limit of the size of files stands for the disk: `RLIMIT_FSIZE` of the inspector, which needs no privileges.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.inspector.browser.process import InspectProcess
from tests.inspector.browser.test_heavy_traffic import FILE, call

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the files of another process")

REASON = "File too large"


def recorded_bytes(inspector: InspectProcess) -> int:
    """Return the size of the file of the traffic, which is open while the server is connected."""
    for file in Path(f"/proc/{inspector.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if os.readlink(file).endswith("traffic.jsonl"):
                return file.stat().st_size
    raise AssertionError("the file of the traffic is not open")


@contextmanager
def full_disk(inspector: InspectProcess, size: int) -> Iterator[None]:
    """Let no file of the inspector grow beyond so many bytes."""
    pid, (soft, hard) = inspector.process.pid, resource.prlimit(inspector.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


async def save(page: Page, button: str, file: Path) -> None:
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name=button).click()
    await (await downloading.value).save_as(file)


@asynccontextmanager
async def refused(page: Page, command: str) -> AsyncIterator[None]:
    """Expect that the block sends a command which fails, and that the page says why."""
    async with page.expect_response(f"**/api/{command}") as response:
        yield
    assert (await response.value).status == 507
    await expect(page.get_by_role("alert")).to_contain_text(f"the file could not be stored: {REASON}")


async def open_file(page: Page, file: Path) -> None:
    await page.goto("#/sessions")
    await page.get_by_label("Session file or transcript").set_input_files(file)


async def test_a_full_disk_stops_only_what_has_to_be_stored(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest, tmp_path: Path
) -> None:
    inspector = await inspect(f"{sys.executable} {FILE}")
    page = await open_page(inspector.link)
    problems.expect("status of 507")
    await page.wait_for_function("() => location.hash")
    state = page.locator(".call .state")
    await call(page, "large", size=100_000)
    await expect(state).to_have_text("done")
    with full_disk(inspector, recorded_bytes(inspector) + 1_000):
        await call(page, "large", size=200_000)
        await expect(state).to_have_text("failed")
        await expect(page.get_by_text(f"the result could not be stored: {REASON}")).to_be_visible()
        await expect(page.get_by_role("button", name="Save the result")).to_have_count(0)
        await call(page, "large", size=1_000)
        await expect(state).to_have_text("done")
        await expect(page.locator(".call .block")).to_contain_text("the end")

        await page.goto("#/timeline")
        await expect(page.get_by_role("status").filter(has_text="the recording to")).to_contain_text(f"ends: {REASON}")
        await save(page, "Save this session", tmp_path / "session.jsonl")
    with full_disk(inspector, 20_000):
        await page.get_by_role("searchbox", name="Filter").fill("method:tools/call")
        async with refused(page, "session/save"):
            await page.get_by_role("button", name="Save what matches").click()
        await page.get_by_role("searchbox", name="Filter").fill("size>50kB")
        grid = page.get_by_role("grid", name="Messages")
        await expect(grid).to_have_attribute(
            "aria-rowcount", "2"
        )  # with its head: the rows of the last filter are gone
        await grid.get_by_role("row").filter(has_text="lorem").click()
        async with refused(page, "traffic/download"):
            await page.get_by_role("button", name="Download").click()
        async with refused(page, "session/open"):
            await open_file(page, tmp_path / "session.jsonl")

    await call(page, "large", size=200_000)
    await expect(state).to_have_text("done")
    await open_file(page, tmp_path / "session.jsonl")
    await expect(page.get_by_text("is incomplete; it is left out")).to_be_visible()
    await expect(page.get_by_role("grid", name="Messages").get_by_role("row").nth(1)).to_be_visible()
