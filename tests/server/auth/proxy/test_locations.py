"""Where `OAuthProxy` is, behind reverse proxies and below mounts: its issuer, and the paths that are served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accord import OAuthProxy, Server
from accord.auth.urls import server_metadata_urls
from accord.http import HTTPOptions

from tests.server.auth.proxy.proxying import Reply, send

RESOURCE = "/.well-known/oauth-protected-resource"


async def whose(token: str) -> str:
    return "ann"


def app(public_url: str | None, folder: Path) -> Any:
    auth = OAuthProxy(
        authorize="https://login.example/authorize",
        token="https://login.example/token",
        client_id="shop",
        client_secret="secret",
        verify=whose,
        database=folder / "proxy.db",
    )
    return Server("shop", auth=auth).asgi(HTTPOptions(public_url=public_url))


async def get(served: Any, root: str, path: str, host: str = "localhost:8000") -> Reply:
    return await send(served, "GET", f"http://{host}{root}{path}", root=root)


PLACES = [
    # public URL, root path of ASGI, issuer, prefix that a reverse proxy leaves in the path
    (None, "", "http://localhost:8000", ""),
    (None, "/api", "http://localhost:8000/api", ""),
    ("https://a.example/mcp", "", "https://a.example", ""),
    ("https://a.example", "", "https://a.example", ""),
    ("https://a.example:8443/mcp", "", "https://a.example:8443", ""),
    ("https://a.example/api/mcp", "", "https://a.example/api", ""),
    ("https://a.example/api/mcp", "", "https://a.example/api", "/api"),
    ("https://a.example/api/mcp", "/api", "https://a.example/api", ""),
    ("https://a.example/mcp", "/mcp", "https://a.example/mcp", ""),
    ("https://a.example/x/tools", "/tools", "https://a.example/x/tools", ""),
]


@pytest.mark.parametrize(("public_url", "root", "issuer", "prefix"), PLACES)
async def test_the_issuer_is_where_its_endpoints_are(
    public_url: str | None, root: str, issuer: str, prefix: str, tmp_path: Path
) -> None:
    served = app(public_url, tmp_path)
    resource = (await get(served, root, f"{prefix}{RESOURCE}")).json()
    assert resource["authorization_servers"] == [issuer]
    for well_known in ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
        metadata = (await get(served, root, f"{prefix}{well_known}")).json()
        assert metadata["issuer"] == issuer
        assert metadata["token_endpoint"] == f"{issuer}/token"
    for path in ("/authorize", "/callback"):
        reply = await get(served, root, f"{prefix}{path}")
        assert (reply.status, b"html" in reply.body) == (400, True), "the endpoint is there"
    await served.close()


@pytest.mark.parametrize("public_url", ["https://a.example/mcp", "https://a.example/api/mcp"])
async def test_clients_find_the_metadata_at_the_first_place(public_url: str, tmp_path: Path) -> None:
    served = app(public_url, tmp_path)
    issuer = (await get(served, "", RESOURCE)).json()["authorization_servers"][0]
    path = server_metadata_urls(issuer)[0].removeprefix("https://a.example")
    assert (await get(served, "", path)).json()["issuer"] == issuer


async def test_a_name_that_is_not_allowed_is_refused(tmp_path: Path) -> None:
    served = app(None, tmp_path)
    for path in ("/authorize", "/callback", "/.well-known/oauth-authorization-server"):
        assert (await get(served, "", path, "evil.example")).status == 403
