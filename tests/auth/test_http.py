"""The HTTP driver with real sockets: redirects, private addresses, names that change, and limits."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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

    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> list[Any]:
        address = answers[min(len(asked), len(answers) - 1)]
        asked.append(str(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
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


async def test_a_name_that_resolves_to_this_machine_leads_to_no_service_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner chooses what it resolves to, and may choose what listens here without TLS."""
    connections: list[object] = []

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        writer.close()

    service = await asyncio.start_server(on_connection, "127.0.0.1", 0)
    port = service.sockets[0].getsockname()[1]
    async with service:
        resolve_to(monkeypatch, "127.0.0.1")
        for method in ("GET", "POST"):
            for host in ("127.0.0.1", "localhost", "a.localhost", "[::1]"):
                error = await refusal(PUBLIC, f"http://{host}:{port}/x", method)
                assert "the URL of the server does not name this machine" in error.reason
    assert connections == []


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


class Redirect:
    """The response of a server that redirects, without the server: a public one cannot be run here."""

    status = 302

    def __init__(self, target: str) -> None:
        self.headers = {"Location": target}

    def release(self) -> None:
        pass


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:8080/x", "http://localhost/x", "https://[::1]/x", "https://10.0.0.1/"]
)
async def test_a_public_server_redirects_to_no_private_address(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even to this machine, as mcp 2.1.1 does: what listens here trusts it."""
    resolve_to(monkeypatch, "93.184.216.34")
    asked: list[str] = []

    async def respond(self: OAuthClient, session: Any, request: OAuthRequest, url: str) -> Any:
        asked.append(url)
        return Redirect(target)

    monkeypatch.setattr(OAuthClient, "_request", respond)
    error = await refusal(PUBLIC, "https://mcp.example/.well-known/oauth-protected-resource")
    assert "the server a public one" in str(error)
    assert asked == ["https://mcp.example/.well-known/oauth-protected-resource"]


@pytest.mark.parametrize("name", ["localhost", "login.localhost"])
async def test_a_name_of_this_machine_leads_to_no_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "93.184.216.34")
    error = await refusal("http://127.0.0.1:1/mcp", f"http://{name}:1/x")
    assert f"{name} leads to 93.184.216.34, expected this machine" in str(error)


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


@pytest.mark.parametrize("location", ["http://[", "https://xn--a/"])
async def test_a_redirect_to_what_is_no_url_is_an_error(location: str) -> None:
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(redirect, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
        assert location in (await refusal(url, url)).reason


async def test_a_name_server_that_does_not_answer_delays_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up cannot be cancelled. The default executor, which resolves the names of other clients, has few threads,
    and the end of the event loop waits for them.
    """
    is_over, asked = threading.Event(), threading.Event()

    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> list[Any]:
        if host == "slow.example":
            asked.set()
            is_over.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port or 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    request = asyncio.create_task(refusal(PUBLIC, "https://slow.example/x"))
    try:
        async with asyncio.timeout(20):
            while not asked.is_set():
                await asyncio.sleep(0.01)
            assert await asyncio.to_thread(is_over.is_set) is False
    finally:
        request.cancel()
        is_over.set()
        await asyncio.wait([request])


async def test_endless_headers_are_an_error() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n")
        with suppress(ConnectionError):
            while sent < 64 << 20:
                writer.write(b"A: %s\r\n" % (b"x" * 4_000))
                await writer.drain()
                sent += 4_000
        writer.close()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
        assert "does not answer in HTTP" in (await refusal(url, url)).reason
    assert sent < 64 << 20


def test_reach_is_ordered() -> None:
    assert Reach.PUBLIC < Reach.PRIVATE < Reach.LOOPBACK < Reach.SPECIAL
