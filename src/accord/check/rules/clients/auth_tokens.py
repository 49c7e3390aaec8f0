"""Authorization of a client: tokens that expire, rotate, are not issued, or would go to another origin."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from accord.check.clients.authorization_plan import ABSENT, AuthorizationPlan
from accord.check.clients.http_listener import ClientExchange, ScriptedResponse
from accord.check.clients.http_requests import is_first_use
from accord.check.clients.http_server import ScriptedHTTPServer
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.login_log import LoginRequest
from accord.check.clients.logins import login_of, require_login
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer
from accord.check.engine.rule import HTTP, JudgedItems, NotObserved, Violation
from accord.check.rules.clients.auth_discovery import auth_scenario
from accord.check.rules.clients.auth_requests import auth_rule

_REFRESH = ("basic/authorization#token-theft", "basic/authorization/index#refresh-tokens")
_HANDLING = ("basic/authorization#token-handling", "basic/authorization/index#token-handling")
_STREAM_SECONDS = 1.5
_ANSWER_SECONDS = 1.5
_PING = "check-while-waiting"

EXPIRED_SCENARIO = auth_scenario(
    "expired", "the first token expires early", AuthorizationPlan(short_tokens=1), "2025-03-26"
)
ROTATION_SCENARIO = auth_scenario(
    "rotation",
    "two tokens expire early; refresh tokens are valid once",
    AuthorizationPlan(short_tokens=2),
    "2025-03-26",
)
NO_REFRESH_SCENARIO = auth_scenario(
    "no-refresh-token",
    "no refresh token is issued, and the first access token expires early",
    AuthorizationPlan(short_tokens=1, tokens={"refresh_token": ABSENT}),
    "2025-03-26",
)


@EXPIRED_SCENARIO.rule(
    "client-auth/expired",
    "should",
    case="401 with invalid_token",
    at=_HANDLING,
    cause="A 401 after the login is an error like others.",
)
def client_auth_expired(run: ClientRun) -> None:
    """When its token has expired, a client gets another one and repeats the request."""
    login = require_login(run)
    expired = [each for each in login.challenges if "authorization" in each.headers]
    if not expired:
        raise NotObserved("the client sent too few requests")
    if not any(each.at > expired[0].at for each in login.authorized):
        raise Violation("the client did not get another token", evidence=[each.line() for each in expired])


NO_REFRESH_SCENARIO.case(client_auth_expired, "401 with invalid_token, and no refresh token")(client_auth_expired.check)


@EXPIRED_SCENARIO.rule(
    "client-auth/refresh",
    "should",
    case="401 with invalid_token, and a refresh token",
    at=_REFRESH,
    cause="A 401 begins a new authorization, with the user, although there is a refresh token.",
)
def client_auth_refresh(run: ClientRun) -> None:
    """A client with a refresh token renews its access token with it, before it asks the user again."""
    login = require_login(run)
    expired = [each for each in login.challenges if "authorization" in each.headers]
    if not expired:
        raise NotObserved("the client sent too few requests")
    begun = [each for each in login.at("authorization") if each.at > expired[0].at]
    refreshed = login.grants("refresh_token")
    if begun and not any(each.at < begun[0].at for each in refreshed):
        raise Violation("the client began a new authorization, with a refresh token", evidence=[begun[0].line()])
    if not refreshed:
        raise NotObserved("the client did not get another token")


@auth_rule(
    "client-auth/rotated-token",
    "must",
    case="all refreshes",
    at=_REFRESH,
    cause="The new refresh token is not stored, or two requests refresh at once.",
)
def client_auth_rotated_token(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client uses a refresh token once: it replaces it by that of the response."""
    for run in runs:
        used: dict[str, LoginRequest] = {}
        for each in run.login.grants("refresh_token") if run.login is not None else ():
            yield
            value = each.text("refresh_token")
            if value in used and used[value].exchange.status == 200:
                evidence = [used[value].line(), each.line()]
                raise Violation("a refresh token was used again, after the response had another", evidence=evidence)
            used[value] = each


