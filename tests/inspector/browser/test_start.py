"""The page starts from the link: the token leaves the address, a reload keeps it, and errors have a cure."""

from __future__ import annotations

from playwright.async_api import Page, Route, expect

from tests.inspector.browser.browser import hold_requests, opened_screen
from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.waiting import until


async def test_the_page_opens_connected_to_the_target(page: Page) -> None:
    await page.goto("#/servers")
    server = page.get_by_role("region", name="everything")
    await expect(server.get_by_text("connected", exact=True)).to_be_visible()
    await expect(server.get_by_role("button", name="Disconnect")).to_be_enabled()


async def test_the_token_leaves_the_address_and_is_in_no_cookie(page: Page, inspect: Inspect) -> None:
    inspector = await inspect("examples/everything.py")
    assert len(inspector.token) >= 43  # 256 bits in base64
    assert inspector.token not in page.url
    assert await page.evaluate("document.cookie") == ""
    assert await page.context.cookies() == []
    assert await page.evaluate("Object.values(sessionStorage)") == [inspector.token]
    assert await page.evaluate("localStorage.length") == 0
    assert await page.evaluate("history.length") <= 10
    html = await page.content()
    assert inspector.token not in html


async def test_a_reload_keeps_the_token(page: Page) -> None:
    await page.goto("#/servers")
    await page.reload()
    await expect(page.get_by_role("region", name="everything")).to_be_visible()


async def test_a_page_without_the_token_says_where_the_link_is(inspect: Inspect, open_page: OpenPage) -> None:
    inspector = await inspect("examples/everything.py")
    page = await open_page(inspector.base)
    await expect(page.get_by_role("alert")).to_contain_text("the link that accord inspect printed")


async def test_a_page_with_a_wrong_token_is_refused(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("examples/everything.py")
    page = await open_page(f"{inspector.base}/#token={'a' * 43}")
    problems.expect("status of 401")
    await expect(page.get_by_role("alert")).to_contain_text("open the link in the terminal again")


async def test_a_new_link_in_the_same_tab_replaces_the_token(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("examples/everything.py")
    page = await open_page(inspector.base)
    problems.expect("status of 401")
    wrong = f"{inspector.base}/#token={'a' * 43}"
    for error, link in (("needs the link", wrong), ("was replaced", inspector.link)):
        await expect(page.get_by_role("alert")).to_contain_text(error)
        await page.evaluate("link => { location.href = link }", link)
    await expect(page.get_by_role("option", name="everything").first).to_be_attached()
    assert inspector.token not in page.url


async def test_a_refused_page_does_not_go_on_asking(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("examples/everything.py")
    page = await open_page(inspector.base)
    await page.clock.install()
    await page.goto(f"#token={'a' * 43}")
    problems.expect("status of 401")
    await expect(page.get_by_role("alert")).to_contain_text("was replaced")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await page.clock.run_for(10_000)
    assert requests == []


async def test_another_screen_opens_at_its_top(page: Page) -> None:
    await page.set_viewport_size({"width": 700, "height": 300})
    await page.goto("#/servers/everything.py")
    await expect(page.get_by_role("button", name="Disconnect")).to_be_visible()
    await page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert await page.evaluate("scrollY") > 0
    await opened_screen(page, "#/apps/everything.py")
    assert await page.evaluate("scrollY") == 0


async def test_a_screen_that_is_chosen_before_the_servers_are_known_is_of_the_same_server(page: Page) -> None:
    await opened_screen(page, "#/tools/everything.py")
    released = await hold_requests(page, "**/api/servers/list")
    await page.reload()
    await page.get_by_role("link", name="Prompts").click()
    released.set()
    await expect(page.get_by_role("region", name="Prompts").get_by_role("link").first).to_be_visible()
    await page.unroute("**/api/servers/list")


async def test_the_first_server_is_connected_once_although_the_servers_change_meanwhile(
    inspect: Inspect, open_page: OpenPage
) -> None:
    inspector = await inspect("examples/shop.py")
    page = await open_page(inspector.base)
    await page.evaluate("token => sessionStorage.setItem('accord-inspector-token', token)", inspector.token)
    held: list[Route] = []

    async def hold(route: Route) -> None:
        if len(held) < 2:
            return held.append(route)
        return await route.continue_()

    await page.route("**/api/servers/list", hold)
    commands: list[str] = []
    page.on("request", lambda request: commands.append(request.url.rpartition("/")[2]))
    await page.reload()
    await until(lambda: len(held) == 1)
    await page.evaluate(ADD)
    await until(lambda: len(held) == 2)
    for route, response in [(route, await route.fetch()) for route in held]:  # neither knows of the connection
        await route.fulfill(response=response)
    await expect(page.get_by_role("combobox", name="Server")).to_contain_text("shop.py (connected)")
    assert commands.count("connect") == 1


ADD = """async () => {
  const { send } = await import(new URL("connection.js", document.baseURI).href);
  await send("servers/add", { target: "http://127.0.0.1:9/mcp" });
}"""


async def test_the_skip_link_moves_the_focus_and_stays_on_the_screen(page: Page) -> None:
    await page.goto("#/servers/everything")
    await page.get_by_role("link", name="Skip to content").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith("#/servers/everything")


async def test_a_page_whose_inspector_ended_says_what_to_do(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    inspector = await inspect()
    page = await open_page(inspector.link)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    problems.expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE")
    await inspector.stop()
    await expect(page.get_by_role("alert").filter(has_text="start accord inspect again").first).to_be_visible()


async def test_the_first_server_is_connected_whatever_screen_is_open(inspect: Inspect, open_page: OpenPage) -> None:
    inspector = await inspect("examples/weather.py")
    page = await open_page(inspector.base)
    await page.evaluate("token => sessionStorage.setItem('accord-inspector-token', token)", inspector.token)
    await page.goto(f"{inspector.base}/#/timeline")
    await page.reload()
    server = page.get_by_role("combobox", name="Server")
    await expect(server).to_contain_text("weather.py (connected)")
    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    await page.goto("#/servers")
    await page.get_by_role("button", name="Disconnect").click()
    await expect(server).to_contain_text("weather.py (idle)")
    await page.reload()
    await expect(page.get_by_role("button", name="Connect", exact=True)).to_be_visible()
    await expect(server).to_contain_text("weather.py (idle)")  # as the user left it
