"""The explanation of a login: what each step of it finds, without logging in.

It is the login of a real client with another grant: `ExplainedGrant` looks at what discovery found, instead of asking
the user. Nothing is registered, and no stored token is sent.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from accord.auth.callback import PATH
from accord.auth.code_grant import authorization_endpoint, select_scopes
from accord.auth.credential_store import CredentialStore
from accord.auth.credentials import GrantCredentials
from accord.auth.discovery import RESOURCE_STEP, SERVER_STEP, Discovery, DiscoveryOptions
from accord.auth.dpop import new_key
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.metadata import ResourceMetadata, decode_metadata
from accord.auth.oauth import OAuth
from accord.auth.registration import STEP as CLIENT_STEP, ClientIdentity, ClientRegistration, identify_client
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.client.client import Client
from accord.client.target import Remote
from accord.errors import AccordError, AuthorizationError, ProtocolError, RequestTimeout, log_line
from accord.transport.http.credentials import RefusedRequest

if TYPE_CHECKING:
    from ssl import SSLContext

StepOutcome: TypeAlias = Literal["ok", "not found", "failed", "note"]
LoginOutcome: TypeAlias = Literal["possible", "not needed", "impossible"]

REQUEST_STEP = "request to the server"
"""The first step."""


class ExplainedStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step. Texts of a peer are in one line, without control characters."""

    step: str
    outcome: StepOutcome
    text: str
    """What was found; of a failed step also what was expected."""
    cure: str = ""
    url: str | None = None


class Explanation(msgspec.Struct):
    """The steps of a login at a server."""

    server: str
    login: LoginOutcome = "possible"
    steps: list[ExplainedStep] = []
    next: str = ""
    """What to do next."""

    def add(self, step: str, outcome: StepOutcome, text: str, *, cure: str = "", url: str | None = None) -> None:
        """Add a step."""
        shown_url = None if url is None else log_line(url)
        self.steps.append(ExplainedStep(log_line(step), outcome, log_line(text), log_line(cure), shown_url))

    def add_failure(self, error: AuthorizationError) -> None:
        """Add a step that failed."""
        self.login = "impossible"
        self.add(error.step, "failed", error.reason, cure=error.cure)

    def has(self, step: str, outcome: StepOutcome) -> bool:
        """Return whether a step with this outcome was added."""
        return any(each.step == step and each.outcome == outcome for each in self.steps)


class _Explained(AuthorizationError):
    """The end of an explanation, where a login would go on."""

    def __init__(self) -> None:
        super().__init__("explanation", "no login was begun")


async def explain(server: Remote, login: OAuth) -> Explanation:
    """Return the explanation of a login at a server."""
    found = Explanation(str(server))
    registrations = await copy_registrations(login)
    try:
        await _find_steps(server, ExplainedLogin(login, registrations, found), found)
    finally:
        await registrations.close()
    found.next = _next_step(found)
    return found


async def copy_registrations(login: OAuth) -> CredentialStore:
    """Return an open store in memory with the registrations of the user, and without logins: their tokens must not be
    sent.
    """
    stored, copy = login.store or CredentialStore(), CredentialStore(":memory:")
    await copy.open()
    if stored.exists:
        await stored.open()
        for issuer in await stored.issuers():
            client = await stored.load_registration(issuer, login.client_name)
            if client is not None:
                await copy.save_registration(login.client_name, client)
        await stored.close()
    return copy


async def _find_steps(server: Remote, explained: ExplainedLogin, found: Explanation) -> None:
    try:
        async with Client(server, auth=explained) as client:
            with suppress(ProtocolError, RequestTimeout):  # only a refusal is of interest
                if client.server_capabilities is not None and client.server_capabilities.tools is not None:
                    await client.list_tools()
            await explained.continue_without_challenge()
    except _Explained:
        pass
    except AuthorizationError as exc:
        found.add_failure(exc)
    except (AccordError, TimeoutError) as exc:
        found.add_failure(AuthorizationError(REQUEST_STEP, str(exc), reach_cure(exc)))


