"""The means of rules about an authorization server: its metadata, raw requests, a registered client, and logins."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from accord.auth.code_grant import code_challenge
from accord.auth.urls import server_metadata_urls
from accord.check.authorization_servers.user_agent import UserAgent, UserNeeded, read_body
from accord.check.engine.rule import NotApplicable, NotObserved, Violation
from accord.check.probes.message_log import decode_json
from accord.messages.base import JSONObject
from accord.redaction import REDACTED

if TYPE_CHECKING:
    from aiohttp import ClientSession

_EVIDENCE = 12
_SHOWN = 1_500
_SECRETS = (
    "access_token|refresh_token|id_token|token|code|code_verifier|client_secret|registration_access_token|device_code"
)
_MEMBER = re.compile(rf'("(?:{_SECRETS})"\s*:\s*")[^"]+')
_QUERY = re.compile(rf"([?&#](?:{_SECRETS})=)[^&\s]+")


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the checker's login. Without a client ID, it registers clients."""

    authorize: str = ""
    """Who opens authorization URLs: nobody, `forms`, or a command with `{url}`."""
    resource: str = ""
    """The MCP server for which tokens are requested."""
    client_id: str = ""
    redirect_uri: str = ""
    """The redirect URI of `client_id`."""
    scope: str = ""


class HTTPAnswer(msgspec.Struct, frozen=True):
    """A response, and the request as a line of a transcript."""

    request: str
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def document(self) -> JSONObject:
        """Its JSON object; empty if it has none."""
        found = decode_json(self.body)
        return found if isinstance(found, dict) else {}

    @property
    def is_json(self) -> bool:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"

    @property
    def error(self) -> str:
        """The OAuth error, empty if it has none."""
        error = self.document.get("error", "")
        return error if isinstance(error, str) else ""

    def lines(self) -> list[str]:
        """Return request and response as lines of a transcript, without tokens, codes and secrets."""
        answer = f"← HTTP {self.status} {self.body.decode(errors='replace')}"
        return [_without_secrets(line)[:_SHOWN] for line in (self.request, answer)]


def _without_secrets(line: str) -> str:
    return _QUERY.sub(rf"\1{REDACTED}", _MEMBER.sub(rf"\1{REDACTED}", line))


class ProbeClient(msgspec.Struct, frozen=True):
    """A public client of the authorization server."""

    client_id: str
    redirect_uri: str


class AuthorizationResult(msgspec.Struct, frozen=True):
    """The callback of an authorization, with what its request had."""

    client: ProbeClient
    state: str
    verifier: str
    parameters: Mapping[str, str]

    @property
    def code(self) -> str:
        return self.parameters.get("code", "")


class AuthServerState:
    """The state that the cases of a check share."""

    def __init__(self, issuer: str, login: LoginSettings, session: ClientSession, agent: UserAgent) -> None:
        self.issuer: str = issuer
        self.login: LoginSettings = login
        self.session: ClientSession = session
        self.agent: UserAgent = agent
        self.documents: dict[str, HTTPAnswer] = {}
        """The responses at the well-known URLs, in their order."""
        self.client: ProbeClient | None = None
        self.user_needed: str = ""
        """Why no login succeeds, once that is known."""


