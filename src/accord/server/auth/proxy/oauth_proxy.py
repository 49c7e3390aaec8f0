"""`OAuthProxy`: MCP clients log in at providers that register no clients, such as GitHub, Google or Django.

Server("shop", auth=OAuthProxy(authorize=..., token=..., client_id="shop", client_secret=SECRET, verify=user_of))

For MCP clients the server is the authorization server. For the provider it is one ordinary client, whose tokens stay
here.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import time
from collections.abc import Collection, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from ssl import SSLContext
from weakref import WeakValueDictionary

from accord.auth.http import OAuthClient
from accord.auth.lookups import Lookups
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.auth.urls import Reach, canonical_resource
from accord.errors import DeclarationError, StoreError
from accord.server.auth.authentication import AuthRequest, resource_of
from accord.server.auth.proxy.client_documents import FETCHES_PER_ADDRESS, ClientDocuments
from accord.server.auth.proxy.database import ProxyDatabase
from accord.server.auth.proxy.endpoints import ProxyEndpoints
from accord.server.auth.proxy.grants import AccessToken, find_access_token
from accord.server.auth.proxy.login_flow import LoginFlow
from accord.server.auth.proxy.provider import LoginProvider
from accord.server.auth.proxy.sealing import Keys, check_keys
from accord.server.auth.proxy.settings import (
    ProviderAuthMethod,
    ProviderSettings,
    VerifyFunction,
    listed_scopes,
    ordered_scopes,
    proxy_settings,
)
from accord.server.auth.proxy.token_service import TokenService
from accord.server.auth.proxy.upstream import UpstreamLogin, UpstreamLogins
from accord.server.auth.refusals import IssuerUnavailable
from accord.server.auth.resource_location import ResourceLocation, RouteHandler
from accord.server.auth.scope_hierarchy import scope_set
from accord.server.auth.token_cache import TOKENS
from accord.server.auth.token_verifier import TokenVerifier
from accord.server.core.principal import Claims, Principal
from accord.transport.asgi.request import ASGIRequest

log: logging.Logger = logging.getLogger("accord")

CACHE_SECONDS = 60.0
"""How long a token that was revoked in another process is accepted."""

_KEYS = 64
"""After so many keys of one grant, those are looked up that the cache still has."""
_OWN_TOKEN = re.compile(rb"at_[A-Za-z0-9_-]{43}").fullmatch


class OAuthProxy(TokenVerifier):
    """The authorization server of MCP clients in front of a provider that registers no clients. An `Auth`. Needs
    `accord[auth]`.

        OAuthProxy(
            authorize="https://github.com/login/oauth/authorize",
            token="https://github.com/login/oauth/access_token",
            client_id="shop",
            client_secret=SECRET,
            verify=user_of,
        )

    `authorize` and `token` are the endpoints of the provider; `client_id` and `client_secret` are those of this server
    there, with the redirect URI `/callback` below the issuer (the public URL without the path of MCP). `verify` tells
    whose a token of the provider is: an async function that takes the token and returns the user's id, or claims with
    `sub` and possibly `scope`; or a `JWT` or `Introspection`. It raises `Forbidden` for a user who has no access.

    `scopes` are those that clients may request, and that are then requested from the provider, `offline_access` among
    them where it needs that for refresh tokens; `required_scopes` and `implies` are as for `JWT`. `issuer` is that of
    the provider, if `verify` is a function: ids of users begin with it, by default with the origin of `authorize`.
    `authorize_parameters` are added to the URL of the login; `auth_method` is how the secret is sent. `revoke` is the
    provider's revocation endpoint, used when a client revokes its tokens.

    `database` is the SQLite file of clients, logins and tokens, by default in the user's data folder. `key` is a random
    secret of at least 16 bytes that seals the provider's tokens in it, or a list of which the first seals and all open;
    by default one in a private file beside the database. `redirect_schemes` are the schemes of programs that clients
    may use in redirect URIs, besides https and http on loopback: `{"cursor"}`. Access tokens last `token_seconds`, and
    logins `session_seconds` after their last use. `ssl` and `proxy` are for requests to the provider.

    Raises `DeclarationError` for invalid options, and without `accord[auth]`.
    """

    def __init__(
        self,
        *,
        authorize: str,
        token: str,
        client_id: str,
        client_secret: str | None,
        verify: TokenVerifier | VerifyFunction,
        scopes: Collection[str] = (),
        required_scopes: Collection[str] = (),
        implies: Mapping[str, Collection[str]] | None = None,
        issuer: str | None = None,
        authorize_parameters: Mapping[str, str] | None = None,
        auth_method: ProviderAuthMethod = "client_secret_post",
        revoke: str | None = None,
        database: str | os.PathLike[str] | None = None,
        key: Keys = None,
        redirect_schemes: Collection[str] = (),
        token_seconds: float = 3_600,
        session_seconds: float = 30 * 86_400,
        ssl: SSLContext | None = None,
        proxy: str | None = None,
    ) -> None:
        if find_spec("cryptography") is None:
            raise DeclarationError("OAuthProxy() needs cryptography: pip install 'accord[auth]'")
        settings = ProviderSettings(
            authorize=authorize,
            token=token,
            client_id=client_id,
            client_secret=client_secret,
            verify=verify,
            issuer=issuer,
            authorize_parameters=dict(authorize_parameters or {}),
            auth_method=auth_method,
            revoke=revoke,
            scopes=ordered_scopes(scopes, scope_set("required_scopes", required_scopes)),
            is_offline="offline_access" in listed_scopes(scopes),
            ssl=ssl,
            proxy=proxy,
        )
        super().__init__(
            settings.identity,
            required_scopes=required_scopes,
            implies=implies,
            allow_clients=False,
            dpop="accepted",
            dpop_nonces=False,
            ssl=ssl,
            proxy=proxy,
        )
        self._proofs = None  # own tokens are not bound to a key
        self._settings = settings
        own = proxy_settings(redirect_schemes, token_seconds, session_seconds)
        path = default_path(settings) if database is None else Path(database)
        self._database = ProxyDatabase(path, check_keys(key))
        provider = LoginProvider(settings, time.time)
        self._lookups = Lookups()
        self._account_lookups: WeakValueDictionary[str, Lookups] = WeakValueDictionary()
        self._documents = ClientDocuments(self._fetch, own.redirect_schemes, time.time, self._log)
        self._logins = UpstreamLogins(provider, self._database, time.time, self._forget)
        self._flow = LoginFlow(provider, self._database, self._documents, time.time, random_text, self._log)
        self._tokens = TokenService(
            own, provider, self._database, self._logins, self._forget, time.time, random_text, self._log
        )
        self._cached_of: dict[bytes, set[bytes]] = {}
        """The keys in the cache of verified tokens, by grant."""

    def __repr__(self) -> str:
        return f"OAuthProxy({self._settings.authorize!r}, client_id={self._settings.client_id!r})"

    # --- access tokens -----------------------------------------------------------------------------------------

    async def authenticate(self, request: AuthRequest) -> Principal:
        """See `TokenVerifier.authenticate`. Also raises `InvalidToken` for a token for another server, with which this
        one shares the proxy or its database.
        """
        principal = await super().authenticate(request)
        resource, upstream = resource_of(request), principal.upstream
        if resource is None or not isinstance(upstream, UpstreamLogin) or upstream.resource == resource:
            return principal
        if canonical_resource(upstream.resource) != canonical_resource(resource):
            raise self.refuse("the token is for another server", upstream.resource, resource)
        return principal

    def recognizes(self, token: bytes) -> bool:
        """Return whether a token has the form of those that a proxy issues."""
        return _OWN_TOKEN(token) is not None

    async def verify(self, token: bytes, key: bytes, request: AuthRequest) -> Principal:
        """Return the principal of an access token of this proxy, and cache it. Raises `InvalidToken`,
        `IssuerUnavailable`.
        """
        found = None
        if _OWN_TOKEN(token):
            text, now = token.decode(), time.time()
            try:
                found = await self._database.run(lambda db, _: find_access_token(db, text, now))
            except StoreError as exc:
                log.error("accord: %s", exc)
                raise IssuerUnavailable("tokens cannot be verified now; try again later") from None
        if found is None:
            raise self.refuse("the token is not valid: it has expired, was revoked, or is unknown")
        principal = self._principal(found)
        until = min(time.time() + CACHE_SECONDS, found.expires_at)
        self._cache.put(key, principal, len(found.grant.claims), until)
        self._remember(found.id, key)
        return principal

    def _remember(self, grant: bytes, key: bytes) -> None:
        """Remember a key in the cache as one of a grant; those that the cache has dropped are forgotten in time."""
        if len(self._cached_of) >= TOKENS:
            self._cache.clear()
            self._cached_of.clear()
        keys = self._cached_of.setdefault(grant, set())
        keys.add(key)
        if len(keys) % _KEYS == 0:
            keys.intersection_update([each for each in keys if self._cache.get(each) is not None])

    def _principal(self, found: AccessToken) -> Principal:
        grant = found.grant
        return Principal(
            grant.principal,
            self._hierarchy.expand(grant.scopes),
            grant.issuer,
            grant.client_id,
            Claims(grant.claims),
            found.expires_at,
            upstream=UpstreamLogin(found.id, grant.resource, self._logins),
        )

    def _forget(self, grant: bytes) -> None:
        """Drop the tokens of a grant that has ended from the cache: they are refused from now on."""
        for key in self._cached_of.pop(grant, ()):
            self._cache.drop(key)

    # --- the authorization server ------------------------------------------------------------------------------

    def issuer_for_clients(self, location: ResourceLocation, request: ASGIRequest) -> str:
        """Return the issuer identifier of the proxy."""
        return location.issuer(request)

    def public_routes(self, name: str, location: ResourceLocation) -> Mapping[str, RouteHandler]:
        """Return the endpoints of the proxy."""
        return ProxyEndpoints(self._settings, self._flow, self._tokens, name, location).routes()

    async def close(self) -> None:
        """Close the database on this event loop."""
        await self._database.close()

    async def _fetch(self, request: OAuthRequest, account: str) -> OAuthResponse:
        """Fetch the metadata document of a client for an address, from public addresses only; see `accord.auth.http`.

        A proxy of the environment is not used: it would resolve names, and may reach a private network.
        """
        settings = self._settings
        client = OAuthClient(
            request.url,
            ssl=settings.ssl,
            proxy=settings.proxy or "",
            reach=Reach.PUBLIC,
            lookups=self._lookups_of(account),
        )
        try:
            return await client.send(request)
        finally:
            await client.close()

    def _lookups_of(self, account: str) -> Lookups:
        """Return the look-ups of names for an address, which are forgotten when the last one ends."""
        lookups = self._account_lookups.get(account)
        if lookups is None:
            lookups = self._account_lookups[account] = Lookups(FETCHES_PER_ADDRESS, self._lookups)
        return lookups


def random_text() -> str:
    """Return 256 random bits as a text of `A-Z a-z 0-9 - _`."""
    return secrets.token_urlsafe(32)


def default_path(settings: ProviderSettings) -> Path:
    """Return the file in the user's data folder for a client of a provider."""
    from platformdirs import user_data_path

    name = sha256(f"{settings.authorize} {settings.client_id}".encode()).hexdigest()[:16]
    return user_data_path("accord") / f"oauth-proxy-{name}.db"
