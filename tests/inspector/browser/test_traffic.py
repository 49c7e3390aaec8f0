"""The screens Timeline, Sessions and Comparison, on a real server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from accord.wire.session_file import StderrEntry

from tests.inspector.browser.browser import stop_clock
from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.inspector.browser.test_accessibility import MODES, axe, problems_of
from tests.inspector.browser.test_questions_screen import send
from tests.inspector.traffic.sessions import Script, usual


async def connect(page: Page) -> str:
    """Connect the server, if it is not, and return its name."""
    (server,) = (await send(page, "servers/list"))["servers"]
    if server["state"] != "connected":
        await send(page, "servers/connect", server=server["name"])
    return str(server["name"])


async def test_the_timeline_shows_messages_and_spans(page: Page) -> None:
    await connect(page)
    await page.goto("#/timeline")
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid.get_by_role("row").filter(has_text="server/discover").first).to_be_visible()
    await expect(page.get_by_role("img", name=re.compile(r"\d+ spans from"))).to_be_visible()
    await grid.get_by_role("row").filter(has_text="server/discover").first.click()
    entry = page.get_by_role("complementary", name="Selected message")
    await expect(entry.get_by_role("heading")).to_contain_text("server/discover")
    await expect(entry.locator("pre").first).to_contain_text('"method": "server/discover"')
    await entry.get_by_label("Raw bytes").check()
    await expect(entry.locator("pre").first).to_contain_text('"method":"server/discover"')
    await entry.get_by_label("Raw bytes").uncheck()
    await entry.get_by_role("button", name="Show its response").click()
    await expect(entry.get_by_role("heading")).to_contain_text("response server/discover")


async def test_a_filter_shows_what_matches_and_its_errors(page: Page) -> None:
    await connect(page)
    await page.goto("#/timeline")
    box = page.get_by_role("searchbox", name="Filter")
    grid = page.get_by_role("grid", name="Messages")
    await box.fill("row:1")
    await expect(grid.locator(".virtual-row:not([hidden])")).to_have_count(1)
    await box.fill("methud:a")
    await expect(page.locator("#filter-error")).to_contain_text("unknown key 'methud'")
    await expect(box).to_have_attribute("aria-invalid", "true")
    await box.fill("")
    await expect(page.locator("#filter-error")).to_be_empty()
    await expect(grid.locator(".virtual-row:not([hidden])")).not_to_have_count(1)


async def test_the_filter_keeps_what_is_typed_before_its_last_text_was_drawn(
    inspect: Inspect, open_page: OpenPage, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(usual().content())
    page = await open_page((await inspect("--session", str(file))).link)
    await expect(page.get_by_role("grid", name="Messages").locator("#row-6")).to_contain_text("bake")
    box = page.get_by_role("searchbox", name="Filter")
    await box.focus()
    await stop_clock(page)
    async with page.expect_response("**/api/traffic/rows"):
        await page.keyboard.type("b")
        await page.clock.run_for(160)
    await page.keyboard.type("ake")
    await page.clock.run_for(40)
    await expect(box).to_have_value("bake")


async def test_the_list_works_by_keyboard(inspect: Inspect, open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(usual().content())  # of a live session, new messages change the last row at any time
    page = await open_page((await inspect("--session", str(file))).link)
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid.locator(".virtual-row:not([hidden])").first).to_be_visible()
    await grid.focus()
    await page.keyboard.press("Home")
    await expect(grid).to_have_attribute("aria-activedescendant", "row-0")
    await page.keyboard.press("ArrowDown")
    await expect(grid).to_have_attribute("aria-activedescendant", "row-1")
    await expect(grid.locator("#row-1")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("End")
    rows = file.read_bytes().count(b"\n") - 1  # the first line describes the file
    await expect(grid).to_have_attribute("aria-rowcount", str(rows + 1))
    await expect(grid).to_have_attribute("aria-activedescendant", f"row-{rows - 1}")


async def test_a_session_file_is_opened_dropped_and_compared(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(usual().content()[:-20])
    await page.goto("#/sessions")
    await page.get_by_label("Session file or transcript").set_input_files(file)
    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    await expect(page.get_by_text("the last line (10) is incomplete; it is left out")).to_be_visible()
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid.get_by_role("row").filter(has_text="bake").first).to_be_visible()
    await page.get_by_role("searchbox", name="Filter").fill("status:error")
    await expect(grid.locator(".virtual-row:not([hidden])")).to_have_count(2)

    script = Script()
    script.request(1, "tools/list")
    script.result(1, tools=[], ttlMs=0, cacheScope="public")
    await page.evaluate(DROP, script.content().decode())
    await expect(page.get_by_role("combobox", name="Session")).to_contain_text("s.jsonl")
    await expect(grid.locator(".virtual-row:not([hidden])")).to_have_count(2)
    await page.goto("#/sessions")
    await expect(page.get_by_role("heading", name="Compare two sessions")).to_be_visible()
    await page.get_by_label("Before").select_option("session.jsonl")
    await page.get_by_label("After").select_option("s.jsonl")
    await page.get_by_role("region", name="Compare two sessions").get_by_role("link", name="Compare").click()
    offers = page.get_by_role("region", name="What the servers offer")
    await expect(offers.get_by_role("row").filter(has_text="tools.price")).to_contain_text("breaking")
    responses = page.get_by_role("region", name="Responses to the same requests")
    await responses.get_by_role("link", name="difference").first.click()
    await expect(page.locator(".difference del").first).to_contain_text("-")


DROP = """(text) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "s.jsonl"));
  window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
}"""


async def test_a_session_file_is_shown_without_a_server(inspect: Inspect, open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(usual().content())
    inspector = await inspect("--session", str(file))
    page = await open_page(inspector.link)
    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid.get_by_role("row").filter(has_text="bake").first).to_be_visible()
    await expect(page.get_by_role("combobox", name="Session")).to_contain_text("session.jsonl")


async def test_a_file_is_dropped_on_the_first_screen(inspect: Inspect, open_page: OpenPage) -> None:
    page = await open_page((await inspect("examples/everything.py")).link)
    await page.wait_for_function("() => location.hash")
    await page.goto("#/servers")
    await expect(page.get_by_role("region", name="everything")).to_be_visible()
    await page.evaluate(DROP, usual().content().decode())
    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    await expect(page.get_by_role("combobox", name="Session")).to_contain_text("s.jsonl")


async def test_new_messages_appear_and_are_followed(page: Page) -> None:
    name = await connect(page)
    await page.goto("#/timeline")
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid.locator(".virtual-row:not([hidden])").first).to_be_visible()
    await page.get_by_label("Follow new messages").check()
    before = int(await grid.get_attribute("aria-rowcount") or 0)
    for command in ("disconnect", "connect"):
        await page.evaluate(SEND, [command, name])
    await page.wait_for_function(
        "before => Number(document.querySelector('.virtual-list').getAttribute('aria-rowcount')) > before + 3",
        arg=before,
    )
    await expect(grid.locator(".virtual-row:not([hidden])").filter(has_text="closed").first).to_be_visible()
    await page.get_by_label("Follow new messages").uncheck()


SEND = """async ([command, server]) => {
  const { send } = await import(new URL("connection.js", document.baseURI).href);
  await send(`servers/${command}`, { server });
}"""


async def test_the_content_of_a_server_is_text(page: Page, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202e\u200b"
    script = Script()
    script.connected(name=hostile)
    script.request(1, hostile, name=hostile)
    script.result(1, content=[{"type": "text", "text": hostile}], **{hostile: hostile})
    script.message({"jsonrpc": "2.0", "id": hostile, "method": hostile, "params": {"uri": hostile}}, "received")
    script.message(hostile.encode(), "received")
    script.add(StderrEntry, text=hostile)
    script.lost(hostile)
    await page.goto("#/timeline")
    await expect(page.get_by_role("grid", name="Messages")).to_be_visible()
    await page.evaluate(DROP, script.content().decode())
    await expect(page.get_by_role("combobox", name="Session")).to_contain_text("s.jsonl")
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid).to_have_attribute("aria-rowcount", "8")
    entry = page.get_by_role("complementary", name="Selected message")
    for row in range(7):
        await grid.locator(f"#row-{row}").click()
        await expect(entry.locator("dd").first).to_have_text(str(row))
    await page.get_by_text("Spans as a table").click()
    await page.get_by_role("button", name="Compute").click()
    await expect(page.locator("table").last.get_by_text("<script>").first).to_be_visible()
    text = await page.evaluate("document.getElementById('page').textContent")
    assert "\u202e" not in text
    assert "\u200b" not in text
    assert "owned" not in await page.title()
    assert await page.locator("main img").count() + await page.locator("main script").count() == 0
    await page.get_by_text("Spans as a table").click()


async def test_another_file_is_refused_with_a_cure(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect("status of 400")
    await page.goto("#/timeline")
    await expect(page.get_by_role("grid", name="Messages")).to_be_visible()
    await page.evaluate(DROP, "{}")
    await expect(page.get_by_role("alert")).to_contain_text("cannot be opened")
    await expect(page.get_by_role("alert")).to_contain_text("record one with --record FILE")


async def test_two_messages_are_pinned_and_compared(page: Page) -> None:
    await connect(page)
    await page.goto("#/timeline")
    grid = page.get_by_role("grid", name="Messages")
    entry = page.get_by_role("complementary", name="Selected message")
    for position in (1, 2):
        await grid.locator(f"#row-{position}").click()
        await expect(entry.locator("dd").first).to_have_text(str(position))
        await entry.get_by_role("button", name="Pin", exact=True).click()
    await page.get_by_role("link", name="Compare the last two").click()
    await expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    await expect(page.locator(".difference")).to_contain_text("jsonrpc")


async def test_latencies_are_shown_by_method(page: Page) -> None:
    await connect(page)
    await page.goto("#/timeline")
    region = page.get_by_role("region", name="Latencies of the requests that match")
    await region.get_by_role("button", name="Compute").click()
    await expect(region.get_by_role("row").filter(has_text="server/discover")).to_be_visible()


async def test_the_revisions_of_a_server_are_compared(page: Page) -> None:
    name = await connect(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    await page.goto(f"#/compare/{name}/revisions/{name}")
    button = page.get_by_role("button", name="Compare", exact=True)
    await expect(button).to_be_visible()  # an address, which any page can link to, starts nothing
    assert not any("compare-servers" in url for url in sent)
    await button.click()
    await expect(page.get_by_role("heading", name="2025-11-25 → 2026-07-28")).to_be_visible()
    await expect(page.locator(".effect").first).to_be_visible()


async def test_an_empty_session_gives_way_to_the_file_that_was_opened(
    inspect: Inspect, open_page: OpenPage, tmp_path: Path
) -> None:
    file = tmp_path / "shop.jsonl"
    file.write_bytes(usual().content())
    page = await open_page((await inspect("--session", str(file))).link)
    screens, session = page.get_by_role("navigation", name="Screens"), page.get_by_role("combobox", name="Session")
    await expect(session).to_contain_text("shop.jsonl")
    await screens.get_by_role("link", name="Sessions").click()
    await expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()
    await screens.get_by_role("link", name="Timeline").click()
    await expect(page.get_by_role("grid", name="Messages").locator("#row-6")).to_contain_text("bake")


SCROLL = """async (steps) => {
  const list = document.querySelector(".virtual-list");
  for (let step = 0; step < steps; step += 1) {
    list.scrollTop += 137;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }
  return document.querySelectorAll("*").length;
}"""

MOST_SCRIPT, MOST_TASK = 5.0, 50.0
"""Milliseconds of a frame's scripts at the 95th percentile, and of any task: the figures of the issue."""


