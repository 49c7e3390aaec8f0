"""Proof of possession (RFC 9449): a token that only the holder of a key can use. It needs `accord[auth]`.

Each request carries a proof of its own, signed with the key of the login. A server may demand a nonce in it.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from accord.auth.client_authentication import ClientAuthentication
from accord.auth.discovery import Discovery
from accord.errors import AuthorizationError

if TYPE_CHECKING:
    from joserfc.jwk import ECKey

NONCE_HEADER = "dpop-nonce"
NONCE_ERROR = "use_dpop_nonce"
ALGORITHM = "ES256"
_STEP = "proof of possession"

_PUBLIC = ("crv", "kty", "x", "y")


class DPoPKey:
    """The key of a login: a new one, or the one of `pem`. Raises `AuthorizationError` for a text that is no key, and
    without joserfc.
    """

    def __init__(self, pem: str | None = None) -> None:
        if find_spec("joserfc") is None:
            raise AuthorizationError(
                _STEP, "the tokens of this login are bound to a key (DPoP)", "install accord[auth]"
            )
        from joserfc.jwk import ECKey
        from joserfc.jws import JWSRegistry

        try:
            self._key: ECKey = ECKey.generate_key("P-256") if pem is None else ECKey.import_key(pem)
        except Exception:  # joserfc and cryptography have errors of their own, whose texts may have a part of it
            raise AuthorizationError(_STEP, "the stored key of this login is damaged", "log in again") from None
        public: dict[str, Any] = dict(self._key.as_dict(private=False))
        header = {"alg": ALGORITHM, "typ": "dpop+jwt", "jwk": {name: public[name] for name in _PUBLIC}}
        self._header = _encode(msgspec.json.encode(header))
        self._algorithm = JWSRegistry(algorithms=[ALGORITHM]).get_alg(ALGORITHM)

    def __repr__(self) -> str:
        return "DPoPKey(...)"

    @property
    def pem(self) -> str:
        """The private key as PEM, to be stored with the login."""
        return self._key.as_pem(private=True).decode()

    def proof(
        self, method: str, url: str, now: float, nonce: str | None = None, access_token: str | None = None
    ) -> str:
        """Return the proof for one request at `now`, in seconds since 1970 (RFC 9449, 4.2)."""
        target = url.partition("?")[0].partition("#")[0]
        claims: dict[str, Any] = {"htm": method, "htu": target, "iat": int(now), "jti": secrets.token_urlsafe(16)}
        if nonce is not None:
            claims["nonce"] = nonce.encode(errors="replace").decode()  # a header may have any bytes
        if access_token is not None:
            claims["ath"] = _encode(sha256(access_token.encode()).digest()).decode()
        signed = self._header + b"." + _encode(msgspec.json.encode(claims))
        return (signed + b"." + _encode(self._algorithm.sign(signed, self._key))).decode()


def _encode(data: bytes) -> bytes:
    """Return data in base64url, as in a JWT."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class DPoPAuthentication:
    """A client authentication with a proof: the tokens that it gets are bound to the key. `now` returns seconds since
    1970.
    """

    def __init__(self, inner: ClientAuthentication, key: DPoPKey, now: Callable[[], float]) -> None:
        self._inner = inner
        self._key = key
        self._now = now
        self.nonce: str | None = None
        """The nonce that the token endpoint demands."""

    def authenticate(self, endpoint: str, headers: dict[str, str], form: dict[str, str]) -> None:
        """See `ClientAuthentication.authenticate`."""
        self._inner.authenticate(endpoint, headers, form)
        headers["DPoP"] = self._key.proof("POST", endpoint, self._now(), self.nonce)


def with_proof(
    authentication: ClientAuthentication, key: DPoPKey | None, now: Callable[[], float]
) -> ClientAuthentication:
    """Return an authentication that also proves the possession of `key`, if there is one."""
    return authentication if key is None else DPoPAuthentication(authentication, key, now)


def new_key(discovery: Discovery) -> DPoPKey | None:
    """Return a key if the server requires proofs, or both servers support them; else None. Raises `AuthorizationError`
    if they are required and `accord[auth]` is not installed.
    """
    if not discovery.dpop_required and not discovery.dpop_supported:
        return None
    if find_spec("joserfc") is not None:
        return DPoPKey()
    if discovery.dpop_required:
        raise AuthorizationError(
            _STEP, f"{discovery.server} accepts only tokens with one (DPoP)", "install accord[auth]"
        )
    return None
