"""`accord check --authorization-server` finds nothing at a widely used authorization server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from accord.check.authorization_servers.check import check_authorization_server
from accord.check.authorization_servers.probe import LoginSettings
from accord.check.settings import CheckSettings

from tests.auth.peers.oidc import Provider, serving_oidc


@pytest.mark.parametrize("authorize", ["forms", ""])
async def test_oidc_provider_has_no_findings(authorize: str) -> None:
    oidc: Callable[[], AbstractContextManager[Provider]] = serving_oidc
    with oidc() as provider:
        login = LoginSettings(authorize=authorize, resource="https://mcp.example/mcp", scope="read")
        report = await check_authorization_server(provider.issuer, CheckSettings(timeout=20), login=login)
    assert [(each.rule, each.text) for each in report.findings] == []
    verdicts = {each.rule: each.verdict for each in report.outcomes}
    assert verdicts["auth-server/code-replay"] == ("pass" if authorize else "not-observed")
    assert verdicts["auth-server/unregistered-redirect"] == "pass"
