"""The settings for providers in docs/authorization.md, against documents and tokens of the documented form.

The documents have what the providers' pages say, and nothing that these settings do not need. Nobody has tried the
settings live.
"""

from __future__ import annotations

import inspect
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from joserfc.jwk import RSAKey

from accord import AuthorizationError, OAuthProxy
from accord.auth.challenge import Challenge
from accord.auth.code_grant import authorization_endpoint
from accord.auth.discovery import discover
from accord.auth.registration import ClientIdentity, identify_client
from accord.auth.steps import OAuthRequest, OAuthResponse, Steps, run_steps
from accord.http import Principal, Unauthorized
from accord.server.auth.authentication import identify
from accord.server.auth.token_verifier import TokenVerifier

from tests.server.auth.issuer import signed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "authorization.md"
URL = "https://desk.example/mcp"
KEY = RSAKey.generate_key(2048, {"kid": "k1"})
OTHER_URL = "https://other.example/mcp"

Documents = dict[str, dict[str, Any]]


def recipe(heading: str) -> dict[str, Any]:
    """Return the names that the Python of one provider defines."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")
    code = re.search(r"```python\n(.*?)```", section.partition("\n### ")[0].partition("\n## ")[0], re.DOTALL)
    assert code is not None, f"docs/authorization.md has no settings for {heading}"
    names: dict[str, Any] = {}
    exec(compile(f"from accord import JWT\n{code[1]}", heading, "exec"), names)
    return names


ANONYMOUS = ClientIdentity()


@dataclass(frozen=True)
class Provider:
    """What a provider publishes and issues, as documented."""

    heading: str
    name: str
    """The variable of the recipe."""
    issuer: str
    metadata_url: str
    metadata: dict[str, Any]
    claims: dict[str, Any]
    scopes: frozenset[str]
    header: dict[str, Any] = field(default_factory=lambda: {"kid": "k1", "typ": "JWT"})
    identity: ClientIdentity = ANONYMOUS
    assume_pkce: bool = False
    refused: tuple[dict[str, Any], ...] = ()
    """Claims of tokens that must be refused: for others, of others, or of another kind."""

    @property
    def documents(self) -> Documents:
        """The documents by URL."""
        metadata = {"issuer": self.issuer, "jwks_uri": f"{self.issuer.rstrip('/')}/keys", **self.metadata}
        public = {key: value for key, value in KEY.as_dict(private=False).items() if key != "alg"}
        return {
            self.metadata_url: metadata,
            metadata["jwks_uri"]: {"keys": [{**public, "use": "sig"}]},
            "https://desk.example/.well-known/oauth-protected-resource/mcp": {
                "resource": URL,
                "authorization_servers": [self.issuer],
            },
        }

    def token(self, **claims: Any) -> str:
        """Return an access token of a user; claims that are None are left out."""
        now = int(time.time())
        whole = {"iss": self.issuer, "iat": now, "nbf": now, "exp": now + 3600, "sub": "ann", **self.claims, **claims}
        return signed({name: value for name, value in whole.items() if value is not None}, KEY, **self.header)


ENTRA = "https://login.microsoftonline.com/3d1c0a5e-8a52-4e0f-9d43-7d5f0c6f2b11"
AUTH0 = "https://desk.eu.auth0.com"
OKTA = "https://desk.okta.com/oauth2"
KEYCLOAK = "https://sso.example/realms/desk"
COGNITO = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEf123"
SUPABASE = "https://abcdefghijklmnop.supabase.co/auth/v1"
REGISTERED = ClientIdentity(client_id="registered-by-hand")


def endpoints(base: str, authorize: str = "authorize", token: str = "token") -> dict[str, Any]:
    return {"authorization_endpoint": f"{base}/{authorize}", "token_endpoint": f"{base}/{token}"}


S256 = {"code_challenge_methods_supported": ["S256"]}

PROVIDERS = [
    Provider(
        "Microsoft Entra ID",
        "entra",
        f"{ENTRA}/v2.0",
        f"{ENTRA}/v2.0/.well-known/openid-configuration",
        endpoints(f"{ENTRA}/oauth2/v2.0"),
        {
            "aud": "b7f6f0f2-6f0d-4d0c-8a59-6a1d3c9e5c10",
            "scp": "read write",
            "azp": "client",
            "ver": "2.0",
            "oid": "0c9b",
            "tid": "3d1c0a5e-8a52-4e0f-9d43-7d5f0c6f2b11",
        },
        frozenset({"read", "write"}),
        identity=REGISTERED,
        assume_pkce=True,
        refused=(
            {"iss": "https://sts.windows.net/3d1c0a5e-8a52-4e0f-9d43-7d5f0c6f2b11/", "ver": "1.0"},
            {"aud": "00000003-0000-0000-c000-000000000000"},
        ),
    ),
    Provider(
        "Auth0",
        "auth0",
        f"{AUTH0}/",
        f"{AUTH0}/.well-known/openid-configuration",
        {**endpoints(AUTH0, token="oauth/token"), **S256, "registration_endpoint": f"{AUTH0}/oidc/register"},
        {"aud": [URL, f"{AUTH0}/userinfo"], "scope": "openid", "permissions": ["read", "write"], "azp": "client"},
        frozenset({"openid", "read", "write"}),
        refused=({"iss": AUTH0}, {"aud": OTHER_URL}),
    ),
    Provider(
        "Okta",
        "okta",
        f"{OKTA}/default",
        f"{OKTA}/default/.well-known/openid-configuration",
        {**endpoints(f"{OKTA}/default/v1"), **S256, "registration_endpoint": f"{OKTA}/v1/clients"},
        {
            "aud": URL,
            "scp": ["read", "offline_access"],
            "cid": "client",
            "uid": "00u1",
            "ver": 1,
            "sub": "ann@x.example",
        },
        frozenset({"read", "offline_access"}),
        header={"kid": "k1"},
        identity=REGISTERED,
        refused=({"iss": "https://desk.okta.com", "aud": "https://desk.okta.com"}, {"aud": "api://default"}),
    ),
    Provider(
        "Keycloak",
        "keycloak",
        KEYCLOAK,
        f"{KEYCLOAK}/.well-known/openid-configuration",
        {
            **endpoints(f"{KEYCLOAK}/protocol/openid-connect", "auth"),
            **S256,
            "registration_endpoint": f"{KEYCLOAK}/clients-registrations/openid-connect",
        },
        {"aud": [URL, "account"], "typ": "Bearer", "scope": "openid read", "azp": "client", "acr": "1"},
        frozenset({"openid", "read"}),
        refused=({"aud": "account"}, {"typ": "ID"}, {"typ": "Refresh"}),
    ),
    Provider(
        "WorkOS",
        "workos",
        "https://desk.authkit.app",
        "https://desk.authkit.app/.well-known/oauth-authorization-server",
        {
            **endpoints("https://desk.authkit.app/oauth2"),
            **S256,
            "registration_endpoint": "https://desk.authkit.app/oauth2/register",
            "client_id_metadata_document_supported": True,
        },
        {"aud": URL, "sid": "session_1", "jti": "01J"},
        frozenset(),
        identity=ClientIdentity(metadata_url="https://me.example/client.json"),
        refused=({"aud": "client_01J"},),
    ),
    Provider(
        "Amazon Cognito",
        "cognito",
        COGNITO,
        f"{COGNITO}/.well-known/openid-configuration",
        endpoints("https://desk.auth.eu-west-1.amazoncognito.com/oauth2"),
        {"client_id": "4f8k2m1n9q7r5s3t1v0w2x4y6z", "token_use": "access", "scope": "openid desk/read", "version": 2},
        frozenset({"openid", "desk/read"}),
        header={"kid": "k1"},
        identity=REGISTERED,
        assume_pkce=True,
        refused=(
            {"client_id": "another"},
            {"token_use": "id", "client_id": None, "aud": "4f8k2m1n9q7r5s3t1v0w2x4y6z"},
            {"token_use": None},
        ),
    ),
    Provider(
        "Supabase",
        "supabase",
        SUPABASE,
        "https://abcdefghijklmnop.supabase.co/.well-known/oauth-authorization-server/auth/v1",
        {
            **endpoints(f"{SUPABASE}/oauth"),
            **S256,
            "registration_endpoint": f"{SUPABASE}/oauth/clients/register",
        },
        {"aud": "authenticated", "role": "authenticated", "client_id": "client", "is_anonymous": False},
        frozenset(),
        refused=({"aud": "anon"},),
    ),
]

each_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)


class PublishedDocuments:
    """What is published, for the parts of a flow: everything else is not found."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def send(self, request: OAuthRequest) -> OAuthResponse:
        document = self._documents.get(request.url)
        if document is None:
            return OAuthResponse(404, b"not found", {"content-type": "text/plain"})
        return OAuthResponse(200, msgspec.json.encode(document), {"content-type": "application/json"})


