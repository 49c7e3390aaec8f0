"""Authentication of HTTP requests: from a request to its principal.

    Server("desk", "1", auth=APIKeys({os.environ["ANN_KEY"]: "ann"}))

Any object with an `authenticate` method is an `Auth`: a table of keys, the tokens of an authorization server, or
identities that a proxy asserts. It returns a `Principal`, or raises `Unauthorized` or `Forbidden`. Any other outcome is
a fault and refuses the request; there is no fallback to an anonymous principal.
"""

from __future__ import annotations

import logging
import os
import re
import traceback
from collections.abc import Mapping
from hashlib import blake2b
from typing import ClassVar, Protocol

from accord.errors import AccordError, DeclarationError
from accord.redaction import REDACTED, redact
from accord.server.core.principal import Principal
from accord.transport.deadlines import is_cancelled, with_deadline

log: logging.Logger = logging.getLogger("accord")

_BEARER = re.compile(rb"bearer +([!-~]+)", re.IGNORECASE)
_KEY = re.compile(r"[!-~]+")
_CHALLENGE = re.compile(r"[ -~]+")
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


class AuthRefused(AccordError):
    """A refused request: `status` is its HTTP status, `challenge` its `WWW-Authenticate` header, if any.

    The client receives the message, so it must not contain secrets.
    """

    status: ClassVar[int] = 500

    def __init__(self, message: str, *, challenge: str | None = None) -> None:
        super().__init__(message)
        if challenge is not None and not _CHALLENGE.fullmatch(challenge):
            raise ValueError(f"a challenge must be printable ASCII on one line, not {challenge!r}")
        self.challenge: str | None = challenge


class Unauthorized(AuthRefused):
    """401: the principal is unknown. `challenge` states how to authenticate (RFC 9110, 11.6.1: a 401
    always has one).
    """

    status = 401

    def __init__(self, message: str, *, challenge: str = "Bearer") -> None:
        super().__init__(message, challenge=challenge)


class Forbidden(AuthRefused):
    """403: the principal is known, and not permitted. `challenge` may name the missing scopes."""

    status = 403


class AuthenticationFailed(AuthRefused):
    """500: authentication failed because of a fault in the `Auth`."""


class APIKeys:
    """API keys and their principals: `APIKeys({"the key": "ann"})`. An `Auth`.

    A request sends its key as `Authorization: Bearer KEY`. A principal may have two keys, so that a key can be rotated
    without interruption. Keys should be random: `secrets.token_urlsafe(32)`. Raises `DeclarationError` for an invalid
    table.

    Keys are stored as digests under a random key of this process: neither the duration of a comparison nor a memory
    dump reveals them.
    """

    __slots__ = ("_digest", "_principals")

    def __init__(self, keys: Mapping[str, str | Principal]) -> None:
        if not isinstance(keys, Mapping) or not keys:
            raise DeclarationError('API keys must be a non-empty mapping: APIKeys({"the key": "whose it is"})')
        self._digest = blake2b(key=os.urandom(32), digest_size=32)
        self._principals: dict[bytes, Principal] = {}
        for key, owner in keys.items():
            principal = owner if isinstance(owner, Principal) else Principal(owner)
            self._principals[self._digest_of(_sendable(key, principal))] = principal

    def __repr__(self) -> str:
        return f"APIKeys(<{len(self._principals)} keys>)"

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Return the principal of the request's key. Raises `Unauthorized`."""
        sent = request.headers.get(b"authorization")
        if sent is None:
            raise Unauthorized("authentication required: send `Authorization: Bearer KEY`")
        match = _BEARER.fullmatch(sent)
        principal = self._principals.get(self._digest_of(match[1])) if match else None
        if principal is None:
            # RFC 6750, 3.1: "invalid_token: The access token provided is expired, revoked, malformed, or invalid"
            raise Unauthorized(
                "authentication failed: the Authorization header has no valid key (`Bearer KEY`)",
                challenge='Bearer error="invalid_token"',
            )
        return principal

    def _digest_of(self, key: bytes) -> bytes:
        digest = self._digest.copy()
        digest.update(key)
        return digest.digest()


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


def _sendable(key: str, principal: Principal) -> bytes:
    """Return a key as bytes. Raises `DeclarationError`, without the key, if it cannot be sent in a header."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise DeclarationError(
            f"the key of {principal.id!r} is empty, or not printable ASCII without blanks: "
            "if it comes from the environment, is the variable set?"
        )
    return key.encode()
