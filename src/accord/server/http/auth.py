"""Who asks: the seam where a request over HTTP becomes a principal.

    Server("desk", "1", auth=APIKeys({os.environ["ANN_KEY"]: "ann"}))

Whatever answers `authenticate` is an `Auth`: keys in a table, tokens of an authorization server, what a proxy vouches
for. It lets in (a `Principal`), or refuses (`Unauthorized`, `Forbidden`). Anything else that it does is a fault, and a
fault lets nobody in: there is no way from here to "nobody in particular".
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
"""Characters of a proof that is worth hiding; a shorter one would blot out the words of a log."""


class AuthRequest(Protocol):
    """What an `Auth` may look at."""

    @property
    def method(self) -> str:
        """`POST`, `GET` or `DELETE`."""
        ...

    @property
    def path(self) -> str:
        """The path, without the query: a secret in a query ends up in logs, so it is not looked for there."""
        ...

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """The headers, names in lower case: `request.headers.get(b"authorization")`."""
        ...


class Auth(Protocol):
    """Whoever knows who asks: `Server(auth=...)`."""

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Who asks. Called for every request, before anything of its body is believed.

        Raises `Unauthorized` (401) where that is not known, `Forbidden` (403) where it is not allowed.
        """
        ...


class AuthRefused(AccordError):
    """A request that is not let in: `status` is its HTTP status, `challenge` its `WWW-Authenticate`, if it has one.

    The text is told to whoever asked, so no secret stands in it.
    """

    status: ClassVar[int] = 500

    def __init__(self, message: str, *, challenge: str | None = None) -> None:
        super().__init__(message)
        if challenge is not None and not _CHALLENGE.fullmatch(challenge):
            raise ValueError(f"a challenge must be printable ASCII on one line, not {challenge!r}")
        self.challenge: str | None = challenge


class Unauthorized(AuthRefused):
    """401: it is not known who asks. `challenge` says how to tell (RFC 9110, 11.6.1: a 401 always has one)."""

    status = 401

    def __init__(self, message: str, *, challenge: str = "Bearer") -> None:
        super().__init__(message, challenge=challenge)


class Forbidden(AuthRefused):
    """403: it is known who asks, and they may not. `challenge` may name the scopes that are missing."""

    status = 403


class AuthenticationFailed(AuthRefused):
    """500: who asks could not be found out, because the one who should know failed."""


class APIKeys:
    """Keys that were given out, and whose they are: `APIKeys({"the key": "ann"})`. An `Auth`.

    A request brings its key as `Authorization: Bearer KEY`. Two keys may be one principal's, so that a key can be
    changed without a break. Keys should be random: `secrets.token_urlsafe(32)`. Raises `DeclarationError` for a table
    that cannot work.

    Keys are kept as digests under a key of this process's own: neither the time that a comparison takes nor what shows
    up in a dump says anything of them.
    """

    __slots__ = ("_digest", "_principals")

    def __init__(self, keys: Mapping[str, str | Principal]) -> None:
        if not isinstance(keys, Mapping) or not keys:
            raise DeclarationError('API keys must be a non-empty mapping: APIKeys({"the key": "whose it is"})')
        self._digest = blake2b(key=os.urandom(32), digest_size=32)
        self._principals: dict[bytes, Principal] = {}
        for key, whose in keys.items():
            principal = whose if isinstance(whose, Principal) else Principal(whose)
            self._principals[self._digest_of(_sendable(key, principal))] = principal

    def __repr__(self) -> str:
        return f"APIKeys(<{len(self._principals)} keys>)"

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Whose key the request brings. Raises `Unauthorized`."""
        sent = request.headers.get(b"authorization")
        if sent is None:
            raise Unauthorized("authentication required: send `Authorization: Bearer KEY`")
        found = _BEARER.fullmatch(sent)
        principal = self._principals.get(self._digest_of(found[1])) if found else None
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
    """Who asks, within `seconds`; raises `AuthRefused`.

    A fault of `auth`, silence, and an answer that is no principal are `AuthenticationFailed`: told to the log, not to
    the peer.
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
        log.error("accord: %s could not tell who asks\n%s", type(auth).__name__, _trace(exc, request))
        raise AuthenticationFailed("authentication failed on the server; its log has the reason") from None
    return principal


def _trace(exc: BaseException, request: AuthRequest) -> str:
    """What happened, without what was sent as proof, which the texts of errors like to quote."""
    text = "".join(traceback.format_exception(exc))
    proof = request.headers.get(b"authorization", b"").partition(b" ")[2].strip().decode("latin-1")
    return str(redact(text.replace(proof, REDACTED) if len(proof) >= _SECRET else text))


def _sendable(key: str, principal: Principal) -> bytes:
    """A key as bytes. Raises `DeclarationError`, which does not show the key, for what no header can bring."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise DeclarationError(
            f"the key of {principal.id!r} is empty, or not printable ASCII without blanks: "
            "if it comes from the environment, is the variable set?"
        )
    return key.encode()
