"""A server behind `OAuthProxy`, whose provider is `AuthServer`: its clients, and the browsers of its users."""

from __future__ import annotations

import re
import secrets
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from accord import Context, Server
from accord.auth.code_grant import code_challenge
from accord.server.auth.proxy.oauth_proxy import OAuthProxy
from accord.server.http.app import HTTPApp
from accord.server.http.options import HTTPOptions
from accord.testing import AuthServer

PUBLIC = "https://shop.example/mcp"
ISSUER = "https://shop.example"
SECRET = "secret-of-the-shop/+ %"
REDIRECT_URI = "https://client.example/callback"
KEY = "a key of more than 16 bytes"


class Clock:
    """The time of the proxy, which only a test moves."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._start = time.time()

    def __call__(self) -> float:
        return self._start + self.ahead


class Reply:
    """A response of the application."""

    def __init__(self, messages: list[Any]) -> None:
        self.status: int = messages[0]["status"]
        self.fields = [(name.decode(), value.decode()) for name, value in messages[0]["headers"]]
        self.headers = dict(self.fields)
        self.body: bytes = b"".join(each.get("body", b"") for each in messages[1:])

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        import json

        return json.loads(self.body)

    @property
    def location(self) -> str:
        assert self.status == 303, f"{self.status}: {self.text}"
        return self.headers["location"]

    @property
    def parameters(self) -> dict[str, str]:
        """Those of the URL that it redirects to."""
        return dict(parse_qsl(urlsplit(self.location).query, strict_parsing=True))


async def send(
    app: Any, method: str, url: str, body: bytes = b"", headers: dict[str, str] | None = None, root: str = ""
) -> Reply:
    """The response to a request for a URL of the server."""
    parts = urlsplit(url)
    given = {"host": parts.netloc or "shop.example", "content-length": str(len(body)), **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "scheme": parts.scheme or "https",
        "path": parts.path,
        "root_path": root,
        "query_string": parts.query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        "client": ("192.0.2.1", 5000),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def collect(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, collect)
    return Reply(sent)


FORM = {"content-type": "application/x-www-form-urlencoded"}
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


class Browser:
    """A browser with cookies, at one server."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.cookies: dict[str, str] = {}

    async def open(self, url: str, **headers: str) -> Reply:
        """Open a URL of the server."""
        return await self._send("GET", url, b"", headers)

    async def post(self, url: str, form: dict[str, str], **headers: str) -> Reply:
        """Send a form of a page of the server."""
        return await self._send(
            "POST", url, urlencode(form).encode(), {**FORM, "sec-fetch-site": "same-origin", **headers}
        )

    async def _send(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Reply:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = await send(self.app, method, url, body, given)
        for name, value in reply.fields:
            if name == "set-cookie":
                pair, _, attributes = value.partition("; ")
                key, _, content = pair.partition("=")
                if "Max-Age=0" in attributes:
                    self.cookies.pop(key, None)
                else:
                    self.cookies[key] = content
        return reply

    async def decide(self, page: Reply, decision: str = "allow", **headers: str) -> Reply:
        """Press a button of the consent page."""
        form = {name: unescape(value) for name, value in _HIDDEN.findall(page.text)}
        return await self.post(f"{ISSUER}/consent", {**form, "decision": decision}, **headers)


class Login(NamedTuple):
    """A request of a client, as the browser opens it."""

    url: str
    verifier: str
    state: str


class Proxied:
    """A server behind `OAuthProxy`, and its provider."""

    def __init__(self, app: HTTPApp, auth: OAuthProxy, provider: AuthServer, clock: Clock) -> None:
        self.app = app
        self.auth = auth
        self.provider = provider
        self.clock = clock

    def browser(self) -> Browser:
        return Browser(self.app)

    async def post(self, path: str, form: dict[str, str], **headers: str) -> Reply:
        """Send a form of a client."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await send(self.app, "POST", f"{ISSUER}{path}", urlencode(form).encode(), {**FORM, **given})

    async def register(self, *redirect_uris: str, **metadata: Any) -> dict[str, Any]:
        """Register a client, public unless told otherwise."""
        import json

        document = {
            "redirect_uris": list(redirect_uris) or [REDIRECT_URI],
            "client_name": "Desk",
            "token_endpoint_auth_method": "none",
            **metadata,
        }
        reply = await send(self.app, "POST", f"{ISSUER}/register", json.dumps(document).encode())
        assert reply.status == 201, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def login(self, client: str, /, **changes: str | None) -> Login:
        """The request of a client; a parameter of None is left out."""
        verifier, state = secrets.token_urlsafe(32), secrets.token_urlsafe(8)
        parameters = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": REDIRECT_URI,
            "state": state,
            "code_challenge": code_challenge(verifier),
            "code_challenge_method": "S256",
            "resource": PUBLIC,
            **changes,
        }
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        return Login(f"{ISSUER}/authorize?{query}", verifier, state)

    async def consent(self, browser: Browser, login: Login) -> Reply:
        """Open the consent page, and allow; the reply leads to the provider."""
        page = await browser.open(login.url)
        assert page.status == 200, page.text
        return await browser.decide(page)

    def at_provider(self, redirect: Reply) -> str:
        """Log in at the provider; the URL of the callback."""
        return self.provider.callback(redirect.location)

    async def authorize(self, client_id: str, **changes: str | None) -> tuple[Login, str]:
        """Go through a whole login; the code that the client gets."""
        login, browser = self.login(client_id, **changes), self.browser()
        redirect = await self.consent(browser, login)
        done = await browser.open(self.at_provider(redirect))
        assert "code" in done.parameters, done.location
        return login, done.parameters["code"]

    def redeeming(self, client_id: str, login: Login, code: str) -> dict[str, str]:
        return {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "redirect_uri": REDIRECT_URI,
            "code_verifier": login.verifier,
            "resource": PUBLIC,
        }

    async def tokens(self, client_id: str | None = None, **changes: str | None) -> dict[str, Any]:
        """Log in, and redeem the code; the response, with the client ID."""
        client = client_id or (await self.register())["client_id"]
        login, code = await self.authorize(client, **changes)
        reply = await self.post("/token", self.redeeming(client, login, code))
        assert reply.status == 200, reply.text
        return {**reply.json(), "client_id": client}

    async def refresh(self, tokens: dict[str, Any]) -> Reply:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": tokens["refresh_token"],
            "client_id": tokens["client_id"],
        }
        return await self.post("/token", form)

    async def call(self, token: str, tool: str = "whoami") -> Reply:
        """Call a tool with a token."""
        body = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{},"_meta":{'
            b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":'
            b'{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}' % tool.encode()
        )
        headers = {
            "authorization": f"Bearer {token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        return await send(self.app, "POST", PUBLIC, body, headers)


def shop(auth: OAuthProxy) -> Server:
    """A server whose tools say who calls, and with which token of the provider."""
    server = Server("shop", title="The shop", auth=auth)

    @server.tool
    def whoami(ctx: Context) -> str:
        assert ctx.principal is not None
        return f"{ctx.principal.id} {' '.join(sorted(ctx.principal.scopes))}"

    @server.tool
    async def upstream(ctx: Context) -> str:
        return await ctx.upstream.token()

    return server


def user_at(provider: AuthServer) -> Callable[[str], Any]:
    """A `verify` that asks the provider."""

    async def verify(token: str) -> dict[str, Any]:
        found = provider._tokens.tokens[token]
        assert found.is_active(provider._tokens.clock()), "the provider does not know the token"
        return {"sub": found.authorization.subject, "scope": found.scopes}

    return verify


@asynccontextmanager
async def proxied(
    path: Path | str = ":memory:",
    monkeypatch: pytest.MonkeyPatch | None = None,
    provider: AuthServer | None = None,
    options: HTTPOptions | None = None,
    clock: Clock | None = None,
    **changes: Any,
) -> AsyncIterator[Proxied]:
    """Serve the shop. With `monkeypatch`, its clock can be moved."""
    clock = clock or Clock()
    if monkeypatch is not None:
        monkeypatch.setattr("time.time", clock)
    own = provider or AuthServer(jwt=False)
    async with own if provider is None else _open(own):
        own.add_client("shop", SECRET, redirect_uris=[f"{ISSUER}/callback"])
        whole = {
            "authorize": f"{own.issuer}/authorize",
            "token": f"{own.issuer}/token",
            "client_id": "shop",
            "client_secret": SECRET,
            "verify": user_at(own),
            "scopes": ("read", "write"),
            "database": path,
            "key": KEY,
            **changes,
        }
        auth = OAuthProxy(**whole)
        app = shop(auth).asgi(options or HTTPOptions(public_url=PUBLIC))
        try:
            yield Proxied(app, auth, own, clock)
        finally:
            await app.drain(1)
            await app.close()


@asynccontextmanager
async def _open(provider: AuthServer) -> AsyncIterator[AuthServer]:
    yield provider


def basic(user: str, password: str) -> str:
    """The Authorization header of HTTP Basic."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
