"""The server of the issuer, on loopback: metadata (RFC 8414, OpenID Connect Discovery) and keys.

It has no login: its tokens are issued by the checker itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from accord.auth.urls import OPENID_CONFIGURATION, SERVER_METADATA, is_loopback
from accord.check.issuer.keys import TokenForge
from accord.errors import AccordError, ConnectError, TargetError
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.server.http.serving.address import Address, bind, bound_address, parse_address
from accord.server.http.serving.asgi_server import ASGIServer

KEYS_PATH = "/jwks"
_CLOSE_SECONDS = 1.0


class IssuerApp:
    """The ASGI application of an issuer; `fetched` are the paths of requests."""

    def __init__(self, forge: TokenForge) -> None:
        self._forge = forge
        self.fetched: set[str] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self.fetched.add(scope["path"])
        document = self._document(scope["path"])
        body = b"{}" if document is None else msgspec.json.encode(document)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        status = 404 if document is None else 200
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _document(self, path: str) -> JSONObject | None:
        if path in (SERVER_METADATA, OPENID_CONFIGURATION):
            return issuer_metadata(self._forge.issuer)
        return self._forge.public_keys if path == KEYS_PATH else None


def issuer_metadata(issuer: str) -> JSONObject:
    """Return the metadata of the issuer at this URL."""
    return {
        "issuer": issuer,
        "jwks_uri": f"{issuer}{KEYS_PATH}",
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code"],
        "code_challenge_methods_supported": ["S256"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


def issuer_url(address: str) -> str:
    """Return the URL of the issuer at this address of loopback. Raises `TargetError` for another address."""
    return f"http://{_loopback_address(address)}"


def _loopback_address(text: str) -> Address:
    try:
        parsed = parse_address(text)
    except AccordError as exc:
        raise TargetError(f"--as-issuer: {exc}") from exc
    if not is_loopback(parsed.host):
        raise TargetError(f"--as-issuer: {parsed.host} is not this machine; give a port only, as `:9400`")
    return parsed


@asynccontextmanager
async def serve_issuer(address: str, audience: str = "") -> AsyncIterator[TokenForge]:
    """Serve an issuer at this address of loopback. Raises `TargetError` for another address, `ConnectError` if the port
    is taken.
    """
    parsed = _loopback_address(address)
    try:
        sockets = bind(parsed)
    except OSError as exc:
        raise ConnectError(f"--as-issuer: {exc}") from exc
    forge = TokenForge(f"http://{bound_address(parsed, sockets)}", audience)
    server = ASGIServer(IssuerApp(forge), Limits())
    await server.start(sockets)
    try:
        yield forge
    finally:
        await server.finish(_CLOSE_SECONDS)
