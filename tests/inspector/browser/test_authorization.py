"""The screen Authorization: a login with the browser, a failed step with its cure, and no secret on the page."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.auth.place import Place, place
from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.inspector.browser.test_accessibility import axe, problems_of
from tests.inspector.browser.test_screens import COUNT_COMMANDS, shown

EXPECTED = r"request to another host: GET http://127\.0\.0\.1|status of 409"
"""What the tab of the login requests, and that the server cannot be connected without a login."""


FORCED: dict[str, Any] = {"forced_colors": "active", "color_scheme": "light"}


def name_of(at: Place) -> str:
    return at.url.split("/")[2].replace(":", "-")


async def open_screen(at: Place, inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest) -> Page:
    """Open the screen of a server, and start a run."""
    process = await inspect(at.url)
    page = await open_page(process.link)
    problems.expect(EXPECTED)
    await page.goto(f"{process.base}/#/authorization/{name_of(at)}")
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.get_by_role("button", name="Next step: challenge")).to_be_enabled()
    return page


async def test_the_user_logs_in_with_the_browser(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    async with place() as at:
        page = await open_screen(at, inspect, open_page, problems)
        await page.get_by_role("button", name="Next step: challenge").click()
        await expect(page.get_by_role("heading", name="Evidence: challenge")).to_be_visible()
        await expect(page.get_by_role("row", name="status 401 401")).to_contain_text("as expected")
        await page.set_viewport_size({"width": 320, "height": 640})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320
        await page.set_viewport_size({"width": 1280, "height": 720})
        await page.get_by_role("button", name="Run all").click()
        link = page.get_by_role("link", name=f"{at.issuer.issuer}/authorize?")
        await expect(link).to_have_attribute("rel", "noopener noreferrer")
        assert (await link.text_content() or "") == await link.get_attribute("href")
        async with page.context.expect_page() as opened:
            await link.click()
        tab = await opened.value
        await expect(tab.get_by_role("heading", name="Login received")).to_be_visible()
        await tab.close()
        await expect(page.get_by_role("button", name="All steps are done")).to_be_visible()
        await expect(page.locator(".authorization-steps .step-done")).to_have_count(8)
        await page.get_by_role("button", name="Simulate expiry").click()
        await expect(page.get_by_text("expired", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Next step: authorized MCP request").click()
        await expect(page.get_by_text("valid, as far as the client knows")).to_be_visible()
        await page.get_by_role("link", name="token request").click()
        await expect(page.get_by_role("heading", name="Evidence: token request")).to_be_visible()
        await expect(page.get_by_label("Request", exact=True)).to_contain_text("code_verifier=[redacted]")
        await page.get_by_role("button", name="Save as the stored login").click()
        await expect(page.get_by_role("button", name="Saved")).to_be_disabled()
        content = await page.content()
        assert at.issuer.secrets
        assert not [secret for secret in at.issuer.secrets if secret in content]


async def test_a_failed_step_has_its_cure_and_is_repeated_with_a_setting(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    async with place(faults=["s256_missing"]) as at:
        page = await open_screen(at, inspect, open_page, problems)
        await page.get_by_role("button", name="Run all").click()
        await expect(page.get_by_role("heading", name="Evidence: authorization request")).to_be_visible()
        await expect(page.locator(".step-failed")).to_contain_text("--assume-pkce")
        await expect(page.get_by_role("row", name="code_challenge_methods_supported")).to_contain_text(
            "not as expected"
        )
        await page.get_by_text("Settings of this run").click()
        await page.get_by_label("Accept an authorization server that does not state S256").check()
        await use_settings(page)
        await page.get_by_role("button", name="Run all").click()
        await expect(page.get_by_text("The callback step waits")).to_be_visible()
        url = await page.get_by_role("link", name=f"{at.issuer.issuer}/authorize?").get_attribute("href")
        await page.get_by_label("Or paste the URL").fill(at.issuer.callback(url or ""))
        await page.get_by_role("button", name="Use this URL").click()
        await expect(page.get_by_role("button", name="All steps are done")).to_be_visible()
        await expect(page.get_by_text("--assume-pkce", exact=True)).to_be_visible()


async def test_each_step_runs_by_pressing_one_button_again_and_again(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    """The button is disabled while its step runs, and has the focus again when it is enabled."""
    async with place() as at:
        page = await open_screen(at, inspect, open_page, problems)
        button = page.get_by_role("button", name="Next step: ")
        await button.focus()
        for step in ("resource metadata", "authorization server metadata"):
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name=f"Next step: {step}", exact=True)).to_be_enabled()
            await expect(button).to_be_focused()


async def test_a_step_that_is_chosen_while_another_one_runs_stays_in_sight(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    async with place() as at:
        page = await open_screen(at, inspect, open_page, problems)
        await page.get_by_role("button", name="Next step: challenge").click()
        released = asyncio.Event()

        async def hold(route: Route) -> None:
            response = await route.fetch()
            await released.wait()
            await route.fulfill(response=response)

        await page.route("**/api/authorization/step", hold)
        await page.get_by_role("button", name="Next step: resource metadata").click()
        await expect(page.locator(".authorization-steps .step-done")).to_have_count(2)
        await page.get_by_role("link", name="challenge").click()
        await expect(page.get_by_role("heading", name="Evidence: challenge")).to_be_visible()
        await page.evaluate(COUNT_COMMANDS)
        released.set()
        await expect(page.locator("#announcements")).to_contain_text("next step: authorization server metadata")
        await shown(page)
        assert "Evidence: challenge" in await page.get_by_role("heading").all_inner_texts()


async def test_a_run_survives_a_reload(inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest) -> None:
    async with place() as at:
        page = await open_screen(at, inspect, open_page, problems)
        await page.get_by_role("button", name="Run all").click()
        await expect(page.get_by_text("The callback step waits")).to_be_visible()
        await page.reload()
        await expect(page.get_by_text("The callback step waits")).to_be_visible()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".step-stopped")).to_contain_text("callback")


async def accessibility(page: Page) -> list[str]:
    """Return what is wrong with the page as it is now: wide and light, narrow and dark, with forced colours."""
    await page.evaluate(axe())
    found: list[str] = []
    for width, media in ((1280, {"color_scheme": "light"}), (320, {"color_scheme": "dark"}), (1280, FORCED)):
        await page.set_viewport_size({"width": width, "height": 700})
        await page.emulate_media(reduced_motion="reduce", **{"forced_colors": "none", **media})
        found += [f"{width} {media}: {each}" for each in await problems_of(page)]
    return found


@pytest.mark.parametrize("fault", [None, "iss_of_another"])
async def test_every_state_of_the_screen_is_accessible(
    fault: str | None, inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    async with place(faults=[fault] if fault else []) as at:
        page = await open_screen(at, inspect, open_page, problems)
        await page.get_by_role("button", name="Run all").click()
        await expect(page.get_by_text("The callback step waits")).to_be_visible()
        await page.get_by_text("Settings of this run").click()
        assert await accessibility(page) == []
        url = await page.get_by_role("link", name=f"{at.issuer.issuer}/authorize?").get_attribute("href")
        await page.get_by_label("Or paste the URL").fill(at.issuer.callback(url or ""))
        await page.get_by_label("Or paste the URL").press("Enter")
        if fault is not None:
            await expect(page.locator(".step-failed")).to_be_visible()
        else:
            refresh = page.get_by_role("button", name="Refresh")
            await expect(refresh).to_be_enabled()  # the last step is done a moment before nothing runs
            await refresh.press("Enter")
            await expect(page.get_by_role("link", name="token refresh")).to_be_visible()
        assert await accessibility(page) == []


async def test_a_server_without_a_url_has_no_login(page: Page) -> None:
    await page.goto("#/authorization/everything.py")
    await expect(page.get_by_text("Only servers at a URL have logins.")).to_be_visible()


SAFE = [
    "https://login.example/authorize?state=1",
    "http://localhost:1/x",
    "http://127.0.0.1/x",
    "http://127.8.9.1/x",
    "http://[::1]:9/x",
    "https://login.example:8443",
]
UNSAFE = [
    *(
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
    ),
    *(
        "http://login.example/",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/",
        "file:///etc/passwd",
    ),
    *("https://user@login.example/", "https://user:x@login.example/", "vbscript:x", "blob:https://x/1", "//x.example"),
    *("ftp://login.example", "", "https://", "https:\\\\login.example", "https://login.example/\n", "about:blank"),
    *("http://0x7f.1@evil.example/", "mailto:ann@login.example", "intent://x", "ws://localhost/", "http:// x/"),
]


@pytest.mark.parametrize(("urls", "safe"), [(SAFE, True), (UNSAFE, False)], ids=["safe", "unsafe"])
async def test_only_https_and_this_machine_become_links(page: Page, urls: list[str], safe: bool) -> None:
    script = (
        "async (urls) => { const { isSafe } = await import('./components/safe_link.js'); return urls.map(isSafe); }"
    )
    found = await page.evaluate(script, urls)
    assert dict(zip(urls, found, strict=True)) == dict.fromkeys(urls, safe), json.dumps(urls)


async def test_a_link_shows_the_host_that_it_opens(page: Page) -> None:
    """A look-alike letter of a host, and a character that turns the text of a path, are shown encoded."""
    text = await page.evaluate(SHOWN_LINK, "https://\u0430pple.example/\u202emoc")
    assert text == "https://xn--pple-43d.example/%E2%80%AEmoc"


SHOWN_LINK = """async (url) => {
    const { safeLink } = await import("./components/safe_link.js");
    const { render } = await import("./vendor/lit-html/lit-html.js");
    const place = document.createElement("div");
    render(safeLink(url), place);
    return place.textContent;
}"""


async def test_the_user_logs_in_on_another_device(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    async with place() as at:
        page = await open_screen(at, inspect, open_page, problems)
        await use_grant(page, "device")
        await page.get_by_role("button", name="Run all").click()
        device = page.get_by_role("region", name="Log in on any device")
        await expect(device).to_contain_text("CODE-0001")
        await expect(device.get_by_role("link")).to_have_attribute(
            "href", re.compile(r"/activate\?user_code=CODE-0001$")
        )
        await page.evaluate(axe())
        assert await problems_of(page) == []
        at.issuer.approve_device("CODE-0001")
        await expect(page.get_by_role("button", name="All steps are done")).to_be_visible()
        await expect(device).to_have_count(0)
        await expect(page.locator(".authorization-steps .step-done")).to_have_count(7)


async def test_a_program_gets_its_tokens_with_its_secret(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    async with place() as at:
        at.issuer.add_client("robot", "the-secret-of-the-robot")
        page = await open_screen(at, inspect, open_page, problems)
        await use_grant(page, "program", {"Client ID": "robot", "Client secret": "the-secret-of-the-robot"})
        await page.get_by_role("button", name="Run all").click()
        await expect(page.get_by_role("button", name="All steps are done")).to_be_visible()
        await expect(page.locator(".authorization-steps .step-done")).to_have_count(5)
        await expect(page.get_by_text("A program gets its tokens anew")).to_be_visible()
        assert "the-secret-of-the-robot" not in await page.content()


async def use_grant(page: Page, grant: str, fields: Mapping[str, str] = MappingProxyType({})) -> None:
    """Change the settings of the run."""
    await page.get_by_text("Settings of this run").click()
    await page.get_by_label("Grant").select_option(grant)
    for name, value in fields.items():
        await page.get_by_label(name, exact=True).fill(value)
    await use_settings(page)
    await expect(page.get_by_role("button", name="Next step: challenge")).to_be_enabled()


async def use_settings(page: Page) -> None:
    """Use the settings in the form, and wait until the run has them: the next command must not overtake this one."""
    async with page.expect_response("**/api/authorization/settings"):
        await page.get_by_role("button", name="Use these settings").click()
