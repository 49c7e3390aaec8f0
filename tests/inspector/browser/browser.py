"""A real browser for tests of the inspector: one Chromium for each worker of pytest, in a thread of its own.

`conftest.py` beside this file has the fixtures and says how a test uses them.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route, async_playwright, expect

from tests.inspector.chromium import find_browser

T = TypeVar("T")

FLAGS = (
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)
"""A test run makes no connection beyond loopback, nor does the browser for itself."""

MILLISECONDS = 60_000
"""How long Playwright waits for an element or a condition, on a busy machine."""

FAILURES = Path(__file__).parent.parent.parent.parent / ".cache" / "browser"
"""Screenshots and HTML of the pages of tests that failed, and traces, which `playwright show-trace FILE` shows."""

TRACED = "ACCORD_BROWSER_TRACE" in os.environ
"""Whether tests are recorded for a trace: that takes a quarter of the time of the processor."""

expect.set_options(timeout=MILLISECONDS)


async def opened_screen(page: Page, address: str) -> None:
    """Go to a screen, and wait until it is drawn and has what it requested."""
    await page.goto(address)
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    await expect(page.get_by_role("main")).not_to_have_attribute("aria-busy", "true")


async def hold_requests(page: Page, pattern: str) -> asyncio.Event:
    """Hold requests that match `pattern` until the returned event is set."""
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await page.route(pattern, hold)
    return released


async def stop_clock(page: Page) -> None:
    """Stop the time of the page: nothing is drawn, and no timer ends, but by `page.clock`."""
    await page.clock.install()
    await page.clock.pause_at(datetime.now() + timedelta(hours=1))


async def first_tools(page: Page) -> None:
    """Wait until the page has connected its first server and lists its tools, as it does when it is opened.

    A test that connects that server in another revision ends the connection, and with it a request for the tools."""
    await page.wait_for_function("() => location.hash")
    if urlsplit(page.url).fragment.startswith("/tools/"):
        await expect(page.get_by_role("region", name="Tools").get_by_role("link").first).to_be_visible()


class BrowserThread:
    """An event loop in a thread, in which tests with a browser run.

    A browser outlives the test that needed it first, and so does its loop; every other async test has a loop of its own
    in the main thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="browser", daemon=True)
        self._thread.start()
        self._profile = tempfile.mkdtemp(prefix="accord-browser-")
        self._browser: Browser | None = None
        self._stop: Any = None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, job: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and return its result; cancel it if this thread is interrupted."""
        future = asyncio.run_coroutine_threadsafe(job, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def browser(self) -> Browser:
        """Return the browser; start it if this is the first test that needs it. Raises `BrowserMissing`."""
        if self._browser is None:
            program = find_browser()
            playwright = await async_playwright().start()
            self._stop = playwright.stop
            # What Chromium writes for itself goes into a folder of its own, not into the user's.
            environment = {**os.environ, "XDG_CONFIG_HOME": self._profile, "XDG_CACHE_HOME": self._profile}
            self._browser = await playwright.chromium.launch(
                executable_path=program,
                headless=True,
                chromium_sandbox=os.geteuid() != 0,  # as root, Chromium starts only without one
                args=[*FLAGS],
                env=dict[str, str | float | bool](environment),
                timeout=120_000,
            )
        return self._browser

    def close(self) -> None:
        self.run(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    async def _close(self) -> None:
        if self._browser is not None:
            await self._browser.close()
        if self._stop is not None:
            await self._stop()


@dataclass
class Problems:
    """What went wrong in the pages of a context: errors of scripts, errors in the console, requests to other hosts."""

    allowed_hosts: frozenset[str]
    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """Allow problems in which the regular expression is found, until the end of the test."""
        self.expected.append(pattern)

    def add(self, problem: str) -> None:
        self.found.append(problem)

    def take(self) -> list[str]:
        """Return the problems that were not expected, and forget all."""
        found = [each for each in self.found if not any(re.search(pattern, each) for pattern in self.expected)]
        self.found, self.expected = [], []
        return found

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", lambda error: self.add(f"error of a script: {error.error}"))
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            where = message.location
            self.add(f"console {message.type}: {message.text} ({where['url']}:{where['lineNumber']})")

    def _request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob", "about") and url.netloc not in self.allowed_hosts:
            self.add(f"request to another host: {request.method} {request.url}")


@dataclass
class OpenContext:
    """One context of the browser with one page. It shares no storage with another."""

    context: BrowserContext
    page: Page
    problems: Problems
    shared: bool = False
    """Whether it stays open after the test that opened it."""

    @classmethod
    async def open(cls, browser: Browser, url: str, options: dict[str, Any], *, shared: bool = False) -> OpenContext:
        """Open a page at `url`. `options` are those of Playwright's `new_context`."""
        base = url.partition("#")[0]
        context = await browser.new_context(**{"reduced_motion": "reduce", "base_url": base, **options})
        context.set_default_timeout(MILLISECONDS)
        port = urlsplit(url).port
        problems = Problems(frozenset({f"127.0.0.1:{port}", f"localhost:{port}"}))
        problems.watch(context)
        if TRACED:
            await context.tracing.start(snapshots=True)
        page = await context.new_page()
        opened = cls(context, page, problems, shared)
        await opened.begin_test()
        await page.goto(url)
        return opened

    async def take_problems(self) -> list[str]:
        """Return what went wrong since the last test, also what the browser has not reported yet."""
        for page in self.context.pages:
            await page.evaluate("0")
        return self.problems.take()

    async def begin_test(self) -> None:
        if TRACED:
            await self.context.tracing.start_chunk()

    async def end_test(self, name: str | None) -> None:
        """End the part of the trace that belongs to a test; write it and what the pages show if the test failed."""
        path = None
        if name is not None:
            FAILURES.mkdir(parents=True, exist_ok=True)
            path = FAILURES / re.sub(r"[^\w.-]+", "_", name)[-150:]
        if TRACED:
            await self.context.tracing.stop_chunk(path=path and f"{path}.zip")
        for at, page in enumerate(self.context.pages if path else ()):
            Path(f"{path}.{at}.html").write_text(await page.content(), encoding="utf-8")  # noqa: ASYNC240
            await page.screenshot(path=f"{path}.{at}.png", timeout=MILLISECONDS)
