"""Of forty secrets, none is left in what the debugger shows."""

from __future__ import annotations

import base64
import json

import msgspec
import pytest

from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.errors import AuthorizationError
from accord.inspector.authorization.evidence import HTTPEvidence, ObservedOAuth, StepRecord
from accord.inspector.authorization.redaction import EvidenceRedaction

from tests.auth.secrets_of_oauth import MARK, SECRETS, SecretOfOAuth

each_secret = pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.kind)


def view(*exchanges: ObservedOAuth | HTTPEvidence, known: str | None = None, **texts: str) -> str:
    """Return the evidence of a step with these exchanges and texts, as the page gets it."""
    redaction, record = EvidenceRedaction(), StepRecord("token request")
    redaction.add_secrets([known])
    for exchange in exchanges:
        if isinstance(exchange, ObservedOAuth) and isinstance(exchange.outcome, OAuthResponse):
            redaction.add_secrets(exchange.request.secrets())
            redaction.add_response(exchange.request, exchange.outcome.body)
        record.add(exchange)
    for name, text in texts.items():
        record.compare(name, text, text)
        record.text = record.cure = record.failed_at = text
    return msgspec.json.encode(record.evidence(redaction)).decode()


@each_secret
@pytest.mark.parametrize("step", ["resource metadata", "client registration", "token request", "token refresh"])
def test_a_response_with_the_secret_in_a_text(secret: SecretOfOAuth, step: str) -> None:
    for text in secret.written:
        request = OAuthRequest(step, "POST", "https://login.example/x")
        for body in (text, json.dumps({"note": text}), json.dumps([text]), f"<html>{text}</html>", f'{{"a": "{text}'):
            answered = ObservedOAuth(request, OAuthResponse(400, body.encode(), {"x-note": text, "location": text}))
            assert MARK not in view(answered)


@each_secret
def test_a_request_with_the_secret(secret: SecretOfOAuth) -> None:
    value = secret.value
    request = OAuthRequest(
        "token request",
        "POST",
        f"https://login.example/x?code={value}&state={value}&unknown={value}&{value}#{value}",
        {"Authorization": f"Bearer {value}", "DPoP": value, "X-Api-Key": value},
        form={"code": value, "code_verifier": value, "refresh_token": value, "unknown": value, "assertion": value},
    )
    assert MARK not in view(ObservedOAuth(request, AuthorizationError("x", "y")))


@each_secret
def test_a_secret_that_is_repeated_in_any_form(secret: SecretOfOAuth) -> None:
    """A server that repeats what it received, without a name beside it."""
    value = secret.value
    request = OAuthRequest("resource metadata", "GET", "https://login.example/x", {"Authorization": f"Bearer {value}"})
    for text in (value, json.dumps(value), f"<p>{value}</p>", json.dumps({"a": [value, {value: 1}]})):
        answered = ObservedOAuth(request, OAuthResponse(400, text.encode(), {"x-a": value}))
        exchange = HTTPEvidence(
            method="POST", url=f"https://x.example/{value}", status=200, request_body=text, response_body=text
        )
        assert MARK not in view(answered, exchange, known=value, name=text)


@each_secret
@pytest.mark.parametrize("step", ["client registration", "token request"])
def test_a_response_with_the_secret_as_any_member(secret: SecretOfOAuth, step: str) -> None:
    """Members that nobody knows are not shown in responses that have secrets."""
    document = {"whatever": secret.value, "nested": {"token_type": secret.value}, "list": [secret.value]}
    request = OAuthRequest(step, "POST", "https://login.example/x")
    for body in (document, [document], secret.value):
        assert MARK not in view(ObservedOAuth(request, OAuthResponse(200, json.dumps(body).encode())))


@each_secret
def test_an_mcp_request_with_the_secret(secret: SecretOfOAuth) -> None:
    for text in secret.written:
        exchange = HTTPEvidence(
            method="POST",
            url=f"https://mcp.example/mcp?token={secret.value}",
            request_headers={"authorization": f"Bearer {secret.value}", "x-key": secret.value, "cookie": secret.value},
            request_body=json.dumps({"params": {"text": text}}),
            status=401,
            response_headers={"set-cookie": secret.value, "mcp-session-id": secret.value, "www-authenticate": text},
            response_body=json.dumps({"error": {"message": text}}),
            error=text,
        )
        assert MARK not in view(exchange)


# --- what remains -----------------------------------------------------------------------------------------------------


