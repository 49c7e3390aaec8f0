"""Fixtures of the tests with a host of MCP Apps in a browser: the official SDK, in headless Chromium.

    opened = await open_app(page, calls={"refresh": ...}, input={...}, result={...})

loads a page into a frame with the policy that its metadata declares, as hosts do. `opened.frame` is the frame, and
`await opened.seen("calls")` what the host got. A test fails if a script of the page or of the host has an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
from playwright.async_api import BrowserContext, FrameLocator, Page, Route

from accord import AppDocument
from accord.messages.base import JSONObject

from tests.inspector.browser.browser import BrowserThread
from tests.interop.peers import browser_bundle

CallTool = Callable[[str, JSONObject], Awaitable[Any]]
CONTEXT = {"theme": "dark", "locale": "en-US", "styles": {"variables": {"--font-sans": "monospace"}}}
HOST = "https://host.example/"
APP = "https://app.example/"

bundle = cache(browser_bundle)


def policy(page: AppDocument) -> str:
    """The policy that hosts build from the metadata of a page (MCP Apps, Security Implications)."""
    resource, csp = " ".join(page.csp.resource), page.csp
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'unsafe-inline' {resource}",
            f"style-src 'self' 'unsafe-inline' {resource}",
            f"img-src 'self' data: {resource}",
            f"font-src 'self' {resource}",
            f"media-src 'self' data: {resource}",
            f"connect-src {' '.join(csp.connect) or chr(39) + 'none' + chr(39)}",
            f"frame-src {' '.join(csp.frame) or chr(39) + 'none' + chr(39)}",
            "object-src 'none'",
            f"base-uri {' '.join(csp.base_uri) or chr(39) + 'self' + chr(39)}",
        )
    )


class OpenedApp:
    """A page in a host."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frame: FrameLocator = page.frame_locator("iframe")

    async def seen(self, what: str) -> Any:
        """Return what the host noted: sizes, links, messages, calls, failed, app."""
        return await self.page.evaluate(f"() => window.seen.{what}")

    async def wait(self, condition: str) -> None:
        """Wait for a condition of the host's page."""
        await self.page.wait_for_function(condition)


OpenApp = Callable[..., Awaitable[OpenedApp]]


@pytest.fixture
def open_app(browser_thread: BrowserThread) -> Iterator[OpenApp]:
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    async def open_page(
        document: AppDocument,
        *,
        call: CallTool | None = None,
        input: JSONObject | None = None,
        result: Any = None,
        context: JSONObject = CONTEXT,
        **options: Any,
    ) -> OpenedApp:
        opened = await (await browser_thread.browser()).new_context(**options)
        contexts.append(opened)
        opened.set_default_timeout(30_000)
        page = await opened.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda each: problems.append(each.text) if each.type in ("error", "warning") else None)

        async def serve(route: Route) -> None:
            if route.request.url == HOST:
                body = f'<!doctype html><title>host</title><script type="module">{_inline(bundle("host.mjs"))}</script>'
                await route.fulfill(body=body, content_type="text/html; charset=utf-8")
            elif route.request.url == APP:
                headers = {"content-security-policy": policy(document), "content-type": "text/html; charset=utf-8"}
                await route.fulfill(body=document.html, headers=headers)
            else:
                problems.append(f"a request to {route.request.url}")
                await route.abort()

        async def called(name: str, arguments: JSONObject) -> Any:
            assert call is not None, name
            return msgspec.to_builtins(await call(name, arguments), str_keys=True)

        await opened.route("**/*", serve)
        await page.expose_function("callTool", called)
        await page.goto(HOST)
        sent = {"url": APP, "input": input, "context": context, "result": msgspec.to_builtins(result)}
        await page.wait_for_function("() => window.openApp")
        await page.evaluate("(options) => window.openApp(options)", sent)
        return OpenedApp(page)

    yield open_page
    for each in contexts:
        browser_thread.run(each.close())
    assert problems == []


def _inline(script: str) -> str:
    return script.replace("</script", r"<\/script")
