"""Every wrong client is caught by the rule that it breaks, and by few others; a right one by none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accord.check.clients.client import check_client
from accord.check.rules import client_rules
from accord.check.settings import CheckSettings
from accord.limits import Limits

from tests.check.clients import (
    auth_mutants,
    ext_task_mutants,
    fitting_mutants,
    mutants,
    rough_mutants,
    sse_mutants,
)
from tests.check.clients.wrong import MUTANTS, Change, Mutant, client_of
from tests.measure import slowness

MOST_FINDINGS = 3
RULES = {rule.id: rule for rule in client_rules()}

assert all((mutants, auth_mutants, ext_task_mutants, fitting_mutants, rough_mutants, sse_mutants)), (
    "they stand in the table once they are loaded"
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.rule}-{mutant.name}")
async def test_a_wrong_client_is_caught_by_the_rule_that_it_breaks(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    record_property("counted", "mutants caught")
    change = Change()
    mutant.make(change)
    settings = CheckSettings(revisions=(mutant.revision,), only=(mutant.rule,), opening=10 * slowness(), jobs=4)
    report = await check_client(client_of(change, monkeypatch), mutant.over, settings)
    caught: list[Any] = [found for found in report.findings if mutant.rule == found.rule]
    assert caught, [(each.rule, each.verdict, each.text) for each in report.outcomes]
    assert len(report.findings) <= MOST_FINDINGS
    assert caught[0].evidence
    assert caught[0].cause


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_the_right_client_has_no_findings_in_any_revision(over: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Change()
    right.options["limits"] = Limits(close_seconds=20)  # within which it unsubscribes, however busy the machine is
    report = await check_client(client_of(right, monkeypatch), over, CheckSettings(jobs=4))
    assert [(each.rule, each.text) for each in report.findings] == []
    assert report.score == 100
    assert len(report.visits) == 5


def test_every_must_rule_has_a_wrong_client() -> None:
    caught = {mutant.rule for mutant in MUTANTS}
    missing = {rule.id for rule in RULES.values() if rule.level == "must"} - caught
    assert missing == set()
