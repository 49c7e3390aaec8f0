"""`TokenVerifier`: the common part of `JWT` and `Introspection`, from a bearer token to its principal."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from ssl import SSLContext
from typing import Literal

from msgspec import Raw, UnsetType

from accord.auth.dpop import NONCE_ERROR
from accord.auth.http import OAuthClient
from accord.auth.steps import Outcome, Steps, run_steps
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, DeclarationError, log_line
from accord.redaction import REDACTED, redact_beginning
from accord.server.auth.authentication import AuthRequest, access_token
from accord.server.auth.dpop import PROOF_ALGORITHMS, bound_key, dpop_verifier
from accord.server.auth.refusals import InsufficientScope, InvalidProof, InvalidToken, IssuerUnavailable, Unauthorized
from accord.server.auth.resource_location import ResourceLocation, RouteHandler
from accord.server.auth.scope_hierarchy import ScopeHierarchy, scope_set
from accord.server.auth.token_cache import TokenCache
from accord.server.core.principal import Claims, Principal
from accord.transport.asgi.request import ASGIRequest

log: logging.Logger = logging.getLogger("accord")

TOKEN_BYTES = 16_384
"""Limit of the length of a token, in bytes."""

AUTHENTICATION_REQUIRED = "authentication required: send `Authorization: Bearer TOKEN`"
PROOF_NEEDED = "the token is bound to a key: send it as `DPoP TOKEN`, with a proof"

_TOKEN = re.compile(rb"[!-~]+").fullmatch
_SUBJECT_CHARACTERS = 1_024
_LOG_SECONDS = 1.0


class TokenVerifier:
    """An `Auth` for the access tokens of one authorization server.

    A token that is bound to a key (DPoP, RFC 9449) needs a proof of possession in each request, and `accord[auth]`.
    `dpop="required"` refuses bearer tokens. `dpop_nonces=True` demands nonces in proofs, so that nobody can make proofs
    in advance; several processes of a server need a common secret instead: `dpop_nonces=SECRET`.
    """

    def __init__(
        self,
        issuer: str,
        *,
        required_scopes: Collection[str],
        implies: Mapping[str, Collection[str]] | None,
        allow_clients: bool,
        dpop: Literal["accepted", "required"],
        dpop_nonces: bool | str,
        ssl: SSLContext | None,
        proxy: str | None,
    ) -> None:
        try:
            check_url(issuer, "issuer")
        except AuthorizationError as exc:
            raise DeclarationError(str(exc)) from exc
        self.issuer: str = issuer
        """The authorization server whose tokens are accepted."""
        self.required_scopes: frozenset[str] = scope_set("required_scopes", required_scopes)
        """The scopes that every request needs."""
        self.requires_proofs: bool = dpop == "required"
        """Whether bearer tokens are refused."""
        self._proofs = dpop_verifier(dpop, dpop_nonces)
        self._hierarchy = ScopeHierarchy(implies)
        self._allow_clients = allow_clients
        self._ssl = ssl
        self._proxy = proxy
        self._cache = TokenCache()
        self._logged_at = float("-inf")
        self._unlogged = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.issuer!r})"

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Return the principal of the request's token. Raises `Unauthorized`, `InsufficientScope`,
        `IssuerUnavailable`.
        """
        sent = access_token(request)
        if sent is None:
            raise Unauthorized(AUTHENTICATION_REQUIRED)
        token, with_proof = sent
        key = self._cache.digest(token)
        principal = self._cache.get(key)
        if principal is None:
            if len(token) > TOKEN_BYTES or not _TOKEN(token):
                raise self.refuse("the Authorization header has no token", f"{len(token)} bytes")
            principal = await self.verify(token, key, request)
        if with_proof or self.requires_proofs or principal.thumbprint is not None:
            self._check_possession(request, token, with_proof, principal.thumbprint)
        if not self.required_scopes <= principal.scopes:
            raise InsufficientScope(self.required_scopes)
        return principal

    def _check_possession(self, request: AuthRequest, token: bytes, with_proof: bool, thumbprint: str | None) -> None:
        """Check that the sender of a token has the key to which it is bound. Raises `InvalidProof`, `InvalidToken`.

        A bound token without a proof is refused: "such a protected resource MUST reject a DPoP-bound access token
        received as a bearer token" (RFC 9449, 7.2).
        """
        if thumbprint is None:
            expected = "a bearer token is not accepted here" if self.requires_proofs else "send it as a bearer token"
            raise self.refuse(f"the token is not bound to a key: {expected}", "no cnf")
        if self._proofs is None:
            raise self.refuse("the token is bound to a key, and only bearer tokens are accepted", "cnf")
        try:
            if not with_proof:
                raise InvalidProof(PROOF_NEEDED, "invalid_token")
            self._proofs.check(request, token, thumbprint)
        except InvalidProof as exc:
            text = f"a request with a token of {self.issuer} was refused: {exc.reason}"
            if exc.error != NONCE_ERROR:  # else the client sends the request again
                self._log(logging.WARNING, lambda: text)
            raise

    @property
    def proof_algorithms(self) -> Sequence[str]:
        """The algorithms of proofs that are accepted; none if proofs are not."""
        return () if self._proofs is None else PROOF_ALGORITHMS

    @property
    def verifiers(self) -> Sequence[TokenVerifier]:
        """This verifier: an `Auth` with verifiers makes the server a protected resource (RFC 9728)."""
        return (self,)

    def has_seen(self, token: bytes) -> bool:
        """Return whether a token is cached."""
        return self._cache.get(self._cache.digest(token)) is not None

    def recognizes(self, token: bytes) -> bool:
        """Return whether a token has a form that only this verifier issues, so that no other may see it."""
        return False

    async def verify(self, token: bytes, key: bytes, request: AuthRequest) -> Principal:
        """Return the principal of a token, and cache it under `key`. Raises `InvalidToken`, `IssuerUnavailable`."""
        raise NotImplementedError  # subclasses implement it

    def make_principal(
        self,
        subject: str | None,
        client: str | None,
        scopes: Collection[str],
        expires_at: float | None,
        claims: bytes,
        confirmation: Raw | UnsetType,
    ) -> Principal:
        """Return the principal of a verified token, whose `cnf` is `confirmation`. Raises `InvalidToken`."""
        try:
            thumbprint = bound_key(confirmation)
        except ValueError as exc:
            raise self.refuse(str(exc), "cnf", "cnf with jkt") from None
        if subject is None and client is not None and self._allow_clients:
            id = f"{self.issuer}#{checked_name(client)}"  # an issuer has no fragment and no blank: the two never meet
        elif subject is None:
            raise self.refuse("the token identifies no user", "no sub", "sub, or allow_clients=True")
        else:
            id = f"{self.issuer} {checked_name(subject)}"
        granted = self._hierarchy.expand(scopes)
        client = None if client is None else sys.intern(client)  # many tokens of few clients are cached
        return Principal(id, granted, self.issuer, client, Claims(claims), expires_at, thumbprint)

    def refuse(self, reason: str, found: object = None, expected: object = None, token: bytes = b"") -> InvalidToken:
        """Return the error for a token, after logging what was found and expected. `token` is redacted, where the
        issuer may have repeated it.
        """

        def text() -> str:
            details = "".join(
                f"; {word} {redact_beginning(str(value))}"
                for word, value in (("found", found), ("expected", expected))
                if value is not None
            )
            line = f"a token for {self.issuer} was refused: {reason}{details}"
            return line.replace(token.decode("ascii"), REDACTED) if token else line

        self._log(logging.WARNING, text)
        return InvalidToken(reason)

    def unavailable(self, exc: AuthorizationError) -> IssuerUnavailable:
        """Return the error for a token that cannot be verified now, after logging the reason."""
        self._log(logging.ERROR, lambda: f"no token of {self.issuer} can be verified: {exc}")
        return IssuerUnavailable("tokens cannot be verified now; the log of this server says why")

    def _log(self, level: int, text: Callable[[], str]) -> None:
        """Log at most one line a second, since anybody may send tokens: `text` is only called for that one."""
        now = time.monotonic()
        if now - self._logged_at < _LOG_SECONDS:
            self._unlogged += 1
            return
        before = f" ({self._unlogged} more before)" if self._unlogged else ""
        self._logged_at, self._unlogged = now, 0
        log.log(level, "accord: %s%s", log_line(text()), before)

    def issuer_for_clients(self, location: ResourceLocation, request: ASGIRequest) -> str:
        """Return the authorization server from which clients get their tokens, for a client that sent `request`."""
        return self.issuer

    def public_routes(self, name: str, location: ResourceLocation) -> Mapping[str, RouteHandler]:
        """Return the handlers of paths that are served without authentication. `name` is that of the server."""
        return {}

    async def close(self) -> None:
        """Close what was opened on this event loop; the next request opens it again."""

    async def request(self, steps: Steps[Outcome]) -> Outcome:
        """Run a part of a flow against the issuer. Raises `AuthorizationError`."""
        client = OAuthClient(self.issuer, ssl=self._ssl, proxy=self._proxy)
        try:
            return await run_steps(steps, client.send)
        finally:
            await client.close()


def checked_name(name: str) -> str:
    """Return a subject or client. Raises `InvalidToken` for one that is empty, too long, or not printable."""
    if not name or len(name) > _SUBJECT_CHARACTERS or not name.isprintable():
        raise InvalidToken("the token identifies no user")
    return name
