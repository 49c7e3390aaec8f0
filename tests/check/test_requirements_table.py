"""docs/requirements.md is what the map and the rules say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from accord.check.requirements import sentences
from accord.check.rules import all_rules

from tests.check.requirements_table import MEANINGS, SOURCES, page

PAGE = Path(__file__).parents[2] / "docs" / "requirements.md"


def test_the_page_is_what_the_map_says(update: bool) -> None:
    if update:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: pytest tests/check/test_requirements_table.py --update"


def test_each_rule_has_a_row_of_its_own() -> None:
    rows = Counter(line.split(" | ")[0] for line in page().splitlines())
    assert [rule.id for rule in all_rules() if rows[f"| `{rule.id}`"] != 1] == []


def test_the_sentences_are_counted() -> None:
    kinds = Counter(sentence.kind for sentence in sentences())
    rows = [line.split(" | ") for line in page().splitlines()]
    all_of_them = len(SOURCES) + 1
    counts = {row[0].removeprefix("| "): row[all_of_them] for row in rows if len(row) == all_of_them + 2}
    assert {kind: counts[kind] for kind in kinds} == {kind: f"{count:,}" for kind, count in kinds.items()}
    assert set(kinds) <= set(MEANINGS)