class AuthServerProbe:
    """One case of a check. It records the requests of the case."""

    def __init__(self, state: AuthServerState) -> None:
        self._state = state
        self._answers: list[HTTPAnswer] = []

    # --- metadata -------------------------------------------------------------------------------------------------

    @property
    def issuer(self) -> str:
        """The issuer identifier that is checked."""
        return self._state.issuer

    @property
    def resource(self) -> str:
        """The MCP server for which tokens are requested; empty if none was given."""
        return self._state.login.resource

    @property
    def documents(self) -> dict[str, HTTPAnswer]:
        """The metadata documents, by URL; a URL without one is left out."""
        return {url: answer for url, answer in self._state.documents.items() if answer.status == 200}

    async def discover(self) -> None:
        """Request the metadata at each well-known URL."""
        for url in server_metadata_urls(self.issuer):
            self._state.documents[url] = await self.request("GET", url)

    @property
    def metadata(self) -> JSONObject:
        """The first metadata document. Raises `NotObserved` if there is none."""
        for answer in self.documents.values():
            if answer.document:
                return answer.document
        raise NotObserved("there is no metadata")

    def endpoint(self, name: str) -> str:
        """Return an endpoint of the metadata. Raises `NotApplicable` if there is none."""
        found = self.metadata.get(name)
        if not isinstance(found, str) or urlsplit(found).scheme not in ("http", "https"):
            raise NotApplicable(f"the metadata has no {name}")
        return found

    # --- requests -------------------------------------------------------------------------------------------------

    async def request(
        self, method: str, url: str, *, form: Mapping[str, str] | None = None, document: Any = None
    ) -> HTTPAnswer:
        """Send a request without following redirects. Raises `NotObserved` if no response comes."""
        import aiohttp

        options: dict[str, Any] = {"data": form} if form is not None else {}
        if document is not None:
            options["json"] = document
        shown = form or document
        line = f"→ {method} {url}" + (f" {msgspec.json.encode(shown).decode()}" if shown else "")
        try:
            async with self._state.session.request(method, url, allow_redirects=False, **options) as response:
                body = await read_body(response)
                headers = {name.lower(): value for name, value in response.headers.items()}
                answer = HTTPAnswer(line, response.status, headers, body)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise NotObserved(f"{method} {url.partition('?')[0]}: {exc or 'no response in time'}") from exc
        self._answers.append(answer)
        return answer

    def violation(self, text: str) -> Violation:
        """Return a `Violation` with the requests of this case, or with the metadata."""
        lines = [line for answer in self._answers or self.documents.values() for line in answer.lines()]
        return Violation(text, evidence=lines[-_EVIDENCE:])

    # --- clients --------------------------------------------------------------------------------------------------

    def client_metadata(self, **changes: Any) -> JSONObject:
        """Return the metadata of a native public client."""
        document = {
            "client_name": "accord check",
            "redirect_uris": [self._state.agent.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        }
        return {name: value for name, value in {**document, **changes}.items() if value is not None}

    async def client(self) -> ProbeClient:
        """Return the client of the check. Raises `NotObserved` if it cannot be registered."""
        login = self._state.login
        if login.client_id:
            return ProbeClient(login.client_id, login.redirect_uri or self._state.agent.redirect_uri)
        if self._state.client is None:
            self._state.client = await self.new_client()
        return self._state.client

    async def new_client(self) -> ProbeClient:
        """Register a client. Raises `NotObserved` if that fails."""
        try:
            endpoint = self.endpoint("registration_endpoint")
        except NotApplicable as exc:
            raise NotObserved(f"{exc}: give --client-id and --redirect-uri") from exc
        answer = await self.request("POST", endpoint, document=self.client_metadata())
        client_id = answer.document.get("client_id")
        if answer.status not in (200, 201) or not isinstance(client_id, str):
            raise NotObserved(f"no client could be registered: HTTP {answer.status} {answer.error}")
        return ProbeClient(client_id, self._state.agent.redirect_uri)

    # --- logins ---------------------------------------------------------------------------------------------------

    def authorization_url(self, parameters: Mapping[str, str | None]) -> str:
        """Return an authorization URL; parameters that are None are left out."""
        endpoint = self.endpoint("authorization_endpoint")
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{query}"

    def parameters(self, client: ProbeClient, verifier: str, state: str) -> dict[str, str | None]:
        """Return the parameters of a valid authorization request."""
        scope = self._state.login.scope
        return {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": client.redirect_uri,
            "state": state,
            "code_challenge": code_challenge(verifier),
            "code_challenge_method": "S256",
            "resource": self.resource or None,
            "scope": scope or None,
        }

    async def visit(self, client: ProbeClient, **changes: str | None) -> AuthorizationResult:
        """Open an authorization URL. Raises `NotObserved` if a user is needed."""
        if self._state.user_needed:
            raise NotObserved(self._state.user_needed)
        verifier, state = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        url = self.authorization_url(self.parameters(client, verifier, state) | changes)
        try:
            callback = await self._state.agent.visit(url, client.redirect_uri)
        except UserNeeded as exc:
            text = f"{exc}: give --authorize" if not changes else f"{exc}"
            self._answers.append(HTTPAnswer(f"→ GET {url}", exc.status, {}, exc.text.encode()[:_SHOWN]))
            raise NotObserved(text) from exc
        self._answers.append(HTTPAnswer(f"→ GET {url}", 302, {}, f"Location: {callback}".encode()))
        parameters = dict(parse_qsl(urlsplit(callback).query, keep_blank_values=True))
        return AuthorizationResult(client, state, verifier, parameters)

    async def log_in(self, client: ProbeClient | None = None) -> AuthorizationResult:
        """Return a code for a client. Raises `NotObserved` if a user is needed."""
        found = await self.visit(client or await self.client())
        if not found.code:
            raise NotObserved(f"the callback has no code: {found.parameters.get('error', 'no error')}")
        return found

    def remember_failure(self, reason: str) -> None:
        """Record that no login succeeds, so that no other case tries."""
        self._state.user_needed = reason

    async def direct(self, client_id: str, redirect_uri: str) -> HTTPAnswer:
        """Return the first response to an authorization request of a client, without a user."""
        url = self.authorization_url(self.parameters(ProbeClient(client_id, redirect_uri), "v" * 43, "state"))
        return await self.request("GET", url)

    # --- tokens ---------------------------------------------------------------------------------------------------

    async def redeem(self, found: AuthorizationResult, **changes: str | None) -> HTTPAnswer:
        """Send the token request for a code; changed members that are None are left out."""
        form = {
            "grant_type": "authorization_code",
            "code": found.code,
            "redirect_uri": found.client.redirect_uri,
            "client_id": found.client.client_id,
            "code_verifier": found.verifier,
            "resource": self.resource or None,
        }
        return await self.token_request(form | changes)

    async def refresh(self, client: ProbeClient, token: str, **changes: str | None) -> HTTPAnswer:
        """Send a token request with a refresh token."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": token,
            "client_id": client.client_id,
            "resource": self.resource or None,
        }
        return await self.token_request(form | changes)

    async def token_request(self, form: Mapping[str, str | None]) -> HTTPAnswer:
        """Send a request to the token endpoint."""
        sent = {name: value for name, value in form.items() if value is not None}
        return await self.request("POST", self.endpoint("token_endpoint"), form=sent)

    async def tokens(self, client: ProbeClient | None = None) -> tuple[AuthorizationResult, HTTPAnswer]:
        """Log in, and redeem the code. Raises `NotObserved` if there is no access token."""
        found = await self.log_in(client)
        answer = await self.redeem(found)
        if not isinstance(answer.document.get("access_token"), str):
            raise NotObserved(f"no tokens were issued: HTTP {answer.status} {answer.error}")
        return found, answer

    def require_refusal(self, answer: HTTPAnswer, what: str) -> None:
        """Raise `Violation` if a response has tokens."""
        if "access_token" in answer.document or answer.status < 300:
            raise self.violation(f"{what} was answered with HTTP {answer.status}, not with an error")
