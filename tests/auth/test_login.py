"""A client logs in to a server, and stays logged in: `Client(url, auth=OAuth())` against `AuthServer`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import AuthorizationError, Client, Context, CredentialStore, LoginNeeded, OAuth, Server
from accord.auth.credential_store import Login
from accord.http import Forbidden, Principal, Unauthorized
from accord.testing import AuthServer
from accord.transport.asgi.request import Receive, Scope, Send

from tests.server.http.raw import served

REVISIONS = ["2025-11-25", "2026-07-28"]


class OpaqueTokens:
    """The tokens of an `AuthServer`, as its resource accepts them."""

    def __init__(self, issuer: AuthServer) -> None:
        self._issuer = issuer
        self.needed: dict[str, str] = {}
        """Scopes that a request with this `Mcp-Name` needs."""

    async def authenticate(self, request: Any) -> Principal:
        sent = request.headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        token = self._issuer._tokens.tokens.get(sent)
        metadata = f'resource_metadata="{self._issuer._endpoints.origin}/.well-known/oauth-protected-resource/mcp"'
        if token is None or token.expires_at <= time.time() or token.authorization.revoked:
            raise Unauthorized("no valid token", challenge=f'Bearer {metadata}, scope="read"')
        needed = self.needed.get(request.headers.get(b"mcp-name", b"").decode())
        if needed is not None and needed not in token.scopes:
            raise Forbidden(
                "more is needed", challenge=f'Bearer error="insufficient_scope", scope="{needed}", {metadata}'
            )
        return Principal(token.authorization.subject, frozenset(token.scopes))


class Place:
    """A server and its authorization server on one origin."""

    def __init__(self, issuer: AuthServer, auth: OpaqueTokens, port: int) -> None:
        self.issuer = issuer
        self.auth = auth
        self.url = f"http://127.0.0.1:{port}/mcp"

    def login(self, store: CredentialStore, **settings: Any) -> OAuth:
        """Return a login without a browser: the user consents at once."""

        async def authorize(url: str) -> str:
            return self.issuer.callback(url)

        return OAuth(authorize=authorize, store=store, **settings)


@asynccontextmanager
async def place(**options: Any) -> AsyncIterator[Place]:
    issuer = AuthServer(jwt=False, **options)
    auth = OpaqueTokens(issuer)
    server = Server("desk", auth=auth)

    @server.tool
    def who(ctx: Context) -> str:
        """Return the user."""
        return ctx.principal.id if ctx.principal is not None else "nobody"

    app = server.app

    class Both:
        """The MCP server at its path, the authorization server at all others."""

        drain, close = app.drain, app.close

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            inner = app if scope["type"] != "http" or scope["path"] == "/mcp" else issuer
            await inner(scope, receive, send)

    async with served(Both()) as socket:  # type: ignore[arg-type]
        issuer.locate(f"http://127.0.0.1:{socket.port}")
        yield Place(issuer, auth, socket.port)


@pytest.fixture
def store(tmp_path: Path) -> CredentialStore:
    return CredentialStore(tmp_path / "credentials.db")


async def stored(store: CredentialStore) -> Login:
    await store.open()
    try:
        (login,) = (await store.logins()).values()
        return login
    finally:
        await store.close()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_first_connection_logs_in_and_the_next_one_uses_the_login(
    revision: str, store: CredentialStore
) -> None:
    async with place() as at:
        for _ in range(2):
            async with Client(at.url, auth=at.login(store), revisions=[revision]) as client:
                assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1
        assert at.issuer.counts["registration"] == 1


async def test_without_a_user_the_error_names_the_command(store: CredentialStore) -> None:
    async with place() as at:
        with pytest.raises(LoginNeeded, match=f"accord login {at.url}"):
            await Client(at.url, auth=OAuth(interactive=False, store=store)).connect()
        assert at.issuer.counts["authorization"] == 0
    assert not store.exists


async def test_100_calls_with_an_expired_token_lead_to_one_refresh(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        before = at.issuer.counts["token"]
        at.issuer.expire_access_tokens()
        results = await asyncio.gather(*(client.call_tool("who") for _ in range(100)))
        assert {result.text for result in results} == {"alice"}
        assert at.issuer.counts["token"] == before + 1
        assert at.issuer.counts["authorization"] == 1


async def test_two_stores_of_one_file_refresh_once(tmp_path: Path) -> None:
    stores = [CredentialStore(tmp_path / "credentials.db") for _ in range(2)]
    async with (
        place() as at,
        Client(at.url, auth=at.login(stores[0])) as first,
        Client(at.url, auth=at.login(stores[1])) as second,
    ):
        await asyncio.gather(first.call_tool("who"), second.call_tool("who"))
        before = at.issuer.counts["token"]
        at.issuer.expire_access_tokens()
        clients = [first, second] * 20
        results = await asyncio.gather(*(client.call_tool("who") for client in clients))
        assert {result.text for result in results} == {"alice"}
        assert at.issuer.counts["token"] == before + 1


async def test_a_refused_refresh_token_is_deleted_and_the_user_logs_in_again(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        at.issuer.revoke_all()
        assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 2


async def test_a_call_that_needs_more_scopes_logs_in_for_all_of_them(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store), revisions=["2026-07-28"]) as client:
        at.auth.needed["who"] = "write"
        assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 2
        assert {"read", "write"} <= set((await stored(store)).tokens.requested)


async def test_a_scope_that_is_not_granted_is_requested_once(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store), revisions=["2026-07-28"]) as client:
        at.auth.needed["who"] = "admin"  # which the authorization server does not have
        with pytest.raises(Exception):  # noqa: B017, PT011 - the kind depends on who refuses
            await client.call_tool("who")
        assert at.issuer.counts["authorization"] <= 2


UNTRUSTED = (
    *("issuer_mismatch", "issuer_slash", "s256_missing", "s256_plain", "resource_of_another", "resource_sibling"),
    *("iss_of_another", "iss_slash", "iss_missing", "state_changed", "state_missing", "state_twice"),
    *("authorization_endpoint_javascript", "authorization_endpoint_http", "token_endpoint_http", "servers_javascript"),
)


@pytest.mark.parametrize("fault", UNTRUSTED)
async def test_an_authorization_server_that_cannot_be_trusted_gets_no_code(fault: str, store: CredentialStore) -> None:
    async with place(faults={fault}) as at:
        with pytest.raises(AuthorizationError) as caught:
            await Client(at.url, auth=at.login(store)).connect()
        assert not isinstance(caught.value, LoginNeeded)
        assert at.issuer.counts["token"] == 0
        assert not [secret for secret in at.issuer.secrets if secret in str(caught.value)]


async def test_no_secret_is_in_errors_and_representations(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        shown = f"{await stored(store)!r} {at.login(store, client_secret='secret-of-client')!r}"
        assert not [secret for secret in (*at.issuer.secrets, "secret-of-client") if secret in shown]


async def accord(*arguments: str, file: Path, visit: Callable[[str], str] | None = None) -> str:
    """Run a command, and return what it prints; `visit` returns the callback for the URL that it shows."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accord", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "ACCORD_CREDENTIALS": str(file)},
    )
    assert process.stdin is not None
    assert process.stderr is not None
    if visit is not None:
        while not (line := (await process.stderr.readline()).decode().strip()).startswith("http"):
            assert line or not process.stderr.at_eof()
        process.stdin.write(f"{visit(line)}\n".encode())
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    return (output + errors).decode()


async def test_the_commands_log_in_use_the_login_and_log_out(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place() as at:
        assert f"run: accord login {at.url}" in await accord("call", at.url, "who", file=file)
        assert not file.exists()
        shown = await accord("login", at.url, "--no-browser", file=file, visit=at.issuer.callback)
        assert f"logged in to {at.url}" in shown
        assert file.stat().st_mode & 0o777 == 0o600
        shown += await accord("call", at.url, "who", file=file)
        assert "alice" in shown
        shown += await accord("auth", "status", file=file)
        assert f"{at.url}: issuer {at.issuer.issuer}" in shown
        shown += await accord("logout", at.url, file=file)
        assert "has revoked the tokens" in shown
        assert "there is no login" in await accord("auth", "status", file=file)
        assert "accord login" in await accord("call", at.url, "who", file=file)
        tokens = [secret for secret in at.issuer.secrets if len(secret) > 20]
        assert tokens
        assert not [secret for secret in tokens if secret in shown or secret.encode() in file.read_bytes()]
