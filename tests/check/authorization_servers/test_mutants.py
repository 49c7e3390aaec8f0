"""Every wrong authorization server is caught by the rule that it breaks; right ones by none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accord.check.authorization_servers.check import check_authorization_server
from accord.check.authorization_servers.probe import LoginSettings
from accord.check.settings import CheckSettings
from accord.testing import AuthServer

from tests.check.authorization_servers.mutants import MUTANTS, NEW, OLD, ServerMutant, serve

SCOPE = "read"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.rule}-{mutant.name}")
async def test_a_wrong_server_is_caught_by_the_rule_that_it_breaks(
    mutant: ServerMutant, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    record_property("counted", "mutants caught")
    async with serve(mutant, monkeypatch) as server:
        settings = CheckSettings(revisions=(mutant.revision,), only=(mutant.rule,))
        login = LoginSettings(resource=server.resource, scope=SCOPE)
        report = await check_authorization_server(server.issuer, settings, login=login)
    assert [each.rule for each in report.findings] == [mutant.rule], [
        (each.case, each.text) for each in report.outcomes
    ]
    assert report.findings[0].evidence
    assert report.findings[0].cause
    assert [visit.error for visit in report.visits] == [""]


@pytest.mark.parametrize("revision", [OLD, "2025-11-25", NEW])
async def test_the_right_server_has_no_findings(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(ServerMutant("right", ""), monkeypatch) as server:
        login = LoginSettings(resource=server.resource, scope=SCOPE)
        report = await check_authorization_server(server.issuer, CheckSettings(revisions=(revision,)), login=login)
    assert [(each.rule, each.text) for each in report.findings] == []
    assert report.score == 100
    assert {each.verdict for each in report.outcomes} == {"pass"}


async def test_no_report_has_a_token_or_a_code() -> None:
    async with AuthServer(faults=["expires_in_missing", "iss_slash"]) as server:
        login = LoginSettings(resource=server.resource)
        report = await check_authorization_server(server.issuer, CheckSettings(), login=login)
    shown = repr(report)
    assert len(report.findings) > 1
    assert [secret for secret in server.secrets if secret and secret in shown] == []
