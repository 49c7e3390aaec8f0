"""Tokens, and the requests that get them: code, refresh, client credentials, assertions, device codes, revocation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from accord.auth.challenge import SCOPES_CHARACTERS, parse_scopes
from accord.auth.client_authentication import ClientAuthentication
from accord.auth.dpop import NONCE_ERROR, NONCE_HEADER, DPoPAuthentication
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.steps import DECODE_ERRORS, OAuthRequest, OAuthResponse, Steps, response_failure
from accord.errors import AuthorizationError, OAuthError, visible

REFRESH_STEP = "token refresh"
TOKEN_CHARACTERS = 64 << 10
"""Limit of the length of a token."""

_MARGIN_SECONDS = 30.0
"""A token that expires sooner is renewed before it is used."""

_MAX_SECONDS = 10 * 366 * 86_400
"""Limit of a lifetime, in seconds: a peer could otherwise cause an overflow."""

_Token: TypeAlias = Annotated[str, Meta(max_length=TOKEN_CHARACTERS, pattern=r"^[\x21-\x7e]+\Z")]
_Seconds: TypeAlias = int | float | str | None
"""A number, which some servers send as a text."""


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens of one authorization."""

    access_token: str
    token_type: str = "Bearer"
    """`Bearer` or `DPoP`: the scheme of the `Authorization` header."""
    expires_at: float | None = None
    """When the access token expires, in seconds since 1970; None if the server did not say."""
    lifetime: float | None = None
    """The seconds from the response to `expires_at`."""
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

    @property
    def margin(self) -> float:
        """The seconds before the expiry at which to renew the access token: few for one of a short lifetime, which
        would be renewed for every request.
        """
        return _MARGIN_SECONDS if self.lifetime is None else min(_MARGIN_SECONDS, self.lifetime / 4)


class TokenResponse(msgspec.Struct):
    """A successful response of a token endpoint (RFC 6749, 5.1)."""

    access_token: _Token
    token_type: Annotated[str, Meta(max_length=100)] = "Bearer"
    expires_in: _Seconds = None
    refresh_token: _Token | None = None
    scope: Annotated[str, Meta(max_length=SCOPES_CHARACTERS)] | None = None
    id_token: _Token | None = None
    issued_token_type: Annotated[str, Meta(max_length=200)] | None = None

    def __repr__(self) -> str:
        return f"TokenResponse({self.token_type!r}, scope={self.scope!r})"


_decode = msgspec.json.Decoder(TokenResponse).decode


def request_tokens(
    metadata: AuthorizationServerMetadata,
    authentication: ClientAuthentication,
    form: Mapping[str, str],
    *,
    step: str,
    cure: str = "",
) -> Steps[TokenResponse]:
    """Send a request to the token endpoint. Raises `OAuthError` for its error, `AuthorizationError` for other failures.

    `step` and `cure` go into errors.
    """
    endpoint = metadata.token_endpoint or ""
    for is_first in (True, False):
        headers, body = {"Accept": "application/json"}, dict(form)
        authentication.authenticate(endpoint, headers, body)
        request = OAuthRequest(step, "POST", endpoint, headers, form=body)
        response = yield request
        if not (is_first and isinstance(authentication, DPoPAuthentication) and _demands_nonce(response)):
            break
        authentication.nonce = response.headers[NONCE_HEADER]
    tokens = _decode_tokens(request, response, f"{step} at {endpoint}", cure)
    if tokens.token_type.lower() == "dpop" and not isinstance(authentication, DPoPAuthentication):
        reason = f"found token_type {tokens.token_type!r}, and the request had no proof of possession"
        raise AuthorizationError(f"{step} at {endpoint}", reason, cure)
    return tokens


def _demands_nonce(response: OAuthResponse) -> bool:
    """Return whether the token endpoint demands a nonce in the proof (RFC 9449, 8)."""
    return response.status in (400, 401) and NONCE_ERROR.encode() in response.body and NONCE_HEADER in response.headers


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
    return Tokens(
        access_token=response.access_token,
        token_type=token_type,
        expires_at=expires_at,
        lifetime=expires_in,
        refresh_token=response.refresh_token,
        scopes=granted,
        requested=requested,
    )


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
) -> Steps[Tokens]:
    """Return renewed tokens. Raises `OAuthError` with `invalid_grant` if the refresh token is not valid any more, and
    `AuthorizationError` without one.

    Without a new refresh token, the old one stays valid (OAuth 2.1, 4.3.2).
    """
    if tokens.refresh_token is None:
        raise AuthorizationError(REFRESH_STEP, f"{metadata.issuer} issued no refresh token", "log in again")
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token, "resource": resource}
    response = yield from request_tokens(metadata, authentication, form, step=REFRESH_STEP, cure="log in again")
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
