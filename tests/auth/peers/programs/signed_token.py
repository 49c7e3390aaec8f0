"""A `TokenVerifier` of the official SDK, with PyJWT: what its documentation leaves to the user."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import jwt

LEEWAY_SECONDS = 60


class Verifier:
    """Accepts the tokens of one issuer for one resource. `kind` is the `AccessToken` of the SDK."""

    def __init__(self, issuer: str, resource: str, kind: Any) -> None:
        self._issuer, self._resource, self._kind = issuer, resource, kind
        self._keys = jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> Any:
        try:
            claims = await asyncio.to_thread(self._claims, token)
        except jwt.PyJWTError:
            return None
        if claims["exp"] + LEEWAY_SECONDS < time.time():
            return None
        return self._kind(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims["sub"],
            claims=claims,
        )

    def _claims(self, token: str) -> dict[str, Any]:
        times = {"verify_exp": False, "verify_iat": False}  # PyJWT has a clock that on_clock.py does not move
        key = self._keys.get_signing_key_from_jwt(token)
        return jwt.decode(token, key, algorithms=["ES256"], audience=self._resource, issuer=self._issuer, options=times)
