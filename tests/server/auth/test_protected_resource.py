"""The metadata of a protected server, and the challenges that lead to it, wherever it is mounted."""

from __future__ import annotations

from typing import Any

import pytest

from accord import APIKeys, Server
from accord.auth.challenge import parse_challenges
from accord.errors import DeclarationError
from accord.server.auth.jwt import JWT
from accord.server.http.options import HTTPOptions

from tests.server.auth.issuer import AUDIENCE, issuing
from tests.server.http.raw import BASIC

ISSUER = "https://login.example"
WELL_KNOWN = "/.well-known/oauth-protected-resource"


def protected(options: HTTPOptions | None = None, **verifying: Any) -> Any:
    return Server("shop", title="The shop", auth=JWT(ISSUER, AUDIENCE, **verifying)).asgi(options)


class Reply:
    def __init__(self, messages: list[Any]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        self.names = [name.decode() for name, _ in messages[0]["headers"]]
        self.body: bytes = b"".join(each.get("body", b"") for each in messages[1:])

    def json(self) -> Any:
        import json

        return json.loads(self.body)

    @property
    def challenge(self) -> dict[str, str]:
        (found,) = parse_challenges([self.headers["www-authenticate"]])
        assert found.scheme == "bearer"
        return found.parameters


async def ask(app: Any, path: str, method: str = "GET", root: str = "", **headers: str) -> Reply:
    """The reply to a request; `path` is the whole one, as in ASGI."""
    given = {**BASIC, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": method, "path": path, "root_path": root, "headers": raw, "query_string": b""}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        sent.append(message)

    try:
        await app({**scope, "scheme": "http"}, receive, send)
    finally:
        await app.drain(1)
        await app.close()
        app._ending.clear()
    return Reply(sent)


@pytest.mark.parametrize("path", [WELL_KNOWN, f"{WELL_KNOWN}/mcp", f"{WELL_KNOWN}/", f"{WELL_KNOWN}/mcp/"])
async def test_metadata_is_at_the_uris_of_the_path_and_of_the_root(path: str) -> None:
    app = protected(HTTPOptions(public_url="https://shop.example/mcp"), required_scopes=("shop",))
    reply = await ask(app, path)
    assert reply.status == 200
    assert reply.json() == {
        "resource": "https://shop.example/mcp",
        "authorization_servers": [ISSUER],
        "scopes_supported": ["shop"],
        "bearer_methods_supported": ["header"],
        "resource_name": "The shop",
        "dpop_signing_alg_values_supported": ["ES256", "ES384", "Ed25519", "EdDSA", "PS256", "RS256"],
    }


async def test_any_page_may_read_the_metadata() -> None:
    for options in (None, HTTPOptions(public_url=AUDIENCE, origins=["https://page.example"])):
        app = protected(options)
        for origin in ("https://page.example", "https://evil.example", "null"):
            reply = await ask(app, WELL_KNOWN, origin=origin)
            assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, "*")
            assert reply.names.count("access-control-allow-origin") == 1
            reply = await ask(app, WELL_KNOWN, "OPTIONS", origin=origin, access_control_request_method="GET")
            assert (reply.status, reply.headers["access-control-allow-methods"]) == (204, "GET")


async def test_metadata_is_read_only_and_for_allowed_hosts() -> None:
    assert (await ask(protected(), WELL_KNOWN, "POST")).status == 405
    assert (await ask(protected(), WELL_KNOWN, host="evil.example")).status == 403


async def test_a_server_with_keys_only_has_no_metadata() -> None:
    app = Server("shop", auth=APIKeys({"key": "ann"})).asgi()
    assert (await ask(app, WELL_KNOWN)).status == 404
    assert (await ask(app, "/mcp", "POST")).headers["www-authenticate"] == "Bearer"


MOUNTS = [
    # public URL, root path of ASGI, path of the request, URL in the challenge
    (None, "", "/mcp", f"http://localhost:8000{WELL_KNOWN}/mcp"),
    (None, "/api", "/api/mcp", f"http://localhost:8000/api{WELL_KNOWN}/mcp"),
    (None, "/api", "/api/", f"http://localhost:8000/api{WELL_KNOWN}"),
    ("https://a.example/mcp", "", "/mcp", f"https://a.example{WELL_KNOWN}/mcp"),
    ("https://a.example/mcp", "", "/sse", f"https://a.example{WELL_KNOWN}"),
    ("https://a.example:8443/mcp", "", "/mcp/", f"https://a.example:8443{WELL_KNOWN}/mcp"),
    ("https://a.example", "", "/mcp", f"https://a.example{WELL_KNOWN}"),
    ("https://a.example/api/mcp", "", "/mcp", f"https://a.example/api{WELL_KNOWN}/mcp"),
    ("https://a.example/api/mcp", "", "/api/mcp", f"https://a.example/api{WELL_KNOWN}/mcp"),
    ("https://a.example/api/mcp", "/api", "/api/mcp", f"https://a.example/api{WELL_KNOWN}/mcp"),
    ("https://a.example/mcp", "/mcp", "/mcp/", f"https://a.example/mcp{WELL_KNOWN}"),
    ("https://a.example/x/tools", "/tools", "/tools/", f"https://a.example/x/tools{WELL_KNOWN}"),
]


@pytest.mark.parametrize(("public", "root", "path", "url"), MOUNTS)
async def test_the_challenge_names_a_url_that_this_server_can_serve(
    public: str | None, root: str, path: str, url: str
) -> None:
    app = protected(HTTPOptions(public_url=public))
    method = "GET" if path.endswith("sse") else "POST"
    reply = await ask(app, path, method, root, host="localhost:8000")
    assert reply.status == 401
    assert reply.challenge["resource_metadata"] == url
    served = "/" + url.split("/", 3)[3]
    if public is None or root:
        candidates = [served, served.removeprefix("/x")]  # what the proxy strips
    else:
        candidates = [served, served.removeprefix("/api")]
    replies = [await ask(app, each, root=root, host="localhost:8000") for each in candidates]
    assert 200 in [each.status for each in replies]
    resource = next(each for each in replies if each.status == 200).json()["resource"]
    expected = public or f"http://localhost:8000{root}" + ("" if path == "/api/" else "/mcp")
    assert resource == expected


async def test_a_challenge_has_the_scopes_and_an_error_only_after_a_token() -> None:
    app = protected(required_scopes=("shop", "read"))
    first = (await ask(app, "/mcp", "POST")).challenge
    assert first.keys() == {"resource_metadata", "scope"}
    assert first["scope"] == "read shop"
    second = (await ask(app, "/mcp", "POST", authorization="Bearer x")).challenge
    assert second["error"] == "invalid_token"
    assert second["error_description"] == "the token is not a signed JWT"
    assert second.keys() == {"error", "error_description", "resource_metadata", "scope"}


async def test_missing_scopes_are_a_403_with_the_scopes_once() -> None:
    async with issuing() as issuer:
        app = Server("shop", auth=JWT(issuer.url, AUDIENCE, required_scopes=("shop",))).asgi()
        reply = await ask(app, "/mcp", "POST", authorization=f"Bearer {issuer.token()}")
        assert reply.status == 403
        assert reply.challenge["error"] == "insufficient_scope"
        assert reply.challenge["scope"] == "shop"
        assert reply.challenge["resource_metadata"] == f"http://localhost{WELL_KNOWN}/mcp"


async def test_a_page_of_an_allowed_origin_reads_the_challenge() -> None:
    app = protected(HTTPOptions(public_url=AUDIENCE, origins=["https://page.example"]))
    reply = await ask(app, "/mcp", "POST", origin="https://page.example")
    assert "WWW-Authenticate" in reply.headers["access-control-expose-headers"]


@pytest.mark.parametrize("hosts", [["shop.example"], ["*"], ["10.0.0.5:8000"]])
def test_a_server_for_other_machines_needs_its_public_url(hosts: list[str]) -> None:
    with pytest.raises(DeclarationError, match="public_url"):
        protected(HTTPOptions(hosts=hosts))
    protected(HTTPOptions(hosts=hosts, public_url=AUDIENCE))
    Server("shop", auth=APIKeys({"key": "ann"})).asgi(HTTPOptions(hosts=hosts))


async def test_a_server_that_listens_for_other_machines_needs_its_public_url() -> None:
    server = Server("shop", auth=JWT(ISSUER, AUDIENCE))
    with pytest.raises(DeclarationError, match="public_url"):
        await server.run_async(http="0.0.0.0:0")


def test_a_public_url_is_https() -> None:
    with pytest.raises(DeclarationError, match="public_url"):
        protected(HTTPOptions(public_url="http://shop.example/mcp"))


async def test_the_metadata_of_the_issuer_is_published_only_if_wanted() -> None:
    async with issuing() as issuer:
        server = Server("shop", auth=JWT(issuer.url, AUDIENCE))
        path = "/.well-known/oauth-authorization-server"
        assert (await ask(server.asgi(), path)).status == 404
        app = server.asgi(HTTPOptions(authorization_server_metadata=True))
        for _ in range(3):
            reply = await ask(app, path)
            assert (reply.status, reply.json()["issuer"]) == (200, issuer.url)
            assert reply.headers["access-control-allow-origin"] == "*"
        assert issuer.counts[path] == 1
        issuer.status = 500
        assert (await ask(server.asgi(HTTPOptions(authorization_server_metadata=True)), path)).status == 503
