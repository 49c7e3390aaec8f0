"""Rules that are functions: what the decorators make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from accord.check.clients.scenario import Scenario
from accord.check.engine.rule import HTTP, STDIO, CaseVariant, JudgedItems, Rule, Violation, rule


@rule("tools/even", "must", case="all numbers", at="server/tools")
def tools_even(numbers: Sequence[int]) -> JudgedItems:
    """Numbers of two digits and more
    are even.
    """
    for number in numbers:
        if number > 9:
            yield
            if number % 2:
                raise Violation(f"{number} is odd")


def test_the_docstring_of_a_rule_is_its_sentence() -> None:
    assert tools_even.says == "Numbers of two digits and more are even."


def test_a_reading_rule_counts_the_items_that_it_judges_up_to_the_first_violation() -> None:
    (case,) = tools_even.cases
    assert (case.kind, case.says) == ("reading", "all numbers")
    assert case.run([1, 10, 12]) == 2
    assert case.run([1, 3]) == 0
    with pytest.raises(Violation, match="11 is odd"):
        case.run([10, 11, 13])


async def test_variants_share_a_function_and_narrow_the_limits_of_their_rule() -> None:
    seen: list[tuple[Any, ...]] = []

    @rule(
        "tools/names",
        "should",
        variants=[
            CaseVariant("an empty name", name=""),
            CaseVariant("a long name", name="x" * 9, until="2025-11-25", over=STDIO, needs="tools.listChanged"),
        ],
        needs="tools",
        at="server/tools",
        since="2025-03-26",
        over=HTTP | STDIO,
    )
    async def tools_names(probe: str, name: str) -> None:
        """x."""
        seen.append((probe, name))

    empty, long = tools_names.cases
    assert [case.kind for case in tools_names.cases] == ["shared", "shared"]
    assert (empty.life, empty.over, empty.needs) == (("2025-03-26", None), HTTP | STDIO, "tools")
    assert (long.life, long.over, long.needs) == (("2025-03-26", "2025-11-25"), STDIO, "tools.listChanged")
    await empty.run("probe")
    await long.run("probe")
    assert seen == [("probe", ""), ("probe", "x" * 9)]


def test_further_functions_are_further_cases() -> None:
    made = Rule("tools/even", "must", len, at="server/tools")

    @made.case("another", kind="raw", since="2025-03-26")
    async def tools_even_another(probe: Any) -> None: ...

    (case,) = made.cases
    assert (case.says, case.kind, case.run, case.life) == ("another", "raw", tools_even_another, ("2025-03-26", None))


def test_a_rule_of_a_scenario_is_about_clients_and_judges_its_runs() -> None:
    scenario = Scenario("late-answer", "a late answer", over=STDIO)

    @scenario.rule("client-cancel/late-answer", "should", case="a late answer", at="basic", until="2026-07-28")
    def client_cancel_late_answer(run: Any) -> None:
        """x."""

    (case,) = client_cancel_late_answer.cases
    assert client_cancel_late_answer.role == "client"
    assert (case.kind, case.over, case.life) == ("own", STDIO, (None, "2026-07-28"))
    assert scenario.cases == [(client_cancel_late_answer, case)]
