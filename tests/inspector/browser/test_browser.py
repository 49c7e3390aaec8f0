"""The fixtures themselves: a page works, its problems are found, and a test that fails leaves evidence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.inspector.browser import browser
from tests.inspector.browser.browser import BrowserThread, OpenContext
from tests.inspector.chromium import BrowserMissing

PAGE = b"""<!doctype html><title>A page</title><link rel="icon" href="data:,">
<button onclick="document.querySelector('output').textContent = 'clicked'">Click</button><output></output>"""


@asynccontextmanager
async def served(page: bytes) -> AsyncIterator[str]:
    """Serve one page at every path."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(page)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + page)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@asynccontextmanager
async def opened(thread: BrowserThread, page: bytes) -> AsyncIterator[OpenContext]:
    async with served(page) as url:
        context = await OpenContext.open(await thread.browser(), url, {})
        yield context
        await context.context.close()


async def test_a_page_without_errors_has_no_problems(browser_thread: BrowserThread) -> None:
    async with opened(browser_thread, PAGE) as context:
        await context.page.get_by_role("button", name="Click").click()
        await expect(context.page.locator("output")).to_have_text("clicked")
        assert await context.take_problems() == []


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("console.error('wrong')", "console error: wrong"),
        ("console.warn('odd')", "console warning: odd"),
        ("setTimeout(() => { throw new Error('thrown') })", "error of a script: thrown"),
        ("Promise.reject(new Error('rejected'))", "error of a script: rejected"),
        ("return fetch('http://localhost:9/').catch(() => 0)", "request to another host: GET http://localhost:9/"),
        (
            "return new Promise((onerror) => Object.assign(new Image(), { onerror, src: 'http://127.0.0.1:9/i' }))",
            "request to another host: GET http://127.0.0.1:9/i",
        ),
    ],
)
async def test_what_goes_wrong_in_a_page_is_found(browser_thread: BrowserThread, script: str, problem: str) -> None:
    async with opened(browser_thread, PAGE) as context:
        await context.page.evaluate(f"async () => {{ {script} }}")
        await context.page.evaluate("new Promise(done => setTimeout(done))")
        found = await context.take_problems()
        assert any(problem in each for each in found), found
        assert await context.take_problems() == []


async def test_a_problem_that_is_expected_is_no_problem(browser_thread: BrowserThread) -> None:
    async with opened(browser_thread, PAGE) as context:
        context.problems.expect("wro.g")
        await context.page.evaluate("console.error('wrong'); console.error('bad')")
        assert [each.partition(" (")[0] for each in await context.take_problems()] == ["console error: bad"]


@pytest.mark.parametrize(("traced", "kinds"), [(False, ["0.html", "0.png"]), (True, ["0.html", "0.png", "zip"])])
async def test_a_failed_test_leaves_what_its_pages_show_and_a_trace_where_one_is_wanted(
    traced: bool, kinds: list[str], browser_thread: BrowserThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "FAILURES", tmp_path / "failures")
    monkeypatch.setattr(browser, "TRACED", traced)
    async with opened(browser_thread, PAGE) as context:
        await context.end_test("tests/test_a.py::test_b[a/b c]")
    files = sorted(path.name for path in (tmp_path / "failures").iterdir())
    assert files == [f"tests_test_a.py_test_b_a_b_c_.{kind}" for kind in kinds]


async def test_without_a_browser_a_test_fails_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> None:
        raise AssertionError("Playwright was started")

    monkeypatch.setenv("ACCORD_BROWSER", "/absent")
    monkeypatch.setattr(browser, "async_playwright", start)
    thread = BrowserThread()
    with pytest.raises(BrowserMissing, match="ACCORD_BROWSER is '/absent'"):
        await thread.browser()
    await asyncio.to_thread(thread.close)


def test_no_test_of_the_page_is_skipped_where_there_is_no_browser() -> None:
    """Where a test is skipped, the system is the reason: it is the same with a browser."""
    for path in Path(__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for skip in re.finditer(r"pytest\.(?:skip|importorskip|mark\.skip(?:if)?)\b[^\n]*", text):
            above = text[: skip.start()].splitlines()[-1:] + text[: skip.start()].splitlines()[-2:-1]
            assert "sys.platform" in "".join([*above, skip[0]]), f"{path.name}: {skip[0]}"


async def test_contexts_share_no_storage(browser_thread: BrowserThread) -> None:
    async with served(PAGE) as url:
        chromium = await browser_thread.browser()
        one, other = [await OpenContext.open(chromium, url, {}) for _ in range(2)]
        await one.page.evaluate("localStorage.setItem('name', 'value')")
        assert await other.page.evaluate("localStorage.getItem('name')") is None
        for each in (one, other):
            await each.context.close()
