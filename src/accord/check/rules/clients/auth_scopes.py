"""Authorization of a client: the scopes that it requests, at first and after `insufficient_scope`."""

from __future__ import annotations

from accord.check.clients.authorization_plan import ABSENT, RESOURCE_AT_PATH, AuthorizationPlan
from accord.check.clients.login_log import LoginLog, LoginRequest
from accord.check.clients.logins import forbid, require_login
from accord.check.clients.ordinary_scenario import LOGIN
from accord.check.clients.run import ClientRun
from accord.check.engine.rule import NotObserved, Violation
from accord.check.rules.clients.auth_discovery import auth_scenario

_SINCE = "2025-11-25"
_UNION = "2026-07-28"
_SELECTION = (
    "basic/authorization#scope-selection-strategy",
    "basic/authorization/index#scope-selection-strategy",
)
_STEP_UP = ("basic/authorization#step-up-authorization-flow", "basic/authorization/index#step-up-authorization-flow")
_FURTHER = frozenset(("offline_access", "openid"))
"""Scopes about the tokens and the user, which a client may add."""
_WITHOUT_SCOPE = 'Bearer resource_metadata="{origin}' + RESOURCE_AT_PATH + '"'
_MOST = 12
"""Authorizations after 403: more than two for each tool of the server are a loop."""

METADATA_SCENARIO = auth_scenario(
    "metadata-scopes", "a challenge without scope", AuthorizationPlan(challenge=_WITHOUT_SCOPE), _SINCE
)
NO_SCOPES_SCENARIO = auth_scenario(
    "no-scopes",
    "neither the challenge nor metadata has scopes",
    AuthorizationPlan(
        challenge=_WITHOUT_SCOPE, resource={"scopes_supported": ABSENT}, metadata={"scopes_supported": ABSENT}
    ),
    _SINCE,
)
STEP_UP_SCENARIO = auth_scenario(
    "step-up", "calls of tools need a further scope", AuthorizationPlan(scopes={"tools/call": "write"}), _SINCE
)
NEVER_SCENARIO = auth_scenario(
    "never-enough",
    "calls of tools are always refused because of their scope",
    AuthorizationPlan(scopes={"tools/call": "write"}, scopes_suffice=False),
    _SINCE,
)


def _scopes(request: LoginRequest) -> set[str]:
    return set(request.text("scope").split())


def _first(run: ClientRun) -> LoginRequest:
    """Return the first authorization request."""
    return require_login(run).at("authorization")[0]


@LOGIN.rule(
    "client-auth/challenge-scopes",
    "must",
    case="a challenge with a scope",
    at=_SELECTION,
    since=_SINCE,
    cause="The scope of the challenge is not read, or only what the metadata has is requested.",
)
def client_auth_challenge_scopes(run: ClientRun) -> None:
    """A client requests the scopes of the challenge."""
    begun = _first(run)
    if "read" not in _scopes(begun):
        raise Violation(f"the challenge has read, the request {begun.text('scope')!r}", evidence=[begun.line()])


@LOGIN.rule(
    "client-auth/least-scopes",
    "should",
    case="a challenge with fewer scopes than the metadata",
    at=_SELECTION,
    since=_SINCE,
    cause="All scopes of the metadata are requested.",
)
def client_auth_least_scopes(run: ClientRun) -> None:
    """A client requests no other scopes than those of the challenge."""
    begun = _first(run)
    if more := _scopes(begun) - _FURTHER - {"read"}:
        text = f"the challenge has read, and the client requested {' '.join(sorted(more))} as well"
        raise Violation(text, evidence=[begun.line()])


@METADATA_SCENARIO.rule(
    "client-auth/metadata-scopes",
    "should",
    case="a challenge without scope",
    at=_SELECTION,
    cause="scopes_supported is taken from the metadata of the authorization server, or not read.",
)
def client_auth_metadata_scopes(run: ClientRun) -> None:
    """Without a scope in the challenge, a client requests scopes_supported of the resource."""
    begun = _first(run)
    if _scopes(begun) - _FURTHER != {"read", "write"}:
        text = f"the resource has the scopes read and write, the request {begun.text('scope')!r}"
        raise Violation(text, evidence=[begun.line()])


@NO_SCOPES_SCENARIO.rule(
    "client-auth/no-scopes",
    "should",
    case="no scopes anywhere",
    at=_SELECTION,
    cause="The client has scopes of its own.",
)
def client_auth_no_scopes(run: ClientRun) -> None:
    """Without scopes in challenge and metadata, a client requests none."""
    begun = _first(run)
    if _scopes(begun) - {"openid"}:
        raise Violation(f"the client requested {begun.text('scope')!r}", evidence=[begun.line()])


def _stepped_up(run: ClientRun) -> tuple[LoginLog, list[LoginRequest]]:
    """Return the authorization requests after the first 403. Raises `NotObserved` without one."""
    login = require_login(run)
    refused = [each for each in login.challenges if each.status == 403]
    if not refused:
        raise NotObserved("the client called no tool")
    return login, [each for each in login.at("authorization") if each.at > refused[0].at]


@STEP_UP_SCENARIO.rule(
    "client-auth/step-up",
    "should",
    case="403 with insufficient_scope",
    at=_STEP_UP,
    cause="403 is an error like others: nobody reads its challenge.",
)
def client_auth_step_up(run: ClientRun) -> None:
    """After insufficient_scope, a client requests a token with the scope that is missing."""
    login, again = _stepped_up(run)
    if not any("write" in _scopes(each) for each in again):
        raise Violation("the client did not request the missing scope write", evidence=login.lines())


@STEP_UP_SCENARIO.rule(
    "client-auth/scope-union",
    "should",
    case="the authorization after insufficient_scope",
    at=_STEP_UP,
    since=_UNION,
    cause="Only the scopes of the last challenge are requested: what was granted before is lost.",
)
def client_auth_scope_union(run: ClientRun) -> None:
    """After insufficient_scope, a client requests the scopes that it had as well."""
    _, again = _stepped_up(run)
    if not again:
        raise NotObserved("the client did not authorize again")
    forbid([each for each in again if "read" not in _scopes(each)], "the client dropped the scope read")


@NEVER_SCENARIO.rule(
    "client-auth/step-up-limit",
    "should",
    case="a scope that never suffices",
    at=_STEP_UP,
    cause="The client authorizes again after each 403, although it has the scope already.",
)
def client_auth_step_up_limit(run: ClientRun) -> None:
    """A client does not authorize again and again when the scope never suffices."""
    login, again = _stepped_up(run)
    if len(again) > _MOST:
        raise Violation(f"the client authorized {len(again)} times after 403", evidence=login.lines(again))
