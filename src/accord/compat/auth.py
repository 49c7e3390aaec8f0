"""Token verification of the other libraries: a `TokenVerifier` of a program authenticates accord's server.

mcp:      MCPServer("shop", auth=AuthSettings(issuer_url=..., resource_server_url=...), token_verifier=Verifier())
fastmcp:  FastMCP("shop", auth=JWTVerifier(jwks_uri=..., issuer=..., audience=...))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from accord.auth.urls import is_loopback
from accord.compat.differ import Different, refuse
from accord.server.auth.authentication import Auth

_KEYS_ADVICE = "accord.JWT(issuer, audience) finds the keys through the issuer, or at jwks_uri"


class AccessToken(msgspec.Struct, kw_only=True):
    """The data of a valid token, from a token verifier."""

    token: str
    client_id: str
    scopes: Sequence[str]
    expires_at: float | None = None
    """In seconds since 1970."""
    resource: str | None = None
    subject: str | None = None
    claims: Mapping[str, Any] | None = None


class AuthSettings(msgspec.Struct, kw_only=True):
    """The authorization of mcp's servers."""

    issuer_url: Any
    resource_server_url: Any = None
    required_scopes: Collection[str] | None = None
    validate_token_resource: bool | None = None
    service_documentation_url: Any = None
    client_registration_options: Any = None
    revocation_options: Any = None

    def __post_init__(self) -> None:
        served = {name: getattr(self, name) for name in ("client_registration_options", "revocation_options")}
        refuse("AuthSettings()", served, dict.fromkeys(served, "that is for authorization servers: accord.OAuthProxy"))


class TokenVerifier:
    """The base class of token verifiers."""

    base_url: Any = None
    required_scopes: Collection[str] | None = None

    def __init__(self, base_url: Any = None, required_scopes: Collection[str] | None = None, **_: Any) -> None:
        self.base_url: Any = base_url
        self.required_scopes = required_scopes

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what is known of a token; None if it is not valid."""
        raise NotImplementedError  # subclasses implement it


class StaticTokenVerifier(TokenVerifier):
    """Tokens of a table, with their client, scopes and expiry."""

    def __init__(self, tokens: Mapping[str, Mapping[str, Any]], required_scopes: Collection[str] | None = None) -> None:
        super().__init__(None, required_scopes)
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """See `TokenVerifier.verify_token`."""
        found = self._tokens.get(token)
        if found is None:
            return None
        return AccessToken(
            token=token,
            client_id=found["client_id"],
            scopes=found.get("scopes", ()),
            expires_at=found.get("expires_at"),
            subject=found.get("sub"),
            claims=found,
        )


class JWTVerifier(TokenVerifier):
    """FastMCP's verifier of JSON Web Tokens, by `accord.JWT`. Raises `Different` without an issuer and an audience."""

    def __init__(
        self,
        *,
        jwks_uri: str | None = None,
        issuer: str | None = None,
        audience: str | Collection[str] | None = None,
        algorithm: str | None = None,
        required_scopes: Collection[str] | None = None,
        base_url: Any = None,
        **unsupported: Any,
    ) -> None:
        refuse("JWTVerifier()", unsupported, {"public_key": _KEYS_ADVICE})
        super().__init__(base_url, required_scopes)
        if not isinstance(issuer, str) or not audience:
            raise Different("JWTVerifier() needs one issuer and an audience in accord: tokens for others would pass")
        self.jwt: Auth = _jwt(
            issuer,
            audience,
            algorithms=(algorithm or "RS256",),
            required_scopes=required_scopes or (),
            jwks_uri=jwks_uri,
        )


class RemoteAuthProvider:
    """A verifier, and the authorization servers that the metadata of the server names."""

    def __init__(
        self,
        token_verifier: TokenVerifier,
        authorization_servers: Sequence[Any],
        base_url: Any = None,
        **_: Any,
    ) -> None:
        self.token_verifier: Any = token_verifier
        self.authorization_servers: Sequence[Any] = authorization_servers
        self.base_url: Any = base_url


def sdk_auth(settings: Any, verifier: Any) -> Auth | None:
    """Return the authentication of a server of mcp. Raises `Different` for one that is an authorization server."""
    if settings is None and verifier is None:
        return None
    if settings is None or verifier is None:
        raise Different("auth= and token_verifier= belong together: or write accord.Server(auth=accord.JWT(...))")
    resource = str(settings.resource_server_url) if settings.validate_token_resource else None
    return _program_tokens(verifier, str(settings.issuer_url), settings.required_scopes, resource)


def fastmcp_auth(provider: Any) -> Auth | None:
    """Return the authentication of a server of fastmcp. Raises `Different` for a provider without an equivalent."""
    if provider is None or hasattr(provider, "authenticate"):
        return provider  # type: ignore[no-any-return]
    verifier, issuer = provider, None
    if isinstance(provider, RemoteAuthProvider):
        verifier, issuer = provider.token_verifier, str(provider.authorization_servers[0])
    if isinstance(verifier, JWTVerifier):
        return verifier.jwt
    if hasattr(verifier, "verify_token"):
        return _program_tokens(verifier, issuer, getattr(verifier, "required_scopes", None))
    raise Different(
        f"auth= takes no {type(provider).__name__} in accord: write accord.JWT(...) or accord.OAuthProxy(...)"
    )


def _jwt(issuer: str, audience: str | Collection[str], **options: Any) -> Auth:
    from accord.server.auth.jwt import JWT

    return JWT(issuer, audience, **options)


def _program_tokens(
    verifier: Any, issuer: str | None, required_scopes: Collection[str] | None, resource: str | None = None
) -> Auth:
    from accord.compat.program_tokens import ProgramTokens

    return ProgramTokens(verifier, issuer, required_scopes, resource)


def public_url(url: Any) -> str | None:
    """Return the URL of a server for `HTTPOptions(public_url=...)`; None on loopback, where no proxy stands before
    it.
    """
    if url is None or is_loopback(urlsplit(str(url)).hostname or ""):
        return None
    return str(url)