class _Request:
    method = "POST"
    path = "/mcp"

    def __init__(self, token: str) -> None:
        self.headers = {b"authorization": f"Bearer {token}".encode()}


async def authenticate(provider: Provider, token: str, monkeypatch: pytest.MonkeyPatch) -> Principal:
    published = PublishedDocuments(provider.documents)

    async def request(self: TokenVerifier, steps: Steps[Any]) -> Any:
        return await run_steps(steps, published.send)

    monkeypatch.setattr(TokenVerifier, "request", request)
    return await identify(recipe(provider.heading)[provider.name], _Request(token))


@each_provider
async def test_a_token_of_the_documented_form_is_accepted(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    principal = await authenticate(provider, provider.token(), monkeypatch)
    assert principal.id.startswith(f"{provider.issuer} ann")
    assert principal.scopes == provider.scopes


@each_provider
async def test_a_token_for_others_is_refused(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    assert provider.refused
    for claims in ({"exp": int(time.time()) - 120}, *provider.refused):
        with pytest.raises(Unauthorized):
            await authenticate(provider, provider.token(**claims), monkeypatch)


@each_provider
async def test_a_client_finds_the_provider_and_may_begin_a_login(provider: Provider) -> None:
    published = PublishedDocuments(provider.documents)
    metadata_url = "https://desk.example/.well-known/oauth-protected-resource/mcp"
    challenge = Challenge("bearer", {"resource_metadata": metadata_url})
    found = await run_steps(discover(URL, challenge), published.send)
    assert (found.issuer, found.resource) == (provider.issuer, URL)
    endpoint = authorization_endpoint(found, assume_pkce=provider.assume_pkce)
    assert endpoint == provider.metadata["authorization_endpoint"]
    steps = identify_client(found.metadata, provider.identity, "http://127.0.0.1/callback")
    if provider.identity is REGISTERED:
        assert (await run_steps(steps, published.send)).client_id == "registered-by-hand"
    elif provider.identity.metadata_url is not None:
        assert (await run_steps(steps, published.send)).source == "metadata document"
    else:
        assert next(steps).url == provider.metadata["registration_endpoint"]


@pytest.mark.parametrize("provider", [each for each in PROVIDERS if each.assume_pkce], ids=lambda each: each.name)
async def test_without_assume_pkce_the_error_names_the_option(provider: Provider) -> None:
    found = await run_steps(discover(URL), PublishedDocuments(provider.documents).send)
    with pytest.raises(AuthorizationError, match="--assume-pkce"):
        authorization_endpoint(found)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.name)
def test_the_page_names_the_options_that_a_login_needs(provider: Provider) -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"\n### {provider.heading}\n")
    text = section.partition("\n### ")[0]
    assert ("--assume-pkce" in text) == provider.assume_pkce
    assert ("--client-id" in text) or provider.identity is not REGISTERED


def test_providers_with_opaque_tokens_have_a_proxy() -> None:
    names = recipe("Google and GitHub")
    assert isinstance(names["google"], OAuthProxy)
    assert inspect.iscoroutinefunction(names["google_user"])


def test_the_page_shows_errors_that_exist() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "accord").rglob("*.py"))
    sources = re.sub(r'"\s*\n\s*f?"|\{[^{}"]*\}', "", sources)
    _, _, section = PAGE.read_text(encoding="utf-8").partition("\n## Errors\n")
    errors = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(errors) > 20
    for error in errors:
        parts = [part.strip(" ,") for part in re.split(r"\.\.\.|: |; ", error)]
        parts += [part.rpartition(" ")[0] for part in parts]  # the last word may be a value
        assert any(part in sources for part in parts if len(part) >= 8), error
