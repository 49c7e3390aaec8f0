"""The provider's tokens of a login: renewed when they expire, and only handed to handlers (`ctx.upstream`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from accord.auth.tokens import Tokens
from accord.errors import AuthorizationError, OAuthError
from accord.server.auth.proxy.database import ProxyDatabase
from accord.server.auth.proxy.grants import (
    RENEWAL_SECONDS,
    LiveGrant,
    claim_renewal,
    end_grant,
    load_grant,
    release_renewal,
    save_upstream,
)
from accord.server.auth.proxy.provider import LoginProvider
from accord.server.auth.single_flight import SingleFlight

MARGIN_SECONDS = 60.0
"""A token of the provider that expires sooner is renewed before it is used."""
_POLL_SECONDS = 0.05


class UpstreamLogins:
    """The provider's tokens of all logins. `on_end` receives the id of a grant whose login has ended."""

    def __init__(
        self,
        provider: LoginProvider,
        database: ProxyDatabase,
        now: Callable[[], float],
        on_end: Callable[[bytes], None],
    ) -> None:
        self._provider = provider
        self._database = database
        self._now = now
        self._on_end = on_end
        self._renewals = SingleFlight[LiveGrant | None]()

    async def load(self, id: bytes) -> LiveGrant | None:
        """Return a grant with tokens that are valid for a while; None if it has ended. Raises `AuthorizationError` if
        the provider does not answer, and `StoreError`.
        """
        live = await self._load(id)
        if live is None or self._is_usable(live.upstream):
            return live
        return await self._renewals.run(id, lambda: self._renew(id))

    async def _load(self, id: bytes) -> LiveGrant | None:
        return await self._database.run(lambda db, sealer: load_grant(db, sealer, id, self._now()))

    def _is_usable(self, tokens: Tokens) -> bool:
        """Return whether tokens are used as they are: without a refresh token they are, until they expire."""
        margin = MARGIN_SECONDS if tokens.refresh_token is not None else 0.0
        return tokens.is_fresh(self._now(), margin)

    async def _renew(self, id: bytes) -> LiveGrant | None:
        """Renew the tokens in one process at a time; the others read what that one has stored."""
        waits = int(RENEWAL_SECONDS / _POLL_SECONDS)
        for _ in range(waits):
            live = await self._load(id)
            if live is None or self._is_usable(live.upstream):
                return live
            if await self._database.run(lambda db, _: claim_renewal(db, id, self._now())):
                return await self._renew_claimed(id)
            await asyncio.sleep(_POLL_SECONDS)  # another process stores what it gets
        raise AuthorizationError("provider token refresh", "another process did not finish it")

    async def _renew_claimed(self, id: bytes) -> LiveGrant | None:
        live = await self._load(id)
        if live is None:
            return None
        if self._is_usable(live.upstream):  # renewed between the look-up and the claim
            await self._database.run(lambda db, _: release_renewal(db, id))
            return live
        try:
            upstream = await self._provider.refresh(live.upstream, live.grant.principal)
        except AuthorizationError as exc:
            return await self._after_failure(live, exc)
        await self._database.run(lambda db, sealer: save_upstream(db, sealer, id, upstream))
        return msgspec.structs.replace(live, upstream=upstream)

    async def _after_failure(self, live: LiveGrant, exc: AuthorizationError) -> LiveGrant | None:
        """End a login that has ended at the provider. After any other failure, the tokens are used until they expire.
        Raises `AuthorizationError`.
        """
        if isinstance(exc, OAuthError) and exc.error == "invalid_grant":
            await self.end(live.id, "the login at the provider has ended")
            return None
        await self._database.run(lambda db, _: release_renewal(db, live.id))
        if live.upstream.is_fresh(self._now()):
            return live
        raise exc

    async def end(self, id: bytes, reason: str) -> None:
        """End a grant."""
        await self._database.run(lambda db, sealer: end_grant(db, sealer, id, reason, self._now()))
        self._on_end(id)


class UpstreamLogin:
    """The provider's tokens of one login; see `Upstream`. `resource` is the server that the user has consented to."""

    __slots__ = ("_id", "_logins", "resource")

    def __init__(self, id: bytes, resource: str, logins: UpstreamLogins) -> None:
        self._id = id
        self.resource: str = resource
        self._logins = logins

    def __repr__(self) -> str:
        return "UpstreamLogin(...)"

    async def token(self) -> str:
        """See `Upstream.token`."""
        live = await self._logins.load(self._id)
        if live is None:
            raise AuthorizationError("provider token", "the login of the user has ended", "log in again")
        return live.upstream.access_token
