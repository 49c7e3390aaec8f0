"""Programs of the other libraries that verify tokens, with their imports changed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from accord import Client, LoginNeeded, OAuth
from accord.compat import fastmcp
from accord.compat.auth import AuthSettings, public_url
from accord.compat.differ import Different
from accord.compat.fastmcp import FastMCP, JWTVerifier, RemoteAuthProvider, StaticTokenVerifier
from accord.compat.mcpserver import MCPServer
from accord.errors import ConnectError
from accord.migrate.rewrite import rewrite
from accord.testing.http import served_over_http

from tests.server.auth.issuer import AUDIENCE, issuing

OFFICIAL = """
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

URL = "http://127.0.0.1:8000/mcp"


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        if token == "for-another":
            return AccessToken(token=token, client_id="app", scopes=["shop"], subject="ann", resource="https://b.example")
        if token in ("ann", "expired", "no-scope"):
            return AccessToken(
                token=token,
                client_id="app",
                scopes=[] if token == "no-scope" else ["shop"],
                expires_at=1 if token == "expired" else None,
                subject="ann",
                resource=URL,
            )
        return None


server = MCPServer(
    "shop",
    token_verifier=Verifier(),
    auth=AuthSettings(
        issuer_url="https://login.example",
        resource_server_url=URL,
        required_scopes=["shop"],
        validate_token_resource=True,
    ),
)


@server.tool()
async def look() -> str:
    return "looked"
"""

THEIRS = """
from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, RemoteAuthProvider, TokenVerifier


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="app", scopes=["shop"]) if token == "ann" else None


provider = RemoteAuthProvider(Verifier(required_scopes=["shop"]), ["https://login.example"], "http://127.0.0.1:8000")
server = FastMCP("shop", auth=provider)


@server.tool
async def look() -> str:
    return "looked"
"""


def loaded(program: str) -> Any:
    """The server of a program, after `accord migrate`."""
    scope: dict[str, Any] = {"__name__": "program"}
    exec(compile(rewrite(program).text, "program.py", "exec"), scope)
    return scope["server"]


async def call(url: str, token: str | None) -> str:
    async with Client(url, auth=token) as client:
        return (await client.call_tool("look")).text


@pytest.mark.parametrize("program", [OFFICIAL, THEIRS], ids=["mcp", "fastmcp"])
async def test_a_program_with_a_token_verifier_runs(program: str) -> None:
    with served_over_http(loaded(program)) as url:
        assert await call(url, "ann") == "looked"
        for token in (None, "bob"):
            with pytest.raises(ConnectError, match=r"HTTP 401 .*oauth-protected-resource/mcp"):
                await call(url, token)


@pytest.mark.parametrize(("token", "status"), [("expired", 401), ("for-another", 401), ("no-scope", 403)])
async def test_a_token_that_the_library_would_refuse_is_refused(token: str, status: int) -> None:
    with served_over_http(loaded(OFFICIAL)) as url, pytest.raises(ConnectError, match=f"HTTP {status}"):
        await call(url, token)


async def test_a_table_of_tokens_needs_no_authorization_server() -> None:
    verifier = StaticTokenVerifier({"ann": {"client_id": "app", "expires_at": time.time() + 60}})
    server = FastMCP("shop", auth=verifier)
    server.tool(lambda: "looked", name="look")
    with served_over_http(server) as url:
        assert await call(url, "ann") == "looked"
        with pytest.raises(ConnectError) as refused:
            await call(url, "bob")
        assert "resource_metadata" not in str(refused.value)


async def test_a_jwt_verifier_is_that_of_accord() -> None:
    async with issuing() as issuer:
        verifier = JWTVerifier(issuer=issuer.url, audience=AUDIENCE, algorithm="ES256", required_scopes=["shop"])
        server = FastMCP("shop", auth=RemoteAuthProvider(verifier, [issuer.url]))
        server.tool(lambda: "looked", name="look")
        with served_over_http(server) as url:
            assert await call(url, issuer.token(scope="shop")) == "looked"
            with pytest.raises(ConnectError, match="another server"):
                await call(url, issuer.token(scope="shop", aud="https://other.example"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: JWTVerifier(public_key="PEM", issuer="https://a.example", audience="b"), "accord.JWT"),
        (
            lambda: JWTVerifier(jwks_uri="https://a.example/jwks"),
            "an issuer and an audience|one issuer and an audience",
        ),
        (lambda: AuthSettings(issuer_url="https://a.example", revocation_options=object()), "accord.OAuthProxy"),
        (lambda: MCPServer("x", auth=AuthSettings(issuer_url="https://a.example")), "belong together"),
    ],
)
def test_an_option_without_an_equivalent_says_what_to_write(make: Any, says: str) -> None:
    with pytest.raises(Different, match=says):
        make()


def test_the_public_url_is_that_of_the_program_except_on_loopback() -> None:
    assert public_url("https://shop.example/mcp") == "https://shop.example/mcp"
    assert public_url("http://127.0.0.1:8000/mcp") is None
    assert public_url(None) is None


@pytest.mark.parametrize("name", ["GitHubProvider", "OAuthProxy", "IntrospectionTokenVerifier"])
def test_migrate_says_what_to_write_for_a_provider(name: str) -> None:
    changed = rewrite(f"from fastmcp.server.auth import {name}\n")
    assert any("accord." in str(step) for step in changed.manual_steps)


async def test_a_client_of_fastmcp_sends_a_token_and_logs_in() -> None:
    with served_over_http(loaded(THEIRS)) as url:
        async with fastmcp.Client(url, auth="ann") as client:
            assert (await client.call_tool("look")).text == "looked"
        with pytest.raises(LoginNeeded, match=f"accord login {url}"):
            await fastmcp.Client(url, auth="oauth").connect()
        with pytest.raises(LoginNeeded):
            await fastmcp.Client(url, auth=OAuth(interactive=False)).connect()
    with pytest.raises(Different, match=r"takes no object as auth= in accord: give the token, or accord.OAuth"):
        fastmcp.Client("https://shop.example/mcp", auth=object())
