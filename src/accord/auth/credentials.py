"""The credentials of one client: its tokens, renewed before they expire or when they are refused.

A grant gets a login: of a user (`OAuth`), or of a program (`ClientCredentials` and others). Renewal asks no user. One
task of one process renews at a time; the others then use what it has stored.
"""

from __future__ import annotations

import asyncio
import logging
import math
import shlex
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

import msgspec

from accord.auth.challenge import Challenge, parse_challenges, select_challenge
from accord.auth.client_authentication import SecretAuthentication
from accord.auth.credential_store import CredentialStore
from accord.auth.discovery import Discovery, DiscoveryOptions, discover
from accord.auth.dpop import NONCE_ERROR, NONCE_HEADER, DPoPKey, with_proof
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.steps import run_steps
from accord.auth.tokens import Tokens, refresh_tokens
from accord.auth.urls import canonical_resource
from accord.errors import AuthorizationError, LoginNeeded, OAuthError, StoreError, copy_error, visible
from accord.transport.http.credentials import RefusedRequest
from accord.transport.http.redaction import without_credentials

log: logging.Logger = logging.getLogger("accord")

_MAX_NONCES = 2
"""Limit of the nonces that a server may demand for one request."""

_MAX_LOGINS = 10
_LOGIN_PERIOD_SECONDS = 600.0
"""Limit of the logins of a user in this time: each opens a page, and a server may demand any number of them."""

_CLOSE_SECONDS = 5.0
_STORE_AGAIN_SECONDS = 5.0
_NEW_SECONDS = 10.0
"""If a token is refused within this time of its issue, and was never accepted, another login would not help."""
_DESCRIPTION_CHARACTERS = 500

_NO_HEADERS: dict[str, str] = {}


