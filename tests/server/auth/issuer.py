"""An issuer on loopback whose keys a test chooses, and the tokens that it signs."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from accord.limits import Limits
from accord.server.http.serving.address import bind, bound_address, parse_address
from accord.server.http.serving.asgi_server import ASGIServer

AUDIENCE = "https://shop.example/mcp"
Key = ECKey | RSAKey | OctKey | OKPKey

ES256 = ECKey.generate_key("P-256", {"kid": "ec"})
RS256 = RSAKey.generate_key(2048, {"kid": "rsa"})
OTHER = ECKey.generate_key("P-256", {"kid": "ec"})
"""A key that no issuer here has, under the id of one that it has."""


def encoded(part: Any) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def algorithm_of(key: Key) -> str:
    if key.key_type == "EC":
        return {"P-256": "ES256", "P-384": "ES384"}[key.as_dict()["crv"]]  # type: ignore[index]
    return {"RSA": "RS256", "OKP": "Ed25519", "oct": "HS256"}[key.key_type]


def signed(claims: Any, key: Key, **header: Any) -> str:
    """A token with exactly these claims and, beside `alg`, this header."""
    whole = {"alg": algorithm_of(key), **header}
    return forged({name: value for name, value in whole.items() if value is not None}, claims, key)


def forged(header: Any, claims: Any, key: Key) -> str:
    """A token with any header, or bytes for one, whose signature is good."""
    text = f"{encoded(header)}.{encoded(claims)}"
    algorithm = jws.JWSRegistry(algorithms=["ES256", "ES384", "Ed25519", "RS256", "HS256"]).get_alg(algorithm_of(key))
    return f"{text}.{encoded(algorithm.sign(text.encode(), key))}"


class Issuer:
    """An authorization server that publishes metadata and keys, and counts requests for them."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[Key] = [ES256, RS256]
        self.documents: dict[str, Any] = {}
        """Documents at other paths, and those that replace its own."""
        self.counts: Counter[str] = Counter()
        self.open = asyncio.Event()
        """Set while it answers."""
        self.open.set()
        self.status = 200

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.counts[path] += 1
        await self.open.wait()
        body = json.dumps(self.document(path)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        status = self.status if self.document(path) is not None else 404
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def document(self, path: str) -> Any:
        if path in self.documents:
            return self.documents[path]
        if path == "/.well-known/oauth-authorization-server":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/jwks", "token_endpoint": f"{self.url}/token"}
        if path == "/jwks":
            return {"keys": [key.as_dict(private=False) for key in self.keys]}
        return None

    def claims(self, **changes: Any) -> dict[str, Any]:
        """The claims of a good token, with changes; None leaves one out."""
        now = int(time.time())
        whole = {
            "iss": self.url,
            "sub": "ann",
            "aud": AUDIENCE,
            "exp": now + 600,
            "iat": now,
            "client_id": "desk",
            "jti": "n-1",
            "scope": "read",
            **changes,
        }
        return {name: value for name, value in whole.items() if value is not None}

    def token(self, key: Key = ES256, header: dict[str, Any] | None = None, **changes: Any) -> str:
        """A good token, with changes of claims and header."""
        kid = key.as_dict().get("kid")
        return signed(self.claims(**changes), key, **{"typ": "at+jwt", "kid": kid, **(header or {})})


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """An issuer on a free port."""
    issuer = Issuer()
    address = parse_address("127.0.0.1:0")
    sockets = bind(address)
    issuer.url = f"http://{bound_address(address, sockets)}"
    server = ASGIServer(issuer, Limits())
    await server.start(sockets)
    try:
        yield issuer
    finally:
        issuer.open.set()
        await server.finish(1)


class Sent:
    """A request with a token, as an `Auth` reads it."""

    method = "POST"
    path = "/mcp"
    account = ""
    url = AUDIENCE

    def __init__(self, token: str | None, scheme: str = "Bearer", **headers: str) -> None:
        self.response_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.headers = {name.encode(): value.encode() for name, value in headers.items()}
        if token is not None:
            self.headers[b"authorization"] = f"{scheme} {token}".encode()


def public_part(key: Any) -> dict[str, Any]:
    return {name: value for name, value in key.as_dict(private=False).items() if name != "kid"}


class Possessor:
    """A client with a key, and a token that is bound to it."""

    def __init__(self, issuer: Issuer, key: Key | None = None, **claims: Any) -> None:
        self.key = key or ECKey.generate_key("P-256")
        self.url = AUDIENCE
        self.token = issuer.token(cnf={"jkt": self.key.thumbprint()}, **claims)

    def proof(
        self, method: str = "POST", header: dict[str, Any] | None = None, signer: Key | None = None, **changes: Any
    ) -> str:
        """A good proof, with changes of claims and header; None leaves a member out."""
        digest = base64.urlsafe_b64encode(sha256(self.token.encode()).digest()).rstrip(b"=").decode()
        whole = {"htm": method, "htu": self.url, "iat": int(time.time()), "jti": secrets.token_hex(8), "ath": digest}
        claims = {name: value for name, value in {**whole, **changes}.items() if value is not None}
        key = signer or self.key
        return signed(claims, key, **{"typ": "dpop+jwt", "jwk": public_part(key), **(header or {})})

    def sent(self, **changes: Any) -> Sent:
        """A request with the token and a proof."""
        return Sent(self.token, "DPoP", dpop=self.proof(**changes))
