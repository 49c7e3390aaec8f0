"""Keys, JSON Web Tokens and proofs of possession of `AuthServer`. It needs `accord[auth]`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from accord.messages.base import JSONObject

_ALGORITHMS = ["ES256", "RS256"]


class SigningKey:
    """A key for ES256, with its public part as a JWK set."""

    def __init__(self, key_id: str) -> None:
        from joserfc.jwk import ECKey

        self._key = ECKey.generate_key("P-256", {"kid": key_id, "use": "sig", "alg": "ES256"})
        self.key_id: str = key_id

    def public_keys(self) -> JSONObject:
        """Return the JWK set of this key."""
        return {"keys": [dict(self._key.as_dict(private=False))]}

    def private_pem(self) -> bytes:
        """Return the private key as PEM (PKCS 8)."""
        return self._key.as_pem(private=True)

    def sign(self, claims: Mapping[str, Any], type: str = "JWT") -> str:
        """Return a signed token. `type` is its `typ`."""
        from joserfc import jwt

        header = {"alg": "ES256", "kid": self.key_id, "typ": type}
        return jwt.encode(header, dict(claims), self._key, algorithms=["ES256"])

    def prove(self, method: str, url: str, now: float, token_id: str, **claims: Any) -> str:
        """Return a proof of possession (RFC 9449, 4.2). `claims` are `ath` and `nonce`."""
        from joserfc import jwt

        public = {name: value for name, value in self._key.as_dict(private=False).items() if name in _THUMBPRINT}
        header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": public}
        body = {"htm": method, "htu": url, "iat": int(now), "jti": token_id, **claims}
        return jwt.encode(header, body, self._key, algorithms=["ES256"])


_THUMBPRINT = ("crv", "kty", "x", "y", "e", "n")


def verify_token(token: str, keys: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Return header and claims of a token that a key of a JWK set signed. Raises `ValueError`."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        decoded = jwt.decode(token, KeySet.import_key_set(keys), algorithms=_ALGORITHMS)  # type: ignore[arg-type]
    except (JoseError, KeyError, TypeError) as exc:
        raise ValueError(f"the token is not valid: {exc}") from exc
    return decoded.header, decoded.claims


def verify_proof(proof: str, method: str, url: str, now: float) -> tuple[str, JSONObject]:
    """Return the thumbprint of the key of a proof of possession, and its claims (RFC 9449, 4.3).

    Raises `ValueError`.
    """
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    try:
        key = import_key(jws.extract_compact(proof.encode()).headers()["jwk"])
        header, claims = verify_token(proof, {"keys": [dict(key.as_dict(private=False))]})
        thumbprint = key.thumbprint()
    except (JoseError, KeyError, TypeError) as exc:
        raise ValueError(f"the proof is not valid: {exc}") from exc
    expected = {"typ": "dpop+jwt", "htm": method, "htu": url.partition("?")[0]}
    found = {"typ": header.get("typ"), "htm": claims.get("htm"), "htu": claims.get("htu")}
    if found != expected:
        raise ValueError(f"found {found}, expected {expected}")
    if not abs(float(claims.get("iat", 0)) - now) <= 60 or not claims.get("jti"):
        raise ValueError("the proof is old, or has no jti")
    return thumbprint, claims


def encoded_digest(text: str) -> str:
    """Return the SHA-256 digest of a text, base64url without padding: `ath`, and a PKCE challenge."""
    return base64.urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
