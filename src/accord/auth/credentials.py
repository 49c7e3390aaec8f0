"""The credentials of one client: its tokens, renewed before they expire or when they are refused.

A grant gets a login: of a user (`OAuth`), or of a program (`ClientCredentials` and others). Renewal asks no user. One
task of one process renews at a time; the others then use what it has stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from accord.auth.challenge import Challenge, parse_challenges, select_challenge
from accord.auth.credential_store import CredentialStore, Login
from accord.auth.discovery import Discovery, DiscoveryOptions, discover
from accord.auth.http import OAuthClient
from accord.auth.steps import run_steps
from accord.auth.tokens import SecretAuthentication, Tokens, refresh_tokens
from accord.auth.urls import canonical_resource
from accord.errors import AuthorizationError, LoginNeeded, OAuthError
from accord.transport.http.credentials import RefusedRequest

_MARGIN_SECONDS = 30.0
"""A token that expires sooner is renewed before it is used."""

_NO_HEADERS: dict[str, str] = {}


class Grant(Protocol):
    """A way to get a login."""

    is_interactive: bool
    """Whether a user takes part."""

    @property
    def client_id(self) -> str | None:
        """The client ID that the user chose, if any: a login of another client is not used."""

    @property
    def options(self) -> DiscoveryOptions:
        """What the user chose for discovery."""

    def check_possible(self) -> None:
        """Raise `LoginNeeded` if the grant needs a user, and none is present."""

    async def obtain(self, discovery: Discovery, previous: list[str], store: CredentialStore) -> Login:
        """Return a new login, with the scopes requested before. Raises `AuthorizationError`."""


class GrantCredentials:
    """Credentials that a grant gets; see `accord.transport.http.credentials.Credentials`.

    `server` is the URL of the MCP server; `now` returns seconds since 1970.
    """

    def __init__(
        self,
        grant: Grant,
        server: str,
        http: OAuthClient,
        store: CredentialStore | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._grant = grant
        self._server = server
        self._http = http
        self._store = store or (CredentialStore() if grant.is_interactive else CredentialStore(":memory:"))
        self._now = now
        self._name = login_name(server)
        self._lock = asyncio.Lock()
        self._is_loaded = False
        self._is_open = False
        self._login: Login | None = None
        self._headers: dict[str, str] = _NO_HEADERS

    # --- the hot path ------------------------------------------------------------------------------------------

    def headers(self, method: str, url: str) -> Mapping[str, str] | None:
        """Return the headers for a request; None if the login is not loaded, or its token expires soon."""
        login = self._login
        if login is None:
            return _NO_HEADERS if self._is_loaded else None
        expires_at = login.tokens.expires_at
        if expires_at is not None and self._now() + _MARGIN_SECONDS >= expires_at and self._can_renew(login):
            return None
        return self._headers

    def _can_renew(self, login: Login) -> bool:
        return login.tokens.refresh_token is not None or not self._grant.is_interactive

    # --- renewal -----------------------------------------------------------------------------------------------

    async def renew(self) -> None:
        """Load the login, and renew its tokens if they expire soon. Raises `AuthorizationError`."""
        async with self._lock:
            await self._load()
            login = self._login
            if login is None or login.tokens.is_fresh(self._now(), _MARGIN_SECONDS) or not self._can_renew(login):
                return
            try:
                await self._renew(login)
            except AuthorizationError:
                if not login.tokens.is_fresh(self._now()):
                    raise  # else the token still is valid: the next request tries again

    async def _load(self) -> None:
        """Read the login from the store; another process may have renewed it."""
        login = None
        if self._is_open or self._store.exists:
            await self._open()
            login = await self._store.load(self._name)
        if login is not None and self._grant.client_id not in (None, login.client.client_id):
            login = None  # of another client
        self._use(login)
        self._is_loaded = True

    async def _open(self) -> None:
        if not self._is_open:
            await self._store.open()
            self._is_open = True

    def _use(self, login: Login | None) -> None:
        self._login = login
        self._headers = _NO_HEADERS if login is None else {"authorization": _authorization(login.tokens)}

    async def _renew(self, login: Login) -> None:
        """Get new tokens for a login, in one process at a time. The others read what that one has stored."""
        async with self._store.lease(self._name):
            stored = await self._store.load(self._name)
            if stored is not None and stored.tokens.access_token != login.tokens.access_token:
                self._use(stored)
                return
            if login.tokens.refresh_token is None:
                await self._obtain(login.discovery)
                return
            try:
                tokens = await self._refresh(login)
            except OAuthError as exc:
                if exc.error == "invalid_grant":
                    await self._store.delete_refresh_token(self._name, login.tokens.refresh_token)
                    self._use(await self._store.load(self._name))
                    return
                raise
            renewed = msgspec.structs.replace(login, tokens=tokens)
            await self._store.save(self._name, renewed)
            self._use(renewed)

    async def _refresh(self, login: Login) -> Tokens:
        discovery = login.discovery
        steps = refresh_tokens(
            discovery.metadata, SecretAuthentication(login.client), login.tokens, discovery.resource, self._now()
        )
        return await run_steps(steps, self._http.send)

    async def _obtain(self, discovery: Discovery) -> None:
        """Get a new login from the grant, and store it."""
        await self._open()
        previous = [] if self._login is None else self._login.tokens.requested
        login = await self._grant.obtain(discovery, previous, self._store)
        await self._store.save(self._name, login)
        self._use(login)

    # --- refusals ----------------------------------------------------------------------------------------------

    async def retry(self, refusal: RefusedRequest) -> bool:
        """Renew the login after a refusal without the user; return whether the request may be sent again."""
        async with self._lock:
            if not self._is_loaded or dict(refusal.sent) != self._headers:  # another task has renewed it meanwhile
                return refusal.attempt == 0
            login = self._login
            if refusal.status == 401 and login is not None and login.tokens.refresh_token is not None:
                await self._renew(login)
                return refusal.attempt == 0 and dict(refusal.sent) != self._headers
            if self._grant.is_interactive or refusal.attempt or not self._needs_login(refusal):
                return False
            await self._obtain(await self._discover(refusal))
            return True

    def error(self, refusal: RefusedRequest) -> AuthorizationError | None:
        """Return `LoginNeeded` if a login of the user may help, or None."""
        if not self._needs_login(refusal):
            return None
        error = login_needed(self._server)
        error.refusal = refusal
        return error

    def _needs_login(self, refusal: RefusedRequest) -> bool:
        """Return whether a login with other scopes, or any login, may help."""
        if refusal.status == 401:
            return True
        challenge = _challenge(refusal)
        if challenge is None or challenge.error != "insufficient_scope":
            return False
        requested = [] if self._login is None else self._login.tokens.requested
        return bool(set(challenge.scopes or ()) - set(requested))

    async def login(self, refusal: RefusedRequest) -> None:
        """Log the user in after a refusal, unless another task has done so. Raises `AuthorizationError`."""
        self._grant.check_possible()
        async with self._lock:
            if self._is_loaded and dict(refusal.sent) != self._headers:
                return
            await self._obtain(await self._discover(refusal))

    async def _discover(self, refusal: RefusedRequest) -> Discovery:
        await self._open()
        options = msgspec.structs.replace(self._grant.options, preferred_issuers=await self._store.issuers())
        return await run_steps(discover(self._server, _challenge(refusal), options), self._http.send)

    async def close(self) -> None:
        """Close the store and the connections."""
        self._is_loaded, self._login, self._headers = False, None, _NO_HEADERS
        if self._is_open:
            self._is_open = False
            await self._store.close()
        await self._http.close()


def login_name(server: str) -> str:
    """Return the name of the login at `server`, the URL of an MCP server, in the store."""
    return canonical_resource(server)


def _challenge(refusal: RefusedRequest) -> Challenge | None:
    return select_challenge(parse_challenges(refusal.challenges))


def _authorization(tokens: Tokens) -> str:
    return f"{tokens.token_type} {tokens.access_token}"


def login_needed(server: str) -> LoginNeeded:
    """Return the error for a login without a user."""
    return LoginNeeded("login", f"HTTP 401: {server} needs a login", f"run: accord login {server}")
