"""Authorization of a client: how it finds the metadata of the resource and of the authorization server."""

from __future__ import annotations

from collections.abc import Sequence

from accord.auth.urls import OPENID_CONFIGURATION, SERVER_METADATA
from accord.check.clients.authorization_plan import (
    RESOURCE_AT_PATH,
    RESOURCE_AT_ROOT,
    AuthorizationPlan,
    MetadataPlace,
)
from accord.check.clients.login_log import FIRST, LoginLog
from accord.check.clients.logins import login_of, require_login
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.engine.rule import HTTP, Violation

_OIDC = "2025-11-25"
_RESOURCES = "2025-06-18"
_RESOURCE_SECTIONS = (
    "basic/authorization#protected-resource-metadata-discovery-requirements",
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
)
_SERVER_SECTIONS = (
    "basic/authorization#authorization-server-metadata-discovery",
    "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery",
)
_TENANT = "/tenant1"


def auth_scenario(
    name: str, says: str, plan: AuthorizationPlan, since: str = _RESOURCES, until: str | None = None
) -> Scenario:
    """Return a scenario over HTTP in which the server demands access tokens."""
    return Scenario(f"auth-{name}", says, since=since, until=until, over=HTTP, authorization=plan)


# --- the metadata of the resource ------------------------------------------------------------------------------------

PATH_SCENARIO = auth_scenario(
    "well-known-path",
    "a challenge without resource_metadata, and metadata at the well-known URI of the path",
    AuthorizationPlan(challenge="Bearer"),
    _OIDC,
)
ROOT_SCENARIO = auth_scenario(
    "well-known-root",
    "a challenge without resource_metadata, and metadata at the well-known URI of the root",
    AuthorizationPlan(challenge="Bearer", resource_at=(RESOURCE_AT_ROOT,)),
    _OIDC,
)
NAMED_SCENARIO = auth_scenario(
    "named-metadata",
    "a challenge whose resource_metadata is at a URL of its own",
    AuthorizationPlan(
        challenge='Bearer resource_metadata="{origin}/metadata/of/mcp.json", scope="read"',
        resource_at=("/metadata/of/mcp.json",),
    ),
)
CHALLENGES_SCENARIO = auth_scenario(
    "challenges",
    "two challenges in one header, with commas in quotes",
    AuthorizationPlan(
        challenge='Basic realm="a, \\"b\\"", bearer realm="x, y", scope="read", '
        'resource_metadata="{origin}/metadata/of/mcp.json"',
        resource_at=("/metadata/of/mcp.json",),
    ),
)


@PATH_SCENARIO.rule(
    "client-auth/well-known-path",
    "must",
    case="a challenge without resource_metadata",
    at=_RESOURCE_SECTIONS,
    cause="The client needs resource_metadata in the challenge, or asks only at the root.",
)
def client_auth_well_known_path(run: ClientRun) -> None:
    """Without resource_metadata, a client finds the metadata at the well-known URI of the server's path."""
    require_login(run)


@ROOT_SCENARIO.rule(
    "client-auth/well-known-root",
    "must",
    case="metadata only at the root",
    at=_RESOURCE_SECTIONS,
    cause="The client asks at one well-known URI only, or at the root first.",
)
def client_auth_well_known_root(run: ClientRun) -> None:
    """A client asks at the well-known URI of the path, then at that of the root."""
    paths = _paths(require_login(run), "resource")
    expected = [RESOURCE_AT_PATH, RESOURCE_AT_ROOT]
    _require_order(paths, expected)


@NAMED_SCENARIO.rule(
    "client-auth/named-metadata",
    "must",
    case="resource_metadata at another path",
    at=_RESOURCE_SECTIONS,
    cause="The client builds the URL itself, and ignores that of the challenge.",
)
def client_auth_named_metadata(run: ClientRun) -> None:
    """A client takes the metadata of the resource from the URL in the challenge."""
    require_login(run)


@CHALLENGES_SCENARIO.rule(
    "client-auth/challenges",
    "must",
    case="Basic and bearer in one header",
    at=_RESOURCE_SECTIONS,
    cause="The header is split at commas, or has to begin with Bearer.",
)
def client_auth_challenges(run: ClientRun) -> None:
    """A client parses WWW-Authenticate: several challenges, schemes in any case, commas within quotes."""
    require_login(run)


def _paths(login: LoginLog, endpoint: str) -> list[str]:
    return list(dict.fromkeys(each.exchange.path for each in login.at(endpoint)))


def _require_order(found: Sequence[str], expected: Sequence[str]) -> None:
    """Raise `Violation` unless the expected paths are there, in their order."""
    relevant = [path for path in found if path in expected]
    if relevant != list(expected):
        raise Violation(
            f"the client asked at {', '.join(found) or 'none'}, expected {', '.join(expected)} in this order",
            evidence=[f"# GET {path}" for path in found],
        )


# --- the metadata of the authorization server ------------------------------------------------------------------------


def _places(name: str, says: str, place: MetadataPlace, path: str, since: str = _OIDC) -> Scenario:
    return auth_scenario(name, says, AuthorizationPlan(issuer_path=path, metadata_at=(place,)), since)


