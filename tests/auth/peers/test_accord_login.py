"""A user of `accord` at a server that accepts the tokens of oidc-provider: login, refresh, step-up and logout."""

from __future__ import annotations

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import pytest

from accord import CredentialStore
from accord.auth.login import Login

from tests.auth.peers.oidc import BROWSER, Place
from tests.auth.place import stored

SECONDS = 100
NEEDS_LOGIN = 3


class Commands:
    """`accord`, each command a process on the clock of the authorization server, with one file of logins."""

    def __init__(self, place: Place, home: Path) -> None:
        self._place = place
        self.file = home / "credentials.db"
        self.shown: str = ""
        """What they have written so far."""

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command, and return what it writes."""
        return self.run_together([arguments], code)[0]

    def run_together(self, commands: Sequence[Sequence[str]], code: int = 0) -> list[str]:
        """Run commands at the same time."""
        running = [self._start(each) for each in commands]
        outputs = [process.communicate(timeout=SECONDS)[0] for process in running]
        self.shown += "".join(outputs)
        assert [process.returncode for process in running] == [code] * len(running), outputs
        return outputs

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._place.provider.on_clock("-m", "accord", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env={**os.environ, "ACCORD_CREDENTIALS": str(self.file), "BROWSER": BROWSER},
        )

    async def login(self) -> Login:
        """Return the login that is stored."""
        return await stored(CredentialStore(self.file))


@pytest.fixture
def commands(place: Place, tmp_path: Path) -> Commands:
    home = tmp_path / "home"
    home.mkdir()
    return Commands(place, home)


async def test_a_user_logs_in_calls_refreshes_steps_up_and_logs_out(place: Place, commands: Commands) -> None:
    provider, call = place.provider, ("call", "-vv", place.url)
    assert f"logged in to {place.url}" in commands.run("login", place.url)
    assert "\nalice" in commands.run(*call, "who")
    assert [each.grant for each in provider.grants] == ["authorization_code"]

    provider.advance(700)  # the access token has expired, for everybody
    outputs = commands.run_together([(*call, "who"), (*call, "who")])
    assert all("\nalice" in output for output in outputs)
    assert [each.grant for each in provider.grants] == ["authorization_code", "refresh_token"]

    refused = commands.run(*call, "write_note", "text=milk", code=NEEDS_LOGIN)
    step_up = refused.partition("run: accord ")[2].splitlines()[0].split()
    assert step_up == ["login", place.url, "--scope", "read", "--scope", "write"]
    commands.run(*step_up)
    assert "wrote milk" in commands.run(*call, "write_note", "text=milk")
    assert [(each.grant, each.scope) for each in provider.grants[2:]] == [("authorization_code", "read write")]

    login = await commands.login()
    assert login.tokens.token_type == "DPoP", "both servers support it"
    assert f"{provider.issuer} has revoked the tokens" in commands.run("logout", place.url)
    assert "invalid_grant" in refresh(login)

    written = {file: file.read_bytes() for file in commands.file.parent.iterdir()}
    assert written
    written |= {"output": commands.shown.encode(), "log": place.server.said.encode()}
    assert {login.tokens.access_token, login.tokens.refresh_token} <= provider.secrets
    for what, content in written.items():
        assert not [secret for secret in provider.secrets if secret.encode() in content], what


def refresh(login: Login) -> str:
    """Use the refresh token of a login as whoever had copied it would; return the response."""
    tokens, metadata = login.tokens, login.discovery.metadata
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token, "client_id": login.client.client_id}
    try:
        with urllib.request.urlopen(metadata.token_endpoint or "", urlencode(form).encode(), SECONDS) as response:
            return response.read().decode()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.read().decode()