async def traced(page: Page, work: Coroutine[Any, Any, Any]) -> tuple[Any, dict[str, list[float]]]:
    """Return a result, and by name the milliseconds that the processor needed for each event of the page's thread.

    The clock would measure the machine, too."""
    session = await page.context.new_cdp_session(page)
    events: list[dict[str, Any]] = []
    ended = asyncio.get_running_loop().create_future()
    session.on("Tracing.dataCollected", lambda found: events.extend(found["value"]))
    session.on("Tracing.tracingComplete", lambda found: ended.set_result(None))
    categories = {"includedCategories": ["toplevel", "devtools.timeline", "__metadata"]}
    await session.send("Tracing.start", {"traceConfig": categories, "transferMode": "ReportEvents"})
    result = await work
    await session.send("Tracing.end")
    await ended
    await session.detach()
    mine = {(each["pid"], each["tid"]) for each in events if each["name"] == "FireAnimationFrame"}
    spent: dict[str, list[float]] = {}
    for each in events:
        if "tdur" in each and (each["pid"], each["tid"]) in mine:
            spent.setdefault(each["name"], []).append(each["tdur"] / 1000)
    return result, spent


async def test_ten_thousand_messages_scroll_without_long_tasks(
    inspect: Inspect, open_page: OpenPage, tmp_path: Path
) -> None:
    script = Script()
    script.connected()
    for number in range(5_000):
        script.request(number, "tools/call", name=f"tool-{number % 7}", arguments={"text": f"number {number}"})
        script.result(number, content=[{"type": "text", "text": "x" * (number % 50)}])
    file = tmp_path / "long.jsonl"
    file.write_bytes(script.content())
    inspector = await inspect("examples/everything.py")
    page = await open_page(inspector.link)
    await page.goto("#/sessions")
    await page.get_by_label("Session file or transcript").set_input_files(file)
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid).to_have_attribute("aria-rowcount", "10002")
    nodes, spent = await traced(page, page.evaluate(SCROLL, 200))
    assert nodes <= 2_000
    frames = sorted(spent["FireAnimationFrame"])
    assert len(frames) >= 200
    assert frames[int(len(frames) * 0.95)] <= MOST_SCRIPT
    tasks = [*spent.get("RunTask", []), *spent.get("ThreadControllerImpl::RunTask", [])]
    assert len(tasks) >= 200
    assert max(tasks) <= MOST_TASK
    print(f"script p95 {frames[int(len(frames) * 0.95)]:.2f} ms, longest task {max(tasks):.2f} ms, {nodes} nodes")
    await grid.focus()
    await page.keyboard.press("End")
    await expect(grid.locator("#row-10000")).to_contain_text("tools/call")


