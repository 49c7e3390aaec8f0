"""The values that the steps of a login compare, as evidence: expected, and found."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

import msgspec

from accord.auth.challenge import Challenge, parse_challenges, select_challenge
from accord.auth.code_grant import PendingAuthorization
from accord.auth.device_grant import PendingDevice
from accord.auth.discovery import DiscoveredResource, Discovery
from accord.auth.login import Login
from accord.auth.registration import ClientRegistration
from accord.auth.steps import OAuthResponse
from accord.auth.urls import canonical_resource, covers
from accord.inspector.authorization.evidence import ObservedOAuth, StepRecord
from accord.transport.http.credentials import RefusedRequest

_UNAUTHORIZED = "401"


def challenge_of(refusal: RefusedRequest) -> Challenge | None:
    """Return the challenge of a refusal that a client answers, or None."""
    return select_challenge(parse_challenges(refusal.challenges))


def compare_challenge(record: StepRecord, refusal: RefusedRequest | None) -> Challenge | None:
    """Add what a challenge should have; return it."""
    if refusal is None:
        return None
    challenges, challenge = parse_challenges(refusal.challenges), challenge_of(refusal)
    record.compare("status", _UNAUTHORIZED, str(refusal.status))
    found = ", ".join(each.scheme for each in challenges) or None
    record.compare("scheme of WWW-Authenticate", "bearer or dpop", found, challenge is not None)
    metadata = None if challenge is None else challenge.parameters.get("resource_metadata")
    record.compare("resource_metadata of the challenge", "a URL", metadata, metadata is not None)
    return challenge


def compare_resource(record: StepRecord, server: str, chosen: str | None) -> None:
    """Add the resource identifier and the issuers in the last document that was found."""
    document = _last_document(record)
    if document is None:
        record.compare("resource metadata", "HTTP 200 with a JSON object", None)
        return
    resource = document.get("resource")
    expected = f"{canonical_resource(server)} or a parent of its path"
    if chosen is None:
        record.compare("resource", expected, _text(resource), isinstance(resource, str) and _covers(resource, server))
    else:
        record.compare("resource", f"{chosen}, which was chosen", _text(resource), resource == chosen)
    issuers = document.get("authorization_servers")
    is_list = isinstance(issuers, list) and bool(issuers)
    record.compare("authorization_servers", "at least one issuer", _text(issuers), is_list)


def compare_issuer(record: StepRecord, found: DiscoveredResource) -> None:
    """Add the issuer and the endpoints in the last document that was found."""
    document = _last_document(record)
    if document is None:
        record.compare("metadata", "HTTP 200 with a JSON object", None)
        return
    issuer = document.get("issuer")
    record.compare("issuer", found.issuer or f"the origin of {found.server}", _text(issuer), issuer == found.issuer)
    for name in ("authorization_endpoint", "token_endpoint"):
        endpoint = document.get(name)
        is_url = isinstance(endpoint, str) and endpoint.startswith(("https://", "http://127.0.0.1", "http://localhost"))
        record.compare(name, "an https URL, or http on loopback", _text(endpoint), is_url)


def compare_client(
    record: StepRecord, client: ClientRegistration, discovery: Discovery, redirect_uri: str | None
) -> None:
    """Add what the client is registered for; a login on another device has no redirect URI."""
    record.compare("issuer of the client", discovery.issuer, client.issuer)
    registered = client.redirect_uri
    if client.source == "registered" and redirect_uri is not None:
        record.compare("redirect URI", redirect_uri, registered)
    supported = discovery.metadata.token_endpoint_auth_methods_supported
    if supported is not None:
        is_supported = client.auth_method in supported or client.auth_method == "none"
        record.compare("authentication of the client", " or ".join(supported), client.auth_method, is_supported)


def compare_pkce(record: StepRecord, discovery: Discovery, *, assume_pkce: bool) -> None:
    """Add whether the authorization server states S256."""
    methods = discovery.metadata.code_challenge_methods_supported
    found = "not stated, assumed" if assume_pkce and "S256" not in (methods or ()) else _text(methods)
    record.compare("code_challenge_methods_supported", "S256", found, "S256" in (methods or ()) or assume_pkce)


def compare_authorization(record: StepRecord, pending: PendingAuthorization) -> None:
    """Add what the authorization request asks for."""
    sent = parse_qs(urlsplit(pending.url).query)
    record.compare("resource", pending.discovery.resource, "".join(sent.get("resource", [])))
    wanted = " ".join(pending.discovery.scopes or ()) or "none"
    asked = " ".join(pending.scopes) or "none"
    record.compare("scope", wanted, asked, set(pending.discovery.scopes or ()) <= set(pending.scopes))


def compare_device_endpoint(record: StepRecord, discovery: Discovery) -> None:
    """Add whether the authorization server has logins on another device."""
    endpoint = discovery.metadata.device_authorization_endpoint
    record.compare("device_authorization_endpoint", "a URL", endpoint, endpoint is not None)


def compare_device(record: StepRecord, pending: PendingDevice) -> None:
    """Add what the authorization server answered. The codes are not shown."""
    record.compare("verification_uri", "an https URL, or http on loopback", pending.verification_uri, True)
    record.compare("interval", "5 s, or what the server states", f"{pending.interval:g} s", True)


def compare_callback(record: StepRecord, pending: PendingAuthorization, parameters: Mapping[str, str]) -> None:
    """Add state and issuer of a callback. The state itself is not shown."""
    state = parameters.get("state")
    found = None if state is None else "the same" if state == pending.state else "another one"
    record.compare("state", "the same", found)
    metadata, issuer = pending.discovery.metadata, parameters.get("iss")
    stated = bool(metadata.authorization_response_iss_parameter_supported)
    is_same = issuer == metadata.issuer or (issuer is None and not stated)
    record.compare("iss", metadata.issuer if stated else f"{metadata.issuer} or nothing", issuer, is_same)
    if state == pending.state and is_same:  # "the client MUST NOT act on or display `error`" otherwise
        what = "an error" if "error" in parameters else "a code" if parameters.get("code") else None
        record.compare("code", "a code", what)


def compare_tokens(record: StepRecord, login: Login, claims: Mapping[str, object]) -> None:
    """Add what was granted, beside what was requested."""
    tokens, discovery = login.tokens, login.discovery
    record.compare("token_type", "Bearer or DPoP", tokens.token_type, True)
    missing = set(tokens.requested) - set(tokens.scopes) - {"offline_access"}
    record.compare("scope", " ".join(tokens.requested) or "none", " ".join(tokens.scopes) or "none", not missing)
    record.compare("refresh_token", "one, or none", "one" if tokens.refresh_token else "none", True)
    if not claims:
        return
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    record.compare("aud of the token", discovery.resource, _text(audience), discovery.resource in audiences)
    record.compare("iss of the token", discovery.issuer, _text(claims.get("iss")))


def compare_acceptance(record: StepRecord, refusal: RefusedRequest | None, login: Login) -> None:
    """Add whether the MCP server accepted the token."""
    if refusal is None:
        record.compare("status", "any but 401 and 403", "accepted", True)
        return
    record.compare("status", "any but 401 and 403", str(refusal.status), False)
    challenge = challenge_of(refusal)
    if challenge is None:
        return
    if challenge.error is not None:
        record.compare("error of the challenge", "none", challenge.error, False)
    if challenge.scopes is not None:
        needed, granted = challenge.scopes, login.tokens.scopes
        record.compare("scope", " ".join(needed), " ".join(granted) or "none", set(needed) <= set(granted))


def _covers(resource: str, server: str) -> bool:
    try:
        return covers(resource, server)
    except ValueError:
        return False


def _last_document(record: StepRecord) -> dict[str, object] | None:
    """Return the JSON object of the last response with status 200, or None."""
    for exchange in reversed(record.exchanges):
        outcome = exchange.outcome if isinstance(exchange, ObservedOAuth) else None
        if isinstance(outcome, OAuthResponse) and outcome.status == 200:
            try:
                return msgspec.json.decode(outcome.body, type=dict[str, object])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return None
    return None


def _text(value: object) -> str | None:
    """Return a value of a document as it is compared."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
