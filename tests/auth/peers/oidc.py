"""oidc-provider and other servers, each in a process of its own, on a clock that the test moves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from tests.interop.peers import AUTH, TypeScript, node_program, oidc_provider, peer_python
from tests.interop.serving import Serving, free_port, serving

SECONDS = 150
"""For a whole story of a client."""

PROGRAMS = AUTH / "programs"
"""Other people's clients and servers."""

BROWSER = f"{sys.executable} {AUTH / 'browser.py'} %s &"
"""The browser of a user who logs in and consents, as a value of `$BROWSER`. It runs in the background."""


class Granted(msgspec.Struct, frozen=True):
    """A grant: tokens that were issued."""

    grant: str
    """`authorization_code`, `refresh_token` and so on."""
    scope: str
    secrets: list[str]
    """The tokens, and what was redeemed for them."""


class Provider:
    """oidc-provider that serves. `folder` has the clock and the journal."""

    def __init__(self, issuer: str, folder: Path) -> None:
        self.issuer: str = issuer
        self.clock: Path = folder / "clock"
        self._journal = folder / "journal"

    @property
    def grants(self) -> list[Granted]:
        """Every grant, in order."""
        return [msgspec.json.decode(line, type=Granted) for line in self._journal.read_bytes().splitlines()]

    def count(self, grant: str) -> int:
        """Return the number of grants of this type."""
        return sum(each.grant == grant for each in self.grants)

    @property
    def secrets(self) -> set[str]:
        """Every secret of every grant."""
        return {secret for each in self.grants for secret in each.secrets}

    def advance(self, seconds: float) -> None:
        """Move the time of this server, and of all programs on its clock."""
        self.clock.write_text(str(float(self.clock.read_text()) + seconds))

    def on_clock(self, *program: str, python: str = sys.executable) -> list[str]:
        """Return the command of a Python program on the clock of this server."""
        return [python, str(AUTH / "on_clock.py"), str(self.clock), *program]


class Place(NamedTuple):
    """oidc-provider, and a server that accepts its tokens."""

    provider: Provider
    server: Serving
    name: str = "accord"

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"{self.server.url}/mcp"


def client_command(sdk: str, place: Place) -> list[str]:
    """Return the command of a client of `PROGRAMS` with a user (see programs/login_story.py)."""
    provider = place.provider
    if sdk in get_args(TypeScript):
        options = [str(provider.clock), place.url, sys.executable, str(AUTH / "browser.py")]
        return [*node_program("ts_login_client.mjs", PROGRAMS), sdk, *options]
    program = str(PROGRAMS / f"{sdk}_client.py")
    python = sys.executable if sdk == "accord" else str(peer_python(sdk))
    return provider.on_clock(program, str(provider.clock), place.url, python=python)


def play(command: list[str], place: Place, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a client with a user (see programs/login_story.py), and return what it has seen."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "BROWSER": BROWSER, **(environment or {})},
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"the client failed:\n{done.stderr[-4000:]}\n{place.server.said[-4000:]}"
    seen: dict[str, Any] = msgspec.json.decode(done.stdout.splitlines()[-1])
    return seen


@contextmanager
def serving_oidc(**options: Any) -> Iterator[Provider]:
    """Serve oidc-provider. `options` are those of provider.mjs: `resource`, `scopes`, `lifetime`, `clients`,
    `documents`, `opaque`, `dpop`, `nonces`, `trusted`.
    """
    with TemporaryDirectory() as folder:
        clock, journal = Path(folder, "clock"), Path(folder, "journal")
        clock.write_text("0")
        journal.touch()
        whole = {"clock": str(clock), "journal": str(journal), **options}
        with serving([*oidc_provider(), msgspec.json.encode(whole).decode()]) as served:
            yield Provider(served.url, Path(folder))


@contextmanager
def serving_protected(way: Literal["verify", "proxy"] = "verify") -> Iterator[Place]:
    """Serve oidc-provider, and protected.py with its logins."""
    port = free_port()
    client = {
        "client_id": "proxy",
        "client_secret": "secret-of-the-proxy",
        "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
    }
    with TemporaryDirectory() as folder, serving_oidc(lifetime=600, clients=[client]) as provider:
        command = provider.on_clock(str(AUTH / "protected.py"), way, provider.issuer, folder)
        with serving(command, port) as server:
            yield Place(provider, server)