def test_public_values_remain_byte_by_byte() -> None:
    body = '{"token_type": "Bearer",\n "expires_in": 3600.0, "scope":"read write", "access_token": "abcdefgh"}'
    request = OAuthRequest(
        "token request",
        "POST",
        "https://login.example/token",
        form={"grant_type": "authorization_code", "code": "12345678", "resource": "https://x"},
    )
    shown = json.loads(view(ObservedOAuth(request, OAuthResponse(200, body.encode()))))["exchanges"][0]
    assert shown["responseBody"] == body.replace("abcdefgh", "[redacted]")
    assert shown["requestBody"] == "grant_type=authorization_code\ncode=[redacted]\nresource=https://x"


def test_an_authorization_url_is_shown_without_its_state() -> None:
    redaction = EvidenceRedaction()
    url = "https://login.example/authorize?response_type=code&client_id=me&state=abcdefgh&resource=https%3A%2F%2Fx"
    assert redaction.url(url) == url.replace("abcdefgh", "[redacted]")


def test_the_parameters_of_a_challenge_remain() -> None:
    challenge = 'Bearer resource_metadata="https://x.example/y", scope="read", DPoP algs="ES256", error="invalid_token"'
    redaction = EvidenceRedaction()
    assert redaction.text(challenge) == redaction.received_header("WWW-Authenticate", challenge) == challenge
    assert redaction.text("Bearer scopeabcdefgh=") == "Bearer [redacted]"


def part(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def test_of_a_token_only_header_and_claims_are_shown() -> None:
    claims = {"sub": "ann", "aud": "https://x", "session_id": f"{MARK}plmWk83JdHs5"}
    token = f"{part({'alg': 'ES256'})}.{part(claims)}.{MARK}c2lnbmF0dXJl"
    request = OAuthRequest("token request", "POST", "https://login.example/token")
    body = json.dumps({"access_token": token, "refresh_token": token}).encode()
    shown = view(ObservedOAuth(request, OAuthResponse(200, body)))
    (exchange,) = json.loads(shown)["exchanges"]
    (jwt,) = exchange["jwts"]
    assert json.loads(jwt["headerJson"]) == {"alg": "ES256"}
    assert json.loads(jwt["claimsJson"]) == {"sub": "ann", "aud": "https://x", "session_id": "[redacted]"}
    assert MARK not in shown
    assert part(claims) not in shown


@pytest.mark.parametrize("token", ["a.b.c", "e30.e30", "e30.W10.x", "e30.e30.e30.e30", "e30.e30.e30.e30.e30.e30", ".."])
def test_what_is_no_token_has_no_content(token: str) -> None:
    assert EvidenceRedaction().jwt("access_token", token) is None


def test_of_an_encrypted_token_only_the_header_is_shown() -> None:
    content = EvidenceRedaction().jwt("access_token", f"{part({'enc': 'A256GCM'})}.key.iv.text.tag")
    assert content is not None
    assert content.claims_json is None


def test_evidence_is_bounded() -> None:
    request = OAuthRequest("resource metadata", "GET", "https://x.example/" + "a" * 100_000)
    headers = {f"x-{number}": "b" * 100_000 for number in range(300)}
    long = ObservedOAuth(request, OAuthResponse(200, json.dumps("c" * 200_000).encode(), headers))
    record = StepRecord("resource metadata")
    for _ in range(100):
        record.add(long)
    evidence = record.evidence(EvidenceRedaction())
    assert (len(evidence.exchanges), evidence.omitted) == (20, 80)
    assert len(evidence.exchanges[0].response_headers) == 100
    assert len(msgspec.json.encode(evidence.exchanges[0])) < 600_000
    assert evidence.exchanges[0].response_body == "(200,002 bytes)"


def test_a_server_cannot_make_the_search_for_its_secrets_long() -> None:
    """Members that nobody knows are replaced where they are; only some are searched for elsewhere."""
    redaction = EvidenceRedaction()
    request = OAuthRequest("token request", "POST", "https://login.example/x")
    for turn in range(20):
        document = {f"member {number}": f"value {turn} {number:06}" for number in range(5_000)}
        redaction.add_response(request, json.dumps({**document, "access_token": f"token {turn} {MARK}"}).encode())
    assert len(redaction._known._replacements) < 1_000
    shown = redaction.text("found token 19 Xq7Tz and value 0 000000")
    assert shown == "found [redacted] and [redacted]"


def test_a_very_long_token_has_no_content() -> None:
    token = f"{part({'alg': 'ES256'})}.{part({'a': 'b' * 20_000})}.c2lnbmF0dXJl"
    assert EvidenceRedaction().jwt("access_token", token) is None
