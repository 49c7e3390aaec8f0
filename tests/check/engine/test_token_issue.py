"""The checker as the issuer of a server's tokens: what it learns from the server, and a server that refuses them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import Server
from accord.check.engine.server_target import ServerTarget
from accord.check.engine.token_issue import SUBJECTS, issue_tokens
from accord.check.settings import CheckSettings
from accord.errors import ConnectError, TargetError

from tests.check.mutants.correct_server import served
from tests.check.mutants.guarded import AUDIENCE, with_login
from tests.clock import Clock
from tests.waiting import until


class Refusing:
    """A server that refuses the tokens, and counts them."""

    def __init__(self) -> None:
        self._app = with_login().app
        self.tokens = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.tokens += any(name == b"authorization" for name, _ in scope["headers"])
        await self._app(scope, receive, send)


async def wait_for_trust(server: Refusing, url: str, settings: CheckSettings) -> None:
    """Issue tokens until the time is over, which is after the first was refused."""

    async def issue() -> None:
        async with issue_tokens(ServerTarget(url), settings):
            pass

    issuing = asyncio.create_task(issue())
    await until(lambda: server.tokens >= 2 or issuing.done())
    await Clock().jump(settings.opening + 1)
    await issuing


async def test_the_audience_is_the_resource_of_the_metadata() -> None:
    server = Refusing()
    async with served(server) as url:
        with pytest.raises(ConnectError, match=f"refuses a valid token for {url}/mcp: status 401"):
            await wait_for_trust(server, f"{url}/mcp", CheckSettings(issuer=":0", opening=100))


async def test_the_error_of_a_server_that_refuses_the_tokens_says_how_to_configure_it() -> None:
    server = Refusing()
    async with served(server) as url:
        with pytest.raises(ConnectError, match=r"configure it: the issuer is http://127\.0\.0\.1:\d+, its keys are at"):
            await wait_for_trust(server, f"{url}/mcp", CheckSettings(issuer=":0", opening=100, audience=AUDIENCE))


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
