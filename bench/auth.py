"""The CPU time that authorization adds to a `tools/call`, on the server and on the client.

The floor is accord without authorization, and the aims are microseconds more than that. The server is called as an ASGI
application in this process; of the client, the part that sends a request is called in this process, without a network,
and the whole in processes of its own: `python -m bench.auth none | token | dpop PORT`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from yarl import URL

from accord import JWT, Client, CredentialStore, HTTPOptions, Limits, OAuth, Server
from accord.auth.credential_store import Login
from accord.auth.credentials import GrantCredentials, login_name
from accord.auth.discovery import Discovery
from accord.auth.dpop import DPoPKey
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration
from accord.auth.tokens import Tokens
from accord.limits import DEFAULT_LIMITS
from accord.server.http.app import HTTPApp
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.settings import HTTPSettings
from bench.auth_tokens import AUDIENCE, Issuer, proof
from bench.client import by_tasks, in_a_process, windows
from bench.http_wire import Site
from bench.measure import LOADING, SERVING, Figure, compare, take_turns
from bench.wire import STATELESS, Answer, call

CLIENT_ROUNDS = 5
ROUNDS, CALLS = 9, 400

Header = tuple[bytes, bytes]
_decode = msgspec.json.Decoder(Answer).decode
_BODY = call(STATELESS, "echo", b'{"text":"%0100d"}')
_HEAD: list[Header] = [
    (b"host", b"bench.example"),
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
    (b"mcp-protocol-version", STATELESS.encode()),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"echo"),
]


def run() -> list[Figure]:
    with Issuer() as issuer:
        figures = asyncio.run(server_figures(issuer))
    return [*figures, *asyncio.run(client_figures()), *whole_client_figures()]


# --- server ------------------------------------------------------------------------------------------------------


async def server_figures(issuer: Issuer) -> list[Figure]:
    """Measure calls with tokens: one that was seen before, new ones, and one with a new proof for each call."""
    plain, protected = app_of(None), app_of(JWT(issuer.url, AUDIENCE, jwks_uri=issuer.jwks_uri))
    seen, bound = issuer.token(), issuer.token(bound=True)
    kinds: list[tuple[str, float | None, Callable[[], list[Header]]]] = [
        ("token seen before", 6, lambda: bearer(seen)),
        ("new JWT, ES256", 170, lambda: bearer(issuer.token("ES256"))),
        ("new JWT, RS256", 100, lambda: bearer(issuer.token("RS256"))),
        ("new JWT of a new user, ES256", None, lambda: bearer(issuer.token(user=secrets.token_hex(6)))),
        ("token with a proof (DPoP)", 220, lambda: with_proof(bound)),
    ]
    figures = []
    for name, more, credentials in kinds:
        floors, accords = [], []
        for _ in range(ROUNDS + 1):
            await asyncio.sleep(0)  # the event loop is not blocked
            floors.append(await window(plain, [[]] * CALLS))
            accords.append(await window(protected, [credentials() for _ in range(CALLS)]))
        figures.append(adding(f"server: {name}", floors[1:], accords[1:], more))
    return figures


def adding(name: str, floors: Sequence[float], accords: Sequence[float], more: float | None) -> Figure:
    """Return a figure whose aim is the floor and `more` microseconds."""
    floor = min(floors)
    return compare(name, "µs CPU", floors, accords, None if more is None else (floor + more) / floor, pick=min)


def app_of(auth: JWT | None) -> HTTPApp:
    server = Server("bench", auth=auth, limits=Limits(tool_calls_per_second=1e6))

    @server.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    return server.asgi(HTTPOptions(public_url=AUDIENCE))


def bearer(token: str) -> list[Header]:
    return [(b"authorization", b"Bearer " + token.encode())]


def with_proof(token: str) -> list[Header]:
    return [(b"authorization", b"DPoP " + token.encode()), (b"dpop", proof(token).encode())]


async def window(app: HTTPApp, credentials: Sequence[list[Header]]) -> float:
    """Return the microseconds of CPU time per call, one call with each of the credentials."""
    requests = [(_HEAD + each, _BODY % (number, number)) for number, each in enumerate(credentials)]
    started = time.process_time()
    responses = [await post(app, headers, body) for headers, body in requests]
    elapsed = time.process_time() - started
    for number, response in enumerate(responses):
        if int(_decode(response).result.content[0].text) != number:
            raise RuntimeError(f"a wrong answer to {number}: {response!r}")
    return elapsed * 1e6 / len(requests)


async def post(app: HTTPApp, headers: list[Header], body: bytes) -> bytes:
    """Return the body of the response to a POST."""
    bodies: list[bytes] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
    await app(scope, receive, send)
    return bodies[0]


# --- client ------------------------------------------------------------------------------------------------------


class Offline(Fetcher):
    """The part of the HTTP client that adds credentials, with every request answered at once."""

    async def _follow(self, method: str, url: URL, headers: dict[str, str], body: bytes | None, what: str) -> Any:
        return _RESPONSE


class _Response:
    status = 200
    headers: Mapping[str, str] = {}


_RESPONSE = _Response()


async def client_figures() -> list[Figure]:
    """Measure one request with a token, and one with a proof."""
    url = "https://bench.example/mcp"
    figures = []
    for name, kind, more in (("a token", "token", 3), ("a token and a proof (DPoP)", "dpop", 100)):
        async with credentials_of(url, kind) as credentials:
            sides = [Offline(url, HTTPSettings(), DEFAULT_LIMITS, each) for each in (None, credentials)]
            for side in sides:
                await side.open()
            floors, accords = [], []
            for _ in range(ROUNDS + 1):
                for side, times in zip(sides, (floors, accords), strict=True):
                    times.append(await requests(side))
            for side in sides:
                await side.close()
        figures.append(adding(f"client, one request: {name}", floors[1:], accords[1:], more))
    return figures


async def requests(fetcher: Fetcher) -> float:
    """Return the microseconds of CPU time per request."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    started = time.process_time()
    for _ in range(CALLS):
        await fetcher.fetch("POST", headers, b"{}", what="tools/call")
    return (time.process_time() - started) * 1e6 / CALLS


