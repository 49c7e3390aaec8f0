"""Authorization of one client: an operation that needs a login is run again after it.

The transport renews tokens without the user. A login takes as long as its user, so it happens here, while no request
waits and no timeout runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from accord.client.target import ClientAuth, Remote
from accord.errors import AccordError, AuthorizationError, LoginNeeded, TargetError
from accord.messages.base import JSONObject
from accord.transport.http.credentials import BearerToken, Credentials
from accord.transport.http.settings import HTTPSettings

if TYPE_CHECKING:
    from accord.auth.credentials import GrantCredentials

Result = TypeVar("Result")

_MAX_LOGINS = 3
"""Limit of the authorizations of one operation: "Retry the original request [...] no more than a few times" (Step-Up
Authorization Flow).
"""


class ClientAuthorization:
    """The credentials of one client for its target, and its logins. Raises `TargetError` for an invalid `auth`."""

    def __init__(self, target: object, auth: str | ClientAuth | None, settings: HTTPSettings) -> None:
        self._grant_credentials: GrantCredentials | None = None
        self.credentials: Credentials | None = None
        """The credentials for the transport, if there are any."""
        self.on_login: Callable[[], None] | None = None
        """Called after a login: the user may be another one."""
        if auth is None or not isinstance(target, Remote):
            return
        if isinstance(auth, str):
            self.credentials = BearerToken(auth)
        elif hasattr(auth, "credentials"):
            self._grant_credentials = auth.credentials(target.url, ssl=settings.ssl, proxy=settings.proxy)
            self.credentials = self._grant_credentials
        else:
            raise TargetError(f"auth= is a bearer token, or credentials such as OAuth(), not {type(auth).__name__}")

    @property
    def extensions(self) -> dict[str, JSONObject]:
        """The extensions of the protocol that are in use, as capabilities."""
        name = None if self._grant_credentials is None else self._grant_credentials.extension
        return {} if name is None else {name: {}}

    async def after_login(self, error: AccordError, operation: Callable[[], Awaitable[Result]]) -> Result:
        """Log in if `error` needs a login, and run its operation again. Raises `AuthorizationError`, or `error` if it
        has another cause.
        """
        for _ in range(_MAX_LOGINS):
            needed = authorization_error(error)
            if needed is None:
                raise error
            if not isinstance(needed, LoginNeeded) or self._grant_credentials is None or needed.refusal is None:
                raise needed
            await self._grant_credentials.login(needed.refusal)
            if self.on_login is not None:
                self.on_login()
            try:
                return await operation()
            except AccordError as exc:
                error = exc
        raise error

    async def close(self) -> None:
        """Close the credentials."""
        if self.credentials is not None:
            await self.credentials.close()


def authorization_error(error: BaseException | None) -> AuthorizationError | None:
    """Return the `AuthorizationError` that caused an error, or None."""
    while error is not None and not isinstance(error, AuthorizationError):
        error = error.__cause__
    return error
