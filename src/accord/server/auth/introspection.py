"""`Introspection`: access tokens that the authorization server verifies (RFC 7662), such as opaque ones.

Server("shop", auth=Introspection("https://login.example", client_id="shop", client_secret=SECRET))
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Collection, Mapping
from ssl import SSLContext
from typing import Literal, TypeAlias
from urllib.parse import quote_plus
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.auth.discovery import SERVER_STEP, fetch_server_metadata
from accord.auth.metadata import AuthorizationServerMetadata, decode_metadata
from accord.auth.steps import OAuthRequest, Steps, response_failure
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, DeclarationError
from accord.messages.duplicate_members import has_duplicates
from accord.server.auth.authentication import AuthRequest, sender_of
from accord.server.auth.jwt_claims import LAST_EXPIRY, Names, Number, scopes_in
from accord.server.auth.single_flight import SingleFlight
from accord.server.auth.token_cache import TOKENS
from accord.server.auth.token_verifier import TokenVerifier
from accord.server.core.fair_semaphore import FairSemaphore
from accord.server.core.principal import LEEWAY_SECONDS, Principal

INTROSPECTION_STEP = "introspection"
CACHE_SECONDS = 60.0
"""The time for which a response is used; a token that is revoked is accepted until then."""
_CONNECTIONS = 64
"""The most requests to the issuer at a time, on one event loop."""


class TokenDescription(msgspec.Struct, frozen=True):
    """The response of an introspection endpoint (RFC 7662, 2.2)."""

    active: bool
    iss: str | None = None
    sub: str | None = None
    aud: Names = None
    exp: Number | None = None
    nbf: Number | None = None
    scope: Names = None
    client_id: str | None = None
    cnf: Raw | UnsetType = UNSET


Introspected: TypeAlias = tuple[TokenDescription, bytes]
"""A response, decoded and as it came."""


class Introspection(TokenVerifier):
    """Tokens that an authorization server describes. An `Auth`:

        Introspection("https://login.example", client_id="shop", client_secret=SECRET)

    `client_id` and `client_secret` are those of this server at `issuer`; `endpoint` is the introspection endpoint, if
    the metadata of the issuer does not name it. `audience` is what `aud` must contain; without it, responses for
    `client_id` and those without `aud` are accepted, as not every issuer sends it. Responses are used for 60 s, never
    past `exp`, and concurrent requests with one token lead to one introspection. The other options are as for `JWT`.
    Raises `DeclarationError` for invalid options.
    """

    def __init__(
        self,
        issuer: str,
        *,
        client_id: str,
        client_secret: str,
        audience: str | Collection[str] | None = None,
        endpoint: str | None = None,
        required_scopes: Collection[str] = (),
        implies: Mapping[str, Collection[str]] | None = None,
        allow_clients: bool = False,
        dpop: Literal["accepted", "required"] = "accepted",
        dpop_nonces: bool | str = False,
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
        if not isinstance(client_secret, str) or not client_secret or not client_id:
            raise DeclarationError(
                "Introspection() needs client_id= and client_secret=, both not empty: "
                "if they come from the environment, are the variables set?"
            )
        self._client_id, self._client_secret = client_id, client_secret
        self._audiences = frozenset({audience} if isinstance(audience, str) else audience or {client_id})
        self._demands_audience = bool(audience)
        self._endpoint = endpoint
        self._metadata: AuthorizationServerMetadata | None = None
        self._discoveries = SingleFlight[AuthorizationServerMetadata]()
        self._flights = SingleFlight[Introspected](cancellable=True)
        self._refused: dict[bytes, float] = {}
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSemaphore] = WeakKeyDictionary()

    async def verify(self, token: bytes, key: bytes, request: AuthRequest) -> Principal:
        """Return the principal of a token, and cache it. Raises `InvalidToken`, `IssuerUnavailable`."""
        if self._refused.get(key, 0.0) > time.monotonic():
            raise self.refuse("the token is not valid", "a token that was refused before")
        try:
            described, body = await self._flights.run(key, lambda: self._introspect(token, sender_of(request)))
        except AuthorizationError as exc:
            raise self.unavailable(exc) from None
        try:
            self._check(described, token)
            principal = self.make_principal(
                described.sub, described.client_id, scopes_in(described.scope), described.exp, body, described.cnf
            )
        except Exception:
            self._remember_refusal(key)
            raise
        now = time.time()
        self._cache.put(key, principal, len(body), min(now + CACHE_SECONDS, described.exp or now + CACHE_SECONDS))
        return principal

    def _check(self, described: TokenDescription, token: bytes) -> None:
        """Raise `InvalidToken` for a token that is not active, or not meant for this server."""
        now = time.time()
        if not described.active:
            raise self.refuse("the token is not valid: it has expired, was revoked, or is unknown", "active false")
        if described.exp is not None and not 0 <= described.exp < LAST_EXPIRY:
            raise self.refuse("the token has no time at which it expires", f"exp {described.exp}", "seconds since 1970")
        if described.exp is not None and now >= described.exp + LEEWAY_SECONDS:
            raise self.refuse("the token has expired", f"exp {described.exp}", f"after {now:.0f}")
        if described.nbf is not None and described.nbf > now + LEEWAY_SECONDS:
            raise self.refuse("the token is not valid yet", f"nbf {described.nbf}", f"at most {now:.0f}")
        if described.iss is not None and described.iss != self.issuer:
            raise self.refuse("the token is from another issuer", described.iss, self.issuer, token)
        audiences = [described.aud] if isinstance(described.aud, str) else described.aud
        if audiences is None and not self._demands_audience:
            return
        if self._audiences.isdisjoint(audiences or ()):  # without aud, it may be a refresh token
            found, expected = (
                f"aud {described.aud}",
                ", ".join(sorted(self._audiences)) + ("" if self._demands_audience else " (client_id=), or audience="),
            )
            raise self.refuse("the token is for another server", found, expected, token)

    def _remember_refusal(self, key: bytes) -> None:
        if len(self._refused) >= TOKENS:
            del self._refused[next(iter(self._refused))]
        self._refused[key] = time.monotonic() + CACHE_SECONDS

    async def _introspect(self, token: bytes, account: str) -> Introspected:
        loop = asyncio.get_running_loop()
        slots = self._slots.setdefault(loop, FairSemaphore(_CONNECTIONS))
        async with slots.slot(account):
            if self._endpoint is None and self._metadata is None:
                self._metadata = await self._discoveries.run(
                    None, lambda: self.request(fetch_server_metadata(self.issuer))
                )
            return await self.request(self._steps(token.decode("ascii")))

    def _steps(self, token: str) -> Steps[Introspected]:
        endpoint = self._endpoint
        if endpoint is None and self._metadata is not None:
            endpoint = self._metadata.introspection_endpoint
        if endpoint is None:
            raise AuthorizationError(SERVER_STEP, f"{self.issuer} has no introspection_endpoint", "name it: endpoint=")
        check_url(endpoint, "introspection endpoint")
        request = self._request(endpoint, token)
        response = yield request
        if response.status != 200:
            cure = "is this the client ID of this server there, with its secret?" if response.status == 401 else ""
            raise response_failure(f"{INTROSPECTION_STEP} at {endpoint}", response, cure, request)
        return decode_response(response.body), response.body

    def _request(self, endpoint: str, token: str) -> OAuthRequest:
        """Return the request. The secret is sent as HTTP Basic (RFC 6749, 2.3.1) unless the issuer lists only
        `client_secret_post`.
        """
        headers, form = {"Accept": "application/json"}, {"token": token, "token_type_hint": "access_token"}
        listed = self._metadata and self._metadata.introspection_endpoint_auth_methods_supported
        if listed and "client_secret_basic" not in listed and "client_secret_post" in listed:
            form |= {"client_id": self._client_id, "client_secret": self._client_secret}
        else:
            pair = f"{quote_plus(self._client_id)}:{quote_plus(self._client_secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return OAuthRequest(INTROSPECTION_STEP, "POST", endpoint, headers, form)


def decode_response(body: bytes) -> TokenDescription:
    """Return a response, in which no member occurs twice: of two, another parser takes the other one. Raises
    `AuthorizationError`.
    """
    described = decode_metadata(body, TokenDescription, INTROSPECTION_STEP)
    try:
        repeats = has_duplicates(body)
    except RecursionError:
        repeats = True
    if repeats:
        raise AuthorizationError(INTROSPECTION_STEP, "the response has a member twice, or is nested too deeply")
    return described