@asynccontextmanager
async def credentials_of(url: str, kind: str) -> AsyncIterator[GrantCredentials]:
    """Yield the credentials of a client that is logged in at a server."""
    async with login_at(url, kind) as oauth:
        credentials = oauth.credentials(url)
        await credentials.renew("POST", url)
        try:
            yield credentials
        finally:
            await credentials.close()


@asynccontextmanager
async def login_at(url: str, kind: str) -> AsyncIterator[OAuth]:
    """Yield the way to log in at a server at which the user is logged in."""
    issuer = "https://login.example"
    scheme, expires_at = "DPoP" if kind == "dpop" else "Bearer", time.time() + 3_600
    tokens = Tokens(secrets.token_urlsafe(600), scheme, expires_at, refresh_token="refresh")
    discovery = Discovery(url, url, AuthorizationServerMetadata(issuer, token_endpoint=f"{issuer}/token"))
    key = DPoPKey().pem if kind == "dpop" else None
    with TemporaryDirectory() as folder:
        store = CredentialStore(Path(folder) / "credentials.db")
        await store.open()
        registration = ClientRegistration(issuer, "bench", "registered")
        await store.save(login_name(url), Login(discovery, registration, tokens, dpop_key=key))
        yield OAuth(store=store, interactive=False)
        await store.close()


def whole_client_figures() -> list[Figure]:
    """Measure whole calls, one at a time and 64 in flight."""
    kinds = ("none", "token", "dpop")
    with Site("http_floor.py", core=LOADING) as site:
        plain, token, dpop = take_turns(
            CLIENT_ROUNDS,
            *(lambda kind=kind: in_a_process("bench.auth", kind, str(site.port)) for kind in kinds),
        )
    aims: dict[int, float | None] = {1: None, 64: None}
    return [*by_tasks("client, token", plain, token, aims), *by_tasks("client, DPoP", plain, dpop, aims)]


async def drive(kind: str, port: int) -> list[float]:
    """Return the microseconds of a client's CPU time per call, for each number of tasks."""
    url = f"http://127.0.0.1:{port}/mcp"
    async with AsyncExitStack() as stack:
        oauth = None if kind == "none" else await stack.enter_async_context(login_at(url, kind))
        client = await stack.enter_async_context(Client(url, auth=oauth))

        async def echo(text: str) -> str:
            return (await client.call_tool("echo", {"text": text})).text

        return await windows(echo)


if __name__ == "__main__":
    os.sched_setaffinity(0, {SERVING})
    print(msgspec.json.encode(asyncio.run(drive(sys.argv[1], int(sys.argv[2])))).decode())
