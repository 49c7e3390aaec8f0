"""Discovery: each order and each fallback of the specification, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from accord.auth.challenge import Challenge
from accord.auth.discovery import (
    DiscoveredResource,
    Discovery,
    DiscoveryOptions,
    discover,
    discover_issuer,
    discover_resource,
    fetch_server_metadata,
)
from accord.auth.steps import OAuthResponse, Steps
from accord.errors import AuthorizationError, OAuthError

SERVER = "https://mcp.example/a/b"
RESOURCE = "https://mcp.example/.well-known/oauth-protected-resource"
ISSUER = "https://login.example/t"
OAUTH = "https://login.example/.well-known/oauth-authorization-server/t"
OIDC = "https://login.example/.well-known/openid-configuration/t"
APPENDED = "https://login.example/t/.well-known/openid-configuration"
AT_ORIGIN = "https://mcp.example/.well-known/oauth-authorization-server"

Documents = Mapping[str, Any]


def resource(**change: Any) -> dict[str, Any]:
    return {"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["read"]} | change


def metadata(issuer: str = ISSUER, **change: Any) -> dict[str, Any]:
    return {"issuer": issuer, "token_endpoint": f"{issuer}/token"} | change


def visit(steps: Steps[Any], documents: Documents) -> tuple[list[str], Any]:
    """Run steps against documents by URL, or statuses; return what was requested, and the outcome or the error."""
    visited: list[str] = []
    try:
        request = next(steps)
        while True:
            assert (request.method, request.form, request.json) == ("GET", None, None)
            visited.append(request.url)
            found = documents.get(request.url, 404)
            status = found if isinstance(found, int) else 200
            request = steps.send(OAuthResponse(status, b"" if status != 200 else msgspec.json.encode(found)))
    except StopIteration as done:
        return visited, done.value
    except AuthorizationError as exc:
        return visited, exc


def find(documents: Documents, challenge: Challenge | None = None, **options: Any) -> tuple[list[str], Any]:
    return visit(discover(SERVER, challenge, DiscoveryOptions(**options)), documents)


def naming(url: str, **parameters: str) -> Challenge:
    return Challenge("bearer", {"resource_metadata": url, **parameters})


@pytest.mark.parametrize("options", [{}, {"issuer": ISSUER}, {"resource": "https://other.example/x"}])
@pytest.mark.parametrize("published", [True, False])
def test_the_two_parts_of_discovery_are_the_whole(options: dict[str, Any], published: bool) -> None:
    documents: dict[str, Any] = {OAUTH: metadata()} | ({f"{RESOURCE}/a/b": resource()} if published else {})
    visited, found = visit(discover_resource(SERVER, None, DiscoveryOptions(**options)), documents)
    assert isinstance(found, DiscoveredResource)
    further, discovery = visit(discover_issuer(found), documents)
    assert (visited + further, discovery) == find(documents, **options)


def test_the_metadata_of_the_challenge_is_first() -> None:
    elsewhere = "https://mcp.example/meta"
    documents = {elsewhere: resource(), f"{RESOURCE}/a/b": resource(resource="https://x.example"), OAUTH: metadata()}
    visited, found = find(documents, naming(elsewhere))
    assert visited == [elsewhere, OAUTH]
    assert (found.resource, found.issuer, found.scopes) == (SERVER, ISSUER, ["read"])


@pytest.mark.parametrize(
    ("named", "tried"),
    [
        (None, [f"{RESOURCE}/a/b", RESOURCE]),
        ("https://mcp.example/meta", ["https://mcp.example/meta", f"{RESOURCE}/a/b", RESOURCE]),
        (RESOURCE, [RESOURCE, f"{RESOURCE}/a/b"]),
    ],
)
def test_then_the_well_known_uris_of_the_path_and_of_the_root(named: str | None, tried: list[str]) -> None:
    challenge = None if named is None else naming(named)
    for position, place in enumerate(tried):
        visited, found = find({place: resource(), OAUTH: metadata()}, challenge)
        assert visited == [*tried[: position + 1], OAUTH]
        assert found.issuer == ISSUER


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 429, 499])
def test_a_4xx_leads_to_the_next_url(status: int) -> None:
    documents = {f"{RESOURCE}/a/b": status, RESOURCE: resource(), OAUTH: status, OIDC: status, APPENDED: metadata()}
    visited, found = find(documents)
    assert visited == [f"{RESOURCE}/a/b", RESOURCE, OAUTH, OIDC, APPENDED]
    assert found.issuer == ISSUER


@pytest.mark.parametrize("status", [199, 201, 204, 304, 500, 502, 503])
def test_any_other_failure_ends_discovery(status: int) -> None:
    visited, error = find({f"{RESOURCE}/a/b": status, RESOURCE: resource(), OAUTH: metadata()})
    assert visited == [f"{RESOURCE}/a/b"]
    assert error.step == f"resource metadata at {RESOURCE}/a/b"
    visited, error = find({RESOURCE: resource(), OAUTH: status, OIDC: metadata()})
    assert visited[-1] == OAUTH
    assert f"HTTP {status}" in error.reason


@pytest.mark.parametrize("place", [OAUTH, OIDC, APPENDED])
def test_metadata_of_the_server_is_looked_for_in_order(place: str) -> None:
    order = [OAUTH, OIDC, APPENDED]
    visited, found = visit(fetch_server_metadata(ISSUER), {place: metadata()})
    assert visited == order[: order.index(place) + 1]
    assert found.issuer == ISSUER


def test_without_metadata_the_error_names_every_place() -> None:
    visited, error = visit(fetch_server_metadata(ISSUER), {})
    assert visited == [OAUTH, OIDC, APPENDED]
    assert all(place in error.reason for place in visited)
    assert "--issuer" in error.cure


@pytest.mark.parametrize(
    "found", [f"{ISSUER}/", "https://login.example", "https://LOGIN.example/t", "https://x.example"]
)
def test_the_issuer_is_compared_byte_for_byte(found: str) -> None:
    _, error = visit(fetch_server_metadata(ISSUER), {OAUTH: metadata(found), OIDC: metadata()})
    assert error.reason == f"found issuer {found!r}, expected {ISSUER!r}"
    assert error.cure.startswith("name the issuer exactly as its metadata does; ")


def test_without_resource_metadata_the_origin_is_the_issuer_as_in_2025_03_26() -> None:
    origin = "https://mcp.example"
    for issuer in (origin, f"{origin}/"):
        visited, found = find({AT_ORIGIN: metadata(issuer, token_endpoint=f"{origin}/t")})
        assert visited == [f"{RESOURCE}/a/b", RESOURCE, AT_ORIGIN]
        assert (found.issuer, found.resource, found.scopes) == (issuer, SERVER, None)
    _, error = find({AT_ORIGIN: metadata()})
    assert "expected 'https://mcp.example'" in error.reason
    _, found = find({})
    assert isinstance(found, Discovery)
    endpoints = (found.metadata.authorization_endpoint, found.metadata.token_endpoint)
    assert endpoints == (f"{origin}/authorize", f"{origin}/token")
    assert found.metadata.registration_endpoint == f"{origin}/register"
    assert found.metadata.code_challenge_methods_supported == ["S256"]


def test_scopes_of_the_challenge_replace_those_of_the_metadata() -> None:
    documents = {f"{RESOURCE}/a/b": resource(), OAUTH: metadata()}
    assert find(documents, naming(f"{RESOURCE}/a/b", scope="write admin"))[1].scopes == ["write", "admin"]
    assert find(documents, Challenge("bearer", {"scope": ""}))[1].scopes == []
    assert find({f"{RESOURCE}/a/b": resource(scopes_supported=None), OAUTH: metadata()})[1].scopes is None


def test_the_resource_stays_byte_for_byte() -> None:
    published = "https://MCP.example:443/a/"
    assert find({RESOURCE: resource(resource=published), OAUTH: metadata()})[1].resource == published


@pytest.mark.parametrize("published", ["https://x.example/a/b", "https://mcp.example/a/c", "https://mcp.example/a/b/c"])
def test_the_resource_of_another_server_is_refused_unless_the_user_chooses_it(published: str) -> None:
    documents = {f"{RESOURCE}/a/b": resource(resource=published), OAUTH: metadata()}
    visited, error = find(documents)
    assert visited == [f"{RESOURCE}/a/b"]
    assert published in error.reason
    assert SERVER in error.reason
    assert "--resource" in error.cure
    assert find(documents, resource=published)[1].resource == published


def test_one_of_several_issuers_is_selected() -> None:
    first = "https://first.example"
    listed = {f"{RESOURCE}/a/b": resource(authorization_servers=[first, ISSUER])}
    documents = {**listed, OAUTH: metadata(), f"{first}/.well-known/oauth-authorization-server": metadata(first)}
    assert find(documents)[1].issuer == first
    assert find(documents, preferred_issuers=[ISSUER, "https://x.example"])[1].issuer == ISSUER
    assert find(documents, issuer=ISSUER)[1].issuer == ISSUER
    assert find({OAUTH: metadata()}, issuer=ISSUER)[1].issuer == ISSUER


@pytest.mark.parametrize("servers", [None, []])
def test_resource_metadata_without_issuers_is_an_error(servers: list[str] | None) -> None:
    _, error = find({f"{RESOURCE}/a/b": resource(authorization_servers=servers)})
    assert error.reason == "it lists no authorization_servers"
    assert "--issuer" in error.cure


@pytest.mark.parametrize(
    "unsafe", ["javascript:alert(1)", "http://login.example", "file:///etc/passwd", "https://a@b.c"]
)
def test_unsafe_urls_are_refused_wherever_they_are(unsafe: str) -> None:
    visited, error = find({}, naming(unsafe))
    assert (visited, error.step) == ([], "resource_metadata of the challenge")
    assert find({f"{RESOURCE}/a/b": resource(resource=unsafe)})[1].step == "resource of the resource metadata"
    assert find({f"{RESOURCE}/a/b": resource(authorization_servers=[unsafe])})[1].step == "issuer"
    assert visit(discover(unsafe), {})[1].step == "URL of the MCP server"
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "jwks_uri"):
        documents = {f"{RESOURCE}/a/b": resource(), OAUTH: metadata(**{name: unsafe})}
        assert find(documents)[1].step == f"{name} of {ISSUER}"


def test_a_server_without_a_token_endpoint_is_refused() -> None:
    _, error = find({f"{RESOURCE}/a/b": resource(), OAUTH: metadata(token_endpoint=None)})
    assert error.reason == f"{ISSUER} has no token_endpoint"


def test_tokens_with_proof_may_be_required() -> None:
    documents = {f"{RESOURCE}/a/b": resource(dpop_bound_access_tokens_required=True), OAUTH: metadata()}
    assert find(documents)[1].dpop_required
    assert not find({OAUTH: metadata()}, issuer=ISSUER)[1].dpop_required


@pytest.mark.parametrize(
    "body", [b"[]", b"", b"<html>", b'{"issuer": 7}', b"\xff", b'{"x":' + b"[" * 100_000, b" " * 300_000]
)
def test_documents_that_cannot_be_used_are_errors(body: bytes) -> None:
    steps = fetch_server_metadata(ISSUER)
    next(steps)
    with pytest.raises(AuthorizationError, match="the document"):
        steps.send(OAuthResponse(200, body))


def test_the_error_of_a_metadata_endpoint_is_reported() -> None:
    steps = fetch_server_metadata(ISSUER)
    next(steps)
    with pytest.raises(OAuthError, match="temporarily_unavailable"):
        steps.send(OAuthResponse(503, b'{"error": "temporarily_unavailable"}'))
