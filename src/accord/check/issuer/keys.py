"""Keys of an issuer, and tokens with any header, claims and signature. Needs joserfc.

forge = TokenForge("http://127.0.0.1:9400", "https://shop.example/mcp")
forge.token("ann")                       # a valid access token
forge.token("ann", exp=None)             # without a claim
forge.token("ann", header={"kid": "x"})  # with another header
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import TargetError
from accord.messages.base import JSONObject

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, RSAKey

LIFETIME_SECONDS = 3_600
CLIENT = "accord-check"
"""The client that the tokens name."""


def encode_part(part: Any) -> str:
    """Return a part of a token in base64url; bytes as they are, other values as JSON."""
    raw = part if isinstance(part, bytes) else msgspec.json.encode(part)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class TokenForge:
    """Signs tokens of `issuer` for `audience`, with these scopes. Raises `TargetError` without joserfc."""

    def __init__(self, issuer: str, audience: str = "", scopes: Sequence[str] = ()) -> None:
        try:
            from joserfc.jwk import ECKey, RSAKey
        except ImportError as exc:
            raise TargetError("--as-issuer needs joserfc: pip install 'accord[auth]'") from exc
        self.issuer: str = issuer
        self.audience: str = audience
        self.scopes: Sequence[str] = scopes
        self._key: RSAKey = RSAKey.generate_key(2048, {"kid": "accord-check", "use": "sig", "alg": "RS256"})
        self._stranger: RSAKey = RSAKey.generate_key(2048, {"kid": "accord-check", "use": "sig", "alg": "RS256"})
        self._second: ECKey = ECKey.generate_key("P-256", {"kid": "accord-check-2", "use": "sig", "alg": "ES256"})

    @property
    def public_keys(self) -> JSONObject:
        """The JSON Web Key Set of the issuer."""
        return {"keys": [self._key.as_dict(private=False), self._second.as_dict(private=False)]}

    @property
    def stranger_key(self) -> JSONObject:
        """The public key of a stranger, which the issuer does not publish."""
        return dict(self._stranger.as_dict(private=False))

    @property
    def public_pem(self) -> bytes:
        """The public key of the issuer, as its file."""
        return self._key.as_pem(private=False)

    def claims(self, subject: str, **changes: Any) -> JSONObject:
        """Return the claims of a valid token, with changes; None leaves one out."""
        now = int(time.time())
        whole: JSONObject = {
            "iss": self.issuer,
            "sub": subject,
            "aud": self.audience,
            "exp": now + LIFETIME_SECONDS,
            "iat": now,
            "jti": f"{subject}-{now}",
            "client_id": CLIENT,
            **({"scope": " ".join(self.scopes)} if self.scopes else {}),
            **changes,
        }
        return {name: value for name, value in whole.items() if value is not None}

    def token(self, subject: str, *, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """Return a token that the issuer signed."""
        return self.sign(self._header(header), self.claims(subject, **changes))

    def strange_token(self, subject: str, *, header: Mapping[str, Any] | None = None) -> str:
        """Return a token that a stranger signed, with the header of the issuer's tokens."""
        return self.sign(self._header(header), self.claims(subject), self._stranger)

    def unsigned_token(self, subject: str, algorithm: str) -> str:
        """Return a token without a signature."""
        return f"{encode_part({'alg': algorithm, 'typ': 'at+jwt'})}.{encode_part(self.claims(subject))}."

    def confused_token(self, subject: str, secret: bytes) -> str:
        """Return a token whose HS256 signature has `secret` as its key."""
        text = f"{encode_part(self._header({'alg': 'HS256'}))}.{encode_part(self.claims(subject))}"
        return f"{text}.{encode_part(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"

    def sign(self, header: Mapping[str, Any], claims: Any, key: RSAKey | None = None) -> str:
        """Return a token with exactly this header and these claims."""
        from joserfc.jws import JWSRegistry

        text = f"{encode_part(dict(header))}.{encode_part(claims)}"
        algorithm = JWSRegistry(algorithms=["RS256"]).get_alg("RS256")
        return f"{text}.{encode_part(algorithm.sign(text.encode(), key or self._key))}"

    def _header(self, changes: Mapping[str, Any] | None) -> JSONObject:
        whole = {"alg": "RS256", "typ": "at+jwt", "kid": "accord-check", **(changes or {})}
        return {name: value for name, value in whole.items() if value is not None}
