"""Every mutant is caught by the rule it breaks, and by few others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from accord.check.engine.report import Report
from accord.check.engine.rule import Rule
from accord.check.rules import AREAS
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.change import Change, Changed, ChangedApp
from tests.check.mutants.front import fronted
from tests.check.mutants.right import right, served
from tests.check.mutants.table import MUTANTS, Mutant

_NO_TABLE = {"__init__", "change", "front", "right", "table", "test_mutants", "program"}
for _file in sorted(Path(__file__).parent.glob("*.py")):
    if _file.stem not in _NO_TABLE:
        import_module(f"tests.check.mutants.{_file.stem}")

MOST_FINDINGS = 3


async def check(mutant: Mutant | None, settings: CheckSettings, over: str = "memory") -> Report:
    """Check a mutant, or the right server."""
    if mutant and over == "stdio":
        command = [sys.executable, str(Path(__file__).with_name("program.py")), mutant.name]
        return await check_server(command, settings, label="mutant")
    change = Change()
    server = (mutant.server or right)() if mutant else right()
    if mutant:
        mutant.make(change)
    if over == "memory":
        return await check_server(Changed(server, change), settings, label="mutant")
    async with served(ChangedApp(server.app, change)) as behind, fronted(behind, change.treat) as url:
        change.port = urlsplit(url).port or 0
        return await check_server(f"{url}/{'sse' if over == 'sse' else 'mcp'}", settings, label="mutant")


def neighbours(rule: str) -> tuple[str, ...]:
    """The rules that stand in the same file."""
    modules = [import_module(f"accord.check.rules.{area}") for area in AREAS]
    files = [[each.id for each in vars(module).values() if isinstance(each, Rule)] for module in modules]
    return tuple(next(ids for ids in files if rule in ids))


def settings_for(mutant: Mutant) -> CheckSettings:
    """Only the rule and its neighbours, and where it is broken."""
    only = (*neighbours(mutant.rule), "shapes")
    bounds: dict[str, Any] = {"timeout": 1, "opening": 5, "jobs": 4, "cases": mutant.cases, "whole_traffic": False}
    return CheckSettings(revisions=(mutant.revision,), only=only, call_tools=mutant.calls, **bounds)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
async def test_a_mutant_is_caught_by_the_rule_that_it_breaks(
    mutant: Mutant, record_property: Callable[[str, object], None]
) -> None:
    record_property("counted", "mutants caught")
    report = await check(mutant, settings_for(mutant), mutant.over)
    caught: list[Any] = [found for found in report.findings if mutant.rule in (found.rule, *found.also)]
    assert caught, f"not caught; found: {[(each.rule, each.text) for each in report.findings]}"
    assert len(report.findings) <= MOST_FINDINGS, [(each.rule, each.text) for each in report.findings]


@pytest.mark.parametrize("over", ["memory", "http", "sse"])
async def test_the_right_server_is_right(over: str) -> None:
    report = await check(None, CheckSettings(call_tools=True, timeout=10, jobs=4, full=True), over)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    assert report.score == 100
