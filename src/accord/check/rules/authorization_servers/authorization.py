"""The authorization endpoint: whom it redirects where, with which parameters."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from accord.check.authorization_servers.probe import AuthServerProbe, HTTPAnswer, ProbeClient
from accord.check.engine.rule import CaseVariant, NotApplicable, NotObserved
from accord.check.rules.authorization_servers.metadata import auth_server_rule

_REDIRECTION = (
    "basic/authorization#open-redirection",
    "basic/authorization/security-considerations#open-redirection",
)
_OVERVIEW = ("basic/authorization#overview", "basic/authorization/index#overview")
_CODE_PROTECTION = (
    "basic/authorization#authorization-code-protection",
    "basic/authorization/security-considerations#authorization-code-protection",
)
_VALIDATION = "basic/authorization/index#authorization-response-validation"
_STATED = "authorization_response_iss_parameter_supported"


def _require_no_redirect(probe: AuthServerProbe, answer: HTTPAnswer, target: str) -> None:
    """Raise `Violation` if a response redirects to a target."""
    location = answer.headers.get("location", "")
    if location.startswith(target.partition("?")[0]):
        raise probe.violation(f"the browser was redirected to {target}")


@auth_server_rule(
    "auth-server/unregistered-redirect",
    "must",
    variants=[
        CaseVariant("another host", change=lambda uri: "https://attacker.example/callback"),
        CaseVariant("another path", change=lambda uri: uri.rpartition("/")[0] + "/other"),
        CaseVariant("a longer path", change=lambda uri: f"{uri}/other"),
        CaseVariant("another query", change=lambda uri: f"{uri}?other=1"),
        CaseVariant("the host as a user name", change=lambda uri: uri.replace("://", "://a.example@", 1)),
    ],
    at=_REDIRECTION,
    cause="Redirect URIs are compared by their beginning, or by their host.",
)
async def auth_server_unregistered_redirect(probe: AuthServerProbe, change: Callable[[str], str]) -> None:
    """The browser is not redirected to a redirect URI that is not registered, with an error either."""
    client = await probe.client()
    target = change(client.redirect_uri)
    _require_no_redirect(probe, await probe.direct(client.client_id, target), target)


@auth_server_rule(
    "auth-server/unknown-client",
    "must",
    case="a client ID that was not registered",
    at=_REDIRECTION,
    cause="The redirect URI of the request is taken for errors as well.",
)
async def auth_server_unknown_client(probe: AuthServerProbe) -> None:
    """The browser is not redirected for a client that is not known."""
    target = "https://client.example/callback"
    _require_no_redirect(probe, await probe.direct("accord-check-unknown", target), target)


@auth_server_rule(
    "auth-server/document-url",
    "must",
    variants=[
        CaseVariant("a document that cannot be fetched", url="https://accord-check.invalid/client.json"),
        CaseVariant("a document at http", url="http://accord-check.invalid/client.json"),
    ],
    at=(
        "basic/authorization#client-id-metadata-documents",
        "basic/authorization/client-registration#client-id-metadata-documents",
    ),
    since="2025-11-25",
    cause="Any URL is taken for a client, with the redirect URI of the request.",
)
async def auth_server_document_url(probe: AuthServerProbe, url: str) -> None:
    """The browser is not redirected for a client whose metadata document cannot be validated."""
    if probe.metadata.get("client_id_metadata_document_supported") is not True:
        raise NotApplicable("the server does not state that it supports metadata documents")
    target = "https://accord-check.invalid/callback"
    _require_no_redirect(probe, await probe.direct(url, target), target)


@auth_server_rule(
    "auth-server/login",
    "must",
    case="a valid authorization request",
    at=_OVERVIEW,
    cause="A parameter of the request is not known: resource, or a port of loopback.",
)
async def auth_server_login(probe: AuthServerProbe) -> None:
    """A valid authorization request with PKCE and resource ends with a code, when the user consents."""
    client = await probe.client()
    try:
        found = await probe.visit(client)
    except NotObserved as exc:
        probe.remember_failure(str(exc))
        raise
    if not found.code:
        error = found.parameters.get("error", "no error")
        probe.remember_failure(f"a login ends with {error}")
        raise probe.violation(f"the callback has no code, and {error}")


@auth_server_rule(
    "auth-server/state",
    "must",
    case="the callback of a login",
    at=_REDIRECTION,
    cause="state is decoded, cut, or left out.",
)
async def auth_server_state(probe: AuthServerProbe) -> None:
    """The callback has the state of the request, unchanged."""
    state = "a b+c/d=%41&\u00e9"
    found = await probe.visit(await probe.client(), state=state)
    if found.parameters.get("state") != state:
        raise probe.violation(f"state is {found.parameters.get('state')!r}, expected {state!r}")


@auth_server_rule(
    "auth-server/iss",
    "must",
    case="the callback of a login",
    at=_VALIDATION,
    since="2026-07-28",
    cause="iss is sent and not stated, or stated and not sent, or is not the issuer byte for byte.",
)
async def auth_server_iss(probe: AuthServerProbe) -> None:
    """The callback has the issuer as iss if, and only if, the metadata states so."""
    found = await probe.log_in()
    iss, stated = found.parameters.get("iss"), probe.metadata.get(_STATED) is True
    if iss is None and not stated:
        raise NotApplicable("the server sends no iss, and states none")
    if iss != probe.issuer or not stated:
        raise probe.violation(f"iss is {iss!r}, the issuer {probe.issuer!r}, and {_STATED} is {stated}")


@auth_server_rule(
    "auth-server/pkce-required",
    "must",
    variants=[
        CaseVariant("no code_challenge", challenge=None, method=None),
        CaseVariant("an unknown method", challenge="c" * 43, method="S1"),
    ],
    at=_CODE_PROTECTION,
    cause="PKCE is optional: a stolen code can be redeemed.",
)
async def auth_server_pkce_required(probe: AuthServerProbe, challenge: str | None, method: str | None) -> None:
    """A public client gets no code without PKCE."""
    client = await probe.client()
    changes = {"code_challenge": challenge, "code_challenge_method": method}
    found = await _visit_or_refused(probe, client, changes)
    if "code" in found:
        raise probe.violation("a code was issued for a request without a valid code_challenge")


async def _visit_or_refused(
    probe: AuthServerProbe, client: ProbeClient, changes: dict[str, str | None]
) -> dict[str, str]:
    """Return the parameters of the callback, or none if the server shows an error. Raises `NotObserved` for a page."""
    parameters = probe.parameters(client, "v" * 43, "state") | changes
    answer = await probe.request("GET", probe.authorization_url(parameters))
    location = answer.headers.get("location", "")
    if answer.status >= 400:
        return {}
    if location.partition("?")[0] == client.redirect_uri:
        return dict(parse_qsl(urlsplit(location).query))
    return dict((await probe.visit(client, **changes)).parameters)


@auth_server_rule(
    "auth-server/error-response",
    "must",
    case="response_type=accord",
    at=("https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1", *_REDIRECTION),
    cause="An error page is shown, although the client and its redirect URI are known, or state is left out.",
)
async def auth_server_error_response(probe: AuthServerProbe) -> None:
    """An error for a known client comes in the callback, with the state and, if stated, iss."""
    client = await probe.client()
    found = await _visit_or_refused(probe, client, {"response_type": "accord", "state": "my state"})
    if not found:
        raise NotObserved("the server shows an error page")
    if "error" not in found or found.get("state") != "my state":
        raise probe.violation(f"the callback has {sorted(found)}, and state {found.get('state')!r}")
    if probe.metadata.get(_STATED) is True and found.get("iss") != probe.issuer:
        raise probe.violation(f"the error has iss {found.get('iss')!r}, expected {probe.issuer!r}")
