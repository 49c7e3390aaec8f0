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

from tests.inspector.browser.conftest import ProblemsOfTest
from tests.inspector.browser.test_questions_screen import send

FILE = Path(__file__).parent / "dying_server.py"

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
