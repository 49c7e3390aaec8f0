"""Requests with any credentials, or none, for the rules about authorization.

refused = await access.refusal()                         # of a request without credentials
response = await access.send(request, token="nonsense")  # with another token
document = await access.metadata()                       # of the protected resource (RFC 9728)

A server without authorization gets none of these requests: `refusal` raises `NotApplicable` for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

from accord.auth.challenge import Challenge, parse_challenges
from accord.auth.urls import RESOURCE_METADATA, SERVER_METADATA, is_loopback
from accord.check.engine.outcomes import NO_AUTHORIZATION
from accord.check.engine.report import TransportName
from accord.check.engine.rule import EvidenceLine, NotApplicable, NotObserved, Violation
from accord.check.issuer.keys import TokenForge
from accord.check.probes.client_messages import all_capabilities, http_headers, initialize_params, request_body
from accord.check.probes.message_log import LoggedResponse, MessageLog
from accord.check.settings import CheckSettings
from accord.check.wires.http import SESSION, HTTPWire
from accord.messages.base import JSONObject
from accord.messages.revision import RULES, Rules
from accord.redaction import redact_beginning

NO_OAUTH = "the server publishes no OAuth metadata: it has credentials of another kind"
UNREADABLE_METADATA = "authorization/metadata"
"""The symptom of metadata that cannot be read."""
UNAUTHORIZED, FORBIDDEN = 401, 403
_BODY = 300
"""Maximum number of bytes of a body that are shown."""


class AccessRequest(NamedTuple):
    """A request that needs authorization."""

    name: str
    method: str
    message: JSONObject | None = None


class ResourceDocument(NamedTuple):
    """A metadata document, and where it was found."""

    url: str
    document: JSONObject
    named: bool
    """Whether a challenge named its URL."""
    entries: Sequence[int] = ()
    """See `LoggedResponse.entries`."""

    def violation(self, text: str) -> Violation:
        """Return a `Violation` with the document as evidence."""
        document = f"← {msgspec.json.encode(self.document).decode()}"
        return Violation(text, evidence=(EvidenceLine(f"# GET {self.url}", self.entries), document))


class Access:
    """Sends requests over HTTP with any credentials. `logs` are those of the visit; `opened` is the handshake result of
    a session, if one was opened; `forge` signs tokens that the server trusts.
    """

    def __init__(
        self,
        wire: HTTPWire,
        log: MessageLog,
        settings: CheckSettings,
        *,
        logs: Sequence[MessageLog] = (),
        is_open: bool = False,
        has_credentials: bool = False,
        session: str | None = None,
        forge: TokenForge | None = None,
    ) -> None:
        self.wire: HTTPWire = wire
        self.log: MessageLog = log
        self.settings: CheckSettings = settings
        self.revision: str = log.revision
        self.rules: Rules = RULES[log.revision]
        self.transport: TransportName = wire.transport
        self.client_capabilities: JSONObject = all_capabilities(log.revision)
        self.schemas: dict[str, JSONObject] = {}
        self._logs = logs
        self._is_open = is_open
        self._has_credentials = has_credentials
        self._session = session
        self._forge = forge
        self._refusal: LoggedResponse | None = None
        self._document: ResourceDocument | None = None
        self._missing = ""
        self._numbers = 0

    # --- requests ----------------------------------------------------------------------------------------------

    def requests(self) -> list[AccessRequest]:
        """Return a request for each method and route, the one that opens a session first."""
        opening = ("initialize", initialize_params(self.revision, self.client_capabilities))
        methods = [opening if self.rules.handshake else ("server/discover", None), ("tools/list", None)]
        if not self.settings.passive:
            methods += [("tools/call", {"name": "accord-check-nobody", "arguments": {}}), ("accord/unknown", None)]
        found = [self._post(method, params) for method, params in methods]
        notification = {"jsonrpc": "2.0", **request_body(self, "notifications/initialized", None, None)}
        if self.rules.handshake:
            found.append(AccessRequest("POST notifications/initialized", "POST", notification))
            found += [AccessRequest("GET", "GET"), AccessRequest("DELETE", "DELETE")]
        return found

    def _post(self, method: str, params: JSONObject | None) -> AccessRequest:
        self._numbers += 1
        message = {"jsonrpc": "2.0", "id": self._numbers, **request_body(self, method, params, None)}
        return AccessRequest(f"POST {method}", "POST", message)

    async def send(
        self, request: AccessRequest, *, token: str | None = None, authorization: str | None = None, query: str = ""
    ) -> LoggedResponse:
        """Send a request with a token, another `Authorization`, or none, and return its response. Raises `NotObserved`
        for credentials with `--passive`.
        """
        sent = f"Bearer {token}" if token is not None else authorization
        if self.settings.passive and (sent is not None or query):
            raise NotObserved("the request was not sent (--passive)")
        headers: dict[str, str | None] = {**http_headers(self, request.message), "Authorization": sent}
        if request.message is None:
            headers |= {"Content-Type": None, "MCP-Protocol-Version": self.revision}
        if request.method == "GET":
            headers["Accept"] = "text/event-stream"
        if self._session is not None and request.name != "POST initialize":
            headers[SESSION] = self._session
        body = None if request.message is None else msgspec.json.encode(request.message)
        url, stream_url = self.wire.url, self.wire.stream_url
        try:
            if query:
                joined = f"{url}{'&' if urlsplit(url).query else '?'}{query}"
                self.wire.url = self.wire.stream_url = joined
            return await self.wire.fetch_start(request.method, body, headers)
        finally:
            self.wire.url, self.wire.stream_url = url, stream_url

    # --- the refusal -------------------------------------------------------------------------------------------

    async def refusal(self) -> LoggedResponse:
        """Return the response to a request without credentials. Raises `NotApplicable` if the server accepts it, and
        `NotObserved` without a response.
        """
        if self._refusal is None:
            if self._is_open and not self._has_credentials:
                raise NotApplicable(NO_AUTHORIZATION)
            self._refusal = await self.send(self.requests()[0])
        if is_accepted(self._refusal):
            raise NotApplicable(f"{NO_AUTHORIZATION}: a request without credentials succeeds")
        if not self._refusal.status:
            raise NotObserved(f"a request without credentials got no response: {self._refusal.error}")
        return self._refusal

    async def challenge(self) -> Challenge:
        """Return the challenge to a request without credentials; an empty one without a header."""
        found = challenges(await self.refusal())
        return next((each for each in found if each.scheme == "bearer"), found[0] if found else Challenge("", {}))

    def responses(self) -> Iterator[LoggedResponse]:
        """Yield all responses of the visit, but not those of metadata."""
        for log in (*self._logs, self.log):
            yield from (each for each in log.responses if not each.url)

    # --- metadata ----------------------------------------------------------------------------------------------

    async def metadata(self) -> ResourceDocument:
        """Return the metadata of the protected resource. Raises `NotApplicable` for a server without OAuth, and
        `Violation` for metadata that is named, but cannot be read.
        """
        challenge = await self.challenge()
        if self._document is None and not self._missing:
            self._document = await self._fetch_metadata(challenge.parameters.get("resource_metadata"))
        if self._document is not None:
            return self._document
        if self._forge is not None:
            raise self._metadata_violation(f"the server publishes no metadata: {self._missing}")
        raise NotApplicable(NO_OAUTH)

    async def _fetch_metadata(self, named: str | None) -> ResourceDocument | None:
        elsewhere = named is not None and self.is_tried_locally and not is_local(named)
        if named is not None and not elsewhere:
            return await self._read_metadata(named)
        for url in well_known_urls(self.wire.url):
            response = await self.wire.fetch_url("GET", url)
            if response.status == 200 and (document := decoded(response)) is not None:
                return ResourceDocument(url, document, elsewhere, response.entries)
            self._missing += f"{'; ' if self._missing else ''}GET {url} returned {describe(response)}"
        if elsewhere:
            raise NotObserved(f"the metadata is at {named}, and the server is checked on this machine")
        return None

    @property
    def is_tried_locally(self) -> bool:
        """Whether the server is checked on this machine, where it may be configured for its public URL."""
        return is_local(self.wire.url)

    async def _read_metadata(self, url: str) -> ResourceDocument:
        if not self._may_fetch(url):
            raise self._metadata_violation(f"resource_metadata is {url[:200]!r}, and not an https URL")
        response = await self.wire.fetch_url("GET", url)
        document = decoded(response)
        if response.status != 200 or document is None:
            what = f"the challenge names {url} as resource_metadata"
            raise self._metadata_violation(f"{what}, which returned {describe(response)}")
        return ResourceDocument(url, document, True, response.entries)

    def _metadata_violation(self, text: str) -> Violation:
        """Return a `Violation` that all rules about the metadata share."""
        return Violation(text, symptom=UNREADABLE_METADATA, evidence=evidence(self._refusal))

    async def server_metadata(self) -> JSONObject | None:
        """Return the metadata of an authorization server at the origin of the server (2025-03-26); None without it."""
        parts = urlsplit(self.wire.url)
        response = await self.wire.fetch_url("GET", f"{parts.scheme}://{parts.netloc}{SERVER_METADATA}")
        return decoded(response) if response.status == 200 else None

    def _may_fetch(self, url: str) -> bool:
        """Return whether a URL that the server chose is requested: on the origin of the server, or https."""
        try:
            parts, own = urlsplit(url), urlsplit(self.wire.url)
            return parts.scheme == "https" or parts[:2] == own[:2] or (is_local(url) and self.is_tried_locally)
        except ValueError:
            return False

    # --- tokens ------------------------------------------------------------------------------------------------

    async def trusted_forge(self) -> TokenForge:
        """Return what signs tokens that the server trusts. Raises `NotObserved` without it, and `NotApplicable` for a
        server without authorization.
        """
        await self.refusal()
        if self._forge is None:
            raise NotObserved("the checker is not the issuer of the server's tokens (--as-issuer)")
        return self._forge

    def first_token(self) -> str:
        """Return a token that the server accepts. Raises `NotObserved` if none is known."""
        if not self.settings.tokens:
            raise NotObserved("no token is known (--token)")
        return self.settings.tokens[0]


def well_known_urls(url: str) -> list[str]:
    """Return where the metadata of a server at this URL may be: with its path, and without."""
    parts = urlsplit(url)
    paths = dict.fromkeys((f"{RESOURCE_METADATA}{parts.path.rstrip('/')}", RESOURCE_METADATA))
    return [urlunsplit((parts.scheme, parts.netloc, path, "", "")) for path in paths]


def is_local(url: str) -> bool:
    """Return whether a URL is http on loopback; false for an invalid one."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "http" and is_loopback(parts.hostname or "")
    except ValueError:
        return False


def is_accepted(response: LoggedResponse) -> bool:
    """Return whether a request was served: a success without a JSON-RPC error."""
    refused = any(isinstance(each, dict) and "error" in each for each in response.messages)
    return 200 <= response.status < 300 and not refused


def challenges(response: LoggedResponse) -> list[Challenge]:
    """Return the challenges of a response."""
    return parse_challenges([response.headers.get("www-authenticate", "")])


def decoded(response: LoggedResponse) -> JSONObject | None:
    """Return the JSON object in a response; None if it is another thing."""
    try:
        found: Any = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def describe(response: LoggedResponse) -> str:
    """Describe a response in a few words."""
    if not response.status:
        return response.error or "no response"
    body = redact_beginning(response.body.decode(errors="replace").strip(), _BODY)
    return f"status {response.status}" + (f": {body}" if body else "")


def evidence(response: LoggedResponse | None) -> tuple[str, ...]:
    """Return a refusal as lines."""
    if response is None:
        return ()
    challenge = response.headers.get("www-authenticate")
    header = f", WWW-Authenticate: {challenge}" if challenge is not None else ", without WWW-Authenticate"
    return (EvidenceLine(f"# {response.method} -> {describe(response)}{redact_beginning(header)}", response.entries),)
