"""Authentication of HTTP requests: from a request to its principal.

    Server("desk", "1", auth=APIKeys({os.environ["ANN_KEY"]: "ann"}))

Any object with an `authenticate` method is an `Auth`: a table of keys, the tokens of an authorization server, or
identities that a proxy asserts. It returns a `Principal`, or raises `Unauthorized` or `Forbidden`. Any other outcome is
a fault and refuses the request; there is no fallback to an anonymous principal.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from accord.redaction import redacted_traceback
from accord.server.auth.refusals import AuthenticationFailed, AuthRefused
from accord.server.core.principal import Principal
from accord.transport.deadlines import is_cancelled, with_deadline

log: logging.Logger = logging.getLogger("accord")

_SCHEMES = (b"bearer", b"dpop")


class AuthRequest(Protocol):
    """The part of a request that an `Auth` may read, and headers for its response."""

    response_headers: tuple[tuple[bytes, bytes], ...]
    """Headers that the response gets, whether the request is accepted or not; none at first."""

    @property
    def method(self) -> str:
        """`POST`, `GET` or `DELETE`."""
        ...

    @property
    def path(self) -> str:
        """The path, without the query: queries end up in logs, so credentials are not read from there."""
        ...

    @property
    def url(self) -> str:
        """The URL that the client requested, without the query: that of `HTTPOptions.public_url`, if it is given."""
        ...

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """The headers, names in lower case: `request.headers.get(b"authorization")`."""
        ...


class Auth(Protocol):
    """An authenticator: `Server(auth=...)`."""

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Return the principal of a request. Called for every request, before its body is trusted.

        Raises `Unauthorized` (401) if the principal is unknown, `Forbidden` (403) if it is not permitted.
        """
        ...


def bearer_token(request: AuthRequest) -> bytes | None:
    """Return the token of a request (RFC 6750, 2.1), empty for another scheme; None if there is no header.

    Its characters are not checked.
    """
    sent = access_token(request)
    if sent is None:
        return None
    token, is_dpop = sent
    return b"" if is_dpop else token


def sender_of(request: AuthRequest) -> str:
    """Return the account of a request's sender, its address; an empty string while few requests wait."""
    account: str = getattr(request, "account", "")
    return account


def resource_of(request: AuthRequest) -> str | None:
    """Return the resource identifier of the server that a request is for (RFC 8707), if it verifies tokens."""
    resource: str | None = getattr(request, "resource", None)
    return resource


def access_token(request: AuthRequest) -> tuple[bytes, bool] | None:
    """Return the access token of a request, and whether it was sent with the scheme `DPoP` (RFC 9449, 7.1) instead of
    `Bearer`; see `bearer_token`.
    """
    sent = request.headers.get(b"authorization")
    if sent is None:
        return None
    scheme, _, token = sent.partition(b" ")
    scheme = scheme.lower()
    return (token.lstrip(b" ") if scheme in _SCHEMES else b"", scheme == b"dpop")


async def identify(auth: Auth, request: AuthRequest, seconds: float | None = None) -> Principal:
    """Return the principal of a request, within `seconds`. Raises `AuthRefused`.

    An exception of `auth`, a timeout, and a result other than a `Principal` raise `AuthenticationFailed`; the details
    are logged, and not sent to the client.
    """
    try:
        principal = await with_deadline(seconds, auth.authenticate(request), limit="HTTPLimits.auth_seconds")
        if not isinstance(principal, Principal):
            raise TypeError(f"authenticate returned {type(principal).__name__}: it must return a Principal, or raise")
    except AuthRefused:
        raise
    except BaseException as exc:
        if is_cancelled(exc):
            raise
        credential = request.headers.get(b"authorization", b"").partition(b" ")[2].strip().decode("latin-1")
        text = redacted_traceback(exc, credential)
        log.error("accord: %s failed to authenticate a request\n%s", type(auth).__name__, text)
        raise AuthenticationFailed("authentication failed on the server; its log has the reason") from None
    return principal
