"""The score, and the broken MUSTs that are counted before it."""

from __future__ import annotations

import msgspec
import pytest

from accord.check.engine.report import Level, Outcome, score
from accord.check.reports.wording import headline

from tests.check.reports import samples


def broken(level: Level, count: int) -> list[Outcome]:
    verdict = "fail" if level == "must" else "warn"
    rules = [f"{level}/{number}" for number in range(count)]
    return [samples.outcome(rule, verdict, level=level, symptom=rule) for rule in rules]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([samples.outcome("tools/x")], 100),
        (broken("may", 1), 99),
        (broken("should", 1), 98),
        (broken("must", 1), 90),
        ([*broken("must", 2), *broken("should", 3)], 76),
        (broken("must", 10), 34),
        ([samples.outcome("tools/x", "not-observed"), samples.outcome("tools/y", "not-applicable")], 0),
        ([], 0),
    ],
)
def test_a_must_costs_more_than_a_should_and_that_more_than_a_may(outcomes: list[Outcome], expected: int) -> None:
    assert score(outcomes) == expected


def test_rules_that_pass_do_not_raise_the_score() -> None:
    """A server that gives the same object for every request satisfies many rules without doing anything."""
    passed = [samples.outcome(f"tools/{number}") for number in range(39)]
    assert score([*broken("must", 10), *passed]) == score(broken("must", 10)) == 34


def test_an_incomplete_check_does_not_score_100() -> None:
    assert score([samples.outcome("tools/x")], whole=False) == 99


def test_rules_that_fail_for_one_cause_are_one_broken_must() -> None:
    *folded, fourth, fifth = broken("must", 5)
    outcomes = [msgspec.structs.replace(each, symptom="must/0") for each in folded]
    findings = [
        samples.finding("must/0", also=("must/1", "must/2")),
        samples.finding("must/3"),
        samples.finding("must/4"),
        samples.finding("should/0", verdict="warn", level="should"),
    ]
    report = samples.report([*outcomes, fourth, fifth], findings)
    assert report.score == 72
    assert report.musts_broken == 3
    assert headline(report) == "not conformant: 3 MUSTs broken"
