"""The blocking client logs in, too: `accord.sync.Client(url, auth=...)`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from accord import AuthorizationError, ClientCredentials, ConnectError, CredentialStore, LoginNeeded, OAuth
from accord.sync import Client

from tests.auth.place import place


def who(url: str, auth: Any, between: Callable[[], None] = lambda: None) -> list[str | None]:
    """Return the user, before and after something happens."""
    with Client(url, auth=auth) as client:
        first = client.call_tool("who").text
        between()
        return [first, client.call_tool("who").text]


async def test_a_user_logs_in_once(store: CredentialStore) -> None:
    async with place() as at:
        login = at.login(store)
        assert await asyncio.to_thread(who, at.url, login, at.issuer.expire_access_tokens) == ["alice", "alice"]
        assert await asyncio.to_thread(who, at.url, login) == ["alice", "alice"]
        assert at.issuer.counts["authorization"] == 1


async def test_a_program_logs_in() -> None:
    async with place() as at:
        at.issuer.add_client("robot", "secret")
        auth = ClientCredentials("robot", secret="secret")
        assert await asyncio.to_thread(who, at.url, auth, at.issuer.expire_access_tokens) == ["robot", "robot"]
        with pytest.raises(AuthorizationError, match=r"client credentials at .* invalid_client"):
            await asyncio.to_thread(who, at.url, ClientCredentials("robot", secret="wrong"))


async def test_a_bearer_token_is_sent() -> None:
    async with place() as at:
        assert await asyncio.to_thread(who, at.url, at.issuer.access_token()) == ["alice", "alice"]
        with pytest.raises(ConnectError, match="401"):
            await asyncio.to_thread(who, at.url, "another")


async def test_without_a_user_the_error_names_the_command(store: CredentialStore) -> None:
    async with place() as at:
        with pytest.raises(LoginNeeded, match=f"accord login {at.url}"):
            await asyncio.to_thread(who, at.url, OAuth(interactive=False, store=store))


async def test_a_function_that_visits_the_page_may_be_used_by_several_threads(store: CredentialStore) -> None:
    async with place() as at:
        login = at.login(store)
        results = await asyncio.gather(*(asyncio.to_thread(who, at.url, login) for _ in range(3)))
        assert results == [["alice", "alice"]] * 3