def reach_cure(error: BaseException) -> str:
    """Return what to do if the server cannot be reached, or is none of MCP."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    if any(isinstance(each, OSError) for each in causes):
        return "start the server, or correct its URL"
    return "check that the URL is that of an MCP server"


class ExplainedLogin:
    """A login that only explains: `Client(url, auth=ExplainedLogin(...))`."""

    def __init__(self, login: OAuth, store: CredentialStore, found: Explanation) -> None:
        self._login = login
        self._store = store
        self._found = found
        self._credentials: ExplainedCredentials | None = None

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        """Return the credentials of one client: it has none, and explains where it would need them."""
        http = ExplainedRequests(server, self._login, self._found, ssl=ssl, proxy=proxy)
        grant = ExplainedGrant(self._login, self._found)
        self._credentials = ExplainedCredentials(grant, server, http, self._store, self._found)
        return self._credentials

    async def continue_without_challenge(self) -> None:
        """Explain the login at a server that answers without one. Raises `AuthorizationError`."""
        assert self._credentials is not None
        self._found.add(REQUEST_STEP, "ok", "the server answers without a login")
        self._found.login = "not needed"
        await self._credentials.explain(RefusedRequest("POST", self._found.server, 401, [], {}, {}, 0))


class ExplainedCredentials(GrantCredentials):
    """Credentials without a stored login, which explain a refused request."""

    def __init__(
        self, grant: ExplainedGrant, server: str, http: OAuthClient, store: CredentialStore, found: Explanation
    ) -> None:
        super().__init__(grant, server, http, store)
        self._found = found

    async def login(self, refusal: RefusedRequest) -> None:
        """Explain the login that a refused request needs. Raises `AuthorizationError`."""
        challenges = ", ".join(refusal.challenges) or "no challenge (WWW-Authenticate)"
        self._found.add(REQUEST_STEP, "ok", f"HTTP {refusal.status} to {refusal.method}, as it should: {challenges}")
        await self.explain(refusal)

    async def explain(self, refusal: RefusedRequest) -> None:
        """Go on with discovery. Raises `AuthorizationError`."""
        await super().login(refusal)


class ExplainedRequests(OAuthClient):
    """The requests of discovery, each a step."""

    def __init__(
        self, server: str, login: OAuth, found: Explanation, *, ssl: SSLContext | None, proxy: str | None
    ) -> None:
        super().__init__(server, ssl=ssl, proxy=proxy)
        self._login = login
        self._found = found
        self._resource: bytes | None = None

    async def send(self, request: OAuthRequest) -> OAuthResponse:
        """Send one request, and add its outcome. Raises `AuthorizationError`."""
        if request.step == SERVER_STEP and not self._found.has("resource", "ok"):
            self._add_resource()
        response = await super().send(request)
        if response.status == 200:
            self._found.add(request.step, "ok", "HTTP 200", url=request.url)
            self._resource = response.body if request.step == RESOURCE_STEP else self._resource
        elif 400 <= response.status < 500:
            self._found.add(request.step, "not found", f"HTTP {response.status}", url=request.url)
        return response

    def _add_resource(self) -> None:
        """Add the resource, which discovery has accepted when it goes on to the authorization server."""
        if self._login.resource is not None:
            self._found.add("resource", "ok", f"{self._login.resource}, chosen with --resource")
        elif self._resource is not None:
            resource = decode_metadata(self._resource, ResourceMetadata, RESOURCE_STEP).resource
            self._found.add("resource", "ok", f"{resource} stands for {self._found.server}")
        elif self._found.login == "not needed":
            raise _Explained
        else:
            text = "the server publishes no metadata: it counts as its own authorization server, as in 2025-03-26"
            self._found.add("resource", "ok", text)


class ExplainedGrant:
    """The grant of a user, up to the point where the user would be asked; see `accord.auth.credentials.Grant`."""

    is_interactive = True
    is_possible = True
    extension = None

    def __init__(self, login: OAuth, found: Explanation) -> None:
        self._login = login
        self._found = found

    @property
    def client_id(self) -> str | None:
        """See `Grant.client_id`."""
        return self._login.client_id

    @property
    def port(self) -> int:
        """See `Grant.port`."""
        return self._login.port

    @property
    def options(self) -> DiscoveryOptions:
        """The choices of the user for discovery."""
        return DiscoveryOptions(issuer=self._login.issuer, resource=self._login.resource)

    async def obtain(self, discovery: Discovery, previous: Login | None, store: CredentialStore) -> Login:
        """Add what a login would do with this authorization server. Raises `_Explained`."""
        found = self._found
        found.login = "possible"
        found.add("issuer", "ok", f"{discovery.issuer} is the one that was looked up")
        self._add_pkce(discovery)
        await self._add_client(discovery, store)
        chosen = None if self._login.scopes is None else list(self._login.scopes)
        requested = [] if previous is None else previous.tokens.requested
        found.add("scopes", "ok", " ".join(select_scopes(discovery, requested, chosen)) or "none are requested")
        self._add_proof(discovery)
        for name, text in _extensions(discovery):
            found.add(name, "note", text)
        raise _Explained

    def _add_pkce(self, discovery: Discovery) -> None:
        try:
            endpoint = authorization_endpoint(discovery, assume_pkce=self._login.assume_pkce)
        except AuthorizationError as exc:
            self._found.add_failure(exc)
            return
        is_stated = "S256" in (discovery.metadata.code_challenge_methods_supported or ())
        self._found.add("S256", "ok", "stated" if is_stated else "not stated, assumed with --assume-pkce")
        self._found.add("authorization endpoint", "ok", "the browser would be opened here", url=endpoint)

    async def _add_client(self, discovery: Discovery, store: CredentialStore) -> None:
        try:
            text = await self._client(discovery, store)
        except AuthorizationError as exc:
            self._found.add_failure(exc)
        else:
            self._found.add(CLIENT_STEP, "ok", text)

    async def _client(self, discovery: Discovery, store: CredentialStore) -> str:
        """Return how the client would be identified. Raises `AuthorizationError`."""
        login = self._login
        if login.client_id is None:
            stored = await store.load_registration(discovery.issuer, login.client_name)
            if stored is not None:
                return f"{stored.client_id}, registered before"
        identity = ClientIdentity(
            client_id=login.client_id, metadata_url=login.client_metadata_url, name=login.client_name
        )
        port = f":{login.port}" if login.port else ""
        steps = identify_client(discovery.metadata, identity, f"http://127.0.0.1{port}{PATH}")
        try:
            request = next(steps)
        except StopIteration as done:
            client: ClientRegistration = done.value
            return f"{client.client_id} ({client.source})"
        return f"would be registered at {request.url}"

    def _add_proof(self, discovery: Discovery) -> None:
        try:
            key = new_key(discovery)
        except AuthorizationError as exc:
            self._found.add_failure(exc)
            return
        if key is not None:
            self._found.add("proof of possession", "ok", "tokens would be bound to a key (DPoP)")
        elif discovery.dpop_supported and find_spec("joserfc") is None:
            self._found.add("proof of possession", "note", "both servers support DPoP: it needs accord[auth]")


def _extensions(discovery: Discovery) -> list[tuple[str, str]]:
    """Return what else the authorization server states, with its meaning."""
    metadata = discovery.metadata
    grants = metadata.grant_types_supported or ()
    facts = {
        "programs without a user": "client_credentials" in grants and "client_credentials is supported",
        "login on another device": metadata.device_authorization_endpoint is not None and "accord login --device",
        "revocation": metadata.revocation_endpoint is None and "none: logging out leaves the tokens valid",
        "iss in the callback": not metadata.authorization_response_iss_parameter_supported and "not stated",
    }
    return [(name, text) for name, text in facts.items() if text]


def _next_step(found: Explanation) -> str:
    if found.login == "not needed":
        return "nothing: the server needs no login"
    if found.login == "possible":
        return f"accord login {found.server}"
    failed = next(each for each in found.steps if each.outcome == "failed")
    return failed.cure or default_cure(failed.text)


def default_cure(reason: str) -> str:
    """Return what to do about a failed step without a cure of its own."""
    return f"correct this, or ask who runs the server: {reason}"
