"""An authorization, from the client's request to the provider's callback, without I/O.

    request (GET /authorize)    checked against the client: `check_request`
    consent page                `PendingConsent`, bound to the browser by a cookie
    consent (POST /consent)     `give_consent`: a `PendingLogin` with state, PKCE verifier and issuer, used once
    callback (GET /callback)    `read_provider_callback`: only in the browser that consented

"MCP proxy servers using static client IDs MUST obtain user consent for each dynamically registered client before
forwarding to third-party authorization servers" (Security Considerations, Confused Deputy Problem).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hmac import compare_digest
from urllib.parse import urlencode, urlsplit

import msgspec

from accord.auth.challenge import parse_scopes
from accord.auth.urls import check_url, covers
from accord.errors import AuthorizationError, visible
from accord.server.auth.proxy.clients import ProxyClient
from accord.server.auth.proxy.database import digest_of
from accord.server.auth.proxy.endpoint_error import EndpointError
from accord.server.auth.proxy.redirect_uris import select_redirect_uri

PENDING_SECONDS = 600.0
"""How long a user may take for the consent page, and again for the login at the provider."""

_STATE_CHARACTERS = 4_096
_SCOPE_CHARACTERS = 4_096
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch


class ClientRequest(msgspec.Struct, frozen=True):
    """A checked authorization request of a client."""

    client_id: str
    redirect_uri: str
    state: str | None
    challenge: str
    scopes: list[str]
    issuer: str
    """The issuer identifier of the proxy."""
    resource: str

    def __repr__(self) -> str:
        return f"ClientRequest({self.client_id!r})"  # the state may be secret


class PendingConsent(msgspec.Struct, frozen=True, tag=True):
    """A request whose consent page is shown. `browser` is the digest of the cookie of that browser."""

    request: ClientRequest
    browser: bytes

    def __repr__(self) -> str:
        return f"PendingConsent({self.request!r})"


class PendingLogin(msgspec.Struct, frozen=True, tag=True):
    """A login at the provider that the user has consented to. `issuer` is the provider."""

    request: ClientRequest
    browser: bytes
    verifier: str
    issuer: str

    def __repr__(self) -> str:
        return f"PendingLogin({self.request!r})"  # the verifier is secret


class ConsentedLogin(msgspec.Struct, frozen=True):
    """The result of a consent: the record, and the secrets that only the browser receives."""

    login: PendingLogin
    state: str
    cookie: str

    def __repr__(self) -> str:
        return f"ConsentedLogin({self.login!r})"


def check_request(
    parameters: Mapping[str, str],
    client: ProxyClient,
    known_scopes: tuple[str, ...],
    issuer: str,
    resource: str,
) -> ClientRequest:
    """Return the request of a client. Raises `EndpointError`.

    `issuer` and `resource` are the identifiers of the proxy and of the server that it protects.
    """
    redirect_uri = select_redirect_uri(
        parameters.get("redirect_uri"), client.redirect_uris, any_localhost_port=client.is_document
    )
    if parameters.get("response_type") != "code":
        raise EndpointError("unsupported_response_type", "response_type must be code")
    challenge = parameters.get("code_challenge", "")
    if parameters.get("code_challenge_method") != "S256" or not _CHALLENGE(challenge):
        raise EndpointError("invalid_request", "code_challenge with code_challenge_method=S256 is needed")
    state = parameters.get("state")
    if state is not None and len(state) > _STATE_CHARACTERS:
        raise EndpointError("invalid_request", f"state has more than {_STATE_CHARACTERS:,} characters")
    scopes = select_scopes(parameters.get("scope"), known_scopes)
    check_resource(parameters.get("resource"), resource)
    return ClientRequest(client.client_id, redirect_uri, state, challenge, scopes, issuer, resource)


def select_scopes(requested: str | None, known: tuple[str, ...]) -> list[str]:
    """Return the scopes of a request: those that are known, or all without any. Raises `EndpointError`.

    "The authorization server MAY fully or partially ignore the scope requested by the client" (RFC 6749, 3.3).
    """
    if not requested:
        return list(known)
    if len(requested) > _SCOPE_CHARACTERS:
        raise EndpointError("invalid_scope", f"scope has more than {_SCOPE_CHARACTERS:,} characters")
    found = set(parse_scopes(requested))
    scopes = [scope for scope in known if scope in found]
    if known and not scopes:
        raise EndpointError("invalid_scope", f"no scope of the request is known here: {', '.join(known)}")
    return scopes


def check_resource(requested: str | None, resource: str) -> None:
    """Raise `EndpointError` for a token that is requested for another server (RFC 8707, 2)."""
    if requested is None:
        return
    try:
        check_url(requested, "resource")
    except AuthorizationError:
        is_own = False
    else:
        is_own = covers(requested, resource)
    if not is_own:
        raise EndpointError(
            "invalid_target", f"resource {visible(requested)[:200]!r} is another server; this one is {resource}"
        )


def give_consent(
    pending: PendingConsent | None, cookie: str | None, provider: str, random_text: Callable[[], str]
) -> ConsentedLogin:
    """Return the login that follows from a consent in the browser with this cookie. Raises `EndpointError`."""
    if pending is None:
        raise EndpointError("invalid_request", "this page has expired, or was used before: begin the login again")
    check_browser(pending.browser, cookie)
    state, verifier, fresh_cookie = random_text(), random_text(), random_text()
    login = PendingLogin(pending.request, digest_of(fresh_cookie), verifier, provider)
    return ConsentedLogin(login, state, fresh_cookie)


def check_browser(expected: bytes, cookie: str | None) -> None:
    """Raise `EndpointError` unless a cookie is that of the browser where the authorization began."""
    if cookie is None or not compare_digest(digest_of(cookie), expected):
        raise EndpointError(
            "access_denied", "this login was begun in another browser: begin it in this one, with cookies enabled", 403
        )


def read_provider_callback(
    login: PendingLogin | None,
    parameters: Mapping[str, str],
    cookie: str | None,
    provider: str,
    expected_issuer: str | None,
) -> str:
    """Return the code of the provider's callback. Raises `EndpointError` for a page, and `ProviderRefusal` for an error
    that the client receives. `provider` is the one of the record; `expected_issuer` is its `iss`, if that is known.
    """
    if login is None:
        raise EndpointError("invalid_request", "this login has expired, or was used before: begin it again")
    check_browser(login.browser, cookie)
    is_other = expected_issuer is not None and parameters.get("iss", expected_issuer) != expected_issuer
    if login.issuer != provider or is_other:
        raise EndpointError("invalid_request", "the response is that of another provider: begin the login again")
    if "error" in parameters:
        passed_on = ("access_denied", "invalid_scope", "temporarily_unavailable")
        error = parameters["error"] if parameters["error"] in passed_on else "server_error"
        raise ProviderRefusal(error, "the provider has refused the login")
    if not parameters.get("code"):
        raise ProviderRefusal("server_error", "the provider sent no code")
    return parameters["code"]


class ProviderRefusal(Exception):
    """A login that failed after the consent: the client receives `error` and `description`."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error: str = error
        self.description: str = description


def client_redirect(request: ClientRequest, parameters: Mapping[str, str]) -> str:
    """Return the URL that leads the browser back to the client, with `state` and `iss` (RFC 9207)."""
    whole = dict(parameters)
    if request.state is not None:
        whole["state"] = request.state
    whole["iss"] = request.issuer
    separator = "&" if urlsplit(request.redirect_uri).query else "?"
    return f"{request.redirect_uri}{separator}{urlencode(whole)}"
