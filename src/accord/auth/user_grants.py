"""The logins of a user: in the browser of this machine, elsewhere, or on another device."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from accord.auth.callback import BrowserCallback, CallbackListener, open_browser
from accord.auth.client_authentication import SecretAuthentication
from accord.auth.code_grant import (
    PendingAuthorization,
    begin_authorization,
    parse_callback,
    read_callback,
    redeem_code,
    select_scopes,
)
from accord.auth.credential_store import CredentialStore
from accord.auth.device_grant import (
    DEVICE_GRANT,
    DevicePolling,
    PendingDevice,
    device_authorization_endpoint,
    request_device_code,
    request_device_tokens,
)
from accord.auth.discovery import Discovery, DiscoveryOptions
from accord.auth.dpop import DPoPKey, new_key, with_proof
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.registration import CODE_GRANTS, ClientIdentity, ClientRegistration, identify_client
from accord.auth.steps import Outcome, Steps, run_steps
from accord.auth.tokens import Tokens
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, OAuthError

_LOGIN_SECONDS = 600.0
"""Time limit of a login in the browser."""


Authorize: TypeAlias = Callable[[str], Awaitable[str]]
"""Receives the URL for the browser, and returns the URL of the callback, or its query."""

ShowDeviceCode: TypeAlias = Callable[[str, str], object]
"""Shows the user a page, and the code to enter there."""


class GrantSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a user's login; see `OAuth`."""

    identity: ClientIdentity
    options: DiscoveryOptions
    scopes: Sequence[str] | None = None
    port: int = 0
    redirect_uri: str | None = None
    authorize: Authorize | None = None
    show_device_code: ShowDeviceCode | None = None
    interactive: bool | None = None
    assume_pkce: bool = False


