"""The MCP requests of a run: a connection of the real client, with the login of the run or without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from accord.auth.credential_store import CredentialStore
from accord.auth.credentials import GrantCredentials
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.oauth import OAuth, grant_settings
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.auth.user_grants import CodeGrant
from accord.client.authorization import authorization_error
from accord.client.client import Client
from accord.client.target import Remote
from accord.errors import AccordError, AuthorizationError, LoginNeeded, ProtocolError, RequestTimeout
from accord.inspector.authorization.evidence import HTTPEvidence, StepRecord
from accord.transport.http.credentials import RefusedRequest
from accord.transport.http.settings import HTTPSettings
from accord.transport.recording import ConnectionRecorder, SessionRecorder
from accord.wire.session_file import Entry, HTTPEntry, MessageEntry

if TYPE_CHECKING:
    from ssl import SSLContext

_BODY_BYTES = 64 << 10

OAuthObserver = Callable[[OAuthRequest, OAuthResponse | AuthorizationError], None]


class RunLogin:
    """The `auth=` of one connection of a run: it has the login of the run, renews it, and never asks the user."""

    def __init__(self, login: OAuth, store: CredentialStore, observer: OAuthObserver) -> None:
        self._login = login
        self._store = store
        self._observer = observer
        self.made: GrantCredentials | None = None
        """The credentials of the connection."""

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        """Return the credentials of one client."""
        http = OAuthClient(server, ssl=ssl, proxy=proxy)
        http.observer = self._observer
        self.made = GrantCredentials(CodeGrant(grant_settings(self._login), server, http), server, http, self._store)
        return self.made


class RequestObserver:
    """A sink of the entries of a connection, which become the exchanges of a step."""

    def __init__(self, record: StepRecord) -> None:
        self._record = record
        self._exchanges: dict[int, HTTPEvidence] = {}

    def write(self, entry: Entry) -> None:
        """See `EntrySink.write`."""
        if isinstance(entry, HTTPEntry):
            self._add_head(entry)
        elif isinstance(entry, MessageEntry) and entry.exchange in self._exchanges:
            self._add_body(self._exchanges[entry.exchange], entry)

    def _add_head(self, entry: HTTPEntry) -> None:
        if entry.direction == "sent":
            exchange = HTTPEvidence(method=entry.method, url=entry.url, request_headers=entry.headers)
            self._exchanges[entry.exchange] = exchange
            self._record.add(exchange)
        elif (found := self._exchanges.get(entry.exchange)) is not None:
            found.status, found.response_headers = entry.status, entry.headers

    def _add_body(self, exchange: HTTPEvidence, entry: MessageEntry) -> None:
        size = len(entry.data)
        text = entry.data.decode(errors="replace") if size <= _BODY_BYTES else f"({size:,} bytes)"
        if entry.direction == "sent":
            exchange.request_body = text
        elif len(exchange.response_body) < _BODY_BYTES:
            exchange.response_body += text if not exchange.response_body else f"\n{text}"


class MCPRequest:
    """A request to an MCP server, as a client makes it: it connects, and lists the tools."""

    def __init__(
        self,
        server: Remote,
        login: OAuth,
        store: CredentialStore,
        http: HTTPSettings | None,
        recorder: SessionRecorder,
    ) -> None:
        self._server = server
        self._login = login
        self._store = store
        self._http = http
        self._recorder = recorder

    async def send(self, record: StepRecord, observer: OAuthObserver, new: Login | None) -> RefusedRequest | None:
        """Send the request; return its refusal, or None if it was accepted. `new` is a login that was not used yet.

        Raises `AccordError`.
        """
        auth = RunLogin(self._login, self._store, observer)
        record_target = self._recorder.with_sink(RequestObserver(record))
        client = Client(self._server, auth=auth, http=self._http, record=record_target)
        assert auth.made is not None
        if new is not None:
            await auth.made.use_new_login(new)
        try:
            async with client:
                with suppress(ProtocolError, RequestTimeout):  # only a refusal is of interest
                    if client.server_capabilities is not None and client.server_capabilities.tools is not None:
                        await client.list_tools()
        except AccordError as exc:
            needed = authorization_error(exc)
            if isinstance(needed, LoginNeeded) and isinstance(needed.refusal, RefusedRequest):
                return needed.refusal
            if needed is not None:
                raise needed from exc
            raise
        return None


class OAuthRecorder:
    """The requests of a run to authorization servers, as a connection of the recording: only what may be seen."""

    def __init__(self, recorder: SessionRecorder, server: Remote) -> None:
        self._recorder = recorder
        self._name = f"authorization for {server}"
        self._connection: ConnectionRecorder | None = None
        self._exchanges = 0

    def add(self, exchange: HTTPEvidence) -> None:
        """Record an exchange without secrets."""
        connection = self._opened()
        self._exchanges += 1
        number, headers = self._exchanges, _lower(exchange.request_headers)
        body = exchange.request_body.encode() or None
        connection.on_request(number, exchange.method, exchange.url, headers, body, 0)
        if exchange.status is None:
            connection.remark(exchange.error)
            return
        connection.on_response(number, exchange.status, _lower(exchange.response_headers))
        if exchange.response_body:
            connection.on_message(number, exchange.response_body.encode())

    def _opened(self) -> ConnectionRecorder:
        if self._connection is None:
            self._connection = self._recorder.connection()
            self._connection.opened(self._name, "OAuth")
        return self._connection

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.closed()


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
