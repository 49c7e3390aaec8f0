"""A user of accord's client at servers of other libraries that accept the tokens of oidc-provider."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.auth.peers.oidc import BROWSER, PROGRAMS, Place, Provider, play, serving_oidc
from tests.interop.peers import node_program, peer_python
from tests.interop.serving import free_port, serving

PROXY_PORT = free_port()
UPSTREAM = {
    "client_id": "proxy",
    "client_secret": "secret-of-the-proxy",
    "redirect_uris": [f"http://127.0.0.1:{PROXY_PORT}/auth/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
}

SERVERS = ("mcp1", "mcp2", "fastmcp jwt", "fastmcp remote", "fastmcp proxy", "ts1 remote", "ts1 proxy")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving_oidc(lifetime=600, clients=[UPSTREAM]) as provider:
        yield provider


@contextmanager
def serving_other(name: str, provider: Provider) -> Iterator[Place]:
    """Serve the program of another library."""
    sdk, _, way = name.partition(" ")
    options = [*([way] if way else []), provider.issuer]
    if sdk == "ts1":
        command = [*node_program("ts1_protected.mjs", PROGRAMS), str(provider.clock), *options]
    else:
        program = str(PROGRAMS / f"{sdk}_protected.py")
        command = provider.on_clock(program, *options, python=str(peer_python(sdk)))
    with serving(command, PROXY_PORT if name == "fastmcp proxy" else free_port()) as server:
        yield Place(provider, server, name)


@pytest.fixture(scope="module", params=SERVERS)
def other(request: pytest.FixtureRequest, provider: Provider) -> Iterator[Place]:
    """A server of another library."""
    with serving_other(request.param, provider) as found:
        yield found


def command(other: Place) -> list[str]:
    """Return the command of a user of accord's client."""
    return other.provider.on_clock(str(PROGRAMS / "accord_client.py"), str(other.provider.clock), other.url)


NEEDS_ISSUER = {
    "mcp1": "found issuer '{issuer}', expected '{issuer}/'; name the issuer exactly as its metadata does",
    "fastmcp jwt": "a JSON document; choose the authorization server: --issuer; or register ",
    "ts1 proxy": "found iss '{issuer}', expected '{server}/'",
}
"""Servers with which no login is possible unless the user chooses the issuer, and what the error says.

mcp 1.30 publishes every issuer without a path with a slash at its end, which is another one. A server with nothing
but a `JWTVerifier` does not say where its tokens come from. `ProxyOAuthServerProvider` calls itself the issuer, and
lets the one behind it answer the browser. See docs/known-issues-in-servers.md.
"""


def test_a_user_logs_in_calls_and_refreshes(other: Place) -> None:
    provider = other.provider
    before = len(provider.grants)
    environment = {"ISSUER": provider.issuer} if other.name in NEEDS_ISSUER else {}
    seen = play(command(other), other, environment)
    assert seen == {"tools": ["who", "write_note"], "calls": ["alice", "alice", "wrote milk"]}
    assert [each.grant for each in provider.grants[before:]] == ["authorization_code", "refresh_token"]


@pytest.mark.parametrize("other", NEEDS_ISSUER, indirect=True, scope="module")
def test_without_a_usable_issuer_the_error_says_why(other: Place) -> None:
    before = len(other.provider.grants)
    with pytest.raises(AssertionError) as caught:
        play(command(other), other)
    reason = NEEDS_ISSUER[other.name].format(issuer=other.provider.issuer, server=other.server.url)
    assert reason in str(caught.value)
    assert len(other.provider.grants) == before, "no code is redeemed"


def test_a_user_logs_in_again_at_a_server_that_compares_the_port_of_the_callback(
    provider: Provider, tmp_path: Path
) -> None:
    """The authorization server of the official SDK does, although RFC 8252, 7.3 demands that any port is allowed."""
    environment = {**os.environ, "BROWSER": BROWSER, "ACCORD_CREDENTIALS": str(tmp_path / "credentials.db")}
    with serving_other("fastmcp own", provider) as own:
        for _ in range(2):
            command = provider.on_clock("-m", "accord", "login", own.url)
            shown = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
            assert f"logged in to {own.url}" in shown.stdout, shown.stderr
        assert own.server.said.count("POST /register") == 1