class InteractiveGrant:
    """The base class of the logins of a user: the settings, and the client. `now` returns seconds since 1970."""

    is_interactive = True
    extension = None
    _grant_types: Sequence[str] = CODE_GRANTS

    def __init__(
        self, settings: GrantSettings, server: str, http: OAuthClient, now: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._server = server
        self._http = http
        self._now = now

    @property
    def client_id(self) -> str | None:
        """See `Grant.client_id`."""
        return self._settings.identity.client_id

    @property
    def port(self) -> int:
        """See `Grant.port`."""
        return self._settings.port

    @property
    def options(self) -> DiscoveryOptions:
        """See `Grant.options`."""
        return self._settings.options

    @property
    def is_possible(self) -> bool:
        """See `Grant.is_possible`."""
        present = self._settings.interactive
        return self._has_user() if present is None else present

    def _has_user(self) -> bool:
        """Return whether a user is present, if the settings do not say."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    async def client(
        self, discovery: Discovery, store: CredentialStore, redirect_uri: str | None
    ) -> ClientRegistration:
        """Return the client for an authorization server: stored, or identified anew. Raises `AuthorizationError`."""
        identity, stored = self._settings.identity, await self.stored_client(discovery, store)
        if stored is not None and stored.is_valid(discovery.issuer, redirect_uri, self._now()):
            return stored
        steps = identify_client(discovery.metadata, identity, redirect_uri, self._grant_types)
        client = await run_steps(steps, self._http.send)
        if client.source == "registered":
            await store.save_registration(self.registration_name, client)
        return client

    async def stored_client(self, discovery: Discovery, store: CredentialStore) -> ClientRegistration | None:
        """Return the client that was registered before, unless the user has chosen one."""
        if self._settings.identity.client_id is not None:
            return None
        return await store.load_registration(discovery.issuer, self.registration_name)

    @property
    def registration_name(self) -> str:
        """The name of the registration in the store."""
        return self._settings.identity.name

    def _scopes(self, discovery: Discovery, previous: Login | None) -> list[str]:
        chosen = self._settings.scopes
        requested = [] if previous is None else previous.tokens.requested
        return select_scopes(discovery, requested, None if chosen is None else list(chosen))

    async def _as_known_client(
        self, steps: Steps[Outcome], client: ClientRegistration, store: CredentialStore
    ) -> Outcome:
        """Run a request of a client; one that the server does not know any more registers anew the next time."""
        try:
            return await run_steps(steps, self._http.send)
        except OAuthError as exc:
            if exc.error == "invalid_client" and client.source == "registered":
                await store.delete_registration(client.issuer, self.registration_name)
            raise

    def _login(
        self,
        discovery: Discovery,
        client: ClientRegistration,
        tokens: Tokens,
        key: DPoPKey | None,
        previous: Login | None,
    ) -> Login:
        options = self._settings.options
        return Login(
            discovery,
            client,
            tokens,
            assume_pkce=self._assumes_pkce(discovery, previous),
            chosen_issuer=options.issuer is not None or (previous is not None and previous.chosen_issuer),
            chosen_resource=options.resource is not None or (previous is not None and previous.chosen_resource),
            dpop_key=None if key is None else key.pem,
        )

    def _assumes_pkce(self, discovery: Discovery, previous: Login | None) -> bool:
        """Return whether the user has chosen S256 for this authorization server, now or at the previous login."""
        if self._settings.assume_pkce:
            return True
        return previous is not None and previous.assume_pkce and previous.discovery.issuer == discovery.issuer


class CodeGrant(InteractiveGrant):
    """The authorization code grant of one client; see `accord.auth.credentials.Grant`."""

    def _has_user(self) -> bool:
        return self._settings.authorize is not None or super()._has_user()

    async def obtain(self, discovery: Discovery, previous: Login | None, store: CredentialStore) -> Login:
        """Log the user in. Raises `AuthorizationError`."""
        if self._settings.authorize is not None:
            redirect_uri = self._settings.redirect_uri or f"http://127.0.0.1:{self._settings.port or 33418}/callback"
            return await self._obtain(discovery, previous, store, redirect_uri, self._authorize_elsewhere)
        registered = await self.stored_client(discovery, store)
        preferred = None if registered is None else registered.redirect_uri
        async with CallbackListener(self._settings.port, preferred) as listener:

            async def authorize(pending: PendingAuthorization) -> tuple[str, BrowserCallback | None]:
                return await _authorize_in_browser(pending, listener)

            return await self._obtain(discovery, previous, store, listener.redirect_uri, authorize)

    async def _obtain(
        self,
        discovery: Discovery,
        previous: Login | None,
        store: CredentialStore,
        redirect_uri: str,
        authorize: Callable[[PendingAuthorization], Awaitable[tuple[str, BrowserCallback | None]]],
    ) -> Login:
        client = await self.client(discovery, store, redirect_uri)
        pending, key = self.begin(discovery, client, redirect_uri, previous), new_key(discovery)
        code, callback = await _in_time(authorize(pending), self._server)
        try:
            login = await self.redeem(pending, code, key, previous, store)
        except AuthorizationError as exc:
            if callback is not None:
                callback.answer("Login failed", str(exc), 400)
            raise
        if callback is not None:
            callback.answer("You are logged in", "You can close this page.")
        return login

    def begin(
        self, discovery: Discovery, client: ClientRegistration, redirect_uri: str, previous: Login | None
    ) -> PendingAuthorization:
        """Return the authorization request of a client. Raises `AuthorizationError`."""
        pending = begin_authorization(
            discovery,
            client,
            redirect_uri,
            self._scopes(discovery, previous),
            lambda: secrets.token_urlsafe(32),
            assume_pkce=self._assumes_pkce(discovery, previous),
        )
        check_url(pending.url.partition("?")[0], "authorization_endpoint")
        return pending

    async def redeem(
        self,
        pending: PendingAuthorization,
        code: str,
        key: DPoPKey | None,
        previous: Login | None,
        store: CredentialStore,
    ) -> Login:
        """Exchange the code of a callback for a login, bound to `key` if there is one. Raises `AuthorizationError`."""
        client = pending.client
        authentication = with_proof(SecretAuthentication(client), key, self._now)
        tokens = await self._as_known_client(redeem_code(pending, code, authentication, self._now()), client, store)
        return self._login(pending.discovery, client, tokens, key, previous)

    async def _authorize_elsewhere(self, pending: PendingAuthorization) -> tuple[str, BrowserCallback | None]:
        assert self._settings.authorize is not None
        answer = await self._settings.authorize(pending.url)
        return read_callback(pending, parse_callback(answer)), None


class DeviceGrant(InteractiveGrant):
    """The device authorization grant of one client; see `accord.auth.credentials.Grant`. `sleep` waits for seconds."""

    _grant_types = (DEVICE_GRANT, "refresh_token")

    def __init__(
        self,
        settings: GrantSettings,
        server: str,
        http: OAuthClient,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(settings, server, http, now)
        self._sleep = sleep

    def _has_user(self) -> bool:
        return self._settings.show_device_code is not None or sys.stderr.isatty()

    @property
    def registration_name(self) -> str:
        """The name of the registration in the store."""
        return f"{self._settings.identity.name} (device)"

    async def obtain(self, discovery: Discovery, previous: Login | None, store: CredentialStore) -> Login:
        """Log the user in on another device. Raises `AuthorizationError`."""
        device_authorization_endpoint(discovery)  # before a client registers that it could not use
        client = await self.client(discovery, store, None)
        pending = await self.begin(discovery, client, previous, store)
        show = self._settings.show_device_code or _show_device_code
        show(pending.verification_uri_complete or pending.verification_uri, pending.user_code)
        return await self.poll(pending, client, previous, store)

    async def begin(
        self, discovery: Discovery, client: ClientRegistration, previous: Login | None, store: CredentialStore
    ) -> PendingDevice:
        """Begin a device authorization, which has the page and the code for the user. Raises `AuthorizationError`."""
        scopes = self._scopes(discovery, previous)
        steps = request_device_code(discovery, SecretAuthentication(client), scopes, self._now())
        return await self._as_known_client(steps, client, store)

    async def poll(
        self, pending: PendingDevice, client: ClientRegistration, previous: Login | None, store: CredentialStore
    ) -> Login:
        """Wait until the user has decided; return the login. Raises `AuthorizationError`."""
        key = new_key(pending.discovery)
        proof = with_proof(SecretAuthentication(client), key, self._now)
        polling = DevicePolling(pending)
        while True:
            await self._sleep(polling.wait(self._now()))
            try:
                steps = request_device_tokens(pending, proof, self._now())
                tokens = await self._as_known_client(steps, client, store)
            except AuthorizationError as exc:
                polling.fail(exc)
            else:
                return self._login(pending.discovery, client, tokens, key, previous)


def _show_device_code(page: str, code: str) -> None:
    sys.stderr.write(f"Log in on any device: visit\n\n    {page}\n\nand check or enter the code {code}\n\n")
    sys.stderr.flush()


async def _in_time(
    login: Awaitable[tuple[str, BrowserCallback | None]], server: str
) -> tuple[str, BrowserCallback | None]:
    try:
        return await asyncio.wait_for(login, _LOGIN_SECONDS)
    except TimeoutError:
        reason = f"the browser did not return within {_LOGIN_SECONDS:g} s"
        raise AuthorizationError("login", reason, f"log in again: accord login {server}") from None


async def _authorize_in_browser(
    pending: PendingAuthorization, listener: CallbackListener
) -> tuple[str, BrowserCallback | None]:
    """Open the browser, and return the code of its callback. Callbacks with another state, or none that can be read,
    are ignored: any page in the browser can send them.
    """
    client = pending.client
    demand = f"The client {client.client_id} must have this redirect URI there: {pending.redirect_uri}"
    opening = asyncio.create_task(open_browser(pending.url, demand if client.source == "given" else ""))
    try:
        while True:
            callback = await listener.receive()
            parameters = _parameters_of(callback)
            if parameters.get("state") != pending.state:
                callback.answer("This is not the login in progress", "Begin the login again.", 400)
                continue
            try:
                return read_callback(pending, parameters), callback
            except AuthorizationError as exc:
                callback.answer("Login failed", str(exc), 400)
                raise
    finally:
        opening.cancel()


def _parameters_of(callback: BrowserCallback) -> dict[str, str]:
    try:
        return parse_callback(callback.query)
    except AuthorizationError:
        return {}