@ROTATION_SCENARIO.rule(
    "client-auth/rotation",
    "should",
    case="the second token has expired, too",
    at=_REFRESH,
    cause="A token is refreshed only once in a session.",
)
def client_auth_rotation(run: ClientRun) -> None:
    """A client refreshes as often as its tokens expire."""
    login = require_login(run)
    expired = [each for each in login.challenges if "authorization" in each.headers]
    refreshed = login.grants("refresh_token")
    if not refreshed or len(expired) < _EXPIRED:
        raise NotObserved("the client did not refresh, or sent too few requests")
    if not any(each.at > expired[-1].at for each in login.authorized):
        raise Violation("the client did not get a third token", evidence=login.lines())


_EXPIRED = 2


@NO_REFRESH_SCENARIO.rule(
    "client-auth/no-refresh-token",
    "must",
    case="a token response without refresh_token",
    at="basic/authorization/index#refresh-tokens",
    since="2026-07-28",
    cause="refresh_token is required in the token response, or used without a look whether there is one.",
)
def client_auth_no_refresh_token(run: ClientRun) -> None:
    """A client works without a refresh token."""
    login = require_login(run)
    if any(not each.text("refresh_token") for each in login.grants("refresh_token")):
        raise Violation("the client sent a refresh without a refresh token", evidence=login.lines())
    run.require_progress()


REDIRECT_SCENARIO = auth_scenario(
    "server-redirect", "the MCP server redirects to another origin after the login", AuthorizationPlan(), "2025-03-26"
)


@REDIRECT_SCENARIO.on_http
async def serve_redirect(endpoint: ScriptedHTTPServer, exchange: ClientExchange, response: ScriptedResponse) -> bool:
    if "authorization" not in exchange.headers or not is_first_use(endpoint.server, exchange):
        return False
    await response.send(307, location=endpoint.server.trap_url)
    return True


@REDIRECT_SCENARIO.rule(
    "client-auth/server-redirect",
    "must",
    case="307 to another origin",
    at=_HANDLING,
    since="2025-06-18",
    cause="The HTTP library follows redirects, and keeps Authorization, or the client sets it for every request.",
)
def client_auth_server_redirect(run: ClientRun) -> None:
    """A client does not send its token to another origin to which the MCP server redirects."""
    require_login(run)
    for each in run.stray_requests:
        if "authorization" in each.headers:
            raise Violation("the token was sent to the other origin", evidence=[each.line()])


BUSY_SCENARIO = Scenario(
    "auth-busy",
    "a request of the server while a call has no response yet",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    authorization=AuthorizationPlan(),
)


@BUSY_SCENARIO.on("tools/call")
async def ping_while_waiting(request: IncomingRequest) -> ScriptedAnswer:
    """Send a ping on the stream of the session before the first byte of the response."""
    conversation = request.conversation
    if conversation.server.is_first_time(_PING):
        await _wait_for_stream(request)
        stream = conversation.background_channel
        if stream is not None:
            answer = await conversation.send_request("ping", None, stream, id=_PING, seconds=_ANSWER_SECONDS)
            conversation.server.state[_PING] = answer is not None
    return await request.default_result()


async def _wait_for_stream(request: IncomingRequest) -> None:
    """Wait until the client has opened the stream of its session, if it does."""
    for _ in range(int(_STREAM_SECONDS / 0.05)):
        if request.conversation.background_channel is not None:
            return
        await asyncio.sleep(0.05)


@BUSY_SCENARIO.rule(
    "client-auth/concurrent",
    "should",
    case="a ping while a call has no response yet",
    at=_HANDLING,
    cause="One lock is held from a request to its response: everything else waits for it.",
)
def client_auth_concurrent(run: ClientRun) -> None:
    """A client with a token sends other messages while a request waits for its response."""
    login_of(run)
    states = [each.server.state[_PING] for each in run.conversations if _PING in each.server.state]
    if not states:
        raise NotObserved("the client called no tool, or opened no stream for the session")
    if not states[0]:
        raise Violation(
            f"a ping was not answered within {_ANSWER_SECONDS} s while a call waited", evidence=run.evidence()
        )
