"""The authorization code grant with PKCE (OAuth 2.1, 4.1): the URL for the browser, the callback, the code.

State, PKCE verifier and issuer form one record, which is used once. The response is checked against it before anything
of it is used or shown, errors included.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from hmac import compare_digest
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from accord.auth.client_authentication import ClientAuthentication
from accord.auth.discovery import Discovery
from accord.auth.registration import ClientRegistration
from accord.auth.steps import Steps
from accord.auth.tokens import Tokens, request_tokens, tokens_of
from accord.errors import AuthorizationError, OAuthError, visible
from accord.redaction import REDACTED

STEP = "authorization"
_CALLBACK_CHARACTERS = 16_384
_PARAMETERS = 32
_ABSOLUTE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
"""The beginning of a whole URL; a query may have another one, as `iss`."""


class PendingAuthorization(msgspec.Struct, frozen=True):
    """An authorization that waits for the browser to return: what its response is checked against."""

    url: str
    """The URL for the browser."""
    state: str
    verifier: str
    redirect_uri: str
    client: ClientRegistration
    discovery: Discovery
    scopes: list[str]

    def __repr__(self) -> str:
        return f"PendingAuthorization(at {self.discovery.issuer!r})"  # state and verifier are secret


def select_scopes(discovery: Discovery, previous: list[str], chosen: list[str] | None = None) -> list[str]:
    """Return the scopes to request: those that the user chose, else those of the challenge or the metadata; with those
    requested before, and `offline_access` where the authorization server lists it.

    "When re-authorizing, clients SHOULD include these scopes alongside any previously granted scopes" (Scope Selection
    Strategy).
    """
    scopes = discovery.merge_scopes(previous, chosen)
    offline = "offline_access"
    if offline in (discovery.metadata.scopes_supported or ()) and offline not in scopes:
        scopes.append(offline)
    return scopes


def begin_authorization(
    discovery: Discovery,
    client: ClientRegistration,
    redirect_uri: str,
    scopes: list[str],
    random_text: Callable[[], str],
    *,
    assume_pkce: bool = False,
) -> PendingAuthorization:
    """Return the URL for the browser with what its response needs. `random_text` returns 256 random bits as a text of
    `A-Z a-z 0-9 - _`.

    Raises `AuthorizationError` for an authorization server without S256, unless `assume_pkce`.
    """
    endpoint = authorization_endpoint(discovery, assume_pkce=assume_pkce)
    state, verifier = random_text(), random_text()
    parameters = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": code_challenge(verifier),
        "code_challenge_method": "S256",
        "resource": discovery.resource,
    }
    if scopes:
        parameters["scope"] = " ".join(scopes)
    if "offline_access" in scopes:
        parameters["prompt"] = "consent"  # "OpenID Connect Core 1.0, 11": required for offline_access
    separator = "&" if urlsplit(endpoint).query else "?"
    url = f"{endpoint}{separator}{urlencode(parameters)}"
    return PendingAuthorization(url, state, verifier, redirect_uri, client, discovery, scopes)


def authorization_endpoint(discovery: Discovery, *, assume_pkce: bool = False) -> str:
    """Return the authorization endpoint of a server that states S256. Raises `AuthorizationError` for one that does
    not, unless `assume_pkce`.

    "If the field is absent, MCP clients MUST refuse to proceed" (Authorization Code Protection).
    """
    metadata = discovery.metadata
    if metadata.authorization_endpoint is None:
        raise AuthorizationError(STEP, f"{metadata.issuer} has no authorization_endpoint", "log in without a user")
    methods = metadata.code_challenge_methods_supported
    if not assume_pkce and "S256" not in (methods or ()):
        stated = "does not state code_challenge_methods_supported" if methods is None else f"states {methods}"
        raise AuthorizationError(
            STEP,
            f"{metadata.issuer} {stated}, expected S256: a stolen code could be used",
            "if its documentation says that it supports S256: --assume-pkce",
        )
    return metadata.authorization_endpoint


def code_challenge(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier (RFC 7636, 4.2)."""
    return base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def parse_callback(query: str) -> dict[str, str]:
    """Return the parameters of a callback from its query or its whole URL. Raises `AuthorizationError`.

    "Request and response parameters MUST NOT be included more than once" (OAuth 2.1, 3.1).
    """
    try:
        query = urlsplit(query).query if _ABSOLUTE_URL.match(query) else query
    except ValueError as exc:
        raise AuthorizationError(STEP, "the callback is not a URL") from exc
    if len(query) > _CALLBACK_CHARACTERS:
        raise AuthorizationError(STEP, "the callback is too long")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_PARAMETERS)
    except ValueError as exc:
        raise AuthorizationError(STEP, f"the callback has more than {_PARAMETERS} parameters") from exc
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise AuthorizationError(STEP, "the callback has a parameter twice")
    return parameters


def read_callback(pending: PendingAuthorization, parameters: Mapping[str, str]) -> str:
    """Return the code of a callback. Raises `AuthorizationError` unless it answers this authorization, and `OAuthError`
    for the error in it.
    """
    state = parameters.get("state", "").encode(errors="backslashreplace")  # a pasted URL may have lone surrogates
    if not compare_digest(state, pending.state.encode()):
        reason = f"the state of the callback is not the one of this login; expected {pending.redirect_uri}?code=..."
        raise AuthorizationError(
            STEP, reason, "log in again, and return the whole URL that the browser shows at the end"
        )
    _check_issuer(pending, parameters.get("iss"))
    if "error" in parameters:
        raise _authorization_failure(parameters)
    if not parameters.get("code"):
        raise AuthorizationError(STEP, "the callback has neither a code nor an error")
    return parameters["code"]


def _check_issuer(pending: PendingAuthorization, found: str | None) -> None:
    """Raise `AuthorizationError` for a response of another issuer, without anything of it (RFC 9207, 2.4)."""
    metadata = pending.discovery.metadata
    if found is None:
        if metadata.authorization_response_iss_parameter_supported:
            raise AuthorizationError(
                STEP, f"the callback has no iss, expected {metadata.issuer!r}: it may come from another server"
            )
    elif found != metadata.issuer:
        raise AuthorizationError(
            STEP,
            f"found iss {visible(found)[:200]!r}, expected {metadata.issuer!r}: the response is another server's",
            "do not enter credentials there",
        )


def _authorization_failure(parameters: Mapping[str, str]) -> OAuthError:
    error, description = parameters["error"], parameters.get("error_description", "")
    if code := parameters.get("code"):  # of no use to the user, and a secret
        error, description = (text.replace(code, REDACTED) for text in (error, description))
    cures = {
        "access_denied": "the user has refused; log in again",
        "invalid_scope": "choose other scopes: --scope",
        "unauthorized_client": "register another client, then give its ID: --client-id",
    }
    return OAuthError(STEP, error, description, cures.get(error, ""))


def redeem_code(
    pending: PendingAuthorization,
    code: str,
    authentication: ClientAuthentication,
    now: float,
) -> Steps[Tokens]:
    """Exchange a code for tokens (OAuth 2.1, 4.1.3). Raises `AuthorizationError`, `OAuthError`."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": pending.redirect_uri,
        "code_verifier": pending.verifier,
        "resource": pending.discovery.resource,
    }
    response = yield from request_tokens(
        pending.discovery.metadata, authentication, form, step="token request", cure="log in again"
    )
    return tokens_of(response, pending.scopes, now)
