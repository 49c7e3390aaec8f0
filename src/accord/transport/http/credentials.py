"""Credentials of HTTP requests: the seam between the transport and authorization.

The transport adds the headers of the credentials to each request. It reports a refusal (401, 403), and sends the
request again if the credentials were renewed. A refused request was not executed, so that this is always safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from accord.errors import AuthorizationError, TargetError


class RefusedRequest(msgspec.Struct, frozen=True):
    """A response that refuses a request for its credentials."""

    method: str
    url: str
    status: int
    """401 or 403."""
    challenges: Sequence[str]
    """The `WWW-Authenticate` headers."""
    headers: Mapping[str, str]
    """The headers of the response, names in lower case."""
    sent: Mapping[str, str]
    """The headers of the credentials that were refused."""
    attempt: int
    """The number of earlier refusals of the same request."""

    def __repr__(self) -> str:
        return f"RefusedRequest({self.method}, {self.status})"  # the rest may be secret


class Credentials(Protocol):
    """The credentials of one client for one server."""

    accepted: bool
    """Set to True after each request that the server did not refuse."""

    def headers(self, method: str, url: str) -> Mapping[str, str] | None:
        """Return the headers for a request, names in lower case, or None if `renew` must be called first."""

    async def renew(self, method: str, url: str) -> Mapping[str, str]:
        """Renew what expires soon, and return the headers for a request. Raises `AuthorizationError`."""

    def on_nonce(self, nonce: str) -> None:
        """Use another nonce in the next proofs of possession: an accepted request got it (RFC 9449, 8.2)."""

    async def retry(self, refusal: RefusedRequest) -> bool:
        """Return whether the request may be sent again, with other credentials. Never asks the user."""

    def error(self, refusal: RefusedRequest) -> AuthorizationError | None:
        """Return the error of a request that stays refused, or None if the response itself says more."""

    async def close(self) -> None:
        """Close the connections of the credentials."""


class BearerToken:
    """A bearer token that does not change: `Authorization: Bearer ...`. Raises `TargetError` if it cannot be sent."""

    def __init__(self, token: str) -> None:
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
            raise TargetError(
                "auth= must be a bearer token of visible ASCII characters, or credentials such as OAuth()"
            )
        self._headers = {"authorization": f"Bearer {token}"}
        self.accepted: bool = False
        """See `Credentials.accepted`."""

    def __repr__(self) -> str:
        return "BearerToken(...)"

    def headers(self, method: str, url: str) -> Mapping[str, str] | None:
        """See `Credentials.headers`."""
        return self._headers

    async def renew(self, method: str, url: str) -> Mapping[str, str]:
        """See `Credentials.renew`."""
        return self._headers

    def on_nonce(self, nonce: str) -> None:
        """See `Credentials.on_nonce`."""

    async def retry(self, refusal: RefusedRequest) -> bool:
        """See `Credentials.retry`."""
        return False

    def error(self, refusal: RefusedRequest) -> AuthorizationError | None:
        """See `Credentials.error`."""
        return None

    async def close(self) -> None:
        """See `Credentials.close`."""
