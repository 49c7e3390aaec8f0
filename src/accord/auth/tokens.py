"""Tokens, and the requests that get them: code, refresh, client credentials, assertions, device codes, revocation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol, TypeAlias
from urllib.parse import quote_plus

import msgspec
from msgspec import Meta

from accord.auth.challenge import parse_scopes
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration
from accord.auth.steps import DECODE_ERRORS, OAuthRequest, OAuthResponse, Steps, response_failure
from accord.errors import AuthorizationError, OAuthError, visible
from accord.wire.headers import basic_auth

REFRESH_STEP = "token refresh"
TOKEN_CHARACTERS = 64 << 10
"""Limit of the length of a token."""

_MAX_SECONDS = 10 * 366 * 86_400
"""Limit of a lifetime, in seconds: a peer could otherwise cause an overflow."""

_Token: TypeAlias = Annotated[str, Meta(max_length=TOKEN_CHARACTERS, pattern=r"^[\x21-\x7e]+$")]
_Seconds: TypeAlias = int | float | str | None
"""A number, which some servers send as a text."""


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens of one authorization."""

    access_token: str
    token_type: str = "Bearer"
    """`Bearer` or `DPoP`: the scheme of the `Authorization` header."""
    expires_at: float | None = None
    """When the access token expires, in seconds since 1970; None if the server did not say."""
    refresh_token: str | None = None
    scopes: list[str] = []
    """The scopes that were granted; those requested if the server did not say (RFC 6749, 5.1)."""
    requested: list[str] = []
    """The scopes that were requested: a later step-up keeps them."""

    def __repr__(self) -> str:
        return f"Tokens({self.token_type}, expires_at={self.expires_at}, scopes={self.scopes})"

    def is_fresh(self, now: float, margin: float = 0) -> bool:
        """Return whether the access token is valid for `margin` seconds, as far as is known."""
        return self.expires_at is None or now + margin < self.expires_at


class TokenResponse(msgspec.Struct):
    """A successful response of a token endpoint (RFC 6749, 5.1)."""

    access_token: _Token
    token_type: Annotated[str, Meta(max_length=100)] = "Bearer"
    expires_in: _Seconds = None
    refresh_token: _Token | None = None
    scope: Annotated[str, Meta(max_length=64 << 10)] | None = None
    id_token: _Token | None = None
    issued_token_type: Annotated[str, Meta(max_length=200)] | None = None


_decode = msgspec.json.Decoder(TokenResponse).decode


class ClientAuthentication(Protocol):
    """How a client proves its identity to a token endpoint: it adds to the headers and the form of a request."""

    def authenticate(self, endpoint: str, headers: dict[str, str], form: dict[str, str]) -> None:
        """Add the proof for a request to `endpoint`."""


class SecretAuthentication:
    """Authentication by `client_id`, and a secret if the client has one (OAuth 2.1, 2.4.1)."""

    def __init__(self, client: ClientRegistration) -> None:
        self._client = client

    def authenticate(self, endpoint: str, headers: dict[str, str], form: dict[str, str]) -> None:
        client = self._client
        if client.client_secret is None or client.auth_method == "none":
            form["client_id"] = client.client_id
        elif client.auth_method == "client_secret_basic":
            # "encoded using the application/x-www-form-urlencoded encoding algorithm" (RFC 6749, 2.3.1)
            headers["Authorization"] = basic_auth(quote_plus(client.client_id), quote_plus(client.client_secret))
        else:
            form |= {"client_id": client.client_id, "client_secret": client.client_secret}


def request_tokens(
    metadata: AuthorizationServerMetadata,
    authentication: ClientAuthentication,
    form: Mapping[str, str],
    *,
    step: str,
    cure: str = "",
    headers: Mapping[str, str] | None = None,
) -> Steps[TokenResponse]:
    """Send a request to the token endpoint. Raises `OAuthError` for its error, `AuthorizationError` for other failures.

    `step` and `cure` go into errors.
    """
    endpoint = metadata.token_endpoint or ""
    request_headers, body = {"Accept": "application/json", **(headers or {})}, dict(form)
    authentication.authenticate(endpoint, request_headers, body)
    request = OAuthRequest(step, "POST", endpoint, request_headers, form=body)
    response = yield request
    return _decode_tokens(request, response, f"{step} at {endpoint}", cure)


def _decode_tokens(request: OAuthRequest, response: OAuthResponse, step: str, cure: str) -> TokenResponse:
    if response.status != 200:
        raise response_failure(step, response, cure, request)
    try:
        return _decode(response.body)
    except DECODE_ERRORS as exc:
        failure = response_failure(step, response, cure, request)
        if isinstance(failure, OAuthError):  # some servers answer an error with 200
            raise failure from exc
        raise AuthorizationError(step, f"the response cannot be used: {exc}", cure) from exc


def tokens_of(response: TokenResponse, requested: list[str], now: float) -> Tokens:
    """Return the tokens of a response received at `now`. Raises `AuthorizationError` for an unknown type of token.

    "The client MUST NOT use an access token if it does not understand the token type" (OAuth 2.1, 1.4).
    """
    types = {"bearer": "Bearer", "dpop": "DPoP"}
    token_type = types.get(response.token_type.lower())
    if token_type is None:
        raise AuthorizationError(
            "token response", f"found token_type {visible(response.token_type)!r}, expected Bearer or DPoP"
        )
    granted = requested if response.scope is None else parse_scopes(response.scope)
    expires_in = _seconds(response.expires_in)
    expires_at = None if expires_in is None else now + expires_in
    return Tokens(response.access_token, token_type, expires_at, response.refresh_token, granted, requested)


def _seconds(value: _Seconds) -> float | None:
    try:
        seconds = None if value is None else float(value)
    except (ValueError, OverflowError):  # OverflowError: an integer of 400 digits
        return None
    return min(seconds, _MAX_SECONDS) if seconds is not None and seconds >= 0 else None


def refresh_tokens(
    metadata: AuthorizationServerMetadata,
    authentication: ClientAuthentication,
    tokens: Tokens,
    resource: str,
    now: float,
    headers: Mapping[str, str] | None = None,
) -> Steps[Tokens]:
    """Return renewed tokens. Raises `OAuthError` with `invalid_grant` if the refresh token is not valid any more, and
    `AuthorizationError` without one.

    Without a new refresh token, the old one stays valid (OAuth 2.1, 4.3.2).
    """
    if tokens.refresh_token is None:
        raise AuthorizationError(REFRESH_STEP, f"{metadata.issuer} issued no refresh token", "log in again")
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token, "resource": resource}
    response = yield from request_tokens(
        metadata, authentication, form, step=REFRESH_STEP, cure="log in again", headers=headers
    )
    renewed = tokens_of(response, tokens.requested, now)
    scopes = tokens.scopes if response.scope is None else renewed.scopes
    return msgspec.structs.replace(renewed, refresh_token=renewed.refresh_token or tokens.refresh_token, scopes=scopes)


def revoke_token(
    metadata: AuthorizationServerMetadata, authentication: ClientAuthentication, token: str, hint: str
) -> Steps[bool]:
    """Revoke a token (RFC 7009); return whether the server did. `hint` is `refresh_token` or `access_token`."""
    if metadata.revocation_endpoint is None:
        return False
    headers: dict[str, str] = {}
    form = {"token": token, "token_type_hint": hint}
    authentication.authenticate(metadata.revocation_endpoint, headers, form)
    response = yield OAuthRequest("token revocation", "POST", metadata.revocation_endpoint, headers, form=form)
    return response.status == 200
