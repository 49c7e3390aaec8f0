"""An MCP server and its authorization server on one origin, and how a client logs in there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any

from accord import Context, CredentialStore, OAuth, Server
from accord.auth.credentials import GrantCredentials
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.oauth import grant_settings
from accord.auth.program_grants import ProgramGrant
from accord.auth.user_grants import CodeGrant
from accord.http import Forbidden, Principal, Unauthorized
from accord.testing import AuthServer
from accord.transport.asgi.request import Receive, Scope, Send

from tests.server.http.raw import served


class OpaqueTokens:
    """The tokens of an `AuthServer`, as its resource accepts them."""

    def __init__(self, issuer: AuthServer) -> None:
        self._issuer = issuer
        self.needed: dict[str, str] = {}
        """Scopes that a request with this `Mcp-Name` needs."""
        self.accepts_expired = False
        self.refused = 0
        """The number of requests with an invalid token, or none."""

    async def authenticate(self, request: Any) -> Principal:
        sent = request.headers.get(b"authorization", b"").decode().partition(" ")[2]
        token = self._issuer._tokens.tokens.get(sent)
        metadata = f'resource_metadata="{self._issuer._endpoints.origin}/.well-known/oauth-protected-resource/mcp"'
        is_over = token is not None and token.expires_at <= self._issuer._tokens.clock() and not self.accepts_expired
        if token is None or is_over or token.authorization.revoked:
            self.refused += 1
            raise Unauthorized("no valid token", challenge=f'Bearer {metadata}, scope="read"')
        needed = self.needed.get(request.headers.get(b"mcp-name", b"").decode())
        if needed is not None and needed not in token.scopes:
            raise Forbidden(
                "more is needed", challenge=f'Bearer error="insufficient_scope", scope="{needed}", {metadata}'
            )
        return Principal(token.authorization.subject, frozenset(token.scopes))


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


class Timed:
    """An `auth=` with the clock of a test."""

    def __init__(self, auth: Any, clock: Clock) -> None:
        self._auth = auth
        self._clock = clock
        self.made: GrantCredentials | None = None

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        http, clock, auth = OAuthClient(server), self._clock, self._auth
        if isinstance(auth, OAuth):
            grant = CodeGrant(grant_settings(auth), server, http, clock)
            self.made = GrantCredentials(grant, server, http, auth.store, clock)
        else:
            self.made = GrantCredentials(ProgramGrant(auth, http, clock), server, http, now=clock)
        return self.made


class Place:
    """A server and its authorization server on one origin."""

    def __init__(self, issuer: AuthServer, auth: OpaqueTokens) -> None:
        self.issuer = issuer
        self.auth = auth
        self.url = ""
        self.refusals = 0
        """The number of requests whose proof, or its absence, was refused."""
        self.waits = asyncio.Event()
        """Set when the tool that never returns has begun."""

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

    @server.resource("desk://note")
    def note() -> str:
        """Return a note."""
        return "milk"

    meeting = asyncio.Barrier(64)

    @server.tool
    async def meet(ctx: Context) -> str:
        """Return the user once 64 calls wait for one another."""
        await meeting.wait()
        return who(ctx)

    @server.tool
    def extensions(ctx: Context) -> list[str]:
        """Return the extensions that the client declares."""
        return sorted(ctx.client_capabilities.extensions or {})

    @server.tool
    async def wait() -> None:
        """Never return."""
        at.waits.set()
        await asyncio.Event().wait()

    app = server.app
    at = Place(issuer, auth)

    class Both:
        """The MCP server at its path, a redirect to it at `/mcp/`, the authorization server at all others. With `dpop`,
        the authorization server verifies the proofs of requests to the MCP server too.
        """

        drain, close = app.drain, app.close

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope.get("path") == "/mcp/":
                await send({"type": "http.response.start", "status": 307, "headers": [(b"location", b"/mcp")]})
                await send({"type": "http.response.body", "body": b""})
                return
            is_mcp = scope["type"] != "http" or scope["path"] == "/mcp"
            if is_mcp and scope["type"] == "http" and "dpop" in options:
                headers = {
                    name.decode(): value.decode("latin-1")
                    for name, value in scope["headers"]
                    if name != b"content-type"
                }
                answer, _ = issuer.answer(scope["method"], "/mcp", "", headers, b"")
                is_mcp = answer.status == 200
                at.refusals += not is_mcp
                if not is_mcp:
                    sent = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
                    await send({"type": "http.response.start", "status": answer.status, "headers": sent})
                    await send({"type": "http.response.body", "body": answer.body})
                    return
            await (app if is_mcp else issuer)(scope, receive, send)

    async with served(Both()) as socket:  # type: ignore[arg-type]
        issuer.locate(f"http://127.0.0.1:{socket.port}")
        at.url = issuer.resource
        yield at


async def stored(store: CredentialStore) -> Login:
    async with store:
        (name,) = await store.logins()
        login = await store.load(name)
        assert login is not None
        return login
