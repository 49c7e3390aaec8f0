"""`APIKeys`: authentication by static keys."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import blake2b

from accord.errors import DeclarationError
from accord.server.auth.authentication import AuthRequest, bearer_token
from accord.server.auth.refusals import Unauthorized
from accord.server.core.principal import Principal

_KEY = re.compile(r"[!-~]+")


class APIKeys:
    """API keys and their principals: `APIKeys({"the key": "ann"})`. An `Auth`.

    A request sends its key as `Authorization: Bearer KEY`. A principal may have two keys, so that a key can be rotated
    without interruption. Keys should be random: `secrets.token_urlsafe(32)`. Raises `DeclarationError` for an invalid
    table.

    Keys are stored as digests under a random key of this process: neither the duration of a comparison nor a memory
    dump reveals them.
    """

    __slots__ = ("_digest", "_principals")

    def __init__(self, keys: Mapping[str, str | Principal]) -> None:
        if not isinstance(keys, Mapping) or not keys:
            raise DeclarationError('API keys must be a non-empty mapping: APIKeys({"the key": "whose it is"})')
        self._digest = blake2b(key=os.urandom(32), digest_size=32)
        self._principals: dict[bytes, Principal] = {}
        for key, owner in keys.items():
            principal = owner if isinstance(owner, Principal) else Principal(owner)
            self._principals[self._digest_of(_sendable(key, principal))] = principal

    def __repr__(self) -> str:
        return f"APIKeys(<{len(self._principals)} keys>)"

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Return the principal of the request's key. Raises `Unauthorized`."""
        token = bearer_token(request)
        if token is None:
            raise Unauthorized("authentication required: send `Authorization: Bearer KEY`")
        principal = self._principals.get(self._digest_of(token)) if token else None
        if principal is None:
            # RFC 6750, 3.1: "invalid_token: The access token provided is expired, revoked, malformed, or invalid"
            raise Unauthorized(
                "authentication failed: the Authorization header has no valid key (`Bearer KEY`)",
                challenge='Bearer error="invalid_token"',
            )
        return principal

    def _digest_of(self, key: bytes) -> bytes:
        digest = self._digest.copy()
        digest.update(key)
        return digest.digest()


def _sendable(key: str, principal: Principal) -> bytes:
    """Return a key as bytes. Raises `DeclarationError`, without the key, if it cannot be sent in a header."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise DeclarationError(
            f"the key of {principal.id!r} is empty, or not printable ASCII without blanks: "
            "if it comes from the environment, is the variable set?"
        )
    return key.encode()
