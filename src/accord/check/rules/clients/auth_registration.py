"""Authorization of a client: how it gets its client ID, and for which authorization server it uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from accord.auth.urls import is_loopback
from accord.check.clients.authorization_plan import ABSENT, AuthorizationPlan
from accord.check.clients.login_log import FIRST, SECOND, LoginLog, LoginRequest
from accord.check.clients.logins import forbid, login_of, require_login
from accord.check.clients.ordinary_scenario import GIVEN_CLIENT_ID, GIVEN_SECRET, LOGIN
from accord.check.clients.run import ClientRun
from accord.check.engine.rule import JudgedItems, NotObserved, Violation
from accord.check.rules.clients.auth_discovery import auth_scenario
from accord.check.rules.clients.auth_requests import auth_rule

_NATIVE = "2026-07-28"
_DOCUMENTS = "2025-11-25"
_DCR = (
    "basic/authorization#dynamic-client-registration",
    "basic/authorization/client-registration#dynamic-client-registration",
)
_CIMD = (
    "basic/authorization#client-id-metadata-documents",
    "basic/authorization/client-registration#client-id-metadata-documents",
)
_TYPES = "basic/authorization/client-registration#application-type-and-redirect-uri-constraints"
_BINDING = "basic/authorization/client-registration#authorization-server-binding"

_STATES_DOCUMENTS = {"client_id_metadata_document_supported": True}
DOCUMENT_SCENARIO = auth_scenario(
    "metadata-document",
    "an authorization server that supports client ID metadata documents, and registration",
    AuthorizationPlan(metadata=_STATES_DOCUMENTS),
    _DOCUMENTS,
)
REFUSED_SCENARIO = auth_scenario(
    "registration-refused",
    "registration is refused because of the redirect URI",
    AuthorizationPlan(refusals={"registration": "invalid_redirect_uri"}),
)
GIVEN_SCENARIO = auth_scenario(
    "given-client-id",
    "an authorization server that registers no clients; ACCORD_CHECK_CLIENT_ID is a client ID",
    AuthorizationPlan(metadata={"registration_endpoint": ABSENT}, client_id=GIVEN_CLIENT_ID),
    _DOCUMENTS,
)
CREDENTIALS_SCENARIO = auth_scenario(
    "client-credentials",
    "a server for programs; ACCORD_CHECK_CLIENT_ID and ACCORD_CHECK_CLIENT_SECRET are credentials",
    AuthorizationPlan(
        metadata={
            "authorization_endpoint": ABSENT,
            "registration_endpoint": ABSENT,
            "response_types_supported": [],
            "grant_types_supported": ["client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        },
        client_id=GIVEN_CLIENT_ID,
        client_secret=GIVEN_SECRET,
    ),
    _NATIVE,
)
MOVED_SCENARIO = auth_scenario(
    "issuer-changed",
    "the server names another authorization server once the first token has expired",
    AuthorizationPlan(
        short_tokens=1,
        successor=AuthorizationPlan(
            resource={"authorization_servers": ["{other}"]}, refusals={"token": "invalid_grant"}
        ),
    ),
)


def _registrations(runs: Sequence[ClientRun]) -> Iterator[tuple[LoginLog, LoginRequest]]:
    for run in runs:
        if run.login is not None:
            yield from ((run.login, each) for each in run.login.at("registration"))


def _violation(text: str, *requests: LoginRequest) -> Violation:
    return Violation(text, evidence=[each.line() for each in requests])


@auth_rule(
    "client-auth/registration",
    "should",
    case="all registrations",
    at=_DCR,
    cause="The metadata is a form, or has no redirect_uris.",
)
def client_auth_registration(runs: Sequence[ClientRun]) -> JudgedItems:
    """A registration is a POST of a JSON object with redirect_uris (RFC 7591)."""
    for _, each in _registrations(runs):
        yield
        uris = each.parameters.get("redirect_uris")
        kind = each.exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
        if each.exchange.verb != "POST" or kind != "application/json" or not isinstance(uris, list) or not uris:
            raise _violation("a registration is no JSON object with redirect_uris", each)


@auth_rule(
    "client-auth/application-type",
    "must",
    case="all registrations",
    at=_TYPES,
    since=_NATIVE,
    cause="application_type is left out, which means web: a server may refuse redirect URIs on loopback.",
)
def client_auth_application_type(runs: Sequence[ClientRun]) -> JudgedItems:
    """A registration has an application_type."""
    for _, each in _registrations(runs):
        yield
        if each.text("application_type") not in ("native", "web"):
            raise _violation(f"application_type is {each.parameters.get('application_type')!r}", each)


@auth_rule(
    "client-auth/native",
    "should",
    case="all registrations with redirect URIs on loopback",
    at=_TYPES,
    since=_NATIVE,
    cause="application_type is web for a program on the user's machine.",
)
def client_auth_native(runs: Sequence[ClientRun]) -> JudgedItems:
    """The application_type fits: native with redirect URIs on loopback, web with others."""
    for _, each in _registrations(runs):
        uris = each.parameters.get("redirect_uris")
        hosts = [urlsplit(str(uri)).hostname or "" for uri in uris] if isinstance(uris, list) else []
        found = each.text("application_type")
        if hosts and found:
            yield
            expected = "native" if all(is_loopback(host) for host in hosts) else "web"
            if found != expected and (expected == "native" or all(not is_loopback(host) for host in hosts)):
                raise _violation(f"application_type is {found!r} with redirect URIs at {hosts}", each)


@auth_rule(
    "client-auth/refresh-grant",
    "should",
    case="all registrations of clients that refresh tokens",
    at="basic/authorization/index#refresh-tokens",
    since=_NATIVE,
    cause="grant_types has authorization_code only.",
)
def client_auth_refresh_grant(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client that refreshes tokens has registered the grant type refresh_token."""
    refreshes = any(run.login is not None and run.login.grants("refresh_token") for run in runs)
    for _, each in _registrations(runs):
        if refreshes:
            yield
            grants = each.parameters.get("grant_types")
            if not isinstance(grants, list) or "refresh_token" not in grants:
                raise _violation(f"the client refreshes tokens, but registered grant_types {grants}", each)