LAY_OUT = """async () => {
  const axis = await import(new URL("components/time_axis.js", document.baseURI).href);
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const wrong = [];
  for (let round = 0; round < 300; round += 1) {
    const begins = Array.from({ length: Math.floor(random() * 40) }, random).sort((one, other) => one - other);
    const spans = begins.map((begin) => ({
      begin, connection: Math.floor(random() * 3), end: random() < 0.1 ? null : begin + random() * 0.2,
    }));
    const { placed, height } = axis.layOut(spans, 2);
    const lines = new Map();
    for (const { span, top } of placed) {
      if (top + 12 > height) wrong.push(`below the end: ${top} of ${height}`);
      const line = lines.get(top) ?? { connection: span.connection, count: 0, until: 0 };
      if (line.connection !== span.connection) wrong.push("two connections in a line");
      if (line.until > span.begin) line.count += 1;
      line.until = Math.max(line.until, span.end ?? 2);
      lines.set(top, line);
    }
    const crowded = [...lines.values()].filter(({ count }) => count);
    if (crowded.length > 3) wrong.push("spans overlap in several lines of a band");
    const size = 10 ** (random() * 12 - 8);
    const step = axis.niceStep(size);
    if (!(step >= size * 0.999 && step <= size * 10)) wrong.push(`step ${step} for ${size}`);
    if (axis.tickLabels(5, 5 + size).length > 20) wrong.push(`too many labels for ${size}`);
  }
  return wrong;
}"""


