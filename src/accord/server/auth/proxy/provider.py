"""The provider as this server uses it: login URL, code, refresh, revocation, and whose tokens they are.

Requests to its token endpoint are never redirected, since they have secrets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit
from weakref import WeakKeyDictionary

import msgspec

from accord.auth.client_authentication import SecretAuthentication
from accord.auth.code_grant import code_challenge
from accord.auth.http import OAuthClient
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration
from accord.auth.steps import Outcome, Steps, run_steps
from accord.auth.tokens import Tokens, request_tokens, revoke_token, tokens_of
from accord.errors import AuthorizationError, OAuthError
from accord.redaction import redacted_traceback
from accord.server.auth.jwt_claims import Names, scopes_in
from accord.server.auth.proxy.authorization import ProviderRefusal
from accord.server.auth.proxy.settings import ProviderSettings
from accord.server.auth.refusals import AuthRefused, IssuerUnavailable
from accord.server.auth.token_verifier import TokenVerifier, checked_name
from accord.server.core.fair_semaphore import FairSemaphore
from accord.server.core.principal import Principal
from accord.transport.deadlines import is_cancelled

log: logging.Logger = logging.getLogger("accord")

VERIFY_SECONDS = 30.0
"""Time limit of `verify`."""
CODE_STEP = "provider token request"
RENEWAL_STEP = "provider token refresh"
_CLIENT_CURE = "compare the client ID, its secret and the redirect URI with those at the provider"


_CONNECTIONS = 64
"""The most requests to the provider at a time, on one event loop."""


class Identity(msgspec.Struct, frozen=True):
    """The owner of tokens: the id of the principal, the scopes that the client gets, and the claims as JSON."""

    principal: str
    issuer: str
    scopes: list[str]
    claims: bytes

    def __repr__(self) -> str:
        return f"Identity({self.principal!r}, {self.scopes})"  # claims may be personal data


class _BearerRequest:
    """A request with a token of the provider, as a `TokenVerifier` reads it."""

    method = "POST"
    path = "/"
    url = ""

    def __init__(self, token: str) -> None:
        self.response_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.headers: Mapping[bytes, bytes] = {b"authorization": b"Bearer " + token.encode()}


class LoginProvider:
    """The provider. `now` returns seconds since 1970."""

    def __init__(self, settings: ProviderSettings, now: Callable[[], float]) -> None:
        self.settings = settings
        self._now = now
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSemaphore] = WeakKeyDictionary()
        self._metadata = AuthorizationServerMetadata(
            issuer=settings.identity, token_endpoint=settings.token, revocation_endpoint=settings.revoke
        )
        method = settings.auth_method if settings.client_secret is not None else "none"
        self._authentication = SecretAuthentication(
            ClientRegistration(settings.identity, settings.client_id, "given", settings.client_secret, method)
        )

    def __repr__(self) -> str:
        return f"LoginProvider({self.settings!r})"

    def authorization_url(self, redirect_uri: str, state: str, verifier: str, scopes: list[str]) -> str:
        """Return the URL of the login at the provider."""
        settings = self.settings
        requested = [*scopes, *(["offline_access"] if settings.is_offline else [])]
        parameters = {
            **settings.authorize_parameters,
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": code_challenge(verifier),
            "code_challenge_method": "S256",
        }
        if requested:
            parameters["scope"] = " ".join(requested)
        separator = "&" if urlsplit(settings.authorize).query else "?"
        return f"{settings.authorize}{separator}{urlencode(parameters)}"

    async def redeem(self, code: str, verifier: str, redirect_uri: str, scopes: list[str], account: str) -> Tokens:
        """Return the tokens for a code, which the browser of an address has sent. Raises `AuthorizationError`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        return await self._send(self._token_steps(form, CODE_STEP, scopes), account)

    async def refresh(self, tokens: Tokens, account: str) -> Tokens:
        """Return renewed tokens of a user, the `account`. Raises `OAuthError` with `invalid_grant` if the login has
        ended at the provider, and `AuthorizationError` for other failures.

        Without a new refresh token, the old one stays valid (OAuth 2.1, 4.3.2).
        """
        if tokens.refresh_token is None:
            raise OAuthError(RENEWAL_STEP, "invalid_grant", "the provider issued no refresh token")
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token}
        renewed = await self._send(self._token_steps(form, RENEWAL_STEP, tokens.scopes), account)
        return msgspec.structs.replace(renewed, refresh_token=renewed.refresh_token or tokens.refresh_token)

    def _token_steps(self, form: dict[str, str], step: str, scopes: list[str]) -> Steps[Tokens]:
        response = yield from request_tokens(self._metadata, self._authentication, form, step=step, cure=_CLIENT_CURE)
        tokens = tokens_of(response, scopes, self._now())
        if tokens.token_type != "Bearer":
            raise AuthorizationError(step, f"found token_type {tokens.token_type}, expected Bearer")
        return tokens

    async def revoke(self, tokens: Tokens) -> None:
        """Revoke tokens at the provider, if it can; a failure is logged."""
        if self.settings.revoke is None:
            return
        try:
            if tokens.refresh_token is not None:
                steps = revoke_token(self._metadata, self._authentication, tokens.refresh_token, "refresh_token")
            else:
                steps = revoke_token(self._metadata, self._authentication, tokens.access_token, "access_token")
            await self._send(steps, "")
        except AuthorizationError as exc:
            log.warning("accord: the provider's tokens of a login that has ended could not be revoked: %s", exc)

    async def _send(self, steps: Steps[Outcome], account: str) -> Outcome:
        settings = self.settings
        slots = self._slots.setdefault(asyncio.get_running_loop(), FairSemaphore(_CONNECTIONS))
        client = OAuthClient(settings.token, ssl=settings.ssl, proxy=settings.proxy)
        try:
            async with slots.slot(account):
                return await run_steps(steps, client.send)
        finally:
            await client.close()

    # --- identity ----------------------------------------------------------------------------------------------

    async def identify(self, tokens: Tokens, requested: list[str]) -> Identity:
        """Return whose tokens they are; `requested` are the scopes of the client. Raises `ProviderRefusal`."""
        verify = self.settings.verify
        try:
            async with asyncio.timeout(VERIFY_SECONDS):
                if isinstance(verify, TokenVerifier):
                    principal = await verify.authenticate(_BearerRequest(tokens.access_token))
                    return self._identity_of(principal, requested)
                return self._identity_from(await verify(tokens.access_token), tokens, requested)
        except IssuerUnavailable as exc:
            raise ProviderRefusal("temporarily_unavailable", str(exc)) from None
        except AuthRefused as exc:
            raise ProviderRefusal("access_denied", str(exc)) from None
        except BaseException as exc:
            if is_cancelled(exc):
                raise
            text = redacted_traceback(exc, tokens.access_token, tokens.refresh_token)
            log.error("accord: verify= of OAuthProxy failed\n%s", text)
            raise ProviderRefusal("server_error", "the user could not be identified") from None

    def _identity_of(self, principal: Principal, requested: list[str]) -> Identity:
        claims = msgspec.json.encode(dict(principal.claims))
        return Identity(
            principal.id,
            principal.issuer or self.settings.identity,
            self._granted(principal.scopes, requested),
            claims,
        )

    def _identity_from(self, found: object, tokens: Tokens, requested: list[str]) -> Identity:
        """Return the identity that the function `verify` returned. Raises `TypeError` for any other value."""
        claims: dict[str, Any] = {"sub": found} if isinstance(found, str) else _claims(found)
        subject = claims.get("sub")
        if isinstance(subject, int) and not isinstance(subject, bool):
            subject = str(subject)
        if not isinstance(subject, str):
            raise TypeError("verify= must return the user's id, or claims with sub")
        if "scope" in claims:
            scopes: Collection[str] = scopes_in(msgspec.convert(claims["scope"], Names))
        else:
            scopes = [name for scope in tokens.scopes for name in scope.split(",")]  # GitHub separates them so
        issuer = self.settings.identity
        return Identity(
            f"{issuer} {checked_name(subject)}", issuer, self._granted(scopes, requested), msgspec.json.encode(claims)
        )

    def _granted(self, scopes: Collection[str], requested: list[str]) -> list[str]:
        """Return the scopes of a user that a client gets: of those that clients may request, the requested ones."""
        known = self.settings.scopes
        return [scope for scope in requested if scope in scopes] + sorted(set(scopes).difference(known))


def _claims(found: object) -> dict[str, Any]:
    if not isinstance(found, Mapping):
        raise TypeError(f"verify= returned {type(found).__name__}: it must return the user's id, or claims with sub")
    return dict(found)
