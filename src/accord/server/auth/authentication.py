"""Authentication of HTTP requests: from a request to its principal.

    Server("desk", "1", auth=APIKeys({os.environ["ANN_KEY"]: "ann"}))

Any object with an `authenticate` method is an `Auth`: a table of keys, the tokens of an authorization server, or
identities that a proxy asserts. It returns a `Principal`, or raises `Unauthorized` or `Forbidden`. Any other outcome is
a fault and refuses the request; there is no fallback to an anonymous principal.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Mapping
from typing import Protocol

from accord.redaction import REDACTED, redact
from accord.server.auth.refusals import AuthenticationFailed, AuthRefused
from accord.server.core.principal import Principal
from accord.transport.deadlines import is_cancelled, with_deadline

log: logging.Logger = logging.getLogger("accord")

_BEARER = re.compile(rb"bearer +([!-~]+)", re.IGNORECASE)
_SECRET = 8
"""The fewest characters of a credential to redact; replacing a shorter one would garble the log."""


class AuthRequest(Protocol):
    """The part of a request that an `Auth` may read."""

    @property
    def method(self) -> str:
        """`POST`, `GET` or `DELETE`."""
        ...

    @property
    def path(self) -> str:
        """The path, without the query: queries end up in logs, so credentials are not read from there."""
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
    """Return the token of a request (RFC 6750, 2.1), empty if the header is malformed; None if there is no header."""
    sent = request.headers.get(b"authorization")
    if sent is None:
        return None
    match = _BEARER.fullmatch(sent)
    return match[1] if match else b""


async def identify(auth: Auth, request: AuthRequest, seconds: float | None = None) -> Principal:
    """Return the principal of a request, within `seconds`. Raises `AuthRefused`.

    An exception of `auth`, a timeout, and a result other than a `Principal` raise `AuthenticationFailed`; the details
    are logged, and not sent to the client.
    """
    try:
        principal = await with_deadline(seconds, auth.authenticate(request))
        if not isinstance(principal, Principal):
            raise TypeError(f"authenticate returned {type(principal).__name__}: it must return a Principal, or raise")
    except AuthRefused:
        raise
    except BaseException as exc:
        if is_cancelled(exc):
            raise
        log.error(
            "accord: %s failed to authenticate a request\n%s", type(auth).__name__, _redacted_traceback(exc, request)
        )
        raise AuthenticationFailed("authentication failed on the server; its log has the reason") from None
    return principal


def _redacted_traceback(exc: BaseException, request: AuthRequest) -> str:
    """Return the traceback without the credential, which error messages often quote."""
    text = "".join(traceback.format_exception(exc))
    credential = request.headers.get(b"authorization", b"").partition(b" ")[2].strip().decode("latin-1")
    return str(redact(text.replace(credential, REDACTED) if len(credential) >= _SECRET else text))
