"""The checker as the issuer of a server's tokens: what it learns from the server, and a server that refuses them."""

from __future__ import annotations

import pytest

from accord import Server
from accord.check.engine.server_target import ServerTarget
from accord.check.engine.token_issue import SUBJECTS, issue_tokens
from accord.check.settings import CheckSettings
from accord.errors import ConnectError, TargetError

from tests.check.mutants.correct_server import served
from tests.check.mutants.guarded import AUDIENCE, with_login


async def test_the_audience_is_the_resource_of_the_metadata() -> None:
    settings = CheckSettings(issuer=":0", opening=0.2)
    async with served(with_login().app) as url:
        with pytest.raises(ConnectError, match=f"refuses a valid token for {url}/mcp: status 401"):
            async with issue_tokens(ServerTarget(f"{url}/mcp"), settings):
                pass


async def test_the_error_of_a_server_that_refuses_the_tokens_says_how_to_configure_it() -> None:
    settings = CheckSettings(issuer=":0", opening=0.2, audience=AUDIENCE)
    async with served(with_login().app) as url:
        with pytest.raises(ConnectError, match=r"configure it: the issuer is http://127\.0\.0\.1:\d+, its keys are at"):
            async with issue_tokens(ServerTarget(f"{url}/mcp"), settings):
                pass


async def test_two_principals_get_tokens_that_are_redacted_in_reports() -> None:
    settings = CheckSettings(issuer=":0", audience=AUDIENCE)
    async with served(Server("open").app) as url:
        target = ServerTarget(f"{url}/mcp")
        async with issue_tokens(target, settings) as authorized:
            assert len(authorized.tokens) == len(SUBJECTS)
            assert target.has_credentials
            assert not any(token in target.secrets.redact(f"it says {token}") for token in authorized.tokens)


async def test_a_server_without_http_cannot_be_given_tokens() -> None:
    with pytest.raises(TargetError, match="--as-issuer is for servers over HTTP"):
        async with issue_tokens(ServerTarget(Server("open")), CheckSettings(issuer=":0")):
            pass