@auth_rule(
    "client-auth/client-id",
    "must",
    case="all authorization requests",
    at=("basic/authorization#client-registration-approaches", "basic/authorization/index#client-registration"),
    since="2025-06-18",
    cause="The client has an ID of its own making.",
)
def client_auth_client_id(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client ID was registered, given, or is the URL of a metadata document."""
    for run in runs:
        for each in run.login.at("authorization") if run.login is not None else ():
            yield
            is_known = run.login is not None and each.client_id in run.login.clients
            if not is_known and each.client_id != GIVEN_CLIENT_ID and "://" not in each.client_id:
                raise _violation(f"the client ID {each.client_id!r} was not registered", each)


@auth_rule(
    "client-auth/document-url",
    "must",
    case="all client IDs that are URLs",
    at=_CIMD,
    since=_DOCUMENTS,
    cause="The metadata document is at http, or at the root of a host.",
)
def client_auth_document_url(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client ID that is a URL is https, and has a path."""
    for run in runs:
        for each in run.login.at("authorization") if run.login is not None else ():
            if "://" in each.client_id:
                yield
                parts = urlsplit(each.client_id)
                if parts.scheme != "https" or not parts.path.strip("/") or parts.fragment:
                    raise _violation(f"the client ID is {each.client_id!r}", each)


@LOGIN.rule(
    "client-auth/document-stated",
    "should",
    case="a server that does not state support",
    at=_CIMD,
    since=_DOCUMENTS,
    cause="client_id_metadata_document_supported is not read.",
)
def client_auth_document_stated(run: ClientRun) -> None:
    """A client uses a metadata document only where the authorization server states that it supports them."""
    begun = login_of(run).at("authorization")
    if not begun:
        raise NotObserved("the client began no authorization")
    forbid(
        [each for each in begun if "://" in each.client_id], "the client ID is a URL, which the server does not state"
    )


@DOCUMENT_SCENARIO.rule(
    "client-auth/document-first",
    "should",
    case="a server with both",
    at=_CIMD,
    cause="The client registers before it looks at client_id_metadata_document_supported.",
)
def client_auth_document_first(run: ClientRun) -> None:
    """A client with a metadata document does not register where the authorization server supports documents."""
    login = require_login(run)
    if not any("://" in each.client_id for each in login.at("authorization")):
        raise NotObserved("the client has no metadata document")
    forbid(login.at("registration"), "the client registered, and has a metadata document")


@REFUSED_SCENARIO.rule(
    "client-auth/registration-refused",
    "must",
    case="400 with invalid_redirect_uri",
    at=_TYPES,
    since=_NATIVE,
    cause="The error is not read: the client goes on without a client ID, or waits.",
)
def client_auth_registration_refused(run: ClientRun) -> None:
    """A client whose registration is refused ends with an error, or goes on with another client ID."""
    login = login_of(run)
    refused = login.at("registration")
    if not refused:
        raise NotObserved("the client did not register")
    begun = [each for each in login.at("authorization") if "://" not in each.client_id]
    forbid(begun, "the client began an authorization after its registration was refused")
    if len(refused) > _ATTEMPTS:
        raise Violation(f"the client tried to register {len(refused)} times", evidence=login.lines(refused))
    run.require_progress()


_ATTEMPTS = 20
"""A client may try again for each of its operations."""


@GIVEN_SCENARIO.rule(
    "client-auth/given-client-id",
    "should",
    case="a server without registration",
    at=("basic/authorization#preregistration", "basic/authorization/client-registration#pre-registration"),
    cause="The client has no option for a client ID, and makes one up.",
)
def client_auth_given_client_id(run: ClientRun) -> None:
    """Where a server registers no clients, a client uses the client ID that it was given, or none."""
    begun = login_of(run).at("authorization")
    if not begun:
        raise NotObserved("the client did not use ACCORD_CHECK_CLIENT_ID")
    forbid([each for each in begun if each.client_id != GIVEN_CLIENT_ID], "the client used another client ID")


@CREDENTIALS_SCENARIO.rule(
    "client-auth/client-credentials",
    "must",
    case="a client ID and a secret in the environment",
    at="https://github.com/modelcontextprotocol/ext-auth",
    cause="The client ID is sent without the secret, or with a secret in the URL.",
)
def client_auth_client_credentials(run: ClientRun) -> None:
    """A client with client credentials authenticates by its secret, or by a JSON Web Token."""
    requests = login_of(run).grants("client_credentials")
    if not requests:
        raise NotObserved("the client did not use ACCORD_CHECK_CLIENT_SECRET")
    for each in requests:
        shown = each.text("client_secret") == GIVEN_SECRET or each.text("client_assertion")
        if not shown and not each.exchange.headers.get("authorization", "").lower().startswith("basic "):
            raise _violation("a request with client credentials has no proof of identity", each)


@MOVED_SCENARIO.rule(
    "client-auth/credentials-by-issuer",
    "must",
    case="another issuer in the metadata of the resource",
    at=_BINDING,
    since=_NATIVE,
    cause="Credentials are stored by the URL of the MCP server, without their issuer.",
)
def client_auth_credentials_by_issuer(run: ClientRun) -> None:
    """A client does not use credentials of one authorization server at another: it registers there."""
    login = require_login(run)
    moved = [each for each in login.requests if each.server == SECOND and each.endpoint in ("authorization", "token")]
    if not moved:
        raise NotObserved("the client did not log in at the other authorization server")
    foreign = {client_id for client_id, (server, _) in login.clients.items() if server == FIRST}
    forbid([each for each in moved if each.client_id in foreign], "the client used its client ID of another server")