TENANT_SCENARIO = _places("tenant", "an issuer with a path, and metadata of OAuth", "oauth", _TENANT, _RESOURCES)
OIDC_ROOT_SCENARIO = _places("oidc-root", "an issuer without a path, and OpenID configuration", "oidc", "")
OIDC_TENANT_SCENARIO = _places("oidc-inserted", "OpenID configuration before the issuer's path", "oidc", _TENANT)
OIDC_APPENDED_SCENARIO = _places("oidc-appended", "OpenID configuration behind the issuer's path", "appended", _TENANT)


@TENANT_SCENARIO.rule(
    "client-auth/issuer-path",
    "must",
    case="metadata of OAuth 2.0 for an issuer with a path",
    at=("basic/authorization#server-metadata-discovery", *_SERVER_SECTIONS),
    cause="The path of the issuer is dropped, or the well-known URI is appended to it.",
)
def client_auth_issuer_path(run: ClientRun) -> None:
    """The well-known URI of an issuer with a path has the path at its end."""
    require_login(run)


@OIDC_ROOT_SCENARIO.rule(
    "client-auth/oidc",
    "must",
    case="an issuer without a path",
    at=_SERVER_SECTIONS,
    cause="The client knows only the metadata of RFC 8414, or stops at a 404.",
)
def client_auth_oidc(run: ClientRun) -> None:
    """A client finds the OpenID configuration of an issuer without a path, after the metadata of OAuth."""
    _require_order(_paths(require_login(run), "metadata"), [SERVER_METADATA, OPENID_CONFIGURATION])


@OIDC_TENANT_SCENARIO.rule(
    "client-auth/oidc-inserted",
    "must",
    case="an issuer with a path",
    at=_SERVER_SECTIONS,
    cause="The client only appends /.well-known/openid-configuration.",
)
def client_auth_oidc_inserted(run: ClientRun) -> None:
    """A client finds OpenID configuration with the issuer's path behind the well-known URI, after that of OAuth."""
    expected = [SERVER_METADATA + _TENANT, OPENID_CONFIGURATION + _TENANT]
    _require_order(_paths(require_login(run), "metadata"), expected)


@OIDC_APPENDED_SCENARIO.rule(
    "client-auth/oidc-appended",
    "must",
    case="an issuer with a path",
    at=_SERVER_SECTIONS,
    cause="The third well-known URI is missing, or the order is another one.",
)
def client_auth_oidc_appended(run: ClientRun) -> None:
    """A client tries the three well-known URIs of an issuer with a path in their order."""
    expected = [SERVER_METADATA + _TENANT, OPENID_CONFIGURATION + _TENANT, _TENANT + OPENID_CONFIGURATION]
    _require_order(_paths(require_login(run), "metadata"), expected)


# --- servers of 2025-03-26 -------------------------------------------------------------------------------------------

OLD_METADATA_SCENARIO = auth_scenario(
    "old-metadata",
    "a server that is its own authorization server, with metadata at its origin",
    AuthorizationPlan(challenge="Bearer", resource_at=(), at_origin=True),
    "2025-03-26",
    _RESOURCES,
)
OLD_PATHS_SCENARIO = auth_scenario(
    "old-paths",
    "a server that is its own authorization server, without metadata",
    AuthorizationPlan(challenge="Bearer", resource_at=(), at_origin=True, metadata_at=()),
    "2025-03-26",
    _RESOURCES,
)


@OLD_METADATA_SCENARIO.rule(
    "client-auth/metadata-at-origin",
    "must",
    case="metadata at the origin of the server",
    at="basic/authorization#authorization-base-url",
    cause="The client needs the metadata of a resource, which this revision does not have.",
)
def client_auth_metadata_at_origin(run: ClientRun) -> None:
    """A client finds the metadata at the origin of the server, without its path."""
    require_login(run)


@OLD_METADATA_SCENARIO.rule(
    "client-auth/metadata-version",
    "should",
    case="metadata at the origin of the server",
    at="basic/authorization#server-metadata-discovery-headers",
    cause="The request for metadata has none of the headers of messages.",
)
def client_auth_metadata_version(run: ClientRun) -> None:
    """The request for metadata has MCP-Protocol-Version."""
    asked = require_login(run).at("metadata", FIRST)
    if "mcp-protocol-version" not in asked[0].exchange.headers:
        raise Violation("the request for metadata has no MCP-Protocol-Version", evidence=[asked[0].exchange.line()])


@OLD_PATHS_SCENARIO.rule(
    "client-auth/default-paths",
    "must",
    case="no metadata",
    at="basic/authorization#fallbacks-for-servers-without-metadata-discovery",
    cause="The client needs metadata, or takes the default paths without having asked for it.",
)
def client_auth_default_paths(run: ClientRun) -> None:
    """Without metadata, a client uses /authorize, /token and /register of the origin, after it asked for metadata."""
    login = require_login(run)
    asked = [each for each in login_of(run).at("metadata", FIRST) if each.exchange.path == SERVER_METADATA]
    begun = login.at("authorization")
    if not asked or asked[0].at > begun[0].at:
        raise Violation("the client did not ask for metadata first", evidence=login.lines())
