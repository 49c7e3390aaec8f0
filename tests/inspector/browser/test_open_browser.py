"""How the page is opened: by a file of the user, which sends the browser to the link, so that no process shows it."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.inspector.browser.conftest import OpenPage, ProblemsOfTest
from tests.inspector.browser.process import ROOT, SECONDS

if sys.platform == "win32":
    pytest.skip("the browser of the test is a shell script", allow_module_level=True)

BROWSER = """#!/bin/sh
echo "$1" > "$HOME/opened"
"""


async def test_a_browser_is_opened_without_the_token_in_its_arguments(
    tmp_path: Path, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    browser = write_browser(tmp_path)
    environment = {**os.environ, "HOME": str(tmp_path), "BROWSER": f"{browser} %s"}
    command = (sys.executable, "-m", "accord", "inspect", "examples/everything.py")
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        token = (await process.stdout.readline()).decode().strip().partition("token=")[2]
        url = await opened_url(tmp_path / "opened")
        assert url.startswith("file://")
        assert token not in url
        file = Path(url.removeprefix("file://"))
        assert token in file.read_text()  # noqa: ASYNC240
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        page = await open_page(url)
        problems.expect("request to another host: (GET|POST) (file|http://127.0.0.1)")  # it is not where the file is
        await expect(page.get_by_role("combobox", name="Server")).to_contain_text("everything.py (connected)")
        assert token not in page.url
        await page.close()
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), SECONDS)
    assert not file.parent.exists()


def write_browser(folder: Path) -> Path:
    """Write a browser that only notes which URL it is to open."""
    browser = folder / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    return browser


async def opened_url(file: Path) -> str:
    """Return the URL that the browser was given."""
    async with asyncio.timeout(SECONDS):
        while not (file.exists() and file.read_text().endswith("\n")):  # noqa: ASYNC240
            await asyncio.sleep(0.01)
    return file.read_text().strip()  # noqa: ASYNC240
