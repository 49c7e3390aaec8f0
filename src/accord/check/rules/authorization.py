"""Authorization: how a server refuses requests without a valid token."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial

from accord.check.engine.rule import HTTP, CaseVariant, NotApplicable, NotObserved, RuleFamily, Violation, rule
from accord.check.probes.access import (
    UNAUTHORIZED,
    Access,
    AccessRequest,
    challenges,
    describe,
    evidence,
    is_accepted,
)
from accord.check.probes.message_log import LoggedResponse

SINCE = "2025-03-26"
TOKEN_HANDLING = "basic/authorization#token-handling"
ERRORS = "basic/authorization#error-handling"
SUBJECT = "accord-check-1"
"""The principal of tokens that the checker issues or forges."""
_NO_METHOD = (404, 405, 501)
"""Statuses of a method, such as GET, that the server does not have."""

access_rule: RuleFamily = partial(rule, over=HTTP, kind="access")
"""`rule` for a function of an `Access`."""


def require_unauthorized(response: LoggedResponse, request: AccessRequest, what: str) -> None:
    """Raise `Violation` unless a request got status 401, or a method status that says that the server has no GET or
    DELETE.
    """
    if response.status == UNAUTHORIZED or (request.message is None and response.status in _NO_METHOD):
        return
    if not response.status:
        raise NotObserved(f"{request.name} got no response: {response.error}")
    kind = "was accepted" if is_accepted(response) else "did not get status 401"
    raise Violation(
        f"{request.name} with {what} {kind}: {describe(response)}",
        symptom="" if is_accepted(response) else "authorization/unauthorized",
        evidence=evidence(response),
    )


async def require_refusal_everywhere(access: Access, what: str, token: str) -> None:
    """Raise `Violation` unless each method and route refuses a token with status 401 and a challenge."""
    await access.refusal()
    for request in access.requests():
        response = await access.send(request, token=token)
        require_unauthorized(response, request, what)
        if response.status == UNAUTHORIZED and not challenges(response):
            raise Violation(
                f"{request.name} with {what} got status 401 without a challenge",
                symptom="authorization/challenge",
                evidence=evidence(response),
            )


@access_rule(
    "authorization/unauthorized",
    "must",
    case="the first request, without a token",
    at=(ERRORS, TOKEN_HANDLING),
    since=SINCE,
    cause="The server answers with another status: a client learns from 401 only that it needs a token.",
)
async def authorization_unauthorized(access: Access) -> None:
    """A request without a token gets status 401 if the server requires authorization."""
    response = await access.refusal()
    if response.status != UNAUTHORIZED:
        raise Violation(f"a request without a token got {describe(response)}", evidence=evidence(response))


@access_rule(
    "authorization/every-request",
    "must",
    case="all methods and routes, without a token",
    at=(TOKEN_HANDLING, "basic/authorization#token-requirements"),
    since=SINCE,
    cause="Only some routes check the token, or only the request that opens the session.",
)
async def authorization_every_request(access: Access) -> None:
    """Each HTTP request needs a token, also in a session that was opened with one."""
    await access.refusal()
    for request in access.requests()[1:]:
        require_unauthorized(await access.send(request), request, "no token")


_BAD_TOKENS = [
    CaseVariant("a random token", authorization=f"Bearer accord-check-{secrets.token_hex(16)}"),
    CaseVariant("no token after the scheme", authorization="Bearer"),
    CaseVariant("the scheme Basic", authorization="Basic YWNjb3JkOmNoZWNr"),
    CaseVariant("two tokens", authorization="Bearer accord-check accord-check"),
]


@access_rule(
    "authorization/invalid-token",
    "must",
    variants=_BAD_TOKENS,
    at=(TOKEN_HANDLING, ERRORS),
    since=SINCE,
    cause="The server checks only that the header is there, or an exception of its verification ends as 500.",
)
async def authorization_invalid_token(access: Access, authorization: str) -> None:
    """An invalid token gets status 401; a malformed header 400 or 401."""
    await access.refusal()
    malformed = not authorization.startswith("Bearer accord-check-")
    for request in access.requests():
        response = await access.send(request, authorization=authorization)
        if not (malformed and response.status == 400):
            require_unauthorized(response, request, f"Authorization: {authorization}")


@access_rule(
    "authorization/challenge",
    "must",
    case="all responses with status 401",
    at=("basic/authorization#token-handling", "basic/authorization#authorization-server-location"),
    since=SINCE,
    cause="A client finds the authorization server by the challenge. RFC 9110: a response with status 401 MUST have "
    "WWW-Authenticate.",
)
async def authorization_challenge(access: Access) -> None:
    """Each response with status 401 has WWW-Authenticate with a challenge."""
    await access.refusal()
    for response in refused(access, UNAUTHORIZED):
        sent = response.headers.get("www-authenticate")
        if sent is None:
            raise Violation("status 401 has no WWW-Authenticate", evidence=evidence(response))
        if not challenges(response):
            raise Violation(f"WWW-Authenticate cannot be parsed: {sent[:200]!r}", evidence=evidence(response))


def refused(access: Access, status: int) -> Iterator[LoggedResponse]:
    """Yield the responses of the visit with this status. Raises `NotObserved` if there are none."""
    found = [each for each in access.responses() if each.status == status]
    if not found:
        raise NotObserved(f"no response had status {status}")
    yield from found


@access_rule(
    "authorization/error-code",
    "should",
    case="no token",
    at=TOKEN_HANDLING,
    since=SINCE,
    cause="RFC 6750, 3.1: a challenge to a request without a token SHOULD NOT have an error code, and one to an "
    "invalid token has invalid_token. Clients decide by it whether to refresh a token.",
)
async def authorization_error_code(access: Access) -> None:
    """The challenge to an invalid token has the error `invalid_token`, and one to no token has no error."""
    challenge = await access.challenge()
    if challenge.error is not None:
        raise Violation(
            f"the challenge to a request without a token has the error {challenge.error!r}",
            evidence=evidence(await access.refusal()),
        )


@authorization_error_code.case("a random token", kind="access")
async def authorization_error_code_of_invalid_token(access: Access) -> None:
    if (await access.challenge()).scheme not in ("bearer", "dpop"):
        raise NotApplicable("the challenge is not one of OAuth")
    response = await access.send(access.requests()[0], token=f"accord-check-{secrets.token_hex(16)}")
    if response.status != UNAUTHORIZED or not challenges(response):
        raise NotObserved("the response to an invalid token has no challenge")
    if not any(each.error == "invalid_token" for each in challenges(response)):
        raise Violation("the challenge to an invalid token has no invalid_token", evidence=evidence(response))


@access_rule(
    "authorization/query-token",
    "must",
    case="a valid token in the query",
    at="basic/authorization#token-requirements",
    since=SINCE,
    cause="Queries end up in logs: a server that reads a token from there makes clients leak it.",
)
async def authorization_query_token(access: Access) -> None:
    """A token in the query of the URL is not accepted."""
    await access.refusal()
    token = access.first_token()
    for request in access.requests():
        response = await access.send(request, query=f"access_token={token}")
        if is_accepted(response):
            raise Violation(f"{request.name} was accepted with a token in the query", evidence=evidence(response))


@access_rule(
    "authorization/token-leak",
    "must",
    case="all responses",
    at="basic/authorization/security-considerations#token-theft",
    since="2025-06-18",
    cause="An error message, a tool or a log message repeats the headers of the request.",
)
async def authorization_token_leak(access: Access) -> None:
    """No response contains the token of its request."""
    await access.refusal()
    access.first_token()
    for response in access.responses():
        for token in access.settings.tokens:
            sent = [response.body, *(getattr(event, "data", b"") for event in response.events)]
            header = any(token in value for value in response.headers.values())
            if header or any(token.encode() in each for each in sent):
                raise Violation(f"the response to a {response.method} contains the token")
