"""Authorization of a client: what every authorization request, token request and authorized request has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import urlsplit

from accord.auth.code_grant import code_challenge
from accord.auth.urls import covers, is_loopback
from accord.check.clients.http_listener import ClientExchange
from accord.check.clients.login_log import SECOND, LoginLog, LoginRequest
from accord.check.clients.logins import require_login
from accord.check.clients.ordinary_scenario import LOGIN
from accord.check.clients.run import PATH, ClientRun
from accord.check.engine.rule import HTTP, JudgedItems, RuleFamily, Violation, client_rule

_RESOURCES = "2025-06-18"
_PAGES = ("basic/authorization", "basic/authorization/index")
_SECURITY = "basic/authorization/security-considerations"

auth_rule: RuleFamily = partial(client_rule, since="2025-03-26", over=HTTP)
"""A rule about the logins of a client in all runs with authorization."""

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}").fullmatch


def _at(section: str, security: str = "") -> tuple[str, ...]:
    """Return the places of a section, which stands on another page since 2026-07-28."""
    return (f"{_PAGES[0]}#{section}", f"{security or _PAGES[1]}#{section}")


def _logins(runs: Sequence[ClientRun]) -> Iterator[tuple[ClientRun, LoginLog]]:
    return ((run, run.login) for run in runs if run.login is not None)


def _violation(text: str, *requests: LoginRequest) -> Violation:
    return Violation(text, evidence=[each.line() for each in requests])


@LOGIN.rule(
    "client-auth/login",
    "must",
    case="401 with resource_metadata",
    at=("basic/authorization#protocol-requirements", "basic/authorization/authorization-server-discovery"),
    since="2025-06-18",
    over=HTTP,
    cause="The client does not parse WWW-Authenticate, or the flow ends before a request with the token.",
)
def client_auth_login(run: ClientRun) -> None:
    """After a 401, a client that can log in gets an access token, and repeats its request with it."""
    require_login(run)


@auth_rule(
    "client-auth/response-type",
    "must",
    case="all authorization requests",
    at=_at("protocol-requirements"),
    cause="The implicit grant, or a hybrid one, is used: OAuth 2.1 has neither.",
)
def client_auth_response_type(runs: Sequence[ClientRun]) -> JudgedItems:
    """An authorization request has response_type=code, a client_id, and each parameter once."""
    for _, login in _logins(runs):
        for each in login.at("authorization"):
            yield
            if each.text("response_type") != "code" or not each.client_id:
                raise _violation("an authorization request has no response_type=code, or no client_id", each)
            if each.repeated:
                raise _violation(f"an authorization request has {', '.join(each.repeated)} more than once", each)


@auth_rule(
    "client-auth/pkce",
    "must",
    case="all authorization requests and their token requests",
    at=_at("authorization-code-protection", _SECURITY),
    cause="PKCE is left out, or has the method plain.",
)
def client_auth_pkce(runs: Sequence[ClientRun]) -> JudgedItems:
    """An authorization request has a PKCE challenge with S256, and its token request the verifier."""
    for _, login in _logins(runs):
        for each in login.at("authorization"):
            yield
            if each.text("code_challenge_method") != "S256" or not _CHALLENGE(each.text("code_challenge")):
                method = each.text("code_challenge_method") or "none"
                raise _violation(f"an authorization request has no S256 challenge (method {method})", each)
        for each in login.grants("authorization_code"):
            begun = login.codes.get(each.text("code"))
            verifier = each.text("code_verifier")
            if not _VERIFIER(verifier) or (begun and code_challenge(verifier) != begun.text("code_challenge")):
                raise _violation("a token request has no code_verifier, or a wrong one", each)


@auth_rule(
    "client-auth/fresh-pkce",
    "must",
    case="all authorization requests of a run",
    at=_at("authorization-code-protection", _SECURITY),
    cause="The verifier is a constant, or is made once for all logins.",
)
def client_auth_fresh_pkce(runs: Sequence[ClientRun]) -> JudgedItems:
    """Each authorization request has a PKCE challenge of its own."""
    seen: dict[str, LoginRequest] = {}
    for _, login in _logins(runs):
        for each in login.at("authorization"):
            challenge = each.text("code_challenge")
            if challenge:
                yield
                if challenge in seen and seen[challenge].exchange.target != each.exchange.target:
                    raise _violation("two authorization requests have the same code_challenge", seen[challenge], each)
                seen[challenge] = each


@auth_rule(
    "client-auth/state",
    "should",
    case="all authorization requests",
    at=_at("open-redirection", _SECURITY),
    cause="state is left out, or is a constant.",
)
def client_auth_state(runs: Sequence[ClientRun]) -> JudgedItems:
    """An authorization request has a state of its own."""
    seen: dict[str, LoginRequest] = {}
    for _, login in _logins(runs):
        for each in login.at("authorization"):
            yield
            state = each.text("state")
            if not state:
                raise _violation("an authorization request has no state", each)
            if state in seen and seen[state].exchange.target != each.exchange.target:
                raise _violation("two authorization requests have the same state", seen[state], each)
            seen[state] = each


@auth_rule(
    "client-auth/resource",
    "must",
    case="all authorization requests and token requests",
    at=_at("resource-parameter-implementation"),
    since=_RESOURCES,
    cause="resource is sent only with one of the requests, or not when a token is refreshed.",
)
def client_auth_resource(runs: Sequence[ClientRun]) -> JudgedItems:
    """Authorization requests and token requests have the parameter resource."""
    for _, login in _logins(runs):
        for each in (*login.at("authorization"), *login.at("token")):
            yield
            if not each.text("resource"):
                what = each.text("grant_type") or "authorization"
                raise _violation(f"a request ({what}) has no resource", each)


@auth_rule(
    "client-auth/resource-value",
    "must",
    case="all resource parameters",
    at=_at("canonical-server-uri"),
    since=_RESOURCES,
    cause="resource is the issuer, or the URL of another server.",
)
def client_auth_resource_value(runs: Sequence[ClientRun]) -> JudgedItems:
    """The parameter resource is the URI of the MCP server: an absolute URI without a fragment, on its origin."""
    for _, login in _logins(runs):
        for each in (*login.at("authorization"), *login.at("token")):
            found = each.text("resource")
            if found:
                yield
                if "#" in found or not urlsplit(found).netloc or not covers(found, login.resource):
                    raise _violation(f"resource is {found!r}, and the server {login.resource!r}", each)


@auth_rule(
    "client-auth/specific-resource",
    "should",
    case="all resource parameters",
    at=_at("canonical-server-uri"),
    since=_RESOURCES,
    cause="resource has a slash more, or only the origin, though the metadata has the path.",
)
def client_auth_specific_resource(runs: Sequence[ClientRun]) -> JudgedItems:
    """The parameter resource is the most specific URI of the MCP server, without a slash at its end."""
    for _, login in _logins(runs):
        for each in (*login.at("authorization"), *login.at("token")):
            found = each.text("resource")
            if found and covers(found, login.resource):
                yield
                if found != login.resource:
                    raise _violation(f"resource is {found!r}, expected {login.resource!r}", each)


@auth_rule(
    "client-auth/redirect-uri",
    "must",
    case="all authorization requests",
    at=_at("communication-security", _SECURITY),
    cause="The redirect URI is http at another host, or was not registered.",
)
def client_auth_redirect_uri(runs: Sequence[ClientRun]) -> JudgedItems:
    """A redirect URI is registered, and is https or on loopback."""
    for _, login in _logins(runs):
        for each in login.at("authorization"):
            yield
            found = each.text("redirect_uri")
            host = urlsplit(found).hostname or ""
            scheme = urlsplit(found).scheme
            if scheme not in ("http", "https") or (scheme == "http" and not is_loopback(host)):
                raise _violation(f"the redirect URI is {found!r}", each)
            registered = login.clients.get(each.client_id, ("", {}))[1].get("redirect_uris")
            if isinstance(registered, list) and not any(_matches(str(uri), found) for uri in registered):
                raise _violation(f"the redirect URI {found!r} is not among the registered ones {registered}", each)


def _matches(registered: str, found: str) -> bool:
    """Return whether a redirect URI is the registered one; on loopback, its port may differ (RFC 8252, 7.3)."""
    one, other = urlsplit(registered), urlsplit(found)
    same = (one.scheme, one.hostname, one.path, one.query) == (other.scheme, other.hostname, other.path, other.query)
    return registered == found or (same and is_loopback(other.hostname or ""))


@auth_rule(
    "client-auth/token-request",
    "must",
    case="all token requests",
    at=_at("protocol-requirements"),
    cause="The token request is a GET, or JSON, or has its parameters in the URL.",
)
def client_auth_token_request(runs: Sequence[ClientRun]) -> JudgedItems:
    """A token request is a POST with a form, and has the client ID of its authorization request."""
    for _, login in _logins(runs):
        for each in login.at("token"):
            yield
            kind = each.exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
            if each.exchange.verb != "POST" or kind != "application/x-www-form-urlencoded":
                raise _violation(f"a token request is a {each.exchange.verb} with {kind or 'no form'}", each)
            if "?" in each.exchange.target:
                raise _violation("a token request has parameters in its URL", each)
            begun = login.codes.get(each.text("code"))
            if begun is not None and each.client_id and each.client_id != begun.client_id:
                raise _violation("a token request has another client_id than its authorization request", begun, each)


@auth_rule(
    "client-auth/code-once",
    "must",
    case="all token requests",
    at=_at("authorization-code-protection", _SECURITY),
    cause="A failed token request is repeated with the same code, or the code goes to the wrong server.",
)
def client_auth_code_once(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client redeems a code once, at the server that issued it."""
    for _, login in _logins(runs):
        redeemed: dict[str, LoginRequest] = {}
        for each in login.grants("authorization_code"):
            yield
            code, begun = each.text("code"), login.codes.get(each.text("code"))
            if code in redeemed and redeemed[code].exchange.status == 200:
                raise _violation("a code was sent again, after it had been redeemed", redeemed[code], each)
            if begun is not None and begun.server != each.server:
                raise _violation(f"a code of the {begun.server} was sent to the {each.server}", begun, each)
            redeemed[code] = each


