"""docs/conformance.md is what the scenarios say."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.clients import CLIENT_SCENARIOS
from tests.conformance.scenario import ELSEWHERE, SCENARIOS
from tests.conformance.table import page

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_the_page_is_what_the_scenarios_say(update: bool) -> None:
    if update:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: pytest tests/conformance/test_table.py --update"


def test_a_scenario_is_played_here_or_elsewhere() -> None:
    assert not set(ELSEWHERE) & {*SCENARIOS, *CLIENT_SCENARIOS}


def test_every_link_of_the_page_leads_somewhere() -> None:
    links = {part.partition(")")[0] for part in page().split("](../")[1:]}
    assert links
    assert all((PAGE.parent.parent / link).exists() for link in links)
