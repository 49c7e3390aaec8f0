"""A server on FastMCP that accepts the tokens of one issuer: `fastmcp_protected.py WAY ISSUER 127.0.0.1:PORT`.

jwt       it verifies tokens, and says nothing of where they come from
remote    it also publishes its authorization server
proxy     it is an authorization server itself, before the other one, where it has one client for all
own       it is an authorization server itself, of the official SDK 2.x, and consents for the user
"""

from __future__ import annotations

import sys
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.auth import OAuthProxy, RemoteAuthProvider
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from key_value.aio.stores.memory import MemoryStore

_, way, issuer, address = sys.argv
base = f"http://{address}"
verifier = JWTVerifier(
    jwks_uri=f"{issuer}/jwks", issuer=issuer, audience=f"{base}/mcp", algorithm="ES256", required_scopes=["read"]
)


def auth() -> Any:
    if way == "jwt":
        return verifier
    if way == "remote":
        return RemoteAuthProvider(verifier, [issuer], base)
    if way == "own":
        registration = ClientRegistrationOptions(enabled=True, valid_scopes=["read"], default_scopes=["read"])
        return InMemoryOAuthProvider(base_url=base, client_registration_options=registration, required_scopes=["read"])
    return OAuthProxy(
        upstream_authorization_endpoint=f"{issuer}/auth",
        upstream_token_endpoint=f"{issuer}/token",
        upstream_client_id="proxy",
        upstream_client_secret="secret-of-the-proxy",
        token_verifier=verifier,
        base_url=base,
        client_storage=MemoryStore(),
    )


server = FastMCP("fastmcp", auth=auth())


@server.tool
def who() -> str:
    """Return the user."""
    token = get_access_token()
    assert token is not None
    return str(token.claims.get("sub", "somebody"))


@server.tool
def write_note(text: str) -> str:
    """Write a note."""
    return f"wrote {text}"


if __name__ == "__main__":
    host, _, port = address.rpartition(":")
    server.run("http", host=host, port=int(port), show_banner=False)
