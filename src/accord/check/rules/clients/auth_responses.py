"""Authorization of a client: the checks of the authorization response, before its code is sent anywhere."""

from __future__ import annotations

from typing import Any

from accord.check.clients.authorization_plan import ABSENT, AuthorizationPlan
from accord.check.clients.login_log import FIRST, SECOND, LoginLog
from accord.check.clients.logins import forbid, login_of, require_login
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.engine.rule import NotObserved, Violation
from accord.check.rules.clients.auth_discovery import auth_scenario

_SINCE = "2026-07-28"
_VALIDATION = "basic/authorization/index#authorization-response-validation"
_REDIRECTION = (
    "basic/authorization#open-redirection",
    "basic/authorization/security-considerations#open-redirection",
)
_STATED = "authorization_response_iss_parameter_supported"
_MARK = "accord-check-error-of-another-issuer"


def _callback(name: str, says: str, since: str = _SINCE, **changes: Any) -> Scenario:
    """Return a scenario in which parameters of the callback are others."""
    return auth_scenario(name, says, AuthorizationPlan(callback=changes), since)


def _after_authorization(run: ClientRun) -> LoginLog:
    """Return the record of logins. Raises `NotObserved` if the client began no authorization."""
    login = login_of(run)
    run.require_no_crash()
    if not login.at("authorization"):
        raise NotObserved("the client began no authorization")
    return login


STATE_SCENARIO = _callback("state-changed", "a callback with another state", "2025-03-26", state="changed")
NO_STATE_SCENARIO = _callback("state-missing", "a callback without the state", "2025-03-26", state=ABSENT)
ISS_SCENARIO = _callback("iss-of-another", "a callback with the iss of another server", iss="{other}")
ISS_SLASH_SCENARIO = _callback("iss-slash", "a callback whose iss has a slash more", iss="{issuer}/")
ISS_MISSING_SCENARIO = _callback("iss-missing", "a callback without iss, which the metadata states", iss=ABSENT)
ISS_UNSTATED_SCENARIO = auth_scenario(
    "iss-unstated",
    "a callback with the iss of another server, from a server that does not state iss",
    AuthorizationPlan(metadata={_STATED: ABSENT}, callback={"iss": "{other}"}),
    _SINCE,
)
NO_ISS_SCENARIO = auth_scenario(
    "no-iss",
    "a callback without iss, which the metadata does not state",
    AuthorizationPlan(metadata={_STATED: ABSENT}, callback={"iss": ABSENT}),
    _SINCE,
)
ERROR_SCENARIO = _callback(
    "error-of-another",
    "an error with the iss of another server",
    code=ABSENT,
    error="access_denied",
    error_description=_MARK,
    iss="{other}",
)
DENIED_SCENARIO = _callback("denied", "the user refuses", "2025-03-26", code=ABSENT, error="access_denied")
MIX_UP_SCENARIO = auth_scenario(
    "mix-up",
    "a server whose authorization endpoint is that of another server",
    AuthorizationPlan(metadata={"authorization_endpoint": "{other}/authorize"}),
    _SINCE,
)


@STATE_SCENARIO.rule(
    "client-auth/state-verified",
    "should",
    case="another state",
    at=_REDIRECTION,
    cause="The state of the callback is not compared: a code of an attacker is redeemed for the user.",
)
def client_auth_state_verified(run: ClientRun) -> None:
    """A client does not redeem the code of a callback with another state, or without the state."""
    login = _after_authorization(run)
    if not any(each.text("state") for each in login.at("authorization")):
        raise NotObserved("the client sends no state")
    forbid(login.at("token"), "the client redeemed a code from a callback with a wrong state")


NO_STATE_SCENARIO.case(client_auth_state_verified, "no state")(client_auth_state_verified.check)


@ISS_SCENARIO.rule(
    "client-auth/iss",
    "must",
    case="iss of another server",
    at=_VALIDATION,
    cause="iss is not read: a code goes to the server of an attacker (mix-up).",
)
def client_auth_iss(run: ClientRun) -> None:
    """A client does not send the code of a callback whose iss is not the issuer that it began with."""
    forbid(_after_authorization(run).at("token"), "the client redeemed a code from a callback with a wrong iss")


ISS_UNSTATED_SCENARIO.case(client_auth_iss, "iss of another server, not stated")(client_auth_iss.check)


@ISS_SLASH_SCENARIO.rule(
    "client-auth/exact-iss",
    "must",
    case="a slash more",
    at=_VALIDATION,
    cause="iss is compared after normalization, or as a URL.",
)
def client_auth_exact_iss(run: ClientRun) -> None:
    """A client compares iss with the issuer byte for byte."""
    forbid(_after_authorization(run).at("token"), "the client redeemed a code although iss has a slash more")


@ISS_MISSING_SCENARIO.rule(
    "client-auth/iss-missing",
    "must",
    case="no iss, though stated",
    at=_VALIDATION,
    cause="iss is checked only where it is present: who attacks leaves it out.",
)
def client_auth_iss_missing(run: ClientRun) -> None:
    """A client does not redeem a code without iss if the authorization server states that it sends iss."""
    forbid(_after_authorization(run).at("token"), "the client redeemed a code from a callback without iss")


@NO_ISS_SCENARIO.rule(
    "client-auth/iss-optional",
    "must",
    case="no iss, not stated",
    at=_VALIDATION,
    cause="iss is required of every server.",
)
def client_auth_iss_optional(run: ClientRun) -> None:
    """A client accepts a callback without iss from an authorization server that does not state iss."""
    require_login(run)


@ERROR_SCENARIO.rule(
    "client-auth/iss-of-errors",
    "must",
    case="an error with the iss of another server",
    at=_VALIDATION,
    cause="The error is shown before iss is compared: an attacker writes to the user.",
)
def client_auth_iss_of_errors(run: ClientRun) -> None:
    """A client does not show the error of a callback whose iss is another one."""
    _after_authorization(run)
    if _MARK in run.output:
        raise Violation("the client showed the error_description of another issuer", evidence=run.output.splitlines())


@DENIED_SCENARIO.rule(
    "client-auth/denied",
    "should",
    case="access_denied",
    at=("basic/authorization#error-handling", "basic/authorization/index#error-handling"),
    cause="The client waits for a code that never comes, or sends a token request without one.",
)
def client_auth_denied(run: ClientRun) -> None:
    """A client goes on or ends with an error when the user refuses."""
    login = _after_authorization(run)
    forbid(login.at("token"), "the client sent a token request after the user had refused")
    run.require_progress(login.at("authorization")[0].at)


@MIX_UP_SCENARIO.rule(
    "client-auth/mix-up",
    "must",
    case="the authorization endpoint of another server",
    at=_VALIDATION,
    cause="The code is sent to the server that was chosen first, whoever issued it.",
)
def client_auth_mix_up(run: ClientRun) -> None:
    """A client does not send the code of one authorization server to another."""
    login = _after_authorization(run)
    if not login.at("authorization", SECOND):
        raise NotObserved("the client did not use the authorization endpoint")
    sent = [each for each in login.at("token", FIRST) if each.text("code") in login.codes]
    forbid(sent, "the client sent the code of the other server")
