"""Fixtures for tests of the inspector's page in a real browser.

    async def test_the_tools_are_listed(page: Page) -> None:
        await page.goto("#/everything/tools")
        await expect(page.get_by_role("link", name="add")).to_be_visible()

- `page` is a page of Chromium at `accord inspect examples/everything.py`, connected, and shared by the tests of a
  module: each test goes to its screen first. A module that needs other targets or options defines the fixture
  `inspected`.
- `inspect(*arguments)` starts `accord inspect` with other arguments; the process is shared by the tests of a module
  that give the same arguments. `open_page(link, **options)` opens another page for one test; `options` are those of
  Playwright's `Browser.new_context`: `color_scheme="dark"`, `viewport={"width": 320, "height": 700}`, ...
- A test fails if a page has an error of a script, an error or a warning in the console, or makes a request to another
  host. `problems.expect(PATTERN)` allows what a test provokes.
- A test that fails leaves screenshots and the HTML of its pages in `.cache/browser/`, and a trace as well where
  `ACCORD_BROWSER_TRACE` is set.
- Tests are `async def`, run in the thread of the browser, and use Playwright's async API with its `expect`. They may
  use everything of accord that is async as well. No sleeps: `expect` and `page.wait_for_function` wait for a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

import pytest
from playwright.async_api import Page

from tests.inspector.browser.browser import BrowserThread, OpenContext, first_tools
from tests.inspector.browser.process import InspectProcess

FAILED = pytest.StashKey[bool]()

Inspect = Callable[..., Coroutine[Any, Any, InspectProcess]]


class OpenPage(Protocol):
    async def __call__(self, url: str, **options: Any) -> Page: ...


class ProblemsOfTest(Protocol):
    def expect(self, pattern: str) -> None:
        """Allow problems in which the regular expression is found, until the end of the test."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="module")
def contexts(browser_thread: BrowserThread) -> Iterator[list[OpenContext]]:
    """The contexts that the tests of a module opened."""
    opened: list[OpenContext] = []
    yield opened
    for each in opened:
        browser_thread.run(each.context.close())


@pytest.fixture(scope="module")
def inspect(browser_thread: BrowserThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspect]:
    """Start `accord inspect`."""
    running: dict[tuple[str, ...], InspectProcess] = {}

    async def start(*arguments: str) -> InspectProcess:
        if arguments not in running:
            running[arguments] = await InspectProcess.start(tmp_path_factory.mktemp("home"), *arguments)
        return running[arguments]

    yield start
    for process in running.values():
        browser_thread.run(process.stop())


@pytest.fixture
def open_page(browser_thread: BrowserThread, contexts: list[OpenContext]) -> OpenPage:
    """Open a page in a context of its own, which the end of the test closes."""

    async def open_at(url: str, **options: Any) -> Page:
        opened = await OpenContext.open(await browser_thread.browser(), url, options)
        contexts.append(opened)
        return opened.page

    return open_at


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    """The arguments of `accord inspect` for `page`."""
    return ("examples/everything.py",)


@pytest.fixture(scope="module")
def page(
    browser_thread: BrowserThread, inspect: Inspect, contexts: list[OpenContext], inspected: tuple[str, ...]
) -> Page:
    """The page that the tests of a module share."""

    async def start() -> OpenContext:
        link = (await inspect(*inspected)).link
        opened = await OpenContext.open(await browser_thread.browser(), link, {}, shared=True)
        await first_tools(opened.page)
        return opened

    contexts.append(browser_thread.run(start()))
    return contexts[-1].page


@pytest.fixture
def problems(contexts: list[OpenContext]) -> ProblemsOfTest:
    """What a test expects to go wrong."""

    class Expected:
        def expect(self, pattern: str) -> None:
            assert contexts, "open the page first: what is expected holds for pages that are open"
            for each in contexts:
                each.problems.expect(pattern)

    return Expected()


@pytest.fixture(autouse=True)
def checked(
    request: pytest.FixtureRequest, browser_thread: BrowserThread, contexts: list[OpenContext]
) -> Iterator[None]:
    """Every test is recorded, and fails if something went wrong in a page."""
    for each in contexts:
        browser_thread.run(each.begin_test())
    yield
    found = [problem for each in contexts for problem in browser_thread.run(each.take_problems())]
    failed = request.node.stash.get(FAILED, False) or bool(found)
    for each in contexts:
        browser_thread.run(each.end_test(request.node.nodeid if failed else None))
        if not each.shared:
            browser_thread.run(each.context.close())
    contexts[:] = [each for each in contexts if each.shared]
    if found:
        pytest.fail("\n".join(["the page has problems:", *found]), pytrace=False)