class Grant(Protocol):
    """A way to get a login."""

    is_interactive: bool
    """Whether a user takes part."""

    @property
    def client_id(self) -> str | None:
        """The client ID that the user chose, if any: a login of another client is not used."""

    @property
    def port(self) -> int:
        """The port of the redirect URI that the user chose, or 0."""

    @property
    def extension(self) -> str | None:
        """The name of the extension of the protocol that defines the grant, if any."""

    @property
    def options(self) -> DiscoveryOptions:
        """The choices of the user for discovery."""

    @property
    def is_possible(self) -> bool:
        """Whether a user is present, if the grant needs one."""

    async def obtain(self, discovery: Discovery, previous: Login | None, store: CredentialStore) -> Login:
        """Return a new login, with the scopes requested at the previous one. Raises `AuthorizationError`."""


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
        self._shown = without_credentials(server)
        self._http = http
        self._store = store or (CredentialStore() if grant.is_interactive else CredentialStore(":memory:"))
        self._now = now
        self._name = login_name(server)
        self._lock = asyncio.Lock()
        """Held while the login is loaded and renewed, which asks no user."""
        self._login_lock = asyncio.Lock()
        """Held while the user logs in: requests with a valid login do not wait for it."""
        self._login_times: deque[float] = deque(maxlen=_MAX_LOGINS)
        self._failed_logins = 0
        self._login_error: AuthorizationError | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._is_loaded = False
        self._is_open = False
        self._login: Login | None = None
        self._headers: dict[str, str] = _NO_HEADERS
        self._key: DPoPKey | None = None
        self._nonce: str | None = None
        self._unrenewed: Login | None = None
        """A login whose renewal failed: its token is used until it expires."""
        self._unstored: tuple[Login, Login] | None = None
        """The stored login, and the renewed one that could not be stored in its place."""
        self._storing: asyncio.Task[None] | None = None
        """The attempts to store it."""
        self._ignores_stored = False
        self._issued_at = -math.inf
        """When this object last got a token."""
        self.accepted: bool = False
        """See `Credentials.accepted`."""
        self.has_new_login: bool = False
        """Whether the grant was used."""

    @property
    def extension(self) -> str | None:
        """See `Grant.extension`."""
        return self._grant.extension

    # --- the hot path ------------------------------------------------------------------------------------------

    def headers(self, method: str, url: str) -> Mapping[str, str] | None:
        """Return the headers for a request; None if the login is not loaded, or its token expires soon."""
        login = self._login
        if login is None:
            return _NO_HEADERS if self._is_loaded else None
        expires_at = login.tokens.expires_at
        if expires_at is not None and self._must_renew(login, self._now()):
            return None
        return self._signed_headers(method, url, login)

    def _signed_headers(self, method: str, url: str, login: Login) -> Mapping[str, str]:
        """Return the headers, with a proof if the token is bound to a key."""
        if self._key is None:
            return self._headers
        proof = self._key.proof(method, url, self._now(), self._nonce, login.tokens.access_token)
        return {**self._headers, "dpop": proof}

    def _must_renew(self, login: Login, now: float) -> bool:
        """Return whether the tokens expire soon, and renewal is possible."""
        tokens = login.tokens
        if tokens.is_fresh(now, 0 if login is self._unrenewed else tokens.margin):
            return False
        return tokens.refresh_token is not None or not self._grant.is_interactive

    # --- renewal -----------------------------------------------------------------------------------------------

    async def renew(self, method: str, url: str) -> Mapping[str, str]:
        """Load the login, renew its tokens if they expire soon, and return the headers for a request.

        Raises `AuthorizationError`.
        """
        async with self._lock:
            try:
                await self._renew_expiring()
            except AuthorizationError:
                if self._login is None or not self._login.tokens.is_fresh(self._now()):
                    raise
                self._unrenewed = self._login
            return _NO_HEADERS if self._login is None else self._signed_headers(method, url, self._login)

    async def _renew_expiring(self) -> None:
        """Load the login, and renew its tokens if they expire soon. Raises `AuthorizationError`, which is no error as
        long as they are valid.
        """
        if self._login is None or self._must_renew(self._login, self._now()):
            await self._load()
        if self._login is not None and self._must_renew(self._login, self._now()):
            await self._renew(self._login)

    def ignore_stored_login(self) -> None:
        """Let the first request lead to a new login, which replaces the stored one."""
        self._ignores_stored = True

    async def _load(self) -> None:
        """Read the login from the store; another process may have renewed it. Raises `AuthorizationError`."""
        if self._unstored is not None and self._login is not None:  # newer than the stored one
            return
        login = None
        if not self._ignores_stored and (self._is_open or self._store.exists):
            try:
                await self._open()
                if self._unstored is not None:  # since before `close`
                    async with self._store.lease(self._name):
                        await self._store_renewed()
                login = await self._stored()
            except StoreError as exc:
                raise AuthorizationError("stored login", str(exc)) from exc
        self._use(login)
        self._is_loaded = True

    async def _store_renewed(self) -> None:
        """Store a renewed login that could not be stored before, unless the user has logged in or out meanwhile. Raises
        `StoreError`.
        """
        if self._unstored is not None:
            before, renewed = self._unstored
            if _is_same(await self._stored(), before):
                await self._store.save(self._name, renewed)
            self._unstored = None

    async def _store_later(self) -> None:
        """Store a renewed login as soon as that is possible: another process would use its previous refresh token."""
        while self._unstored is not None:
            await asyncio.sleep(_STORE_AGAIN_SECONDS)
            with suppress(StoreError):
                async with self._store.lease(self._name):
                    await self._store_renewed()

    async def _stored(self) -> Login | None:
        """Return the stored login, or None if there is none of this client. Raises `StoreError`."""
        login = await self._store.load(self._name)
        is_other = login is not None and self._grant.client_id not in (None, login.client.client_id)
        return None if is_other else login

    async def _open(self) -> None:
        if not self._is_open:
            await self._store.open()
            self._is_open = True

    def _use(self, login: Login | None) -> None:
        """Use a login, or none. Raises `AuthorizationError`, and then uses what it did before."""
        is_bound = login is not None and login.tokens.token_type == "DPoP"
        self._key = DPoPKey(login.dpop_key) if is_bound and login is not None else None
        self._login = login
        self._headers = _NO_HEADERS if login is None else {"authorization": _authorization(login.tokens)}

    async def _renew(self, login: Login) -> None:
        """Get new tokens for a login. A request that is cancelled does not stop this: the server may have replaced the
        refresh token already. Raises `AuthorizationError`.
        """
        self._renewal = asyncio.get_running_loop().create_task(self._renew_stored(login))
        try:
            await asyncio.shield(self._renewal)
        except StoreError as exc:
            raise AuthorizationError("stored login", str(exc)) from exc

    async def _renew_stored(self, login: Login) -> None:
        """Get new tokens in one process at a time. The others read what that one has stored."""
        async with self._store.lease(self._name):
            await self._store_renewed()
            stored = await self._stored()
            if not _is_same(stored, login):  # deleted, or renewed
                self._use(stored)
                return
            if login.tokens.refresh_token is None:
                await self._obtain(login.discovery)
                return
            try:
                tokens = await self._refresh(login)
            except OAuthError as exc:
                if exc.error == "invalid_grant":
                    self._issued_at = -math.inf  # the login is over, also if it is a new one
                    await self._store.delete_refresh_token(self._name, login.tokens.refresh_token)
                    self._use(await self._store.load(self._name))
                    return
                raise
            renewed = msgspec.structs.replace(login, tokens=tokens)
            self._issued_at, self.accepted = self._now(), False
            self._use(renewed)
            try:
                await self._store.save(self._name, renewed)
            except StoreError as exc:  # the previous refresh token may end the login: this one must not be lost
                self._unstored = login, renewed
                log.warning("accord: the renewed login at %s is not stored yet: %s", self._shown, exc)
                if self._storing is None or self._storing.done():
                    self._storing = asyncio.get_running_loop().create_task(self._store_later())

    async def _refresh(self, login: Login) -> Tokens:
        discovery = login.discovery
        key = None if login.dpop_key is None else DPoPKey(login.dpop_key)  # the access token may be bound to none
        authentication = with_proof(SecretAuthentication(login.client), key, self._now)
        steps = refresh_tokens(discovery.metadata, authentication, login.tokens, discovery.resource, self._now())
        return await run_steps(steps, self._http.send)

    async def _obtain(self, discovery: Discovery) -> None:
        """Get a new login from the grant, and store it."""
        await self._open()
        await self.use_new_login(await self._grant.obtain(discovery, self._login, self._store))

    async def use_new_login(self, login: Login) -> None:
        """Store a login that was just obtained, and use it. Raises `StoreError`."""
        await self._open()
        await self._store.save(self._name, login)
        self._ignores_stored, self.has_new_login = False, True
        self._issued_at, self.accepted = self._now(), False
        self._use(login)

    # --- refusals ----------------------------------------------------------------------------------------------

    def on_nonce(self, nonce: str) -> None:
        """See `Credentials.on_nonce`."""
        self._nonce = nonce

    async def retry(self, refusal: RefusedRequest) -> bool:
        """Renew the login after a refusal without the user; return whether the request may be sent again."""
        if self._demands_nonce(refusal):
            self._nonce = refusal.headers[NONCE_HEADER]
            return refusal.attempt < _MAX_NONCES
        async with self._lock:
            if not self._is_loaded or self._differs(refusal):  # another task has renewed it meanwhile
                return refusal.attempt == 0
            login = self._login
            if refusal.attempt and self._has_new_token:
                return False
            if refusal.status == 401 and login is not None and login.tokens.refresh_token is not None:
                await self._renew(login)
                return refusal.attempt == 0 and self._differs(refusal)
            if self._grant.is_interactive:
                await self._load()  # the user may have logged in elsewhere
                return refusal.attempt == 0 and self._differs(refusal)
            if refusal.attempt or not self._needs_login(refusal):
                return False
            await self._obtain(await self._discover(refusal))
            return True

    def _differs(self, refusal: RefusedRequest) -> bool:
        """Return whether the refused credentials are not the current ones."""
        return refusal.sent.get("authorization") != self._headers.get("authorization")

    @property
    def _has_new_token(self) -> bool:
        """Whether the token was issued just now, and was never accepted."""
        return not self.accepted and self._now() - self._issued_at < _NEW_SECONDS

    def _demands_nonce(self, refusal: RefusedRequest) -> bool:
        """Return whether the server demands a nonce in the proof (RFC 9449, 9)."""
        challenges = parse_challenges(refusal.challenges)
        return NONCE_HEADER in refusal.headers and any(each.error == NONCE_ERROR for each in challenges)

    def error(self, refusal: RefusedRequest) -> AuthorizationError | None:
        """Return `LoginNeeded` if a login of the user may help, an error if no nonce or no new token is accepted, or
        None.
        """
        if self._demands_nonce(refusal):
            reason = f"{self._shown} demanded a nonce {refusal.attempt + 1} times for one request ({NONCE_ERROR})"
            return AuthorizationError("proof of possession", reason, "report it to those who run the server")
        if not self._grant.is_interactive or not self._needs_login(refusal):
            return None
        login = self._login
        if refusal.status == 401 and login is not None and self._has_new_token and not self._differs(refusal):
            return self._new_token_refused(refusal, login.discovery)
        return self._login_needed(refusal)

    def _new_token_refused(self, refusal: RefusedRequest, discovery: Discovery) -> AuthorizationError:
        """Return the error for a token that was refused as soon as it was issued: the servers do not agree."""
        challenge = _challenge(refusal)
        said = "" if challenge is None else challenge.parameters.get("error_description", "")
        why = f": {visible(said[:_DESCRIPTION_CHARACTERS])}" if said else ""
        return AuthorizationError(
            "login",
            f"HTTP 401: {self._shown} refused the token that {discovery.issuer} has just issued for "
            f"{discovery.resource}{why}",
            "logging in again would not help; the log of the server says what it found and expected, such as aud or "
            "iss of the token, or the time of a clock",
        )

    def _login_needed(self, refusal: RefusedRequest) -> LoginNeeded:
        """Return the error with the command to log in; if scopes are missing, with those of before and these."""
        challenge = _challenge(refusal)
        missing = challenge.scopes or [] if challenge is not None and refusal.status == 403 else []
        requested = self._login.tokens.requested if missing and self._login is not None else []
        scopes = [scope for scope in dict.fromkeys([*requested, *missing]) if scope != "offline_access"]
        what = f"a login with the scopes {' '.join(scopes)}" if scopes else "a login"
        scope_options = [part for each in scopes for part in ("--scope", each)]
        command = shlex.join(["accord", "login", self._shown, *self._login_options(), *scope_options])
        has_secret = (
            self._login is not None and self._login.client.source == "given" and self._login.client.client_secret
        )
        cure = f"run: {command}" + (", with the secret of the client in ACCORD_CLIENT_SECRET" if has_secret else "")
        error = LoginNeeded("login", f"HTTP {refusal.status}: {self._shown} needs {what}", cure)
        error.refusal = refusal
        return error

    def _login_options(self) -> list[str]:
        """Return what the user chose, now or at the stored login, as options of the command: it makes a new login."""
        login, chosen = self._login, _options(self._grant.options, self._login, [])
        client = None if login is None else login.client
        values = {
            "--client-id": client.client_id
            if client is not None and client.source == "given"
            else self._grant.client_id,
            "--port": str(self._grant.port) if self._grant.port else None,
            "--client-metadata": client.client_id
            if client is not None and client.source == "metadata document"
            else None,
            "--issuer": chosen.issuer,
            "--resource": chosen.resource,
        }
        written = [part for name, value in values.items() if value is not None for part in (name, value)]
        return [*written, "--assume-pkce"] if login is not None and login.assume_pkce else written

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
        """Log the user in after a refusal, unless another task has done so. A login that failed is not repeated for
        the tasks that waited for it. Raises `AuthorizationError`.
        """
        if not self._grant.is_possible:
            raise self._login_needed(refusal)
        before = self._failed_logins
        async with self._login_lock:
            if self._is_loaded and self._differs(refusal):
                return
            if self._login_error is not None and self._failed_logins != before:
                raise copy_error(self._login_error)
            try:
                await self._log_in(refusal)
            except AuthorizationError as exc:
                self._failed_logins, self._login_error = self._failed_logins + 1, exc
                raise

    def _count_login(self) -> None:
        """Count a login of the user. Raises `AuthorizationError` if there were too many recently."""
        now, times = self._now(), self._login_times
        if len(times) == _MAX_LOGINS and now < times[0] + _LOGIN_PERIOD_SECONDS:
            reason = f"{self._shown} demanded more than {_MAX_LOGINS} logins in {_LOGIN_PERIOD_SECONDS:g} s"
            raise AuthorizationError("login", reason, "report it to those who run the server")
        times.append(now)

    async def _log_in(self, refusal: RefusedRequest) -> None:
        self._count_login()
        async with self._lock:
            await self._open()
        discovery = await self._discover(refusal)
        login = await self._grant.obtain(discovery, self._login, self._store)
        async with self._lock, self._store.lease(self._name):  # a renewal at the same time would replace it
            await self.use_new_login(login)

    async def _discover(self, refusal: RefusedRequest) -> Discovery:
        await self._open()
        client_id, stored = self._grant.client_id, (await self._store.logins()).get(self._name)
        known = stored.discovery.issuer if stored is not None and stored.client.client_id == client_id else None
        preferred = await self._store.issuers() if known is None else [known]
        options = _options(self._grant.options, self._login, preferred)
        found = await run_steps(discover(self._server, _challenge(refusal), options), self._http.send)
        if client_id is not None and known is not None and options.issuer is None:
            check_same_issuer(known, client_id, found)
        return found

    async def close(self) -> None:
        """Close the store and the connections, once a renewal has stored its tokens, or failed."""
        if self._renewal is not None and not self._renewal.done():
            await asyncio.wait([self._renewal], timeout=_CLOSE_SECONDS)
            self._renewal.cancel()
        if self._storing is not None:
            self._storing.cancel()
        if self._unstored is not None:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS), self._store.lease(self._name):
                    await self._store_renewed()
        self._is_loaded, self._login, self._headers = False, None, _NO_HEADERS
        if self._is_open:
            self._is_open = False
            await self._store.close()
        await self._http.close()


