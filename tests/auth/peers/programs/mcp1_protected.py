"""A server on the official SDK 1.x that accepts the tokens of one issuer: `mcp1_protected.py ISSUER 127.0.0.1:PORT`."""

from __future__ import annotations

import sys

import signed_token
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import FastMCP

_, issuer, address = sys.argv
resource = f"http://{address}/mcp"
settings = AuthSettings(issuer_url=issuer, resource_server_url=resource, required_scopes=["read"])
server = FastMCP("mcp1", token_verifier=signed_token.Verifier(issuer, resource, AccessToken), auth=settings)


@server.tool()
def who() -> str:
    """Return the user."""
    token = get_access_token()
    assert token is not None
    return str(getattr(token, "subject", None) or "alice")


@server.tool()
def write_note(text: str) -> str:
    """Write a note."""
    return f"wrote {text}"


if __name__ == "__main__":
    host, _, port = address.rpartition(":")
    server.settings.host, server.settings.port = host, int(port)
    server.run("streamable-http")
