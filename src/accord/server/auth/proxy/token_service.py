"""The proxy's own tokens: codes and refresh tokens are exchanged for them, and clients revoke them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import msgspec

from accord.errors import AuthorizationError
from accord.server.auth.proxy.authorization import ProviderRefusal, check_resource
from accord.server.auth.proxy.client_documents import is_document_url
from accord.server.auth.proxy.clients import (
    ClientCredentialsSent,
    ProxyClient,
    check_client,
    load_client,
    read_client_credentials,
    register,
    save_client,
)
from accord.server.auth.proxy.database import ProxyDatabase
from accord.server.auth.proxy.endpoint_error import EndpointError, Report
from accord.server.auth.proxy.grants import (
    EndedGrant,
    IssuedTokens,
    LiveGrant,
    TokenIssue,
    UserGrant,
    find_refresh_token,
    redeem_code,
    revoke,
    rotate,
)
from accord.server.auth.proxy.provider import Identity, LoginProvider
from accord.server.auth.proxy.settings import ProxySettings
from accord.server.auth.proxy.upstream import UpstreamLogins


class TokenService:
    """The token endpoint of one proxy, and registration. `on_end` receives the id of a grant that has ended;
    `report` logs a failure.
    """

    def __init__(
        self,
        settings: ProxySettings,
        provider: LoginProvider,
        database: ProxyDatabase,
        logins: UpstreamLogins,
        on_end: Callable[[bytes], None],
        now: Callable[[], float],
        random_text: Callable[[], str],
        report: Report,
    ) -> None:
        self._settings = settings
        self._provider = provider
        self._database = database
        self._logins = logins
        self._on_end = on_end
        self._now = now
        self._random_text = random_text
        self._report = report

    async def register(self, body: bytes, account: str) -> dict[str, object]:
        """Return the response to a registration. Raises `EndpointError`."""
        client, response = register(body, self._settings.redirect_schemes, self._now(), self._random_text)
        if not await self._database.run(lambda db, _: save_client(db, client, account, self._now())):
            raise EndpointError("temporarily_unavailable", "no more clients can be registered now", 503)
        return response

    async def exchange(self, authorization: bytes | None, form: Mapping[str, str], resource: str) -> dict[str, object]:
        """Return the response of the token endpoint. Raises `EndpointError`."""
        client_id = await self._authenticate(read_client_credentials(authorization, form))
        check_resource(form.get("resource"), resource)
        grant_type = form.get("grant_type")
        if grant_type == "authorization_code":
            found = await self._redeem(client_id, form)
        elif grant_type == "refresh_token":
            found = await self._refresh(client_id, form.get("refresh_token", ""))
        else:
            raise EndpointError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
        if isinstance(found, EndedGrant):
            await self._end(found)
            raise EndpointError("invalid_grant", found.reason)
        return found.response(self._now())

    async def _authenticate(self, sent: ClientCredentialsSent) -> str:
        """Return the ID of an authenticated client. A client with a metadata document is public."""
        if is_document_url(sent.client_id):
            return sent.client_id
        client: ProxyClient | None = await self._database.run(
            lambda db, _: load_client(db, sent.client_id, self._now())
        )
        return check_client(client, sent).client_id

    def _issue(self) -> TokenIssue:
        return TokenIssue(self._settings, self._now(), self._random_text)

    async def _redeem(self, client_id: str, form: Mapping[str, str]) -> IssuedTokens | EndedGrant:
        code, verifier, redirect_uri = form.get("code", ""), form.get("code_verifier", ""), form.get("redirect_uri")
        return await self._database.run(
            lambda db, sealer: redeem_code(db, sealer, code, client_id, redirect_uri, verifier, self._issue())
        )

    async def _refresh(self, client_id: str, token: str) -> IssuedTokens | EndedGrant:
        """Return the successor of a refresh token, after the provider has confirmed the user."""
        found = await self._database.run(
            lambda db, sealer: find_refresh_token(db, sealer, token, client_id, self._now())
        )
        if not isinstance(found, LiveGrant):
            return found
        grant = await self._confirm(found.id)
        if isinstance(grant, EndedGrant):
            return grant
        return await self._database.run(lambda db, sealer: rotate(db, sealer, token, grant, self._issue()))

    async def _confirm(self, id: bytes) -> UserGrant | EndedGrant:
        """Return a grant with the scopes that the user has now. Raises `EndpointError` if the provider does not
        answer: the refresh token stays valid.
        """
        try:
            live = await self._logins.load(id)
            identity = None if live is None else await self._identify(live)
        except AuthorizationError as exc:
            text = f"the provider's tokens could not be renewed: {exc}"
            self._report(logging.WARNING, lambda: text)
            raise _try_later() from None
        if live is None:
            return EndedGrant("the login at the provider has ended", id)
        if identity is None or identity.principal != live.grant.principal:
            await self._logins.end(id, "the provider does not confirm the user")
            return EndedGrant("the provider does not confirm the user")
        return msgspec.structs.replace(live.grant, scopes=identity.scopes, claims=identity.claims)

    async def _identify(self, live: LiveGrant) -> Identity | None:
        """Return the user of a grant, or None if the user has no access any more. Raises `EndpointError`."""
        try:
            return await self._provider.identify(live.upstream, live.grant.requested)
        except ProviderRefusal as exc:
            if exc.error == "access_denied":
                return None
            raise _try_later() from None

    async def revoke(self, authorization: bytes | None, form: Mapping[str, str]) -> None:
        """End the grant of a token, if it is one of this client (RFC 7009). Raises `EndpointError`."""
        client_id = await self._authenticate(read_client_credentials(authorization, form))
        if "token" not in form:
            raise EndpointError("invalid_request", "token is missing")
        ended = await self._database.run(lambda db, sealer: revoke(db, sealer, form["token"], client_id, self._now()))
        if ended is not None:
            await self._end(ended)

    async def _end(self, ended: EndedGrant) -> None:
        if ended.grant is not None:
            self._on_end(ended.grant)
        if ended.upstream is not None:
            await self._provider.revoke(ended.upstream)


def _try_later() -> EndpointError:
    return EndpointError("temporarily_unavailable", "the provider does not answer; try again later", 503)
