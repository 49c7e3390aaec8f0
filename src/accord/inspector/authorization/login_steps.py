"""The steps of a login, each with its value: the same parts of the flow as those of a client.

A step raises `AuthorizationError` where the client would. Logins and registrations are in a store in memory.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from accord.auth.challenge import Challenge
from accord.auth.code_grant import PendingAuthorization, parse_callback, read_callback
from accord.auth.credential_store import CredentialStore
from accord.auth.credentials import check_same_issuer, login_name
from accord.auth.device_grant import PendingDevice
from accord.auth.discovery import (
    RESOURCE_STEP,
    SERVER_STEP,
    DiscoveredResource,
    Discovery,
    DiscoveryOptions,
    discover_issuer,
    discover_resource,
)
from accord.auth.dpop import DPoPKey, new_key
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.oauth import OAuth, grant_settings
from accord.auth.program_grants import ProgramGrant
from accord.auth.registration import STEP as CLIENT_STEP, ClientRegistration
from accord.auth.steps import DECODE_ERRORS, OAuthRequest, OAuthResponse, run_steps
from accord.auth.user_grants import CodeGrant, DeviceGrant
from accord.client.target import Remote
from accord.errors import AccordError, AuthorizationError, OAuthError
from accord.host.login_explanation import copy_registrations
from accord.inspector.authorization import comparisons
from accord.inspector.authorization.callbacks import CallbackReceiver
from accord.inspector.authorization.evidence import HTTPEvidence, ObservedOAuth, StepRecord
from accord.inspector.authorization.redaction import EvidenceRedaction
from accord.inspector.authorization.requests import MCPRequest, OAuthRecorder
from accord.inspector.authorization.sentences import (
    AUTHORIZATION_REQUEST,
    AUTHORIZED_REQUEST,
    CALLBACK,
    CHALLENGE,
    DEVICE_AUTHORIZATION,
    DEVICE_LOGIN,
    TOKEN_REQUEST,
    GrantName,
)
from accord.inspector.authorization.settings import ConfiguredProgram
from accord.transport.http.credentials import RefusedRequest
from accord.transport.http.settings import HTTPSettings
from accord.transport.recording import SessionRecorder

_FORBIDDEN = 403
_ERRORS = re.compile(r"\b(error[a-z_]*)=[^&#]*")

StepFunction = Callable[[StepRecord], Awaitable[str]]


class LoginSteps:
    """The steps of one run at one server, and their values."""

    def __init__(
        self,
        server: Remote,
        login: OAuth,
        redaction: EvidenceRedaction,
        *,
        http: HTTPSettings | None = None,
        recorder: SessionRecorder | None = None,
    ) -> None:
        self.server = server
        self.oauth = login
        """The login of the configuration, with the settings of the run."""
        self.new_client = False
        """Whether the client registers anew, also if there is a stored registration."""
        self.grant_name: GrantName = "code"
        self.program: Callable[[], ConfiguredProgram] | None = None
        """Returns the login of a program, or raises `AuthorizationError`; only for its grant."""
        self.previous: Login | None = None
        """The login whose scopes a step-up keeps."""
        self.stored: Login | None = None
        """The stored login, as the run found it."""
        self.login: Login | None = None
        """The login of the run."""
        self.refusal: RefusedRequest | None = None
        """The refusal of the last MCP request."""
        self.pending: PendingAuthorization | None = None
        self.device: PendingDevice | None = None
        """The login on another device that was begun."""
        self.callbacks: CallbackReceiver = CallbackReceiver()
        self.on_waiting: Callable[[], None] = lambda: None
        """Called when the callback step begins to wait."""
        self._redaction = redaction
        self._settings = http
        self._recorder = recorder or SessionRecorder()
        self._oauth_recorder = OAuthRecorder(self._recorder, server)
        self.http: OAuthClient = OAuthClient(
            server.url, ssl=None if http is None else http.ssl, proxy=None if http is None else http.proxy
        )
        self.http.observer = self._observe
        self.store: CredentialStore = CredentialStore(":memory:")
        """The registrations and the login of the run."""
        self._record: StepRecord | None = None
        self._challenge: Challenge | None = None
        self._resource: DiscoveredResource | None = None
        self._discovery: Discovery | None = None
        self._client: ClientRegistration | None = None
        self._key: DPoPKey | None = None
        self._code: str | None = None
        self._has_registered = False
        self._is_new = False
        """Whether the login was not used yet."""
        self._functions: dict[str, StepFunction] = {
            CHALLENGE: self._request_challenge,
            RESOURCE_STEP: self._find_resource,
            SERVER_STEP: self._find_issuer,
            CLIENT_STEP: self._identify,
            AUTHORIZATION_REQUEST: self._begin,
            CALLBACK: self._receive_callback,
            DEVICE_AUTHORIZATION: self._begin_on_device,
            DEVICE_LOGIN: self._poll_device,
            TOKEN_REQUEST: self._request_tokens,
            AUTHORIZED_REQUEST: self._request_authorized,
        }

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read the stored login, and copy the stored registrations. Raises `StoreError`."""
        self._redaction.add_secrets([self.oauth.client_secret, *(self.server.headers or {}).values()])
        self.store = await copy_registrations(self.oauth)
        self.stored = await self.load_stored()

    async def load_stored(self) -> Login | None:
        """Return the stored login, without what is in the keyring, or None. Raises `StoreError`."""
        store = self.user_store
        if not store.exists:
            return None
        async with store:
            return (await store.logins()).get(self.name)

    async def close(self) -> None:
        """Close the connections, the store in memory and the callback."""
        self._oauth_recorder.close()
        await self.http.close()
        await self.store.close()
        await self.callbacks.close()

    @property
    def name(self) -> str:
        """The name of the login in the store."""
        return login_name(self.server.url)

    @property
    def user_store(self) -> CredentialStore:
        """The store of the user."""
        return self.oauth.store or CredentialStore()

    # --- steps -------------------------------------------------------------------------------------------------

    async def perform(self, record: StepRecord) -> str:
        """Perform the step of a record; return what was found. Raises `AccordError`."""
        self.observe_for(record)
        return await self._functions[record.step](record)

    def observe_for(self, record: StepRecord) -> None:
        """Let the next requests be evidence of a record."""
        self._record = record

    def _observe(self, request: OAuthRequest, outcome: OAuthResponse | AuthorizationError) -> None:
        self._redaction.add_secrets(request.secrets())
        if isinstance(outcome, OAuthResponse):
            self._redaction.add_response(request, outcome.body)
        exchange = ObservedOAuth(request, outcome)
        self._oauth_recorder.add(exchange.view(self._redaction))
        if self._record is not None:
            self._record.add(exchange)

    @property
    def _grant(self) -> CodeGrant:
        return CodeGrant(grant_settings(self.oauth), self.server.url, self.http)

    @property
    def _device_grant(self) -> DeviceGrant:
        return DeviceGrant(grant_settings(self.oauth), self.server.url, self.http)

    @property
    def registration_name(self) -> str:
        """The name of the registration of the client in a store."""
        grant = self._device_grant if self.grant_name == "device" else self._grant
        return grant.registration_name

    async def _request_challenge(self, record: StepRecord) -> str:
        async with CredentialStore(":memory:") as empty:
            request = MCPRequest(self.server, self.oauth, empty, self._settings, self._recorder)
            self.refusal = await request.send(record, self._observe, None)
        self._challenge = comparisons.compare_challenge(record, self.refusal)
        if self.refusal is None:
            return "the server answers without a login: none is needed"
        challenges = ", ".join(self.refusal.challenges) or "no challenge (WWW-Authenticate)"
        return f"HTTP {self.refusal.status} to {self.refusal.method}, as it should: {challenges}"

    async def _find_resource(self, record: StepRecord) -> str:
        options = DiscoveryOptions(
            issuer=self.oauth.issuer,
            resource=self.oauth.resource,
            preferred_issuers=await self._preferred_issuers(),
        )
        try:
            steps = discover_resource(self.server.url, self._challenge, options)
            self._resource = found = await run_steps(steps, self.http.send)
        finally:
            comparisons.compare_resource(record, self.server.url, self.oauth.resource)
        if found.issuer is None:
            return "the server publishes no metadata: it counts as its own authorization server, as in 2025-03-26"
        return f"{found.resource} stands for {self.server}; its issuer is {found.issuer}"

    async def _preferred_issuers(self) -> list[str]:
        if self.grant_name == "program":
            return []
        return await self.store.issuers() if self.stored is None else [self.stored.discovery.issuer]

    async def _find_issuer(self, record: StepRecord) -> str:
        assert self._resource is not None
        try:
            self._discovery = found = await run_steps(discover_issuer(self._resource), self.http.send)
        finally:
            comparisons.compare_issuer(record, self._resource)
        known, client_id = self.stored, self.oauth.client_id
        if known is not None and known.client.client_id == client_id and self.oauth.issuer is None:
            check_same_issuer(known.discovery.issuer, client_id, found)
        return f"{found.issuer} is the one that was looked up"

    async def _identify(self, record: StepRecord) -> str:
        discovery, name = self._discovery, self.registration_name
        assert discovery is not None
        if self.new_client or self._has_registered:
            await self.store.delete_registration(discovery.issuer, name)
        if self.grant_name == "device":
            redirect_uri = None
            self._client = client = await self._device_grant.client(discovery, self.store, None)
        else:
            redirect_uri = await self._redirect_uri(discovery)
            self._client = client = await self._grant.client(discovery, self.store, redirect_uri)
        self._redaction.add_secrets([client.client_secret])
        self._has_registered |= bool(record.exchanges)
        comparisons.compare_client(record, client, discovery, redirect_uri)
        how = "registered now" if record.exchanges else "registered before"
        return f"{client.client_id}, {how if client.source == 'registered' else client.source}"

    async def _redirect_uri(self, discovery: Discovery) -> str:
        if self.oauth.redirect_uri is not None:
            return self.oauth.redirect_uri
        if self.callbacks.redirect_uri is None:
            registered = await self._grant.stored_client(discovery, self.store)
            await self.callbacks.listen(self.oauth.port, None if registered is None else registered.redirect_uri)
        assert self.callbacks.redirect_uri is not None
        return self.callbacks.redirect_uri

    async def _begin(self, record: StepRecord) -> str:
        discovery, client = self._discovery, self._client
        assert discovery is not None
        assert client is not None
        comparisons.compare_pkce(record, discovery, assume_pkce=self.oauth.assume_pkce)
        pending = self._grant.begin(discovery, client, await self._redirect_uri(discovery), self.previous)
        self._redaction.add_secrets([pending.state, pending.verifier])
        comparisons.compare_authorization(record, pending)
        self._key = key = new_key(discovery)
        if key is not None:
            self._redaction.add_secrets([key.pem])
        record.add(HTTPEvidence(method="GET", url=pending.url, error="the browser sends this request"))
        self.pending = pending
        bound = "; the tokens will be bound to a key (DPoP)" if key is not None else ""
        return f"open the URL in your browser, and log in{bound}"

    # --- callback ----------------------------------------------------------------------------------------------

    async def _receive_callback(self, record: StepRecord) -> str:
        pending = self.pending
        assert pending is not None
        record.state = "waiting"
        self.on_waiting()
        callback = await self.callbacks.receive()
        record.state = "running"
        self._redaction.add_query(callback.query)
        url = callback.query if "://" in callback.query[:20] else f"{pending.redirect_uri}?{callback.query}"
        exchange = HTTPEvidence(method="GET", url=url, status=200)
        record.add(exchange)
        try:
            parameters = parse_callback(callback.query)
            comparisons.compare_callback(record, pending, parameters)
            self._code = read_callback(pending, parameters)
        except AuthorizationError as exc:
            exchange.status = 400
            if not isinstance(exc, OAuthError):  # "MUST NOT act on or display `error`" of another issuer
                exchange.url = _ERRORS.sub(r"\1=[not shown]", url)
            callback.answer("Login failed", str(exc), 400)
            raise
        callback.answer("Login received", "Return to the inspector, which requests the tokens.")
        return "the callback has a code, and answers this login"

    # --- another device ----------------------------------------------------------------------------------------

    async def _begin_on_device(self, record: StepRecord) -> str:
        assert self._discovery is not None
        assert self._client is not None
        comparisons.compare_device_endpoint(record, self._discovery)
        grant = self._device_grant
        self.device = device = await grant.begin(self._discovery, self._client, self.previous, self.store)
        self._redaction.add_secrets([device.device_code, device.user_code, device.verification_uri_complete])
        comparisons.compare_device(record, device)
        return "open the page on any device, and enter the code there"

    async def _poll_device(self, record: StepRecord) -> str:
        assert self.device is not None
        assert self._client is not None
        record.state = "waiting"
        self.on_waiting()
        login = await self._device_grant.poll(self.device, self._client, self.previous, self.store)
        record.state = "running"
        return self._use_new(record, login)

    # --- tokens ------------------------------------------------------------------------------------------------

    async def _request_tokens(self, record: StepRecord) -> str:
        return self._use_new(record, await self._obtain())

    async def _obtain(self) -> Login:
        if self.program is not None:
            assert self._discovery is not None
            grant = ProgramGrant(self.program(), self.http)
            return await grant.obtain(self._discovery, self.previous, self.store)
        assert self.pending is not None
        assert self._code is not None
        return await self._grant.redeem(self.pending, self._code, self._key, self.previous, self.store)

    def _use_new(self, record: StepRecord, login: Login) -> str:
        """Use a login that was just issued; return what was found."""
        self.use(login)
        self._is_new = True
        comparisons.compare_tokens(record, login, self.claims(login))
        scopes = " ".join(login.tokens.scopes) or "none"
        return f"{login.discovery.issuer} issued a {login.tokens.token_type} token with the scopes: {scopes}"

    def use(self, login: Login) -> None:
        """Use a login from now on."""
        secrets = login.secrets
        self._redaction.add_secrets(
            [secrets.access_token, secrets.refresh_token, secrets.client_secret, secrets.dpop_key]
        )
        self.login = login

    def claims(self, login: Login) -> Mapping[str, Any]:
        """Return the claims of the access token, if it is a JSON Web Token."""
        content = self._redaction.jwt("access_token", login.tokens.access_token)
        if content is None or content.claims_json is None:
            return {}
        try:
            return msgspec.json.decode(content.claims_json, type=dict[str, Any])
        except DECODE_ERRORS:  # such as NaN
            return {}

    async def _request_authorized(self, record: StepRecord) -> str:
        login = self.login
        assert login is not None
        await self.store.save(self.name, login)
        request = MCPRequest(self.server, self.oauth, self.store, self._settings, self._recorder)
        try:
            self.refusal = await request.send(record, self._observe, login if self._is_new else None)
        except AccordError as exc:
            if isinstance(exc, AuthorizationError) or record.last_status != _FORBIDDEN:
                raise
            cure = "the token is valid, and its user may not do this: ask who runs the server"
            raise AuthorizationError(AUTHORIZED_REQUEST, str(exc), cure) from exc
        finally:
            self._is_new = False
            renewed = await self.store.load(self.name)
            if renewed is not None:
                self.use(renewed)
        assert self.login is not None
        comparisons.compare_acceptance(record, self.refusal, self.login)
        if self.refusal is None:
            return "the server accepted the token"
        raise self._refused(self.refusal)

    def _refused(self, refusal: RefusedRequest) -> AuthorizationError:
        cure = (
            "request more scopes: step up"
            if refusal.status == _FORBIDDEN
            else "log in again: repeat from the challenge"
        )
        challenges = ", ".join(refusal.challenges) or "no challenge (WWW-Authenticate)"
        return AuthorizationError(
            AUTHORIZED_REQUEST, f"HTTP {refusal.status} to {refusal.method} with the token: {challenges}", cure
        )

    def step_up(self) -> None:
        """Keep the scopes of the login for the next authorization request, with those that the last refusal names."""
        self.previous = self.login
        if self.refusal is not None and self.login is not None and self.refusal.status == _FORBIDDEN:
            self._challenge = comparisons.challenge_of(self.refusal)

    @property
    def needed_scopes(self) -> list[str]:
        """The scopes that the last refusal with status 403 names."""
        if self.refusal is None or self.refusal.status != _FORBIDDEN:
            return []
        challenge = comparisons.challenge_of(self.refusal)
        return [] if challenge is None else challenge.scopes or []
