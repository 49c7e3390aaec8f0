"""Authorization: the scopes that a server names in its challenges."""

from __future__ import annotations

from accord.check.engine.rule import NotApplicable, NotObserved, Violation
from accord.check.probes.access import FORBIDDEN, UNAUTHORIZED, Access, challenges, evidence
from accord.check.probes.message_log import LoggedResponse
from accord.check.rules.authorization import SUBJECT, access_rule

INSUFFICIENT = "insufficient_scope"


@access_rule(
    "authorization/scope",
    "should",
    case="the challenge to a request without a token",
    at=(
        "basic/authorization#protected-resource-metadata-discovery-requirements",
        "basic/authorization#scope-selection-strategy",
    ),
    since="2025-11-25",
    cause="Without `scope`, clients request all scopes, or ask the user several times.",
)
async def authorization_scope(access: Access) -> None:
    """The challenge names the scopes that the server needs."""
    challenge = await access.challenge()
    listed = (await access.metadata()).document.get("scopes_supported")
    if not listed and not challenge.scopes:
        raise NotApplicable("the server has no scopes")
    if not challenge.scopes:
        raise Violation("the challenge has no scope", evidence=evidence(await access.refusal()))


@access_rule(
    "authorization/consistent-scopes",
    "should",
    case="the same request twice",
    at=("basic/authorization#runtime-insufficient-scope-errors", "basic/authorization#scope-selection-strategy"),
    since="2025-11-25",
    cause="The scopes come from a set without an order, or from the last request of another client.",
)
async def authorization_consistent_scopes(access: Access) -> None:
    """The same request without a token gets the same scopes each time."""
    first = (await access.challenge()).scopes
    again = challenges(await access.send(access.requests()[0]))
    scopes = next((each.scopes for each in again if each.scopes is not None), None)
    if set(scopes or ()) != set(first or ()):
        raise Violation(f"the challenge has the scopes {first}, and then {scopes}")


@access_rule(
    "authorization/offline-access",
    "should",
    case="the challenge and the metadata",
    at="basic/authorization#refresh-tokens",
    since="2026-07-28",
    cause="Refresh tokens are between the client and the authorization server: a resource does not need them.",
)
async def authorization_offline_access(access: Access) -> None:
    """Neither the challenge nor the metadata of the resource has the scope `offline_access`."""
    challenge = await access.challenge()
    if "offline_access" in (challenge.scopes or ()):
        raise Violation("the challenge has the scope offline_access", evidence=evidence(await access.refusal()))
    found = await access.metadata()
    listed = found.document.get("scopes_supported")
    if isinstance(listed, list) and "offline_access" in listed:
        raise found.violation("scopes_supported has offline_access")


@access_rule(
    "authorization/insufficient-scope",
    "should",
    case="a token without scopes, and all responses that name insufficient_scope",
    at="basic/authorization#runtime-insufficient-scope-errors",
    since="2025-11-25",
    cause='Only 403 with error="insufficient_scope" and `scope` lets a client request what is missing.',
)
async def authorization_insufficient_scope(access: Access) -> None:
    """A token with too few scopes gets status 403, with a challenge that has insufficient_scope and the scopes."""
    await access.refusal()
    await _try_without_scopes(access)
    judged = False
    for response in access.responses():
        bearer = [each for each in challenges(response) if each.scheme in ("bearer", "dpop")]
        challenge = next(iter(bearer), None)
        named = any(each.error == INSUFFICIENT for each in bearer)
        if response.status == FORBIDDEN and challenge is not None and not named:
            raise Violation("the challenge with status 403 has no insufficient_scope", evidence=evidence(response))
        if not named:
            continue
        judged = True
        if response.status != FORBIDDEN:
            raise Violation(f"insufficient_scope has status {response.status}", evidence=evidence(response))
        if not any(each.scopes for each in bearer):
            raise Violation("insufficient_scope names no scopes", evidence=evidence(response))
    if not judged:
        raise NotObserved("no token had too few scopes")


@authorization_insufficient_scope.case("a token with the scopes that the challenge named", kind="access")
async def authorization_insufficient_scope_once(access: Access) -> None:
    await access.refusal()
    forge = await access.trusted_forge()
    for request in access.requests():
        first = await access.send(request, token=forge.token(SUBJECT, scope=None))
        scopes = insufficient_scopes(first)
        if scopes:
            again = await access.send(request, token=forge.token(SUBJECT, scope=" ".join(scopes)))
            if insufficient_scopes(again) is not None:
                text = f"{request.name} needs further scopes with a token that has those of the challenge: {scopes}"
                raise Violation(text, evidence=(*evidence(first), *evidence(again)))
            return
    raise NotObserved("no token had too few scopes")


def insufficient_scopes(response: LoggedResponse) -> list[str] | None:
    """Return the scopes that a response names as missing; None if it is no such refusal."""
    return next((each.scopes or [] for each in challenges(response) if each.error == INSUFFICIENT), None)


async def _try_without_scopes(access: Access) -> None:
    """Send a valid token without scopes, if the checker issues tokens."""
    if access.settings.issuer:
        forge = await access.trusted_forge()
        for request in access.requests():
            response = await access.send(request, token=forge.token(SUBJECT, scope=None))
            if forge.scopes and response.status == UNAUTHORIZED:
                raise Violation(
                    f"{request.name} with a valid token without scopes got status 401 instead of 403",
                    evidence=evidence(response),
                )