@auth_rule(
    "client-auth/bearer",
    "must",
    case="all requests after a login",
    at=_at("token-requirements"),
    cause="Only the first request has the token, or only POST requests have it.",
)
def client_auth_bearer(runs: Sequence[ClientRun]) -> JudgedItems:
    """Every request to the MCP server has the access token in the Authorization header."""
    for run, login in _logins(runs):
        begun = min((each.at for each in login.authorized), default=None)
        for each in run.exchanges:
            if begun is not None and each.at > begun and each.path == PATH:
                yield
                scheme, _, value = each.headers.get("authorization", "").partition(" ")
                if scheme.lower() != "bearer" or not value.strip():
                    raise Violation(f"a {each.verb} has no access token", evidence=[each.line()])


@auth_rule(
    "client-auth/token-in-url",
    "must",
    case="all requests",
    at=_at("token-requirements"),
    cause="The token is put into the query, as for an EventSource.",
)
def client_auth_token_in_url(runs: Sequence[ClientRun]) -> JudgedItems:
    """No URL has a token in it."""
    for run, login in _logins(runs):
        for each in (*run.exchanges, *(one.exchange for one in login.requests), *run.stray_requests):
            if login.tokens:
                yield
                if any(token in each.target for token in login.tokens):
                    raise Violation("a URL has a token in it", evidence=[each.line()])


