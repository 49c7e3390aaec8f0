"""The issuer of `AuthServer`: its clients, authorizations and tokens, and how a client proves its identity."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote_plus

import msgspec

from accord.messages.base import JSONObject
from accord.testing.auth_server.records import (
    Authorization,
    AuthServerClient,
    AuthServerToken,
    DeviceCode,
    RecordedRequest,
    Refusal,
)
from accord.testing.auth_server.signing import SigningKey, verify_proof, verify_token

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_REFRESH_SECONDS = 30 * 86_400


class TokenIssuer:
    """Clients, authorizations and tokens of one issuer."""

    def __init__(self, clock: Callable[[], float], lifetime: float, jwt: bool) -> None:
        self.issuer = ""
        self.token_endpoint = ""
        self.clock = clock
        self.lifetime = lifetime
        self.jwt = jwt
        self.dpop_nonce: str | None = None
        self.documents: dict[str, JSONObject] = {}
        self.trusted: dict[str, JSONObject] = {}
        self.clients: dict[str, AuthServerClient] = {}
        self.codes: dict[str, Authorization] = {}
        self.devices: dict[str, DeviceCode] = {}
        self.tokens: dict[str, AuthServerToken] = {}
        self.issued: set[str] = set()
        self._used_ids: set[str] = set()
        self._key: SigningKey | None = None

    @property
    def key(self) -> SigningKey:
        """The key that signs tokens."""
        if self._key is None:
            self._key = SigningKey("first")
        return self._key

    def rotate_key(self) -> None:
        """Sign with a new key from now on, and publish only this one."""
        self._key = SigningKey(secrets.token_hex(4))

    def secret(self) -> str:
        """Return 256 random bits, and remember them as a secret."""
        value = secrets.token_urlsafe(32)
        self.issued.add(value)
        return value

    # --- authentication -------------------------------------------------------------------------------------------

    def find_client(self, client_id: str) -> AuthServerClient:
        """Return a registered client, or one with a metadata document. Raises `Refusal`."""
        if (client := self.clients.get(client_id)) is not None:
            return client
        if (document := self.documents.get(client_id)) is not None and document.get("client_id") == client_id:
            return AuthServerClient(client_id=client_id, redirect_uris=document["redirect_uris"])
        raise Refusal("invalid_client", "the client is unknown", 401)

    def authenticate(self, request: RecordedRequest) -> AuthServerClient:
        """Return the client of a request, which has proven its identity if it is not public. Raises `Refusal`."""
        form = request.parameters
        scheme, _, pair = request.headers.get("authorization", "").partition(" ")
        client_id, secret = str(form.get("client_id", "")), form.get("client_secret")
        if scheme.lower() == "basic":
            client_id, _, secret = base64.b64decode(pair).decode().partition(":")
            client_id, secret = unquote_plus(client_id), unquote_plus(secret)
        assertion = form.get("client_assertion")
        if assertion is not None:
            return self._authenticate_by_key(client_id, str(assertion), form)
        client = self.find_client(client_id)
        if client.keys is not None or client.secret != secret:
            raise Refusal("invalid_client", "the proof of identity is wrong", 401)
        return client

    def _authenticate_by_key(self, client_id: str, assertion: str, form: Mapping[str, Any]) -> AuthServerClient:
        """Check a client assertion (RFC 7523, 3)."""
        if form.get("client_assertion_type") != ASSERTION:
            raise Refusal("invalid_request", "client_assertion_type is wrong")
        client = self.find_client(client_id or unverified_claim(assertion, "sub"))
        _, claims = self.verify_once(assertion, client.keys or {"keys": []}, "invalid_client")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if claims.get("iss") != client.client_id or claims.get("sub") != client.client_id:
            raise Refusal("invalid_client", "iss and sub are not the client_id", 401)
        if not {self.issuer, self.token_endpoint} & set(audiences):
            raise Refusal("invalid_client", f"aud is {audience!r}, expected {self.issuer!r}", 401)
        return client

    def verify_once(self, token: str, keys: JSONObject, error: str) -> tuple[JSONObject, JSONObject]:
        """Return header and claims of a token that is used once. Raises `Refusal`."""
        status = 401 if error == "invalid_client" else 400
        try:
            header, claims = verify_token(token, keys)
        except ValueError as exc:
            raise Refusal(error, str(exc), status) from exc
        if not claims.get("exp", 0) > self.clock():
            raise Refusal(error, "the assertion has expired", status)
        if (used := claims.get("jti")) is not None:
            if used in self._used_ids:
                raise Refusal(error, "the assertion was used before", status)
            self._used_ids.add(used)
        return header, claims

    def proven_key(self, request: RecordedRequest, url: str) -> str | None:
        """Return the thumbprint of the key of a request's proof, or None without a proof. Raises `Refusal`."""
        proof = request.headers.get("dpop")
        if proof is None:
            return None
        try:
            thumbprint, claims = verify_proof(proof, request.method, url, self.clock())
        except ValueError as exc:
            raise Refusal("invalid_dpop_proof", str(exc)) from exc
        if self.dpop_nonce is not None and claims.get("nonce") != self.dpop_nonce:
            raise Refusal("use_dpop_nonce", headers={"dpop-nonce": self.dpop_nonce})
        if claims["jti"] in self._used_ids:
            raise Refusal("invalid_dpop_proof", "the proof was used before")
        self._used_ids.add(claims["jti"])
        return thumbprint

    # --- tokens ---------------------------------------------------------------------------------------------------

    def issue(
        self, authorization: Authorization, scopes: list[str], key: str | None, refresh: bool = True
    ) -> JSONObject:
        """Return the tokens of an authorization, bound to a key if there is one."""
        access = self.access_token(authorization, scopes, key)
        response = {
            "access_token": access,
            "token_type": "Bearer" if key is None else "DPoP",
            "expires_in": self.lifetime,
            "scope": " ".join(scopes),
        }
        if refresh:
            expires_at = self.clock() + _REFRESH_SECONDS
            token = AuthServerToken(self.secret(), "refresh_token", authorization, scopes, expires_at)
            token.thumbprint = key if self.find_client(authorization.client_id).is_public else None
            self.tokens[token.value] = token
            response["refresh_token"] = token.value
        if "openid" in scopes:
            response["id_token"] = self.id_token(authorization.subject, authorization.client_id)
        return response

    def access_token(self, authorization: Authorization, scopes: list[str], key: str | None, **claims: Any) -> str:
        """Return a new access token: a JWT (RFC 9068), or random text."""
        if self.jwt:
            body = {
                **self.registered_claims(authorization.subject, self.lifetime),
                "aud": authorization.audience or self.issuer,
                "client_id": authorization.client_id,
                "scope": " ".join(scopes),
                **({} if key is None else {"cnf": {"jkt": key}}),
                **claims,
            }
            value = self.remember(self.key.sign(body, "at+jwt"))
        else:
            value = self.secret()
        expires_at = self.clock() + self.lifetime
        self.tokens[value] = AuthServerToken(value, "access_token", authorization, scopes, expires_at, key)
        return value

    def id_token(self, subject: str, client_id: str) -> str:
        """Return an ID token (OpenID Connect Core 1.0, 2)."""
        return self.remember(self.key.sign({**self.registered_claims(subject, self.lifetime), "aud": client_id}))

    def registered_claims(self, subject: str, lifetime: float) -> JSONObject:
        """Return the claims that every token has (RFC 7519, 4.1)."""
        now = int(self.clock())
        return {
            "iss": self.issuer,
            "sub": subject,
            "iat": now,
            "exp": now + int(lifetime),
            "jti": secrets.token_hex(8),
        }

    def remember(self, token: str) -> str:
        """Remember a token as a secret."""
        self.issued.add(token)
        return token


def unverified_claim(token: str, name: str) -> str:
    """Return a claim of a token whose signature is not verified yet, or ""."""
    from joserfc import jws
    from joserfc.errors import JoseError

    try:
        payload = jws.extract_compact(token.encode()).payload
        return str(msgspec.json.decode(payload, type=dict[str, Any]).get(name, ""))
    except (JoseError, ValueError, msgspec.DecodeError):
        return ""
