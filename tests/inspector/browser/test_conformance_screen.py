"""The screen Conformance: results appear while the check runs, and a finding has its bytes, sentence and command."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.inspector.browser.accessible import assert_accessible
from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest
from tests.inspector.servers import broken_server

RULE = "stdio/only-messages"


@pytest.fixture(scope="module")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return (f"{sys.executable} {broken_server(tmp_path_factory.mktemp('server'))}",)


async def open_screen(page: Page) -> None:
    await page.goto("#/conformance/broken.py")
    last = page.get_by_text(re.compile(r"^Check \d+: "))  # the results are there: the number of the next check is known
    await expect(last.or_(page.get_by_text("This server was not checked yet."))).to_be_visible()
    await expect(page.get_by_role("button", name="Check", exact=True)).to_be_enabled()


async def next_number(page: Page) -> int:
    """Return the number of the next check."""
    last = page.get_by_text(re.compile(r"^Check \d+: "))
    return 1 + (int((await last.inner_text()).split()[1].rstrip(":")) if await last.count() else 0)


async def check(page: Page, rules: str) -> None:
    """Check these rules in one revision, and wait for the end."""
    await open_screen(page)
    options = page.locator(".check-form > details")
    if await options.get_attribute("open") is None:
        await options.get_by_text("Options").click()
    await page.get_by_role("checkbox", name="2025-11-25").check()
    await page.get_by_label("Only these rules or areas").fill(rules)
    number = await next_number(page)
    await page.get_by_role("button", name="Check", exact=True).click()
    await expect(page.get_by_text(f"Check {number}: done", exact=True)).to_be_visible()


async def test_a_finding_shows_its_sentence_its_bytes_and_its_command(page: Page) -> None:
    await check(page, RULE)
    rule = page.get_by_role("button", name=RULE)
    await expect(rule).to_contain_text("failed")
    await rule.click()
    finding = page.get_by_role("region", name=f"Finding of {RULE}")
    await expect(finding).to_contain_text(f"--only {RULE}")
    await expect(finding.get_by_role("link").first).to_have_attribute(
        "href", re.compile("^https://modelcontextprotocol.io/")
    )
    await finding.get_by_role("button", name="Show the bytes").click()
    await expect(finding.get_by_role("list", name="Messages")).to_contain_text(r"ready\u200b")


async def test_the_results_of_a_check_are_accessible(page: Page) -> None:
    await check(page, RULE)
    await page.get_by_role("button", name=RULE).click()
    await page.get_by_role("button", name="Show the bytes").first.click()
    await expect(page.get_by_role("list", name="Messages")).to_be_visible()
    await assert_accessible(page)


async def test_a_finding_leads_to_its_entries_on_the_timeline(page: Page) -> None:
    await check(page, RULE)
    await page.get_by_role("button", name=RULE).click()
    await page.get_by_role("button", name="Show on the timeline").click()
    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    await expect(page.get_by_role("main")).to_contain_text("ready")


async def test_the_results_survive_a_reload_and_can_be_filtered(page: Page) -> None:
    await check(page, f"{RULE} ping")
    await page.reload()
    rules = page.get_by_role("list", name="Rules")
    await expect(rules.get_by_role("button", name=RULE)).to_be_visible()
    await page.get_by_role("group", name="Filter").get_by_role("button", name="passed").click()
    await expect(rules.get_by_role("button", name=RULE)).to_have_count(0)
    await expect(rules.get_by_role("button", name="ping/").first).to_be_visible()
    await page.get_by_role("searchbox", name="Rule").fill("nothing like this")
    await expect(page.get_by_text("No rule has such a result yet.")).to_be_visible()


async def test_results_appear_while_the_check_runs_and_it_stops(page: Page) -> None:
    await page.reload()
    await open_screen(page)
    await page.get_by_role("button", name="Check", exact=True).click()
    await expect(page.get_by_role("list", name="Rules").get_by_role("button").first).to_be_visible()
    stop = page.get_by_role("button", name="Stop", exact=True)
    await expect(stop).to_be_enabled()
    await stop.click()
    await expect(page.get_by_text(re.compile(r"^Check \d+: stopped$"))).to_be_visible()


async def test_the_check_runs_by_keyboard(page: Page) -> None:
    await page.reload()
    await open_screen(page)
    number = await next_number(page)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Command").fill("Check broken")
    await page.keyboard.press("Enter")
    stop = page.get_by_role("button", name="Stop", exact=True)
    rule = page.get_by_role("list", name="Rules").get_by_role("button").first
    await expect(page.get_by_text(f"Check {number}: running")).to_be_visible()
    await expect(rule).to_be_visible()
    await stop.focus()
    await page.keyboard.press("Enter")
    await expect(stop).to_be_disabled()
    await expect(page.get_by_text(f"Check {number}: stopped")).to_be_visible()  # no rule comes before this one any more
    await rule.focus()
    await page.keyboard.press("Enter")
    await expect(rule).to_have_attribute("aria-expanded", "true")
    await expect(page.get_by_text("Cases:").first).to_be_visible()


async def test_a_server_that_cannot_start_says_why(
    inspect: Inspect, open_page: OpenPage, problems: ProblemsOfTest
) -> None:
    inspector = await inspect("no-such-program-of-mine")
    page = await open_page(inspector.link)
    problems.expect("status of 409")  # the page connects the first server by itself
    await page.goto(f"{inspector.base}/#/conformance/no-such-program-of-mine")
    await page.get_by_role("button", name="Check", exact=True).click()
    await expect(page.locator("p.error").filter(has_text="no-such-program-of-mine").first).to_be_visible()


async def test_no_option_calls_a_tool_by_itself(page: Page) -> None:
    await page.reload()
    await open_screen(page)
    await page.locator(".check-form > details").get_by_text("Options").click()
    await expect(page.get_by_role("radio", name="call no tool")).to_be_checked()


async def test_a_baseline_that_was_saved_accepts_the_findings_of_the_next_check(page: Page, tmp_path: Path) -> None:
    await page.reload()
    await check(page, RULE)
    rules = page.get_by_role("list", name="Rules")
    await expect(rules).not_to_contain_text("accepted by the baseline")
    await page.get_by_label("Report").select_option("baseline")
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Save the report").click()
    file = tmp_path / "baseline.json"
    await (await downloading.value).save_as(file)
    await page.get_by_label("Baseline: the file of accepted findings").set_input_files(file)
    await check(page, RULE)
    await expect(rules).to_contain_text("accepted by the baseline")
    await page.get_by_role("button", name=RULE).click()
    await expect(page.get_by_role("region", name=f"Finding of {RULE}")).to_contain_text("accepts it")