@auth_rule(
    "client-auth/token-elsewhere",
    "must",
    case="all requests",
    at=_at("token-handling"),
    cause="The token is a default header of the HTTP library, for every origin, or redirects keep it.",
)
def client_auth_token_elsewhere(runs: Sequence[ClientRun]) -> JudgedItems:
    """An access token is sent only to the MCP server that it is for; a refresh token only to its issuer."""
    for run, login in _logins(runs):
        if not login.tokens:
            continue
        for each in run.stray_requests:
            yield
            if _has_token(login, each):
                raise Violation("a token was sent to another origin", evidence=[each.line()])
        for request in login.requests:
            yield
            if _has_access_token(login, request) or _has_foreign_token(login, request):
                raise _violation(f"a token was sent to the {request.server}, which it is not for", request)


def _has_token(login: LoginLog, exchange: ClientExchange) -> bool:
    text = exchange.body.decode(errors="replace") + exchange.headers.get("authorization", "") + exchange.target
    return any(token in text for token in login.tokens)


def _has_access_token(login: LoginLog, request: LoginRequest) -> bool:
    """Return whether a request of a login has an access token in its header, where only client credentials may be."""
    value = request.exchange.headers.get("authorization", "").partition(" ")[2]
    return value in login.tokens


def _has_foreign_token(login: LoginLog, request: LoginRequest) -> bool:
    """Return whether a token request has the refresh token of another issuer."""
    token = login.tokens.get(request.text("refresh_token"))
    return token is not None and token.server != request.server


@auth_rule(
    "client-auth/issuer-tokens",
    "must",
    case="all requests to the MCP server",
    at=_at("token-handling"),
    since=_RESOURCES,
    cause="Tokens are stored without the server and the issuer that they belong to.",
)
def client_auth_issuer_tokens(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client sends the MCP server only tokens of an authorization server that this one names."""
    for run, login in _logins(runs):
        for each in run.exchanges:
            value = each.headers.get("authorization", "").partition(" ")[2].strip()
            if value:
                yield
                token = login.tokens.get(value)
                if token is None or token.kind != "access_token":
                    raise Violation("a request has a token that was not issued for it", evidence=[each.line()])
                if token.server == SECOND and not any(one.server == SECOND for one in login.at("metadata")):
                    raise Violation("a request has the token of another issuer", evidence=[each.line()])
