"""Authorization of a client: metadata that it must not use, and endpoints to which it must not send anything."""

from __future__ import annotations

from typing import Any

from accord.check.clients.authorization_plan import ABSENT, AuthorizationPlan
from accord.check.clients.login_log import FIRST, LoginLog, LoginRequest
from accord.check.clients.logins import forbid, login_of
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.engine.rule import NotObserved, Violation
from accord.check.rules.clients.auth_discovery import auth_scenario

_CODE_PROTECTION = (
    "basic/authorization#authorization-code-protection",
    "basic/authorization/security-considerations#authorization-code-protection",
)
_COMMUNICATION = (
    "basic/authorization#communication-security",
    "basic/authorization/security-considerations#communication-security",
)
_DISCOVERY = (
    "basic/authorization#server-metadata-discovery",
    "basic/authorization#authorization-server-metadata-discovery",
    "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery",
)
_METHODS = "code_challenge_methods_supported"


def _metadata(name: str, says: str, since: str = "2025-06-18", **changes: Any) -> Scenario:
    """Return a scenario in which members of the authorization server metadata are others."""
    return auth_scenario(name, says, AuthorizationPlan(metadata=changes), since)


def _after_metadata(run: ClientRun, endpoint: str = "metadata") -> LoginLog:
    """Return the record of logins. Raises `NotObserved` if the client did not get this far."""
    login = login_of(run)
    run.require_no_crash()
    if not login.at(endpoint):
        raise NotObserved(f"the client did not request the {endpoint}")
    return login


def _use(login: LoginLog) -> list[LoginRequest]:
    """Return the requests that use the metadata of the authorization server."""
    return [*login.at("registration"), *login.at("authorization"), *login.at("token")]


NO_PKCE_SCENARIO = _metadata("no-pkce", f"metadata without {_METHODS}", "2025-11-25", **{_METHODS: ABSENT})
PLAIN_SCENARIO = _metadata("plain", "metadata with the PKCE method plain only", "2025-11-25", **{_METHODS: ["plain"]})
NO_PKCE_OIDC_SCENARIO = auth_scenario(
    "no-pkce-oidc",
    f"OpenID configuration without {_METHODS}",
    AuthorizationPlan(metadata_at=("oidc",), metadata={_METHODS: ABSENT}),
    "2025-11-25",
)


@NO_PKCE_SCENARIO.rule(
    "client-auth/pkce-stated",
    "must",
    case=f"no {_METHODS}",
    at=_CODE_PROTECTION,
    cause="The member is not read: the client takes PKCE for supported.",
)
def client_auth_pkce_stated(run: ClientRun) -> None:
    """A client does not send a user to an authorization server that does not state code_challenge_methods_supported."""
    forbid(_after_metadata(run).at("authorization"), "the client began an authorization without PKCE support")


NO_PKCE_OIDC_SCENARIO.case(client_auth_pkce_stated, f"OpenID configuration without {_METHODS}")(
    client_auth_pkce_stated.check
)


@PLAIN_SCENARIO.rule(
    "client-auth/no-plain",
    "must",
    case="only the method plain",
    at=_CODE_PROTECTION,
    cause="The client takes the first method that the server states.",
)
def client_auth_no_plain(run: ClientRun) -> None:
    """A client does not use the PKCE method plain."""
    begun = _after_metadata(run).at("authorization")
    forbid([each for each in begun if each.text("code_challenge_method") != "S256"], "the client used plain")


ISSUER_SCENARIO = _metadata("other-issuer", "metadata with the issuer of another server", issuer="{other}")
SLASH_SCENARIO = _metadata("issuer-slash", "metadata whose issuer has a slash more", "2026-07-28", issuer="{issuer}/")


@ISSUER_SCENARIO.rule(
    "client-auth/metadata-issuer",
    "must",
    case="the issuer of another server",
    at=_DISCOVERY,
    cause="The issuer in the metadata is not compared with that of the URL.",
)
def client_auth_metadata_issuer(run: ClientRun) -> None:
    """A client does not use metadata whose issuer is not the one that it asked."""
    forbid(_use(_after_metadata(run)), "the client used metadata with another issuer")


@SLASH_SCENARIO.rule(
    "client-auth/exact-issuer",
    "must",
    case="a slash more",
    at=_DISCOVERY,
    cause="Issuers are compared after normalization.",
)
def client_auth_exact_issuer(run: ClientRun) -> None:
    """A client compares the issuer of metadata byte for byte."""
    forbid(_use(_after_metadata(run)), "the client used metadata whose issuer has a slash more")


