"""Authorization of one client: an operation that needs a login is run again after it.

The transport renews tokens without the user. A login takes as long as its user, so it happens here, while no request
waits and no timeout runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from accord.client.target import Remote
from accord.errors import AccordError, LoginNeeded, TargetError
from accord.transport.http.credentials import BearerToken, Credentials
from accord.transport.http.settings import HTTPSettings

if TYPE_CHECKING:
    from ssl import SSLContext

    from accord.auth.credentials import GrantCredentials

Result = TypeVar("Result")

_MAX_LOGINS = 3
"""Limit of the authorizations of one operation: "Retry the original request [...] no more than a few times" (Step-Up
Authorization Flow).
"""


class ClientAuth(Protocol):
    """How a client is authorized: `OAuth()`, `ClientCredentials(...)`."""

    def credentials(self, server: str, *, ssl: SSLContext | None, proxy: str | None) -> GrantCredentials:
        """Return the credentials of one client for `server`, the URL of an MCP server."""


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

    async def after_login(self, error: AccordError, operation: Callable[[], Awaitable[Result]]) -> Result:
        """Log in if `error` needs a login, and run its operation again. Raises `error` if not, `AuthorizationError`."""
        for _ in range(_MAX_LOGINS):
            needed = _login_needed(error)
            if needed is None or self._grant_credentials is None or needed.refusal is None:
                raise error
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


def _login_needed(error: BaseException | None) -> LoginNeeded | None:
    """Return the `LoginNeeded` that caused an error, or None."""
    while error is not None and not isinstance(error, LoginNeeded):
        error = error.__cause__
    return error
