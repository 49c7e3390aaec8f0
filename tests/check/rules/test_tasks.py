"""Rules about tasks, on a server whose tasks are right; wrong ones are in the table of mutants."""

from __future__ import annotations

from typing import Any

import pytest

from accord.check.engine.report import Report
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.change import Change, ChangedApp
from tests.check.mutants.correct_server import served
from tests.check.mutants.task_server import TaskServer

SETTINGS = CheckSettings(only=("tasks", "shapes"), call_tools=True, timeout=2, jobs=4)
ON_LINES_ONLY = {"tasks/related-questions", "tasks/own-requests"}  # this server asks nothing over HTTP


async def check(over: str) -> Report:
    if over == "memory":
        return await check_server(TaskServer(), SETTINGS, label="tasks")
    async with served(ChangedApp(TaskServer().app, Change())) as url:
        return await check_server(f"{url}/mcp", SETTINGS, label="tasks")


@pytest.mark.parametrize("over", ["memory", "http"])
async def test_a_server_whose_tasks_are_right_passes_every_rule_about_tasks(over: str) -> None:
    report = await check(over)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    judged: dict[str, Any] = {each.rule: each.verdict for each in report.outcomes if each.rule.startswith("tasks/")}
    unjudged = {rule for rule, verdict in judged.items() if verdict != "pass"} - {"tasks/undeclared"}
    assert unjudged == (set() if over == "memory" else ON_LINES_ONLY)
