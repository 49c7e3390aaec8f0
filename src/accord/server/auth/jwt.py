"""`JWT`: access tokens that the server verifies itself (RFC 9068).

Server("shop", auth=JWT("https://login.example", "https://shop.example/mcp"))
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from ssl import SSLContext
from typing import Any, Literal

import msgspec

from accord.errors import AuthorizationError, DeclarationError
from accord.server.auth.authentication import AuthRequest
from accord.server.auth.issuer_keys import FRESH_SECONDS, IssuerKeys
from accord.server.auth.jwt_claims import LAST_EXPIRY, JWTParts, MalformedJWT, Names, TokenClaims, parse_jwt, scopes_in
from accord.server.auth.signatures import is_signed, load_algorithms
from accord.server.auth.token_verifier import TokenVerifier
from accord.server.core.principal import LEEWAY_SECONDS, Principal
from accord.server.core.visibility import words

_ALGORITHMS = (
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
    *("PS256", "PS384", "PS512", "RS256", "RS384", "RS512"),
)
_TYPES = ("at+jwt", "JWT")


class JWT(TokenVerifier):
    """JSON Web Tokens of one authorization server: `JWT("https://login.example", "https://shop.example/mcp")`. An
    `Auth`. Needs `accord[auth]`.

    `issuer` is compared byte for byte with `iss`; its metadata leads to its keys, unless `jwks_uri` names them.
    `audience` is what `aud` must contain: mostly the URL of this server. Tokens of Cognito have no `aud`: name
    `clients` instead, or in addition, whose tokens are accepted. A token is accepted until 60 s after `exp`.

    `algorithms` are those of the signature; `types` those of the header `typ`, of which a missing one counts as "JWT":
    `types=("at+jwt",)` is what RFC 9068 demands, and few servers send. Scopes are those of `scope` and `scp`, and of
    the claim `scopes_claim` ("permissions"). `required_scopes` are needed by every request; `implies` declares that
    a scope includes others, `{"admin": {"read"}}`. A token without `sub` is refused, unless `allow_clients` accepts
    clients that act for no user. `dpop` and `dpop_nonces` are those of `TokenVerifier`. `ssl` and `proxy` are for
    requests to the issuer.

    Raises `DeclarationError` for invalid options, and without joserfc.
    """

    def __init__(
        self,
        issuer: str,
        audience: str | Collection[str] | None = None,
        *,
        algorithms: Collection[str] = _ALGORITHMS,
        types: Collection[str] = _TYPES,
        clients: Collection[str] | None = None,
        scopes_claim: str | None = None,
        required_scopes: Collection[str] = (),
        implies: Mapping[str, Collection[str]] | None = None,
        allow_clients: bool = False,
        dpop: Literal["accepted", "required"] = "accepted",
        dpop_nonces: bool | str = False,
        jwks_uri: str | None = None,
        ssl: SSLContext | None = None,
        proxy: str | None = None,
    ) -> None:
        super().__init__(
            issuer,
            required_scopes=required_scopes,
            implies=implies,
            allow_clients=allow_clients,
            dpop=dpop,
            dpop_nonces=dpop_nonces,
            ssl=ssl,
            proxy=proxy,
        )
        self._audiences = frozenset({audience} if isinstance(audience, str) else audience or ())
        self._clients = None if clients is None else words("clients", clients)
        if not self._audiences and not self._clients:
            raise DeclarationError(
                "JWT() needs the audience of the tokens, mostly the URL of this server: without it, "
                'tokens for other servers would be accepted: JWT("https://login.example", "https://shop.example/mcp")'
            )
        self._types = frozenset(each.lower() for each in words("types", types))
        self._scopes_claim = scopes_claim
        self._algorithms = load_algorithms("JWT()", words("algorithms", algorithms))
        self._keys = IssuerKeys(issuer, jwks_uri, self._algorithms, self.request, self._cache.clear)

    async def verify(self, token: bytes, key: bytes, request: AuthRequest) -> Principal:
        """Return the principal of a token, and cache it. Raises `InvalidToken`, `IssuerUnavailable`."""
        try:
            parts = parse_jwt(token)
        except MalformedJWT as exc:
            raise self.refuse(str(exc)) from None
        self._check_header(parts)
        await self._check_signature(parts)
        self._check_claims(parts.claims)
        principal = self._principal(parts)
        until = min(time.time() + FRESH_SECONDS, (principal.expires_at or 0.0) + LEEWAY_SECONDS)
        self._cache.put(key, principal, len(parts.payload), until)  # later, its key may have been withdrawn
        return principal

    def _check_header(self, parts: JWTParts) -> None:
        """Raise `InvalidToken` for a header that is not that of an access token, before any work is done for it."""
        header = parts.header
        if header.alg not in self._algorithms:
            raise self.refuse("the algorithm of the token is not accepted", header.alg, ", ".join(self._algorithms))
        if header.crit is not msgspec.UNSET:
            raise self.refuse("the token has a critical header that is not known")
        kind = (header.typ or "JWT").lower().removeprefix("application/")
        if kind not in self._types:
            raise self.refuse("the token is of another type", header.typ, ", ".join(self._types))
        if parts.claims.iss != self.issuer:
            raise self.refuse("the token is from another issuer", parts.claims.iss, self.issuer)

    async def _check_signature(self, parts: JWTParts) -> None:
        header = parts.header
        try:
            keys = await self._keys.candidates(header.alg, header.kid)
        except AuthorizationError as exc:
            raise self.unavailable(exc) from None
        if not keys:
            raise self.refuse("the key of the token is not known", f"kid {header.kid}")
        algorithm = self._algorithms[header.alg]
        if not any(is_signed(algorithm, parts.signed, parts.signature, key) for key in keys):
            raise self.refuse("the signature of the token is not valid", f"kid {header.kid}")

    def _check_claims(self, claims: TokenClaims) -> None:
        """Raise `InvalidToken` for a token that has expired, or is not meant for this server."""
        now = time.time()
        if claims.exp is None or not 0 <= claims.exp < LAST_EXPIRY:
            raise self.refuse("the token has no time at which it expires", f"exp {claims.exp}")
        if now >= claims.exp + LEEWAY_SECONDS:
            raise self.refuse("the token has expired", f"exp {claims.exp}", f"after {now:.0f}")
        begins = max(claims.nbf or 0, claims.iat or 0)
        if begins > now + LEEWAY_SECONDS:
            raise self.refuse("the token is not valid yet", f"nbf or iat {begins}", f"at most {now:.0f}")
        if not claims.is_access_token:
            raise self.refuse("the token is not an access token", "claims of another kind of token")
        self._check_recipient(claims)

    def _check_recipient(self, claims: TokenClaims) -> None:
        """ "MCP servers MUST validate that access tokens were issued specifically for them as the intended audience"
        (Authorization, Token Handling).
        """
        if self._audiences.isdisjoint(claims.audiences) and (self._audiences or claims.aud is not None):
            expected = ", ".join(self._audiences) or "no aud, as clients= is given without an audience"
            raise self.refuse("the token is for another server", f"aud {claims.aud}", expected)
        if self._clients is not None and claims.client not in self._clients:
            raise self.refuse("the token is of another client", claims.client, ", ".join(self._clients))
        if not self._audiences and claims.token_use != "access":
            raise self.refuse("the token is not an access token", f"token_use {claims.token_use}", "access")

    def _principal(self, parts: JWTParts) -> Principal:
        claims = parts.claims
        scopes = scopes_in(claims.scope, claims.scp, self._further_scopes(parts.payload))
        return self.make_principal(claims.sub, claims.client, scopes, claims.exp, parts.payload, claims.cnf)

    def _further_scopes(self, payload: bytes) -> Names:
        if self._scopes_claim is None:
            return None
        value = msgspec.json.decode(payload, type=dict[str, Any]).get(self._scopes_claim)
        try:
            names: Names = msgspec.convert(value, Names)
        except msgspec.ValidationError:
            raise self.refuse(f"the claim {self._scopes_claim} is neither a text nor a list of texts") from None
        return names
