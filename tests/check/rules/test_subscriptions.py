"""Whether a refused subscription breaks the rule: a limit of the server does not, any other refusal does."""

from __future__ import annotations

from typing import Any

import pytest

from accord.check.engine.report import Report
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.change import Change, Changed
from tests.check.mutants.correct_server import right

SETTINGS = CheckSettings(
    revisions=("2026-07-28",), only=("subscriptions/acknowledged",), whole_traffic=False, timeout=2
)


async def refusing(message: str) -> Report:
    """The report on a right server that answers each subscription with this error at once."""
    change = Change()

    @change.heard
    def _(said: Any) -> Any:
        return said | {"method": "accord/refused"} if said.get("method") == "subscriptions/listen" else said

    @change.answers("subscriptions/listen")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": message}}

    return await check_server(Changed(right(), change), SETTINGS)


@pytest.mark.parametrize("message", ["Subscription limit reached", "Too many subscriptions", "quota exceeded"])
async def test_a_subscription_that_a_limit_refuses_is_not_judged(message: str) -> None:
    report = await refusing(message)
    assert report.findings == ()
    assert {each.verdict for each in report.outcomes} == {"not-applicable"}
    assert message in report.outcomes[0].text


async def test_a_subscription_that_is_refused_for_another_reason_breaks_the_rule() -> None:
    (finding,) = (await refusing("Internal error")).findings
    assert (finding.rule, finding.verdict) == ("subscriptions/acknowledged", "fail")