def _is_same(stored: Login | None, login: Login) -> bool:
    """Return whether the stored login is this one: not deleted, and not renewed or replaced."""
    return stored is not None and stored.tokens.access_token == login.tokens.access_token


def _options(chosen: DiscoveryOptions, previous: Login | None, preferred: list[str]) -> DiscoveryOptions:
    """Return what the user has chosen for discovery, now or at the previous login."""
    issuer, resource = chosen.issuer, chosen.resource
    if previous is not None:
        issuer = issuer or (previous.discovery.issuer if previous.chosen_issuer else None)
        resource = resource or (previous.discovery.resource if previous.chosen_resource else None)
    return DiscoveryOptions(issuer=issuer, resource=resource, preferred_issuers=preferred)


def check_same_issuer(known: str, client_id: str, found: Discovery) -> None:
    """Raise `AuthorizationError` if the server names another authorization server than at the last login.

    "When the authorization server changes [...], clients MUST NOT reuse client credentials from a different
    authorization server" (Authorization Server Binding).
    """
    if known != found.issuer:
        raise AuthorizationError(
            "authorization server",
            f"found issuer {visible(found.issuer)!r}, expected {known!r}, which knows {client_id}",
            "if you trust the found one with the secret of this client, choose it: --issuer, or issuer= in a program",
        )


def login_name(server: str) -> str:
    """Return the name of the login at `server`, the URL of an MCP server, in the store."""
    return canonical_resource(server)


def _challenge(refusal: RefusedRequest) -> Challenge | None:
    return select_challenge(parse_challenges(refusal.challenges))


def _authorization(tokens: Tokens) -> str:
    return f"{tokens.token_type} {tokens.access_token}"
