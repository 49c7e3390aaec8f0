"""Forged tokens on every route and with every method: no handler runs, and nothing of the server is told."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwe

from accord import Server
from accord.server.auth.jwt import JWT
from accord.server.http.options import HTTPOptions

from tests.server.auth.issuer import AUDIENCE, ES256, OTHER, RS256, Issuer, encoded, forged, issuing, signed
from tests.server.http.http_clients import Modern, Stateful, quick, request, site
from tests.server.http.raw import BASIC

Forgery = Callable[[Issuer], str]


def with_claims(**changes: Any) -> Forgery:
    return lambda issuer: issuer.token(**changes)


def with_header(key: Any = ES256, **header: Any) -> Forgery:
    return lambda issuer: issuer.token(key, header)


def unsigned(algorithm: Any) -> Forgery:
    return lambda issuer: f"{encoded({'alg': algorithm, 'typ': 'at+jwt'})}.{encoded(issuer.claims())}."


def changed(change: Callable[[list[str]], list[str]]) -> Forgery:
    """A good token with other parts."""
    return lambda issuer: ".".join(change(issuer.token().split(".")))


def with_public_key_as_secret(key: Any, form: str) -> Forgery:
    def forge(issuer: Issuer) -> str:
        public = key.as_pem(private=False) if form == "pem" else json.dumps(key.as_dict(private=False)).encode()
        header = {"alg": "HS256", "kid": key.as_dict()["kid"], "typ": "at+jwt"}
        text = f"{encoded(header)}.{encoded(issuer.claims())}"
        return f"{text}.{encoded(hmac.new(public, text.encode(), 'sha256').digest())}"

    return forge


def encrypted(issuer: Issuer) -> str:
    header = {"alg": "RSA-OAEP", "enc": "A256GCM", "typ": "at+jwt"}
    return jwe.encrypt_compact(header, json.dumps(issuer.claims()), RS256)


def nested(issuer: Issuer) -> str:
    return signed(issuer.token().encode(), OTHER, typ="at+jwt", cty="JWT", kid="ec")


def general_json(issuer: Issuer) -> str:
    head, payload, signature = issuer.token().split(".")
    document = {"payload": payload, "signatures": [{"protected": head, "signature": signature}] * 2}
    return json.dumps(document, separators=(",", ":"))


def twice(member: str) -> Forgery:
    """Two members of one name, the second of which is good."""

    def forge(issuer: Issuer) -> str:
        claims = json.dumps(issuer.claims())
        value = json.dumps(issuer.claims()[member])
        return forged({"alg": "ES256", "kid": "ec"}, f'{{"{member}": {value}, {claims[1:]}'.encode(), ES256)

    return forge


def in_other_encoding(issuer: Issuer) -> str:
    claims = json.dumps(issuer.claims()).encode("utf-16")
    return forged({"alg": "ES256", "kid": "ec"}, claims, ES256)


MINUTES = 60
FORGERIES: dict[str, Forgery] = {
    "no algorithm": unsigned("none"),
    "None": unsigned("None"),
    "nOnE": unsigned("nOnE"),
    "an empty algorithm": unsigned(""),
    "an algorithm that is null": unsigned(None),
    "an algorithm that is a list": unsigned(["ES256"]),
    "a public key as secret, PEM": with_public_key_as_secret(RS256, "pem"),
    "a public key as secret, JWK": with_public_key_as_secret(ES256, "jwk"),
    "a public key as secret, of ES256": with_public_key_as_secret(ES256, "pem"),
    "a foreign key under a known id": with_header(OTHER),
    "an unknown key id": with_header(OTHER, kid="unknown"),
    "a key id that is a path": with_header(OTHER, kid="../../../../dev/null"),
    "a key id that is a query": with_header(OTHER, kid="ec' UNION SELECT 'x"),
    "no key id, and a foreign key": with_header(OTHER, kid=None),
    "the key of another algorithm": with_header(ES256, kid="rsa"),
    "another algorithm than that of the key": lambda issuer: forged(
        {"alg": "RS256", "kid": "ec"}, issuer.claims(), ES256
    ),
    "an embedded key": with_header(OTHER, jwk=OTHER.as_dict(private=False)),
    "an embedded key without an id": with_header(OTHER, kid=None, jwk=OTHER.as_dict(private=False)),
    "a URL of keys": with_header(OTHER, jku="http://127.0.0.1:9/jwks"),
    "a URL of a certificate": with_header(OTHER, x5u="http://127.0.0.1:9/cert"),
    "a certificate": with_header(OTHER, x5c=["MIIB"]),
    "a critical header": with_header(ES256, crit=["exp"], exp=1),
    "an empty critical header": with_header(ES256, crit=[]),
    "a payload that is not encoded": with_header(ES256, b64=False, crit=["b64"]),
    "the type of an ID token request": with_header(ES256, typ="id_token"),
    "the type of a proof": with_header(ES256, typ="dpop+jwt"),
    "the type of a logout token": with_header(ES256, typ="logout+jwt"),
    "an ID token": with_claims(nonce="n", aud="desk"),
    "another audience": with_claims(aud="https://other.example/mcp"),
    "no audience": with_claims(aud=None),
    "an empty audience": with_claims(aud=[]),
    "a prefix of the audience": with_claims(aud="https://shop.example"),
    "a longer audience": with_claims(aud=f"{AUDIENCE}/"),
    "the audience in another case": with_claims(aud=AUDIENCE.upper()),
    "an audience that is an object": with_claims(aud={AUDIENCE: 1}),
    "another issuer": with_claims(iss="https://login.example"),
    "no issuer": with_claims(iss=None),
    "the issuer with a slash": lambda issuer: issuer.token(iss=f"{issuer.url}/"),
    "the issuer in a list": lambda issuer: issuer.token(iss=[issuer.url]),
    "no expiry": with_claims(exp=None),
    "expired": with_claims(exp=int(time.time()) - 2 * MINUTES),
    "an expiry that is a text": with_claims(exp="9999999999"),
    "an expiry that is true": with_claims(exp=True),
    "not valid yet": with_claims(nbf=int(time.time()) + 100 * MINUTES),
    "issued in the future": with_claims(iat=int(time.time()) + 100 * MINUTES),
    "no subject": with_claims(sub=None),
    "a subject that is a number": with_claims(sub=7),
    "a subject that is empty": with_claims(sub=""),
    "truncated": lambda issuer: issuer.token()[:-8],
    "without a signature": changed(lambda parts: parts[:2]),
    "with an empty signature": changed(lambda parts: [*parts[:2], ""]),
    "with two signatures": changed(lambda parts: [*parts, parts[2]]),
    "with a signature of zeros": changed(lambda parts: [*parts[:2], encoded(bytes(64))]),
    "with other claims": changed(lambda parts: [parts[0], encoded({"sub": "admin"}), parts[2]]),
    "with another header": changed(lambda parts: [encoded({"alg": "ES256"}), *parts[1:]]),
    "padded": changed(lambda parts: [f"{parts[0]}=", *parts[1:]]),
    "in the other alphabet": changed(lambda parts: [*parts[:2], f"{parts[2][:-1]}+"]),
    "encrypted": encrypted,
    "nested": nested,
    "as JSON with two signatures": general_json,
    "huge": with_claims(extra="x" * 20_000),
    "deep": lambda issuer: forged(
        {"alg": "ES256", "kid": "ec"}, b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}", ES256
    ),
    "the subject twice": twice("sub"),
    "the audience twice": twice("aud"),
    "in UTF-16": in_other_encoding,
    "claims that are a list": lambda issuer: forged({"alg": "ES256", "kid": "ec"}, [], ES256),
    "claims that are null": lambda issuer: forged({"alg": "ES256", "kid": "ec"}, b"null", ES256),
    "a header that is a list": lambda issuer: forged([], issuer.claims(), ES256),
    "a lone surrogate": lambda issuer: forged({"alg": "ES256", "kid": "ec"}, b'{"sub":"\\ud800"}', ES256),
    "opaque": lambda issuer: "mF_9.B5f-4.1JqM",
    "dots": lambda issuer: "..",
    "a word": lambda issuer: "undefined",
}


class Counting(Server):
    """A server that counts what runs in it."""

    def __init__(self, auth: Any) -> None:
        super().__init__("shop", "1", limits=quick(), auth=auth)
        self.runs = 0

        @self.tool
        def call() -> str:
            return self.run_once()

        @self.prompt
        def write() -> str:
            return self.run_once()

        @self.resource("shop://stock")
        def stock() -> str:
            return self.run_once()

    def run_once(self) -> str:
        self.runs += 1
        return "secret of the shop"


MESSAGES: list[dict[str, Any]] = [
    request("tools/call", {"name": "call", "arguments": {}}),
    request("tools/list", {}),
    request("prompts/get", {"name": "write"}),
    request("resources/read", {"uri": "shop://stock"}),
    request("subscriptions/listen", {"notifications": {}}),
    request("server/discover", {}),
    request(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    ),
]
PATHS = ["/mcp", "/", "/sse", "/messages"]
METHODS = ["POST", "GET", "DELETE", "PUT"]


@pytest.mark.parametrize("name", FORGERIES)
async def test_no_forged_token_reaches_a_handler(name: str) -> None:
    async with issuing() as issuer:
        server = Counting(JWT(issuer.url, AUDIENCE))
        token = FORGERIES[name](issuer)
        async with site(server, options=HTTPOptions(public_url=AUDIENCE)) as here:
            session = await Stateful(here.raw, authorization=f"Bearer {issuer.token()}").open()
            forged_bearer = {"authorization": f"Bearer {token}"}
            for message in MESSAGES:
                answer = await Modern(here.raw, **forged_bearer).post(message)
                await check_refused(answer, token)
                body = json.dumps(message).encode()
                answer = await (
                    await here.raw.begin("POST", "/mcp", {**session.headers, **forged_bearer}, body)
                ).start()
                await check_refused(answer, token)
            for path in PATHS:
                for method in METHODS:
                    headers = {**BASIC, "accept": "text/event-stream, application/json", **forged_bearer}
                    answer = await (await here.raw.begin(method, path, headers, b"{}")).start()
                    if (path, method) in ALLOWED:
                        await check_refused(answer, token)
                    else:
                        assert answer.status in (401, 405)
            assert server.runs == 0
            await (await session.send("DELETE")).end()
    assert issuer.counts["/jwks"] == 1


ALLOWED = [*((path, method) for path in ("/mcp", "/") for method in METHODS), ("/sse", "GET"), ("/messages", "POST")]


async def check_refused(answer: Any, token: str) -> None:
    body = await answer.body()
    assert answer.status == 401, body
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    whole = body.decode() + json.dumps(answer.headers)
    assert b"secret" not in body
    assert token not in whole or len(token) < 10


@pytest.mark.parametrize("place", ["access_token", "token", "authorization"])
async def test_a_token_in_the_query_or_the_body_does_not_count(place: str) -> None:
    """ "Access tokens MUST NOT be included in the URI query string" (Authorization, Token Requirements)."""
    async with issuing() as issuer:
        server = Counting(JWT(issuer.url, AUDIENCE))
        async with site(server, options=HTTPOptions(public_url=AUDIENCE)) as here:
            for path in PATHS:
                for method in ("POST", "GET"):
                    scope = {"type": "http", "method": method, "path": path, "headers": _headers(BASIC)}
                    scope["query_string"] = f"{place}={issuer.token()}&session_id=a".encode()
                    status = await status_of_scope(here.app, scope, f"{place}={issuer.token()}".encode())
                    assert status in (401, 405)
        assert server.runs == 0


def _headers(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def status_of_scope(app: Any, scope: Any, body: bytes) -> int:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(30):
        await app(scope, receive, send)
    return int(sent[0]["status"])


async def test_the_good_token_passes_where_the_forged_ones_do_not() -> None:
    async with issuing() as issuer:
        server = Counting(JWT(issuer.url, AUDIENCE))
        async with site(server, options=HTTPOptions(public_url=AUDIENCE)) as here:
            answer = await Modern(here.raw, authorization=f"Bearer {issuer.token()}").call("call")
            assert answer.status == 200
            await answer.end()
        assert server.runs == 1


def test_there_are_enough_forgeries() -> None:
    assert len(FORGERIES) >= 30
