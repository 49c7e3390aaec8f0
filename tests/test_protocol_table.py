"""docs/protocol.md is what the tables say, and every row of it has a test that exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conformance import basics, input_requests, stateless  # noqa: F401  each declares its scenarios
from tests.conformance.scenario import SCENARIOS
from tests.protocol_coverage import COVERAGE
from tests.protocol_table import page, sections

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "protocol.md"

KEYS = [row.key for section in sections() for row in section.rows]


def test_the_page_is_what_the_tables_say(update: bool) -> None:
    if update:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: pytest tests/test_protocol_table.py --update"


def test_every_row_has_a_name_of_its_own_and_a_test() -> None:
    assert len(set(KEYS)) == len(KEYS)
    assert set(KEYS) == set(COVERAGE)


@pytest.mark.parametrize("test", sorted(set(COVERAGE.values())), ids=lambda test: test.partition("::")[2])
def test_the_test_of_a_row_exists(test: str) -> None:
    file, _, name = test.partition("::")
    function, _, scenario = name.removesuffix("]").partition("[")
    assert function in functions(ROOT / file)
    assert not scenario or scenario in SCENARIOS


def test_a_test_that_does_not_exist_is_found() -> None:
    mine = functions(Path(__file__))
    assert "test_a_test_that_does_not_exist_is_found" in mine
    assert "test_that_is_named_in_a_text_only" not in mine


@cache
def functions(file: Path) -> frozenset[str]:
    """The functions of a file of tests, without running it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
