"""The right server of the tasks extension is found right, and nearly all is seen of it."""

from __future__ import annotations

from typing import Any

import pytest

from accord.check.engine.report import Report
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.change import Change, Changed, ChangedApp
from tests.check.mutants.correct_server import served
from tests.check.mutants.ext_task_server import LAST, ExtTaskServer

SETTINGS = CheckSettings(revisions=(LAST,), only=("ext-tasks",), call_tools=True, timeout=5, jobs=4)
ONLY_LINES = {"granted", "told", "wanted-only", "news-whole", "no-progress"}
"""The server has no streams over HTTP, and so no subscriptions."""


async def checked(over: str) -> Report:
    server: Any = ExtTaskServer()
    if over == "memory":
        return await check_server(Changed(server, Change()), SETTINGS, label="right")
    async with served(ChangedApp(server.app, Change())) as url:
        return await check_server(f"{url}/mcp", SETTINGS, label="right")


@pytest.mark.parametrize(("over", "unseen"), [("memory", set()), ("http", ONLY_LINES)])
async def test_the_right_server_has_no_findings_and_every_rule_sees_it(over: str, unseen: set[str]) -> None:
    report = await checked(over)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    passed = {each.rule for each in report.outcomes if each.verdict == "pass"}
    assert {each.rule.partition("/")[2] for each in report.outcomes} - {id.partition("/")[2] for id in passed} == unseen
