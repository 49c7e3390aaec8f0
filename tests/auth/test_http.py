"""The HTTP driver with real sockets: redirects, private addresses, names that change, and limits."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from accord.auth.http import OAuthClient
from accord.auth.metadata import METADATA_BYTES
from accord.auth.steps import OAuthRequest
from accord.auth.urls import Reach
from accord.errors import AuthorizationError
from accord.testing import AuthServer

PUBLIC = "https://mcp.example/mcp"


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Let every name resolve to these addresses, one after the other, the last for ever; return the names asked for."""
    asked: list[str] = []

    async def getaddrinfo(self: Any, host: Any, port: Any, **options: Any) -> list[Any]:
        address = answers[min(len(asked), len(answers) - 1)]
        asked.append(str(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0))]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return asked


async def refusal(server: str, url: str, method: str = "GET") -> AuthorizationError:
    http = OAuthClient(server)
    try:
        with pytest.raises(AuthorizationError) as caught:
            await http.send(OAuthRequest("a step", method, url, form={"code": "c0de"} if method == "POST" else None))
    finally:
        await http.close()
    assert "c0de" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/", "http://localhost:1/", "https://10.0.0.1/", "https://169.254.169.254/", "https://[::1]/",
     "https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://0.0.0.0/", "https://[fec0::1]/"],
)  # fmt: skip
async def test_a_public_server_leads_to_no_private_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "93.184.216.34")
    assert "the server a public one" in (await refusal(PUBLIC, url)).reason


async def test_a_name_may_not_change_between_check_and_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolve_to(monkeypatch, "93.184.216.34", "127.0.0.1")
    error = await refusal(PUBLIC, "https://mcp.example/x")
    assert "mcp.example (127.0.0.1) is a loopback address" in str(error)
    assert asked == ["mcp.example", "mcp.example"]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
async def test_a_name_that_resolves_to_a_private_address_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, "93.184.216.34", address)
    assert f"login.example ({address})" in str(await refusal(PUBLIC, "https://login.example/x"))


async def test_a_redirect_of_a_post_is_not_followed() -> None:
    async with AuthServer(jwt=False) as other, AuthServer(jwt=False, faults={"token_redirect"}) as server:
        server.other = other.issuer
        error = await refusal(server.resource, f"{server.issuer}/token", "POST")
        assert "answered with a redirect (HTTP 307)" in error.reason
        assert not other.requests


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("metadata_redirect_private", "is http, and not on this machine"),
        ("metadata_redirect_javascript", "is not a URL"),
        ("metadata_redirect_loop", "redirects more than 5 times"),
        ("metadata_huge", f"more than {METADATA_BYTES:,} bytes"),
        ("metadata_broken", "the connection broke in the middle of the response"),
    ],
)
async def test_hostile_responses_are_errors(fault: str, reason: str) -> None:
    async with AuthServer(jwt=False, faults={fault}) as server:
        error = await refusal(server.resource, f"{server.issuer}/.well-known/openid-configuration")
        assert reason in error.reason
        assert server.counts["metadata/appended"] + server.counts["metadata/oidc"] <= 6


async def test_an_observer_receives_every_outcome() -> None:
    async with AuthServer(jwt=False) as server:
        http = OAuthClient(server.resource)
        outcomes: list[object] = []
        http.observer = lambda request, outcome: outcomes.append(outcome)
        await http.send(OAuthRequest("a step", "GET", f"{server.issuer}/.well-known/openid-configuration"))
        with pytest.raises(AuthorizationError) as caught:
            await http.send(OAuthRequest("a step", "GET", "https://169.254.169.254/"))
        await http.close()
        await http.close()
        assert [getattr(outcome, "status", outcome) for outcome in outcomes] == [200, caught.value]


async def test_a_server_that_does_not_listen_is_an_error() -> None:
    assert "127.0.0.1:1" in str(await refusal("http://127.0.0.1:1/mcp", "http://127.0.0.1:1/"))


def test_reach_is_ordered() -> None:
    assert Reach.PUBLIC < Reach.PRIVATE < Reach.LOOPBACK < Reach.SPECIAL
