"""A right client of the tasks extension is found right, and all is seen of it."""

from __future__ import annotations

from accord.check.clients.client import check_client
from accord.check.settings import CheckSettings

from tests.check.clients.ext_task_client import REVISION, ExtTaskClient


async def test_the_right_client_has_no_findings_and_every_rule_sees_it() -> None:
    settings = CheckSettings(revisions=(REVISION,), only=("client-ext-tasks",), jobs=4)
    report = await check_client(lambda target: ExtTaskClient().main(target), "http", settings)
    assert [(each.rule, each.verdict, each.text) for each in report.outcomes if each.verdict != "pass"] == []
    assert len(report.outcomes) == 9
