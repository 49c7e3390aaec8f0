"""The login of a user for a client: from the client's request, over the consent, to the code for the client."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import msgspec

from accord.errors import AuthorizationError
from accord.server.auth.proxy.authorization import (
    ClientRequest,
    PendingConsent,
    PendingLogin,
    ProviderRefusal,
    check_browser,
    check_request,
    client_redirect,
    give_consent,
    read_provider_callback,
)
from accord.server.auth.proxy.client_documents import ClientDocuments, is_document_url
from accord.server.auth.proxy.clients import ProxyClient, load_client
from accord.server.auth.proxy.database import ProxyDatabase, digest_of
from accord.server.auth.proxy.endpoint_error import EndpointError, Report
from accord.server.auth.proxy.grants import LiveGrant, UserGrant, create_grant
from accord.server.auth.proxy.pending import save_pending, take_pending
from accord.server.auth.proxy.provider import LoginProvider

CALLBACK_PATH = "/callback"
REPEAT_SECONDS = 5.0
"""How long a consent page works after its first use: a double click sends the form twice."""


class BegunLogin(msgspec.Struct, frozen=True):
    """A checked request whose consent page is shown: `id` is in the page, and `cookie` in the browser."""

    client: ProxyClient
    request: ClientRequest
    id: str
    cookie: str

    def __repr__(self) -> str:
        return f"BegunLogin({self.request!r})"


class Redirection(msgspec.Struct, frozen=True):
    """A redirect of the browser. A redirect to the provider sets `cookie` under the name of `state`."""

    url: str
    state: str | None = None
    cookie: str | None = None

    def __repr__(self) -> str:
        return f"Redirection({self.url.partition('?')[0]!r})"


class LoginFlow:
    """The logins of one proxy. `now` returns seconds since 1970; `random_text` 256 random bits as a text; `report` logs
    a failure.
    """

    def __init__(
        self,
        provider: LoginProvider,
        database: ProxyDatabase,
        documents: ClientDocuments,
        now: Callable[[], float],
        random_text: Callable[[], str],
        report: Report,
    ) -> None:
        self._provider = provider
        self._database = database
        self._documents = documents
        self._now = now
        self._random_text = random_text
        self._report = report

    async def begin(self, parameters: Mapping[str, str], issuer: str, resource: str, account: str) -> BegunLogin:
        """Return a login that waits for consent. Raises `EndpointError`."""
        client = await self._client(parameters.get("client_id", ""), account)
        request = check_request(parameters, client, self._provider.settings.scopes, issuer, resource)
        id, cookie = self._random_text(), self._random_text()
        pending = PendingConsent(request, digest_of(cookie))
        await self._database.run(lambda db, sealer: save_pending(db, sealer, id, pending, account, self._now()))
        return BegunLogin(client, request, id, cookie)

    async def _client(self, client_id: str, account: str) -> ProxyClient:
        if is_document_url(client_id):
            return await self._documents.load(client_id, account)
        client = await self._database.run(lambda db, _: load_client(db, client_id, self._now()))
        if client is None:
            raise EndpointError(
                "invalid_client", "client_id is not registered: remove the login in the client, and log in again"
            )
        return client

    async def consent(self, id: str, cookie: str | None, account: str) -> Redirection:
        """Return the redirect to the provider. Raises `EndpointError`."""
        pending = await self._take_consent(id, REPEAT_SECONDS)
        consented = give_consent(pending, cookie, self._provider.settings.identity, self._random_text)
        login, state = consented.login, consented.state
        await self._database.run(lambda db, sealer: save_pending(db, sealer, state, login, account, self._now()))
        request = login.request
        url = self._provider.authorization_url(request.issuer + CALLBACK_PATH, state, login.verifier, request.scopes)
        return Redirection(url, state, consented.cookie)

    async def refuse(self, id: str, cookie: str | None) -> Redirection:
        """Return the redirect that tells the client of the user's refusal. Raises `EndpointError`."""
        pending = await self._take_consent(id)
        if pending is None:
            raise EndpointError("invalid_request", "this page has expired, or was used before: begin the login again")
        check_browser(pending.browser, cookie)
        error = {"error": "access_denied", "error_description": "the user has refused"}
        return Redirection(client_redirect(pending.request, error))

    async def _take_consent(self, id: str, seconds: float = 0) -> PendingConsent | None:
        return await self._database.run(
            lambda db, sealer: take_pending(db, sealer, id, PendingConsent, self._now(), seconds=seconds)
        )

    async def finish(self, parameters: Mapping[str, str], cookie: str | None, account: str) -> Redirection:
        """Return the redirect to the client, with a code, after the provider's callback. Raises `EndpointError`."""
        state = parameters.get("state", "")
        login = await self._database.run(lambda db, sealer: take_pending(db, sealer, state, PendingLogin, self._now()))
        settings = self._provider.settings
        try:
            code = read_provider_callback(login, parameters, cookie, settings.identity, settings.expected_issuer)
            assert login is not None
            own_code = await self._grant(login, code, account)
        except ProviderRefusal as exc:
            assert login is not None
            error = {"error": exc.error, "error_description": exc.description}
            return Redirection(client_redirect(login.request, error))
        return Redirection(client_redirect(login.request, {"code": own_code}))

    async def _grant(self, login: PendingLogin, code: str, account: str) -> str:
        """Return the code of a new grant, for the provider's code. Raises `ProviderRefusal`."""
        request = login.request
        try:
            redirect_uri = request.issuer + CALLBACK_PATH
            upstream = await self._provider.redeem(code, login.verifier, redirect_uri, request.scopes, account)
        except AuthorizationError as exc:
            text = f"a login at the provider failed: {exc}"
            self._report(logging.WARNING, lambda: text)
            raise ProviderRefusal(
                "server_error", "the provider did not accept the login; the log of this server says why"
            ) from None
        identity = await self._provider.identify(upstream, request.scopes)
        grant = UserGrant(
            request.client_id,
            identity.principal,
            identity.issuer,
            request.scopes,
            identity.scopes,
            request.resource,
            identity.claims,
        )
        live, own_code = LiveGrant(digest_of(self._random_text()), grant, upstream), self._random_text()
        await self._database.run(lambda db, sealer: create_grant(db, sealer, live, request, own_code, self._now()))
        return own_code
