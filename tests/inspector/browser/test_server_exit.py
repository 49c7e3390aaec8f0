"""A server that dies in any state of its connection: the page says so, nothing waits for it, and it connects again."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.inspector.browser.browser import first_tools
from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.inspector.browser.test_questions_screen import send
from tests.interop.serving import serving

FILE = Path(__file__).parent / "crashing_server.py"

CONNECTING = ("at the start", "initialize", "after initialize")
CONNECTED = ("tools/list", "tools/call", "in a response", "while it asks", "while it is idle", "while it is subscribed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dying")


@pytest.fixture(scope="module")
def inspected(folder: Path) -> tuple[str, ...]:
    servers = {}
    for place in (*CONNECTING, *CONNECTED):
        name = name_of(place)
        (folder / name).mkdir()
        servers[name] = {"command": sys.executable, "args": [str(FILE), place, str(folder / name)]}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    return ("--config", str(folder / "servers.json"))


def name_of(place: str) -> str:
    return re.sub(r"\W", "-", place)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=re.compile(f"^{name} "))


async def connect(page: Page, name: str) -> None:
    await page.goto("#/servers")
    await card(page, name).get_by_role("button", name="Connect", exact=True).click()


async def is_lost(page: Page, name: str) -> None:
    """Expect that the page says that the server is gone, and why, and that no button of it waits."""
    await page.goto("#/servers")
    server = card(page, name)
    await expect(server.locator("h2 .state")).to_have_text(re.compile("^(failed|lost)$"))
    await expect(server.locator("p.error").first).to_contain_text(re.compile("exited with code 7|SIGKILL|killed"))
    await expect(server.get_by_role("button", name="Connect", exact=True)).to_be_enabled()


async def works_again(page: Page, name: str, folder: Path) -> None:
    """Expect that the server, once its fault is mended, connects and answers a call."""
    (folder / name / "healed").touch()
    await connect(page, name)
    await expect(card(page, name).locator("h2 .state")).to_have_text("connected")
    await page.goto(f"#/tools/{name}/act")
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.locator(".call .state")).to_have_text("done")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await send(page, "servers/disconnect", server=name)


@pytest.mark.parametrize("place", CONNECTING)
async def test_a_server_dies_while_it_is_connected(
    place: str, page: Page, folder: Path, problems: ProblemsOfTest
) -> None:
    problems.expect("status of 409")
    name = name_of(place)
    await connect(page, name)
    await is_lost(page, name)
    await works_again(page, name, folder)


@pytest.mark.parametrize("place", CONNECTED)
async def test_a_connected_server_dies(place: str, page: Page, folder: Path, problems: ProblemsOfTest) -> None:
    problems.expect("status of 409")
    name = name_of(place)
    await connect(page, name)
    await expect(card(page, name).locator("h2 .state")).to_have_text("connected")
    if place == "while it is subscribed":
        await page.goto(f"#/notifications/{name}")
        await page.get_by_label("tools", exact=True).check()
        await page.get_by_role("button", name="Subscribe", exact=True).click()
        await expect(page.get_by_role("region", name="Subscriptions")).to_contain_text("0 events")
    elif place != "while it is idle":
        await page.goto(f"#/tools/{name}/act")
    if place in ("tools/call", "in a response", "while it asks"):
        await page.get_by_role("button", name="Call", exact=True).click()
    if place == "while it asks":
        await page.goto(f"#/questions/{name}")
        await expect(page.get_by_role("region", name="Elicitation: a form")).to_be_visible()
    if place.startswith("while"):
        os.kill(int((folder / name / "pid").read_text()), signal.SIGKILL)
    if place == "while it asks":
        await expect(page.get_by_role("region", name="Elicitation: a form")).to_have_count(0)
        await expect(page.get_by_role("main")).to_contain_text("the connection to the server is lost")
    await is_lost(page, name)
    if place == "while it is subscribed":
        (view,) = (await send(page, "notifications/list", server=name))["subscriptions"]
        assert not view["isOpen"]
    calls = (await send(page, "calls/list", server=name))["calls"]
    assert all(each["state"] == "failed" and each["error"] for each in calls)
    await works_again(page, name, folder)


WAITING = """
import asyncio, sys
from accord import Server

server = Server("waiting")

@server.tool
async def act(wait: bool = False) -> str:
    if wait:
        await asyncio.Event().wait()
    return "done"

server.run(http=sys.argv[1])
"""


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_server_over_http_dies_in_a_call_and_is_found_again(
    revision: str, inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest, tmp_path: Path
) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    command = [sys.executable, str(tmp_path / "waiting.py")]
    with serving(command) as server:
        page = await open_page((await inspect(f"{server.url}/mcp")).link)
        problems.expect("status of 409")
        await first_tools(page)
        name = f"127.0.0.1-{server.port}"
        await send(page, "servers/connect", server=name, revision=revision)
        await send(page, "calls/start", server=name, kind="tool", name="act", argumentsJson='{"wait": true}')
        await page.goto(f"#/tools/{name}/act")
        await page.get_by_text("Calls: 1").click()
        await page.get_by_role("button", name="act, running").click()
        server.process.kill()
        await expect(page.locator(".call .state")).to_have_text("failed")
        await expect(page.locator(".call p.error")).to_be_visible()
    with serving(command, server.port):
        await send(page, "servers/disconnect", server=name)
        await connect(page, name)
        await expect(card(page, name).locator("h2 .state")).to_have_text("connected")
        await page.goto(f"#/tools/{name}/act")
        await page.get_by_role("button", name="Call", exact=True).click()
        await expect(page.locator(".call .state")).to_have_text("done")
        await page.close()
