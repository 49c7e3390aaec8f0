"""`OAuthProxy` before django-oauth-toolkit, which registers no clients: the whole login over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest

from accord import Client, CredentialStore, OAuth
from accord.errors import AuthorizationError

from tests.auth.peers.browser import Browser
from tests.auth.peers.oidc import Place, Provider, client_command, play
from tests.interop.peers import AUTH, SDKS, TypeScript, django_provider
from tests.interop.serving import Serving, free_port, serving

PROXIED = [sys.executable, str(AUTH / "proxied.py")]


class Shop(NamedTuple):
    """A server behind the proxy, at `url`, and its provider."""

    provider: Serving
    port: int
    database: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @contextmanager
    def served(self) -> Iterator[Serving]:
        with serving([*PROXIED, self.provider.url, str(self.database)], self.port) as served:
            yield served


@contextmanager
def shop(folder: Path, **options: object) -> Iterator[Shop]:
    port = free_port()
    whole = {"redirect_uri": f"http://127.0.0.1:{port}/callback", **options}
    with serving([*django_provider(), msgspec.json.encode(whole).decode()]) as provider:
        yield Shop(provider, port, folder / "proxy.db")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def login(browser: Browser, store: CredentialStore) -> OAuth:
    return OAuth(authorize=browser.login, redirect_uri="http://127.0.0.1:33418/done", store=store)


async def test_a_user_of_django_logs_in_and_the_login_survives_a_restart(tmp_path: Path) -> None:
    browser, store = Browser(), CredentialStore(tmp_path / "logins.db")
    with shop(tmp_path) as found:
        with found.served() as first:
            async with Client(found.url, auth=login(browser, store)) as client:
                assert browser.pages == 3, "consent here, login and consent at the provider"
                assert (await client.call_tool("who")).text == "alice"
                token = (await client.call_tool("upstream")).text
            assert first.end() == 0
            assert "Traceback" not in first.said
        with found.served() as second:
            async with Client(found.url, auth=login(browser, store)) as client:
                assert (await client.call_tool("who")).text == "alice"
                assert (await client.call_tool("upstream")).text == token
            assert second.end() == 0
        assert browser.pages == 3, "no new login"
        files = contents(tmp_path)
        assert {"proxy.db", "proxy.db.key", "logins.db"} <= files.keys()
        assert all(token.encode() not in content for content in files.values()), "neither here nor at the client"
        assert token not in first.said + second.said


async def test_the_providers_tokens_are_renewed_and_revoked(tmp_path: Path) -> None:
    """They expire so soon that each use renews them; django-oauth-toolkit replaces the refresh token each time."""
    browser, store = Browser(), CredentialStore(":memory:")
    with shop(tmp_path, lifetime=30) as found, found.served():
        async with Client(found.url, auth=login(browser, store)) as client:
            tokens = [(await client.call_tool("upstream")).text for _ in range(3)]
            assert len(set(tokens)) == 3
            assert (await client.call_tool("who")).text == "alice"


async def test_a_user_who_refuses_at_the_provider_is_not_logged_in(tmp_path: Path) -> None:
    class Refusing(Browser):
        def _fill(self, page: str) -> dict[str, str]:
            form = super()._fill(page)
            form.pop("allow", None)  # the other button of django-oauth-toolkit
            return form

    with shop(tmp_path) as found, found.served(), pytest.raises(AuthorizationError, match="access_denied"):
        async with Client(found.url, auth=login(Refusing(), CredentialStore(":memory:"))):
            pass


@pytest.mark.parametrize("sdk", [*SDKS, *get_args(TypeScript)])
def test_clients_of_other_libraries_log_in(sdk: str, tmp_path: Path) -> None:
    (tmp_path / "clock").write_text("0")
    with shop(tmp_path) as found, found.served() as served:
        place = Place(Provider(found.provider.url, tmp_path), served)
        seen = play(client_command(sdk, place), place)
        assert seen == {"tools": ["who", "upstream", "write_note"], "calls": ["alice", "alice", "wrote milk"]}
