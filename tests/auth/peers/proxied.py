"""A server of accord behind `OAuthProxy`: `python proxied.py PROVIDER DATABASE 127.0.0.1:PORT`.

The provider is the django-oauth-toolkit of django_provider.py.
"""

from __future__ import annotations

import sys
from typing import Any

import aiohttp

from accord import Context, OAuthProxy, Server
from accord.http import HTTPOptions


def proxied(provider: str, database: str) -> Server:
    """Return the server."""

    async def user(token: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession(headers=headers, raise_for_status=True) as session,
            session.get(f"{provider}/me/") as response,
        ):
            found = await response.json()
        return {"sub": found["id"], "name": found["name"]}

    auth = OAuthProxy(
        authorize=f"{provider}/o/authorize/",
        token=f"{provider}/o/token/",
        revoke=f"{provider}/o/revoke_token/",
        client_id="shop",
        client_secret="secret-of-the-shop",
        verify=user,
        scopes=("read", "write"),
        database=database,
    )
    server = Server("shop", auth=auth)

    @server.tool
    async def who(ctx: Context) -> str:
        """Return the user, as the provider says now."""
        return str((await user(await ctx.upstream.token()))["name"])

    @server.tool
    async def upstream(ctx: Context) -> str:
        """Return the token of the provider, which a real server never does."""
        return await ctx.upstream.token()

    @server.tool(needs={"write"})
    def write_note(text: str) -> str:
        """Write a note."""
        return f"wrote {text}"

    return server


if __name__ == "__main__":
    _, provider, database, address = sys.argv
    proxied(provider, database).run(http=address, options=HTTPOptions(access_log=True))
