"""`OAuth`: how a user logs in to an MCP server, and the login itself.

    async with Client("https://mcp.example.com/mcp", auth=OAuth()) as client:

The first connection opens the browser if a user is present; the login is stored, and renewed when it expires. Without a
user, `LoginNeeded` says which command to run.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from accord.auth.callback import BrowserCallback, CallbackListener, open_browser
from accord.auth.code_grant import (
    PendingAuthorization,
    begin_authorization,
    parse_callback,
    read_callback,
    redeem_code,
    select_scopes,
)
from accord.auth.credential_store import CredentialStore, Login
from accord.auth.credentials import GrantCredentials, login_needed
from accord.auth.discovery import Discovery, DiscoveryOptions
from accord.auth.http import OAuthClient
from accord.auth.registration import ClientIdentity, ClientRegistration, client_metadata_document, identify_client
from accord.auth.steps import run_steps
from accord.auth.tokens import SecretAuthentication, Tokens
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, OAuthError

if TYPE_CHECKING:
    from ssl import SSLContext

Authorize: TypeAlias = Callable[[str], Awaitable[str]]
"""Receives the URL for the browser, and returns the URL of the callback, or its query."""

_LOGIN_SECONDS = 600.0
"""Time limit of a login in the browser."""


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """The login of a user by the authorization code grant: `Client(url, auth=OAuth())`.

    Raises `AuthorizationError` for an invalid `client_metadata_url`.
    """

    client_id: str | None = None
    """A client ID that you registered with the authorization server. Without one, the client registers itself."""
    client_secret: str | None = None
    client_metadata_url: str | None = None
    """The https URL of a client ID metadata document that you host (`accord auth metadata` writes it)."""
    client_name: str = "accord"
    """The name that the authorization server shows to the user."""
    scopes: Sequence[str] | None = None
    """The scopes to request; by default those that the server asks for."""
    port: int = 0
    """The port of the callback on this machine: the one you registered, or 0 for any."""
    redirect_uri: str | None = None
    """The redirect URI for `authorize`; by default a callback on this machine."""
    authorize: Authorize | None = None
    """How the user visits a URL, instead of the browser of this machine. It returns the URL of the callback."""
    interactive: bool | None = None
    """Whether a user is present to log in; by default, whether the program runs in a terminal."""
    store: CredentialStore | None = None
    """Where logins are stored; by default in the file of the user."""
    issuer: str | None = None
    """The authorization server, also if the MCP server names another. Relaxes a rule of the specification."""
    resource: str | None = None
    """The resource identifier, also if the MCP server publishes another. Relaxes a rule of the specification."""
    assume_pkce: bool = False
    """Whether an authorization server is used that does not state S256. Relaxes a rule of the specification."""

    def __post_init__(self) -> None:
        if self.client_metadata_url is not None:
            client_metadata_document(self.client_metadata_url, self.client_name, [])

    def __repr__(self) -> str:
        return f"OAuth(client_id={self.client_id!r})"  # without the secret

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        """Return the credentials of one client for `server`, the URL of an MCP server."""
        http = OAuthClient(server, ssl=ssl, proxy=proxy)
        return GrantCredentials(CodeGrant(self, server, http), server, http, self.store)


class CodeGrant:
    """The authorization code grant of one client. `now` returns seconds since 1970."""

    def __init__(self, settings: OAuth, server: str, http: OAuthClient, now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._server = server
        self._http = http
        self._now = now

    @property
    def client_id(self) -> str | None:
        """See `Grant.client_id`."""
        return self._settings.client_id

    @property
    def options(self) -> DiscoveryOptions:
        """What the user chose for discovery."""
        return DiscoveryOptions(issuer=self._settings.issuer, resource=self._settings.resource)

    def check_possible(self) -> None:
        """Raise `LoginNeeded` unless a user is present."""
        settings = self._settings
        present = settings.interactive
        if present is None:
            is_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
            present = settings.authorize is not None or is_terminal
        if not present:
            raise login_needed(self._server)

    is_interactive = True

    async def obtain(self, discovery: Discovery, previous: list[str], store: CredentialStore) -> Login:
        """Log the user in. Raises `AuthorizationError`."""
        if self._settings.authorize is not None:
            redirect_uri = self._settings.redirect_uri or f"http://127.0.0.1:{self._settings.port or 33418}/callback"
            return await self._obtain(discovery, previous, store, redirect_uri, self._authorize_elsewhere)
        async with CallbackListener(self._settings.port) as listener:

            async def authorize(pending: PendingAuthorization) -> tuple[str, BrowserCallback | None]:
                return await _authorize_in_browser(pending, listener)

            return await self._obtain(discovery, previous, store, listener.redirect_uri, authorize)

    async def _obtain(
        self,
        discovery: Discovery,
        previous: list[str],
        store: CredentialStore,
        redirect_uri: str,
        authorize: Callable[[PendingAuthorization], Awaitable[tuple[str, BrowserCallback | None]]],
    ) -> Login:
        settings = self._settings
        client = await self._client(discovery, store, redirect_uri)
        chosen = None if settings.scopes is None else list(settings.scopes)
        pending = begin_authorization(
            discovery,
            client,
            redirect_uri,
            select_scopes(discovery, previous, chosen),
            lambda: secrets.token_urlsafe(32),
            assume_pkce=settings.assume_pkce,
        )
        check_url(pending.url.partition("?")[0], "authorization_endpoint")
        code, callback = await asyncio.wait_for(authorize(pending), _LOGIN_SECONDS)
        try:
            tokens = await self._redeem(pending, code, store)
        except AuthorizationError as exc:
            if callback is not None:
                callback.answer("Login failed", str(exc), 400)
            raise
        if callback is not None:
            callback.answer("You are logged in", "You can close this page.")
        return Login(discovery, client, tokens, settings.assume_pkce, settings.issuer is not None)

    async def _redeem(self, pending: PendingAuthorization, code: str, store: CredentialStore) -> Tokens:
        client = pending.client
        try:
            steps = redeem_code(pending, code, SecretAuthentication(client), self._now())
            return await run_steps(steps, self._http.send)
        except OAuthError as exc:
            if exc.error == "invalid_client" and client.source == "registered":
                await store.delete_registration(client.issuer, self._settings.client_name)
            raise

    async def _client(self, discovery: Discovery, store: CredentialStore, redirect_uri: str) -> ClientRegistration:
        """Return the client for an authorization server: stored, or identified anew."""
        settings = self._settings
        identity = ClientIdentity(
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            metadata_url=settings.client_metadata_url,
            name=settings.client_name,
        )
        stored = None
        if settings.client_id is None:
            stored = await store.load_registration(discovery.issuer, settings.client_name)
        if stored is not None and stored.is_valid(discovery.issuer, redirect_uri, self._now()):
            return stored
        client = await run_steps(identify_client(discovery.metadata, identity, redirect_uri), self._http.send)
        if client.source == "registered":
            await store.save_registration(settings.client_name, client)
        return client

    async def _authorize_elsewhere(self, pending: PendingAuthorization) -> tuple[str, BrowserCallback | None]:
        assert self._settings.authorize is not None
        answer = await self._settings.authorize(pending.url)
        return read_callback(pending, parse_callback(answer)), None


async def _authorize_in_browser(
    pending: PendingAuthorization, listener: CallbackListener
) -> tuple[str, BrowserCallback | None]:
    """Open the browser, and return the code of its callback. Callbacks with another state are ignored: any page in the
    browser can send them.
    """
    await open_browser(pending.url)
    while True:
        callback = await listener.receive()
        try:
            parameters = parse_callback(callback.query)
            if parameters.get("state") != pending.state:
                callback.answer("This is not the login in progress", "Begin the login again.", 400)
                continue
            return read_callback(pending, parameters), callback
        except AuthorizationError as exc:
            callback.answer("Login failed", str(exc), 400)
            raise
