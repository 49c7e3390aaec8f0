"""The rules about apps and skills find nothing on accord's own servers, and each of them sees these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from accord import Server
from accord.check.rules import server_rules
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.apps import with_app
from tests.check.mutants.skills import with_skills

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("area", "server", "revision"),
    [
        ("apps", with_app, "2025-06-18"),
        ("apps", with_app, "2025-11-25"),
        ("apps", with_app, "2026-07-28"),
        ("skills", with_skills, "2026-07-28"),
    ],
)
async def test_the_right_server_passes_every_rule(area: str, server: Callable[[], Server], revision: str) -> None:
    settings = CheckSettings(only=(area,), call_tools=True, timeout=10, revisions=(revision,))
    report = await check_server(server(), settings)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    passed = {each.rule for each in report.outcomes if each.verdict == "pass"}
    assert passed == {rule.id for rule in server_rules() if rule.area == area}


@pytest.mark.parametrize("example", ["sales.py", "skilled.py"])
async def test_the_examples_are_right(example: str) -> None:
    settings = CheckSettings(only=("apps", "skills"), call_tools=True, timeout=10, whole_traffic=False)
    report = await check_server(str(EXAMPLES / example), settings)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    assert any(each.verdict == "pass" for each in report.outcomes)


async def test_a_server_without_either_is_not_judged() -> None:
    report = await check_server(Server("plain"), CheckSettings(only=("apps", "skills"), timeout=5))
    assert {each.verdict for each in report.outcomes} <= {"not-applicable", "not-observed"}