RESOURCE_SCENARIO = auth_scenario(
    "other-resource",
    "resource metadata of another server",
    AuthorizationPlan(resource={"resource": "{trap}/mcp"}),
)
SIBLING_SCENARIO = auth_scenario(
    "sibling-resource",
    "resource metadata of a server whose path begins alike",
    AuthorizationPlan(resource={"resource": "{origin}/mc"}),
)


@RESOURCE_SCENARIO.rule(
    "client-auth/metadata-resource",
    "must",
    case="the resource of another origin",
    at=("basic/authorization#overview", "basic/authorization/index#overview"),
    cause="resource is taken from the metadata without a comparison (RFC 9728, 3.3).",
)
def client_auth_metadata_resource(run: ClientRun) -> None:
    """A client does not use the metadata of another resource."""
    forbid(_after_metadata(run, "resource").at("authorization"), "the client used the metadata of another resource")


SIBLING_SCENARIO.case(client_auth_metadata_resource, "a path that begins alike")(client_auth_metadata_resource.check)


# --- unsafe URLs -----------------------------------------------------------------------------------------------------

TOKEN_SCENARIO = _metadata(
    "http-token", "a token_endpoint at http that is not loopback", token_endpoint="{unsafe}/token"
)
REGISTRATION_SCENARIO = _metadata(
    "http-registration",
    "a registration_endpoint at http that is not loopback",
    registration_endpoint="{unsafe}/register",
)
SERVER_SCENARIO = auth_scenario(
    "http-issuer",
    "an issuer at http that is not loopback",
    AuthorizationPlan(resource={"authorization_servers": ["{unsafe}"]}),
)
REDIRECT_SCENARIO = auth_scenario(
    "http-redirect",
    "metadata that redirects to http that is not loopback",
    AuthorizationPlan(redirects={"metadata": "{unsafe}/metadata"}),
)
CHALLENGE_SCENARIO = auth_scenario(
    "http-metadata",
    "resource_metadata at http that is not loopback",
    AuthorizationPlan(challenge='Bearer resource_metadata="{unsafe}/metadata"'),
)


def _require_no_stray(run: ClientRun) -> None:
    """Raise `Violation` if the client sent a request to the address that is not loopback."""
    found = [each for each in run.stray_requests if each.headers.get("host", "").startswith("0.0.0.0")]
    if found:
        raise Violation("the client sent a request to http://0.0.0.0", evidence=[each.line() for each in found])


@TOKEN_SCENARIO.rule(
    "client-auth/https-endpoints",
    "must",
    case="the token endpoint",
    at=_COMMUNICATION,
    cause="The URLs in metadata are used without a look at their scheme.",
)
def client_auth_https_endpoints(run: ClientRun) -> None:
    """A client sends nothing to endpoints of an authorization server that are neither https nor on loopback."""
    _after_metadata(run)
    _require_no_stray(run)


REGISTRATION_SCENARIO.case(client_auth_https_endpoints, "the registration endpoint")(client_auth_https_endpoints.check)


@SERVER_SCENARIO.case(client_auth_https_endpoints, "the issuer")
def client_auth_https_issuer(run: ClientRun) -> None:
    _after_metadata(run, "resource")
    _require_no_stray(run)


@CHALLENGE_SCENARIO.rule(
    "client-auth/safe-metadata",
    "should",
    case="resource_metadata",
    at=_COMMUNICATION,
    cause="Any URL of a peer is fetched: the server chooses to which hosts the client sends requests (SSRF).",
)
def client_auth_safe_metadata(run: ClientRun) -> None:
    """A client fetches no metadata from a URL that is neither https nor on loopback."""
    run.require_intervention()
    _require_no_stray(run)


@REDIRECT_SCENARIO.case(client_auth_safe_metadata, "a redirect")
def client_auth_safe_redirect(run: ClientRun) -> None:
    _after_metadata(run)
    _require_no_stray(run)


TOKEN_REDIRECT_SCENARIO = auth_scenario(
    "token-redirect",
    "a token endpoint that redirects to another origin",
    AuthorizationPlan(redirects={"token": "{trap}/token"}),
)


@TOKEN_REDIRECT_SCENARIO.rule(
    "client-auth/token-redirect",
    "must",
    case="307 of the token endpoint",
    at=_CODE_PROTECTION,
    since="2025-06-18",
    cause="The HTTP library follows redirects of a POST, with code and verifier.",
)
def client_auth_token_redirect(run: ClientRun) -> None:
    """A client does not send its code to another origin to which the token endpoint redirects."""
    login = login_of(run)
    if not login.at("token", FIRST):
        raise NotObserved("the client sent no token request")
    for each in run.stray_requests:
        if any(code in each.body.decode(errors="replace") + each.target for code in login.codes):
            raise Violation("the client sent its code to another origin", evidence=[each.line()])
