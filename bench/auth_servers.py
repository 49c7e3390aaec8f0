"""Servers over HTTP with and without authorization, written with accord and with other libraries.

    python auth_servers.py accord | fastmcp | mcp | mcp-pyjwt none | token ISSUER JWKS_URI PORT

It runs in the environment of the library. `mcp` looks tokens up in a table, which is the least that a verifier of the
official SDK can do, and `mcp-pyjwt` verifies them with PyJWT.
"""

from __future__ import annotations

import sys
from typing import Any

AUDIENCE = "https://bench.example/mcp"
UNCHECKED = {"validate_token_resource": False}
"""The verifier checks the audience."""


async def echo(text: str) -> str:
    """Say it again."""
    return text


def run_accord(issuer: str | None, jwks_uri: str, port: int) -> None:
    from accord import JWT, HTTPOptions, Limits, Server

    auth = None if issuer is None else JWT(issuer, AUDIENCE, jwks_uri=jwks_uri)
    server = Server("bench", auth=auth, limits=Limits(tool_calls_per_second=1e6))
    server.tool(echo)
    server.run(http=f"127.0.0.1:{port}", options=HTTPOptions(public_url=AUDIENCE))


def run_fastmcp(issuer: str | None, jwks_uri: str, port: int) -> None:
    from fastmcp import FastMCP  # type: ignore[import-not-found]
    from fastmcp.server.auth.providers.jwt import JWTVerifier  # type: ignore[import-not-found]

    auth = None
    if issuer is not None:
        auth = JWTVerifier(jwks_uri=jwks_uri, issuer=issuer, audience=AUDIENCE, algorithm="ES256")
    server = FastMCP("bench", auth=auth)
    server.tool(echo)
    serve(server.http_app(json_response=True), port)


def run_mcp(issuer: str | None, jwks_uri: str, port: int) -> None:
    from mcp.server.auth.provider import AccessToken  # type: ignore[import-not-found]

    found: dict[str, Any] = {}

    async def verify(token: str) -> Any:
        if token not in found:
            found[token] = AccessToken(token=token, client_id="bench", scopes=["read"])
        return found[token]

    serve_mcp(issuer, verify, port)


def run_mcp_pyjwt(issuer: str | None, jwks_uri: str, port: int) -> None:
    import jwt  # type: ignore[import-not-found]
    from mcp.server.auth.provider import AccessToken

    keys = jwt.PyJWKClient(jwks_uri)

    async def verify(token: str) -> Any:
        key = keys.get_signing_key_from_jwt(token)
        claims = jwt.decode(token, key.key, algorithms=["ES256"], audience=AUDIENCE, issuer=issuer)
        scopes = claims["scope"].split()
        return AccessToken(token=token, client_id=claims["client_id"], scopes=scopes, expires_at=claims["exp"])

    serve_mcp(issuer, verify, port)


def serve_mcp(issuer: str | None, verify: Any, port: int) -> None:
    from mcp.server.auth.settings import AuthSettings  # type: ignore[import-not-found]
    from mcp.server.mcpserver import MCPServer  # type: ignore[import-not-found]

    class Verifier:
        async def verify_token(self, token: str) -> Any:
            return await verify(token)

    options: dict[str, Any] = {}
    if issuer is not None:
        settings = AuthSettings(issuer_url=issuer, resource_server_url=AUDIENCE, required_scopes=["read"], **UNCHECKED)
        options = {"auth": settings, "token_verifier": Verifier()}
    server = MCPServer("bench", log_level="WARNING", **options)
    server.tool()(echo)
    serve(server.streamable_http_app(json_response=True), port)


def serve(app: Any, port: int) -> None:
    import uvicorn

    uvicorn.run(app, port=port, access_log=False, log_level="warning")


if __name__ == "__main__":
    library, auth, issuer, jwks_uri, port = sys.argv[1:]
    run = {"accord": run_accord, "fastmcp": run_fastmcp, "mcp": run_mcp, "mcp-pyjwt": run_mcp_pyjwt}[library]
    run(issuer if auth == "token" else None, jwks_uri, int(port))
