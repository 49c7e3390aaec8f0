"""The screen Servers: a failed connection shows the steps of `accord doctor`, and servers of hosts can be added."""

from __future__ import annotations

import json
import sys

from playwright.async_api import expect

from tests.inspector.browser.accessible import assert_accessible
from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest


async def test_a_failed_connection_shows_the_steps_of_doctor(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    inspector = await inspect(f"{sys.executable} -c 'import no_such_module_of_mine'")
    page = await open_page(inspector.link)
    problems.expect("status of 409")  # the page connects the first server by itself
    await page.wait_for_function("() => location.hash")
    await page.goto(f"{inspector.base}/#/servers")
    steps = page.get_by_role("list", name="Diagnosis of")
    await expect(steps).to_contain_text("process start: failed")
    await page.reload()
    diagnose = page.get_by_role("button", name="Diagnose")
    await expect(diagnose).to_be_enabled()
    await diagnose.focus()
    await page.keyboard.press("Enter")
    await expect(steps).to_contain_text("process start: failed")
    await expect(steps).to_contain_text("a Python package is missing")
    await expect(page.get_by_role("status")).to_contain_text("The step process start failed")
    await assert_accessible(page)
    await page.set_viewport_size({"width": 320, "height": 640})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320


async def test_without_a_target_the_servers_of_hosts_are_listed_and_none_starts(
    inspect: Inspect, open_page: OpenPage
) -> None:
    inspector = await inspect()
    started = inspector.home / "started"
    entry = {"command": sys.executable, "args": ["-c", f"open({str(started)!r}, 'w')"]}
    file = inspector.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"shop": entry}}), encoding="utf-8")
    page = await open_page(inspector.link)
    found = page.get_by_role("listitem").filter(has_text="Cursor")
    await expect(found).to_contain_text("shop")
    await expect(found).to_contain_text(f"{file}:1")
    await found.get_by_role("button", name="Add shop of Cursor").click()
    server = page.get_by_role("region", name="shop")
    await expect(server.get_by_text("idle")).to_be_visible()
    assert not started.exists()
