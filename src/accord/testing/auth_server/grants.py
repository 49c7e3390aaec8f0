"""The token endpoint of `AuthServer`: one function for each grant type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from accord.messages.base import JSONObject
from accord.testing.auth_server.issuer import TokenIssuer, unverified_claim
from accord.testing.auth_server.records import Authorization, AuthServerClient, RecordedRequest, Refusal
from accord.testing.auth_server.signing import encoded_digest, verify_token

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"

_ASSERTION_SECONDS = 300


def answer_token_request(issuer: TokenIssuer, request: RecordedRequest) -> JSONObject:
    """Return the response of the token endpoint. Raises `Refusal`."""
    form = {name: str(value) for name, value in request.parameters.items()}
    grant = GRANTS.get(form.get("grant_type", ""))
    if grant is None:
        raise Refusal("unsupported_grant_type")
    client = issuer.authenticate(request)
    return grant(issuer, client, form, issuer.proven_key(request, issuer.token_endpoint))


def _redeem_code(issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: str | None) -> JSONObject:
    authorization = issuer.codes.get(form.get("code", ""))
    if authorization is None or authorization.client_id != client.client_id:
        raise Refusal("invalid_grant", "the code is unknown")
    if authorization.redeemed:
        authorization.revoked = True
        raise Refusal("invalid_grant", "the code was used before")
    authorization.redeemed = True
    if form.get("redirect_uri", authorization.redirect_uri) != authorization.redirect_uri:
        raise Refusal("invalid_grant", "redirect_uri is another one")
    if encoded_digest(form.get("code_verifier", "")) != authorization.challenge:
        raise Refusal("invalid_grant", "code_verifier is wrong")
    if form.get("resource", authorization.audience) != authorization.audience:
        raise Refusal("invalid_target")
    return issuer.issue(authorization, authorization.scopes, key)


def _refresh(issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: str | None) -> JSONObject:
    token = issuer.tokens.get(form.get("refresh_token", ""))
    if token is None or token.kind != "refresh_token" or token.authorization.client_id != client.client_id:
        raise Refusal("invalid_grant", "the refresh token is unknown")
    if token.rotated:
        token.authorization.revoked = True
        raise Refusal("invalid_grant", "the refresh token was used before")
    if not token.is_active(issuer.clock()) or token.thumbprint not in (None, key):
        raise Refusal("invalid_grant", "the refresh token is not valid")
    scopes = form["scope"].split() if "scope" in form else token.scopes
    if not set(scopes) <= set(token.scopes):
        raise Refusal("invalid_scope")
    token.rotated = True
    return issuer.issue(token.authorization, scopes, key)


def _client_credentials(
    issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: str | None
) -> JSONObject:
    if client.is_public:
        raise Refusal("unauthorized_client", "a public client has no credentials")
    scopes = form.get("scope", "").split()
    authorization = Authorization(client.client_id, client.client_id, scopes, form.get("resource"))
    return issuer.issue(authorization, scopes, key, refresh=False)


def _poll_device(issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: str | None) -> JSONObject:
    device = issuer.devices.get(form.get("device_code", ""))
    if device is None or device.authorization.client_id != client.client_id or device.authorization.redeemed:
        raise Refusal("invalid_grant", "the device code is unknown")
    if device.expires_at <= issuer.clock():
        raise Refusal("expired_token")
    if not device.approved:
        raise Refusal("authorization_pending" if device.approved is None else "access_denied")
    device.authorization.redeemed = True
    return issuer.issue(device.authorization, device.authorization.scopes, key)


def _accept_assertion(
    issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: str | None
) -> JSONObject:
    """Accept an ID-JAG, or the token of a workload, of a trusted issuer (RFC 7523, 2.1)."""
    assertion = form.get("assertion", "")
    keys = issuer.trusted.get(unverified_claim(assertion, "iss"))
    if keys is None:
        raise Refusal("invalid_grant", "the issuer of the assertion is not trusted")
    header, claims = issuer.verify_once(assertion, keys, "invalid_grant")
    if claims.get("aud") not in (issuer.issuer, [issuer.issuer]):
        raise Refusal("invalid_grant", f"aud is {claims.get('aud')!r}, expected {issuer.issuer!r}")
    if header.get("typ") == "oauth-id-jag+jwt" and claims.get("client_id") != client.client_id:
        raise Refusal("invalid_grant", "the assertion is for another client")
    scopes = form.get("scope", str(claims.get("scope", ""))).split()
    audience = claims.get("resource", form.get("resource"))
    authorization = Authorization(client.client_id, str(claims["sub"]), scopes, audience)
    return issuer.issue(authorization, scopes, key, refresh=False)


def _exchange(issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: str | None) -> JSONObject:
    """Exchange an ID token for an ID-JAG (RFC 8693)."""
    if form.get("requested_token_type") != ID_JAG or form.get("subject_token_type") != ID_TOKEN:
        raise Refusal("invalid_request", "only an ID token is exchanged, for an ID-JAG")
    try:
        _, claims = verify_token(form.get("subject_token", ""), issuer.key.public_keys())
    except ValueError as exc:
        raise Refusal("invalid_grant", str(exc)) from exc
    if not form.get("audience"):
        raise Refusal("invalid_request", "audience is missing")
    body = {
        **issuer.registered_claims(str(claims["sub"]), _ASSERTION_SECONDS),
        "aud": form["audience"],
        "client_id": client.client_id,
        **{name: form[name] for name in ("resource", "scope") if name in form},
    }
    assertion = issuer.remember(issuer.key.sign(body, "oauth-id-jag+jwt"))
    return {
        "access_token": assertion,
        "issued_token_type": ID_JAG,
        "token_type": "N_A",
        "expires_in": _ASSERTION_SECONDS,
        **({"scope": form["scope"]} if "scope" in form else {}),
    }


GRANTS: dict[str, Callable[[TokenIssuer, AuthServerClient, Mapping[str, str], str | None], JSONObject]] = {
    "authorization_code": _redeem_code,
    "refresh_token": _refresh,
    "client_credentials": _client_credentials,
    DEVICE_CODE: _poll_device,
    JWT_BEARER: _accept_assertion,
    TOKEN_EXCHANGE: _exchange,
}
"""Every grant type."""
