"""`Alternatives`: several ways to authenticate on one server, `auth=[JWT(...), JWT(...), APIKeys(...)]`."""

from __future__ import annotations

from collections.abc import Sequence

from accord.errors import DeclarationError
from accord.server.auth.authentication import Auth, AuthRequest, access_token
from accord.server.auth.jwt import JWT
from accord.server.auth.jwt_claims import unverified_issuer
from accord.server.auth.refusals import InvalidProof, Unauthorized
from accord.server.auth.token_verifier import AUTHENTICATION_REQUIRED, TOKEN_BYTES, TokenVerifier
from accord.server.core.principal import Principal


class Alternatives:
    """An `Auth` that consists of others; the first that accepts a request decides.

    A JWT is verified only by what is declared for its issuer, and a token of an `OAuthProxy` only by that: no other
    authorization server may see it. Opaque tokens are introspected in the order of declaration. Raises
    `DeclarationError`.
    """

    def __init__(self, parts: Sequence[Auth]) -> None:
        if not parts or not all(hasattr(each, "authenticate") for each in parts):
            raise DeclarationError(
                "auth= takes an authentication method, or a list of them: [JWT(...), APIKeys({...})]"
            )
        self._others: list[Auth] = [each for each in parts if not isinstance(each, TokenVerifier)]
        self.verifiers: list[TokenVerifier] = [each for each in parts if isinstance(each, TokenVerifier)]
        """The parts that accept tokens of authorization servers."""
        issuers = [(type(each), each.issuer) for each in self.verifiers]
        if twice := next((issuer for kind, issuer in issuers if issuers.count((kind, issuer)) > 1), None):
            raise DeclarationError(f"auth= has {twice!r} twice: give one JWT() several audiences")

    def __repr__(self) -> str:
        return f"Alternatives({[*self._others, *self.verifiers]!r})"

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Return the principal of a request. Raises `AuthRefused`."""
        sent = access_token(request)
        token = None if sent is None else sent[0]
        for verifier in self.verifiers:
            if token and verifier.has_seen(token):
                return await verifier.authenticate(request)
        refusal: Unauthorized | None = None
        for part in (*self._others, *self._verifiers_of(token)):
            try:
                return await part.authenticate(request)
            except InvalidProof:
                raise  # the token is valid here
            except Unauthorized as exc:
                refusal = exc
        if refusal is None and token is not None:
            refusal = self._refuse_issuer(token)
        raise refusal or Unauthorized(AUTHENTICATION_REQUIRED)

    def _refuse_issuer(self, token: bytes) -> Unauthorized:
        expected = ", ".join(each.issuer for each in self.verifiers)
        return self.verifiers[0].refuse("the token is from another issuer", unverified_issuer(token), expected)

    def _verifiers_of(self, token: bytes | None) -> Sequence[TokenVerifier]:
        """Return the verifiers of a token: those of its issuer if it is a JWT, the one that recognizes it, else those
        of opaque tokens.
        """
        if not token or len(token) > TOKEN_BYTES:
            return []
        issuer = unverified_issuer(token)
        if issuer is not None:
            return [each for each in self.verifiers if each.issuer == issuer]
        recognized = [each for each in self.verifiers if each.recognizes(token)]
        return recognized or [each for each in self.verifiers if not isinstance(each, JWT)]
