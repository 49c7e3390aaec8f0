"""The options of an `OAuthProxy`, checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from ssl import SSLContext
from typing import Any, Literal, TypeAlias

import msgspec

from accord.auth.urls import check_url, origin_of
from accord.errors import AuthorizationError, DeclarationError
from accord.server.auth.proxy.redirect_uris import private_schemes
from accord.server.auth.scope_hierarchy import scope_set
from accord.server.auth.token_verifier import TokenVerifier

VerifyFunction: TypeAlias = Callable[[str], Awaitable[str | Mapping[str, Any]]]
"""Takes an access token of the provider, and returns the subject, or claims with `sub` and, possibly, `scope`."""
ProviderAuthMethod: TypeAlias = Literal["client_secret_post", "client_secret_basic"]

_OWN_PARAMETERS = frozenset(
    ("response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method", "scope")
)
_MAX_SESSION_SECONDS = 90 * 86_400.0


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The provider: its endpoints, and this server as its client. Raises `DeclarationError`."""

    authorize: str
    token: str
    client_id: str
    client_secret: str | None
    verify: TokenVerifier | VerifyFunction
    issuer: str | None
    authorize_parameters: Mapping[str, str]
    auth_method: ProviderAuthMethod
    revoke: str | None
    scopes: tuple[str, ...]
    """The scopes that clients may request, and which are then requested from the provider, in order."""
    is_offline: bool
    """Whether `offline_access` is requested from the provider as well."""
    ssl: SSLContext | None
    proxy: str | None

    def __post_init__(self) -> None:
        for option, url in (("authorize", self.authorize), ("token", self.token), ("revoke", self.revoke)):
            _check_option_url(option, url)
        if self.issuer is not None:
            _check_option_url("issuer", self.issuer)
        secret_is_valid = self.client_secret is None or (isinstance(self.client_secret, str) and self.client_secret)
        if not isinstance(self.client_id, str) or not self.client_id or not secret_is_valid:
            raise DeclarationError(
                "OAuthProxy() needs client_id= and client_secret=, both not empty: "
                "if they come from the environment, are the variables set?"
            )
        if not isinstance(self.verify, TokenVerifier) and not callable(self.verify):
            raise DeclarationError(
                "verify= takes JWT(...), Introspection(...), or an async function that takes the provider's access "
                "token and returns the user's id"
            )
        if self.auth_method not in ("client_secret_post", "client_secret_basic"):
            raise DeclarationError(f"auth_method={self.auth_method!r}: client_secret_post or client_secret_basic")
        if reserved := sorted(_OWN_PARAMETERS.intersection(self.authorize_parameters)):
            raise DeclarationError(f"authorize_parameters= must not set {', '.join(reserved)}: the proxy does")

    def __repr__(self) -> str:
        return f"ProviderSettings({self.authorize!r}, client_id={self.client_id!r})"  # without the secret

    @property
    def expected_issuer(self) -> str | None:
        """The `iss` of the provider's responses (RFC 9207), if it is known."""
        return self.issuer or (self.verify.issuer if isinstance(self.verify, TokenVerifier) else None)

    @property
    def identity(self) -> str:
        """The issuer of the users' ids."""
        return self.expected_issuer or origin_of(self.authorize)


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the proxy for its own clients. Raises `DeclarationError`."""

    redirect_schemes: frozenset[str]
    token_seconds: float
    session_seconds: float

    def __post_init__(self) -> None:
        if not 0 < self.token_seconds <= self.session_seconds <= _MAX_SESSION_SECONDS:
            raise DeclarationError(
                "token_seconds= must be more than 0, and at most session_seconds=, and that at most 90 days"
            )


def proxy_settings(redirect_schemes: Collection[str], token_seconds: float, session_seconds: float) -> ProxySettings:
    """Return the settings of the proxy. Raises `DeclarationError`."""
    return ProxySettings(
        redirect_schemes=private_schemes(redirect_schemes),
        token_seconds=token_seconds,
        session_seconds=session_seconds,
    )


def ordered_scopes(scopes: Collection[str], required: Collection[str]) -> tuple[str, ...]:
    """Return the scopes of both options, each once, in order. Raises `DeclarationError`."""
    chosen = [each for each in listed_scopes(scopes) if each != "offline_access"]
    scope_set("scopes", chosen)
    return tuple(dict.fromkeys([*chosen, *sorted(required)]))


def listed_scopes(scopes: Collection[str]) -> list[str]:
    """Return the scopes of an option, which may be one text."""
    return [scopes] if isinstance(scopes, str) else list(scopes)


def _check_option_url(option: str, url: str | None) -> None:
    if url is None and option == "revoke":
        return
    try:
        check_url(url or "", f"{option}=")
    except AuthorizationError as exc:
        raise DeclarationError(str(exc)) from exc
