"""A server of accord with the logins of one issuer: `python protected.py verify|proxy ISSUER FOLDER 127.0.0.1:PORT`.

verify   it accepts the tokens of the issuer
proxy    it is an authorization server itself, before the issuer, where it has one client for all

`write_note` needs the scope `write`, everything else `read`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from accord import JWT, Context, Introspection, OAuthProxy, Server
from accord.http import HTTPOptions

CLIENT = {"client_id": "proxy", "client_secret": "secret-of-the-proxy"}


def protected(auth: JWT | OAuthProxy) -> Server:
    """Return the server."""
    server = Server("notes", auth=auth)

    @server.tool
    def who(ctx: Context) -> str:
        """Return the user."""
        assert ctx.principal is not None
        return str(ctx.principal.claims["sub"])

    @server.tool(needs={"write"})
    def write_note(text: str) -> str:
        """Write a note."""
        return f"wrote {text}"

    return server


def proxy(issuer: str, database: Path) -> OAuthProxy:
    """Return an authorization server before the issuer."""
    return OAuthProxy(
        authorize=f"{issuer}/auth",
        token=f"{issuer}/token",
        revoke=f"{issuer}/token/revocation",
        **CLIENT,
        verify=Introspection(issuer, **CLIENT),
        scopes=("read", "write"),
        required_scopes=("read",),
        token_seconds=600,
        database=database,
    )


if __name__ == "__main__":
    _, way, issuer, folder, address = sys.argv
    verifier = JWT(issuer, f"http://{address}/mcp", required_scopes=("read",))
    auth = verifier if way == "verify" else proxy(issuer, Path(folder, "proxy.db"))
    protected(auth).run(http=address, options=HTTPOptions(access_log=True))