async def test_spans_are_laid_out_without_overlaps(page: Page) -> None:
    await page.goto("#/timeline")
    assert await page.evaluate(LAY_OUT) == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_used_timeline_is_accessible(mode: str, inspect: Inspect, open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(usual().content())
    page = await open_page((await inspect("--session", str(file))).link, **MODES[mode])
    grid = page.get_by_role("grid", name="Messages")
    await grid.locator("#row-6").click()
    entry = page.get_by_role("complementary", name="Selected message")
    await expect(entry.get_by_role("heading")).to_contain_text("bake")
    await entry.get_by_role("button", name="Pin", exact=True).click()
    await page.get_by_text("Spans as a table").click()
    await page.get_by_role("button", name="Compute").click()
    await expect(page.get_by_role("columnheader", name="p95")).to_be_visible()
    await page.evaluate(axe())
    assert await problems_of(page) == []
    await page.get_by_role("searchbox", name="Filter").fill("kind:lost")
    await expect(grid.locator(".virtual-row:not([hidden])")).to_have_count(1)
    assert await problems_of(page) == []
    await page.goto("#/compare//messages/1/2/1/4")
    await expect(page.locator(".difference")).to_be_visible()
    assert await problems_of(page) == []
    await page.goto("#/compare//sessions/1/live")
    await expect(page.get_by_role("region", name="Responses to the same requests")).to_be_visible()
    assert await problems_of(page) == []


@pytest.mark.parametrize("width", [1280, 320])
async def test_the_columns_of_the_timeline_are_not_cut(
    width: int, inspect: Inspect, open_page: OpenPage, tmp_path: Path
) -> None:
    script = Script()
    script.add(StderrEntry, text="KeyError: 'oslo'")
    script.message(b"listening on port 80", "received")
    file = tmp_path / "session.jsonl"
    file.write_bytes(script.content())
    page = await open_page((await inspect("--session", str(file))).link, viewport={"width": width, "height": 800})
    grid = page.get_by_role("grid", name="Messages")
    await expect(grid.locator("#row-1")).to_contain_text("⚠ not JSON")
    await expect(grid.locator("#row-0 .cell-method")).to_have_text("stderr")
    if width == 1280:
        await expect(grid.locator("#row-0 .cell-preview")).to_have_text("KeyError: 'oslo'")
        assert await grid.locator("#row-0 .cell-preview").evaluate("(cell) => cell.clientWidth") > 100
    cut = await grid.evaluate(
        """(grid) => [...grid.querySelectorAll("[role=columnheader]")]
            .filter((cell) => cell.clientWidth)
            .filter((cell) => cell.getBoundingClientRect().right > grid.getBoundingClientRect().right)
            .map((cell) => cell.textContent)"""
    )
    assert cut == []
