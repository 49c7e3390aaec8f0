"""The token endpoint: what it issues for a code and a refresh token, and what it refuses."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from accord.check.authorization_servers.probe import AuthServerProbe, HTTPAnswer
from accord.check.engine.rule import CaseVariant, NotApplicable, NotObserved
from accord.check.probes.message_log import decode_json
from accord.check.rules.authorization_servers.metadata import auth_server_rule

_OVERVIEW = ("basic/authorization#overview", "basic/authorization/index#overview")
_CODE_PROTECTION = (
    "basic/authorization#authorization-code-protection",
    "basic/authorization/security-considerations#authorization-code-protection",
)
_REDIRECTION = (
    "basic/authorization#open-redirection",
    "basic/authorization/security-considerations#open-redirection",
)
_THEFT = ("basic/authorization#token-theft", "basic/authorization/security-considerations#token-theft")
_AUDIENCE = (
    "basic/authorization#token-audience-binding-and-validation",
    "basic/authorization/security-considerations#token-audience-binding-and-validation",
)
_DAY = 86_400


@auth_server_rule(
    "auth-server/token-error",
    "must",
    variants=[
        CaseVariant("an unknown code", grant="authorization_code", code="accord-check"),
        CaseVariant("an unknown refresh token", grant="refresh_token", refresh_token="accord-check"),
        CaseVariant("an unknown grant type", grant="accord-check"),
    ],
    at=("https://www.rfc-editor.org/rfc/rfc6749#section-5.2", *_OVERVIEW),
    cause="The error is HTML, or has another status.",
)
async def auth_server_token_error(probe: AuthServerProbe, grant: str, **form: str) -> None:
    """An error of the token endpoint has status 400 or 401, and is a JSON object with error."""
    client = await probe.client()
    answer = await probe.token_request(
        {
            "grant_type": grant,
            "client_id": client.client_id,
            "redirect_uri": client.redirect_uri,
            "code_verifier": "v" * 43,
            **form,
        }
    )
    if answer.status not in (400, 401) or not answer.error or not answer.is_json:
        raise probe.violation(f"the error is HTTP {answer.status} with {answer.error or 'no error member'}")


@auth_server_rule(
    "auth-server/token-unknown-client",
    "must",
    case="a client ID that was not registered",
    at=("https://www.rfc-editor.org/rfc/rfc6749#section-5.2", *_OVERVIEW),
    cause="The client of a token request is not looked up.",
)
async def auth_server_token_unknown_client(probe: AuthServerProbe) -> None:
    """A token request of an unknown client is refused."""
    form = {"grant_type": "authorization_code", "client_id": "accord-check-unknown", "code": "accord-check"}
    probe.require_refusal(await probe.token_request(form | {"code_verifier": "v" * 43}), "an unknown client")


@auth_server_rule(
    "auth-server/tokens",
    "must",
    case="a code with its verifier",
    at=("https://www.rfc-editor.org/rfc/rfc6749#section-5.1", *_OVERVIEW),
    cause="token_type is left out, or the response is a form.",
)
async def auth_server_tokens(probe: AuthServerProbe) -> None:
    """A code is redeemed for a token response: JSON with access_token and token_type."""
    answer = await probe.redeem(await probe.log_in())
    token, kind = answer.document.get("access_token"), answer.document.get("token_type")
    if answer.status != 200 or not answer.is_json or not isinstance(token, str) or not token:
        raise probe.violation(f"the token response is HTTP {answer.status} with {sorted(answer.document)}")
    if not isinstance(kind, str) or kind.lower() not in ("bearer", "dpop"):
        raise probe.violation(f"token_type is {kind!r}")


@auth_server_rule(
    "auth-server/no-store",
    "must",
    case="the token response",
    at=("https://www.rfc-editor.org/rfc/rfc6749#section-5.1", *_THEFT),
    cause="The header is missing: caches may keep tokens.",
)
async def auth_server_no_store(probe: AuthServerProbe) -> None:
    """A token response has Cache-Control: no-store."""
    _, answer = await probe.tokens()
    if "no-store" not in answer.headers.get("cache-control", "").lower():
        raise probe.violation(f"Cache-Control is {answer.headers.get('cache-control')!r}")


@auth_server_rule(
    "auth-server/short-lived",
    "should",
    case="expires_in",
    at=_THEFT,
    cause="Access tokens are valid for weeks, or without end.",
)
async def auth_server_short_lived(probe: AuthServerProbe) -> None:
    """An access token expires, within a day."""
    _, answer = await probe.tokens()
    seconds = answer.document.get("expires_in")
    if not isinstance(seconds, int | float) or not 0 < seconds <= _DAY:
        raise probe.violation(f"expires_in is {seconds!r}")


@auth_server_rule(
    "auth-server/code-replay",
    "must",
    case="a code that was redeemed",
    at=_CODE_PROTECTION,
    cause="Codes are valid until they expire.",
)
async def auth_server_code_replay(probe: AuthServerProbe) -> None:
    """A code is redeemed once."""
    found, _ = await probe.tokens()
    probe.require_refusal(await probe.redeem(found), "a code that was redeemed")


@auth_server_rule(
    "auth-server/replay-revokes",
    "should",
    case="the tokens of a code that is replayed",
    at=_CODE_PROTECTION,
    cause="The tokens of a stolen code stay valid.",
)
async def auth_server_replay_revokes(probe: AuthServerProbe) -> None:
    """When a code is replayed, the tokens issued for it are revoked."""
    found, answer = await probe.tokens()
    token = _refresh_token(answer)
    await probe.redeem(found)
    probe.require_refusal(await probe.refresh(found.client, token), "the refresh token of a replayed code")


@auth_server_rule(
    "auth-server/verifier",
    "must",
    variants=[
        CaseVariant("another verifier", verifier="v" * 43),
        CaseVariant("no verifier", verifier=None),
        CaseVariant("an empty verifier", verifier=""),
    ],
    at=_CODE_PROTECTION,
    cause="code_verifier is compared only where it is present, or not at all.",
)
async def auth_server_verifier(probe: AuthServerProbe, verifier: str | None) -> None:
    """A code is not redeemed without the verifier of its challenge."""
    found = await probe.log_in()
    probe.require_refusal(await probe.redeem(found, code_verifier=verifier), "a wrong code_verifier")


@auth_server_rule(
    "auth-server/redirect-match",
    "should",
    case="another redirect_uri in the token request",
    at=_REDIRECTION,
    cause="redirect_uri of the token request is not compared.",
)
async def auth_server_redirect_match(probe: AuthServerProbe) -> None:
    """A code is not redeemed with another redirect_uri than that of its request."""
    found = await probe.log_in()
    answer = await probe.redeem(found, redirect_uri=f"{found.client.redirect_uri}/other")
    probe.require_refusal(answer, "another redirect_uri")


@auth_server_rule(
    "auth-server/code-client",
    "must",
    case="a code of another client",
    at=_CODE_PROTECTION,
    cause="Codes are stored without their client.",
)
async def auth_server_code_client(probe: AuthServerProbe) -> None:
    """A code is redeemed only by the client that it was issued for."""
    found, other = await probe.log_in(), await probe.new_client()
    probe.require_refusal(await probe.redeem(found, client_id=other.client_id), "a code of another client")


@auth_server_rule(
    "auth-server/rotation",
    "must",
    case="a refresh token of a public client",
    at=_THEFT,
    cause="Refresh tokens of public clients are valid more than once.",
)
async def auth_server_rotation(probe: AuthServerProbe) -> None:
    """The refresh token of a public client is valid once: a refresh returns another."""
    found, answer = await probe.tokens()
    token = _refresh_token(answer)
    renewed = await probe.refresh(found.client, token)
    if "access_token" not in renewed.document:
        raise probe.violation(f"the refresh was answered with HTTP {renewed.status} {renewed.error}")
    if renewed.document.get("refresh_token") in (None, token):
        raise probe.violation("the refresh returned no other refresh token")
    probe.require_refusal(await probe.refresh(found.client, token), "a refresh token that was used")


@auth_server_rule(
    "auth-server/refresh-client",
    "must",
    case="a refresh token of another client",
    at=_THEFT,
    cause="Refresh tokens are stored without their client.",
)
async def auth_server_refresh_client(probe: AuthServerProbe) -> None:
    """A refresh token is valid only for the client that it was issued to."""
    _, answer = await probe.tokens()
    other = await probe.new_client()
    refused = await probe.refresh(other, _refresh_token(answer))
    probe.require_refusal(refused, "a refresh token of another client")


@auth_server_rule(
    "auth-server/refresh-scope",
    "must",
    case="a refresh with a further scope",
    at=("https://www.rfc-editor.org/rfc/rfc6749#section-6", *_THEFT),
    cause="The scope of a refresh is granted as it is requested.",
)
async def auth_server_refresh_scope(probe: AuthServerProbe) -> None:
    """A refresh grants no scope that the user did not grant."""
    found, answer = await probe.tokens()
    granted = str(answer.document.get("scope", "")).split()
    stated = probe.metadata.get("scopes_supported")
    further = [each for each in stated if each not in granted] if isinstance(stated, list) else []
    if not further:
        raise NotApplicable("the server states no scope that was not granted")
    requested = " ".join([*granted, further[0]])
    renewed = await probe.refresh(found.client, _refresh_token(answer), scope=requested)
    scope = str(renewed.document.get("scope", requested))  # "OPTIONAL, if identical to the scope requested"
    if "access_token" in renewed.document and further[0] in scope.split():
        raise probe.violation(f"the refresh granted {further[0]}, which the user did not")


@auth_server_rule(
    "auth-server/audience",
    "should",
    case="a JSON Web Token for a resource",
    at=_AUDIENCE,
    cause="The parameter resource is ignored: every MCP server has to accept the same tokens.",
)
async def auth_server_audience(probe: AuthServerProbe) -> None:
    """An access token for a resource has it as its audience."""
    if not probe.resource:
        raise NotObserved("no resource was given: --resource")
    _, answer = await probe.tokens()
    claims = _claims(str(answer.document["access_token"]))
    if claims is None:
        raise NotObserved("the access token is not a JSON Web Token")
    audience = claims.get("aud")
    if probe.resource not in (audience if isinstance(audience, list) else [audience]):
        raise probe.violation(f"aud is {audience!r}, expected {probe.resource!r}")


@auth_server_rule(
    "auth-server/revocation",
    "should",
    case="a refresh token that was revoked",
    at=("https://www.rfc-editor.org/rfc/rfc7009#section-2.2", *_THEFT),
    cause="The revocation is answered, and nothing is revoked.",
)
async def auth_server_revocation(probe: AuthServerProbe) -> None:
    """A refresh token that was revoked is not valid any more."""
    endpoint = probe.endpoint("revocation_endpoint")
    found, answer = await probe.tokens()
    token = _refresh_token(answer)
    form = {"token": token, "token_type_hint": "refresh_token", "client_id": found.client.client_id}
    revoked = await probe.request("POST", endpoint, form=form)
    if revoked.status != 200:
        raise probe.violation(f"the revocation was answered with HTTP {revoked.status}")
    probe.require_refusal(await probe.refresh(found.client, token), "a refresh token that was revoked")


def _refresh_token(answer: HTTPAnswer) -> str:
    """Return the refresh token of a response. Raises `NotObserved` without one."""
    token = answer.document.get("refresh_token")
    if not isinstance(token, str):
        raise NotObserved("the server issued no refresh token")
    return token


def _claims(token: str) -> dict[str, Any] | None:
    """Return the claims of a JSON Web Token without verification, or None."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        found = decode_json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    return found if isinstance(found, dict) else None
