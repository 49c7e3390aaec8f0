"""`ProgramTokens`: the authentication of a server by the token verifier of a program."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from accord.server.auth.authentication import AuthRequest
from accord.server.auth.token_verifier import TokenVerifier
from accord.server.core.principal import Principal

_NO_ISSUER = "https://issuer.invalid"


class ProgramTokens(TokenVerifier):
    """The tokens that `verify_token` of a program accepts; it is called for every request.

    The metadata of the server names `issuer`; without one there is no metadata. `resource` is that of the tokens, if it
    is to be compared. Tokens without a user belong to their client, as in the other libraries.
    """

    def __init__(
        self, verifier: Any, issuer: str | None, required_scopes: Collection[str] | None, resource: str | None = None
    ) -> None:
        super().__init__(
            issuer or _NO_ISSUER,
            required_scopes=required_scopes or (),
            implies=None,
            allow_clients=True,
            dpop="accepted",
            dpop_nonces=False,
            ssl=None,
            proxy=None,
        )
        self._verifier = verifier
        self._resource = resource

    @property
    def verifiers(self) -> Sequence[TokenVerifier]:
        """See `TokenVerifier.verifiers`."""
        return () if self.issuer == _NO_ISSUER else (self,)

    async def verify(self, token: bytes, key: bytes, request: AuthRequest) -> Principal:
        """Return the principal of a token. Raises `InvalidToken`."""
        access = await self._verifier.verify_token(token.decode("latin-1"))
        if access is None:
            raise self.refuse("the token is not valid")
        if access.expires_at is not None and access.expires_at <= time.time():
            raise self.refuse("the token has expired", access.expires_at)
        if self._resource is not None and access.resource != self._resource:
            raise self.refuse("the token is for another server", access.resource, self._resource)
        claims = dict(getattr(access, "claims", None) or {})
        return self.make_principal(
            getattr(access, "subject", None) or claims.get("sub"),
            access.client_id,
            access.scopes,
            access.expires_at,
            msgspec.json.encode(claims),
            msgspec.Raw(msgspec.json.encode(claims["cnf"])) if "cnf" in claims else UNSET,
        )
