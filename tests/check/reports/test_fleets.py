"""The boards of a fleet: a row for each server, what is new, and who breaks what."""

from __future__ import annotations

import click
from hypothesis import given, settings, strategies as st

from accord.check.reports.fleet_board import fleet_rows
from accord.check.reports.fleet_page import fleet_page
from accord.check.reports.fleet_terminal import fleet_lines
from accord.visible_text import is_hidden

from tests.check.reports import samples
from tests.check.reports.hostile import TEXTS
from tests.check.reports.test_report_page import Read, is_sound


def plain(width: int = 100) -> str:
    return click.unstyle("\n".join(fleet_lines(samples.fleet(), width=width)))


def test_a_row_holds_the_scores_of_now_and_those_of_earlier_runs() -> None:
    found = {row.name: row for row in fleet_rows(samples.fleet())}
    assert list(found) == ["weather", "git", "memory", "broken", "newcomer"]
    assert found["weather"].scores["2026-07-28"] == {"stdio": 90, "http": 81}
    assert found["weather"].lowest("2026-07-28") == 81
    assert found["weather"].past == [60, 75, 80, 81]
    assert (found["weather"].failing, found["weather"].warning) == (2, 1)
    assert (found["broken"].score, found["broken"].past) == (None, [90, 95, 95])
    assert found["git"].lowest("2024-11-05") is None


def test_the_board_at_a_terminal_has_a_row_for_each_server() -> None:
    lines = plain().splitlines()
    assert lines[0] == (
        "server    score  2024-11-05  2025-03-26  2025-06-18  2025-11-25  2026-07-28  failed  warned  history"
    )
    assert lines[1] == (
        "weather      81          90          90          90          90          81       2       1  ▅▆▆▆"
    )
    assert lines[4].split() == ["broken", "-", "-", "-", "-", "-", "-", "0", "0", "▇▇▇"]
    assert "broken could not be checked: the server ended at once (exit code 1): no module named 'mcp'" in lines


def test_who_breaks_what_and_what_is_new_stand_below() -> None:
    text = plain()
    assert "\nBroken rules\n   2  tools/cursors  weather, git\n   1  http/origin  weather\n" in text
    assert "\nSince the last run\nbetter  weather: score 80 → 81\n worse  weather: http/origin now fails\n" in text
    assert " worse  broken: can no longer be checked: the server ended at once" in text
    assert "   new  newcomer: checked for the first time\n" in text
    assert text.endswith("\n\n5 servers: 3 passed, 1 failed, 1 could not be checked; 20.8 s")


def test_the_page_is_sound_and_has_a_row_and_its_findings_for_each_server() -> None:
    source = fleet_page(samples.fleet())
    page = Read(source)
    is_sound(page)
    assert source.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr>") == 5
    assert sum("server" in (each.get("class") or "").split() for _, each in page.elements) == 5
    assert source.count("finding item") == len(samples.realistic().findings) + 1
    assert "scores so far: 60, 75, 80, 81" in source


PLAIN = Read(fleet_page(samples.filled_fleet("x"))).structure()


@given(TEXTS.filter(str.strip))
@settings(max_examples=60)
def test_no_text_changes_the_structure_of_the_page(text: str) -> None:
    page = Read(fleet_page(samples.filled_fleet(text)))
    is_sound(page)
    assert page.structure() == PLAIN


@given(TEXTS, st.integers(0, 200))
@settings(max_examples=60)
def test_no_text_steers_the_terminal(text: str, width: int) -> None:
    lines = list(map(click.unstyle, fleet_lines(samples.filled_fleet(text), width=width)))
    assert not any(is_hidden(each) for line in lines for each in line)
    assert not any("\n" in line for line in lines)
