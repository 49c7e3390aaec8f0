"""Verdicts on logins that many rules share: the client logs in, or refuses to go on."""

from __future__ import annotations

from accord.check.clients.login_log import LoginLog, LoginRequest
from accord.check.clients.run import ClientRun
from accord.check.engine.rule import NotApplicable, NotObserved, Violation


def login_of(run: ClientRun) -> LoginLog:
    """Return the record of logins. Raises `NotApplicable` if the client does not try to log in."""
    login = run.login
    if login is None or not (login.challenges or login.requests):
        raise NotObserved("the client sent no request")
    if not login.requests:
        raise NotApplicable("the client does not log in")
    return login


def require_login(run: ClientRun) -> LoginLog:
    """Return the record of logins. Raises `Violation` if the client did not use the server with a token."""
    login = login_of(run)
    run.require_no_crash()
    if login.authorized:
        return login
    if login.at("registration") and not login.at("authorization"):
        raise NotObserved("no request came to the authorization endpoint: does the client open its URL?")
    raise Violation(f"the client did not log in: {last_step(login)}", evidence=login.lines())


def last_step(login: LoginLog) -> str:
    """Describe how far a login came."""
    for endpoint in ("token", "authorization", "registration", "metadata", "resource"):
        if found := login.at(endpoint):
            return f"its last request was {found[-1].exchange.verb} {found[-1].exchange.path} ({endpoint})"
    return f"its last request was {login.requests[-1].exchange.verb} {login.requests[-1].exchange.path}"


def forbid(requests: list[LoginRequest], text: str) -> None:
    """Raise `Violation` if there are such requests."""
    if requests:
        raise Violation(text, evidence=[each.line() for each in requests])
