"""`IssuerKeys`: the public keys of an authorization server (RFC 7517), which it may rotate at any time.

A token with an unknown key leads to one fetch, at most every 10 s: anybody may send such tokens. All requests that need
the keys share one fetch. Keys are fetched anew after an hour, so that a withdrawn key is dropped; until the fetch
succeeds, at most for a day, the old ones are used.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from accord.auth.discovery import SERVER_STEP, fetch_server_metadata
from accord.auth.metadata import decode_metadata
from accord.auth.steps import OAuthRequest, Steps, response_failure
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, copy_error
from accord.server.auth.single_flight import SingleFlight

if TYPE_CHECKING:
    from joserfc.jwk import Key

log: logging.Logger = logging.getLogger("accord")

KEYS_STEP = "signing keys"
FETCH_SECONDS = 10.0
"""Between two fetches for unknown keys."""
_RETRY_SECONDS = 5.0
"""Between two fetches while there are no keys at all."""
FRESH_SECONDS = 3_600.0
"""After this time, keys are fetched anew."""
_STALE_SECONDS = 86_400.0
_KEYS = 100
_TRIED_KEYS = 4
"""The most keys that are tried for a token that names none."""
_RSA_BITS = 2_048

_RSA = frozenset(f"{family}{size}" for family in ("RS", "PS") for size in (256, 384, 512))
_CURVES = {"P-256": {"ES256"}, "P-384": {"ES384"}, "P-521": {"ES512"}, "Ed25519": {"EdDSA", "Ed25519"}}
ALGORITHMS = _RSA.union(*_CURVES.values())
"""Signatures with a public key; a public key must never be taken as the secret of HS256."""


class _KeySetDocument(msgspec.Struct):
    keys: list[dict[str, Any]]


class IssuerKey(msgspec.Struct, frozen=True):
    """A public key, and the algorithms that it may be used for."""

    id: str | None
    algorithms: frozenset[str]
    key: Key


class IssuerKeys:
    """The keys of one issuer that verify signatures of these algorithms.

    `request` runs a part of a flow against the issuer; `on_withdrawn` is called when keys were withdrawn.
    """

    def __init__(
        self,
        issuer: str,
        jwks_uri: str | None,
        algorithms: Collection[str],
        request: Callable[[Steps[list[IssuerKey]]], Awaitable[list[IssuerKey]]],
        on_withdrawn: Callable[[], None],
    ) -> None:
        self._issuer = issuer
        self._given_uri = jwks_uri
        self._found_uri: str | None = None
        self._algorithms = algorithms
        self._request = request
        self._on_withdrawn = on_withdrawn
        self._keys: list[IssuerKey] = []
        self._fetched_at = self._tried_at = float("-inf")
        self._failure: AuthorizationError | None = None
        self._fetches = SingleFlight[None]()

    async def candidates(self, algorithm: str, id: str | None) -> Sequence[Key]:
        """Return the keys that may have signed a token; none if the issuer has no such key.

        Raises `AuthorizationError` if that is not known, because the issuer does not answer.
        """
        found = self._matching(algorithm, id)
        if found:
            if monotonic() - self._fetched_at > FRESH_SECONDS and self._may_fetch():
                self._fetches.start(None, self._fetch)
            return found
        await self._fetch_if_allowed()
        found = self._matching(algorithm, id)
        if not found and self._failure is not None:
            raise copy_error(self._failure)
        return found

    def _matching(self, algorithm: str, id: str | None) -> list[Key]:
        if monotonic() - self._fetched_at > _STALE_SECONDS:
            return []
        usable = [each for each in self._keys if algorithm in each.algorithms]
        if id is not None:
            usable = [each for each in usable if each.id == id] + [each for each in usable if each.id is None]
        return [each.key for each in usable[:_TRIED_KEYS]]

    def _may_fetch(self) -> bool:
        return monotonic() - self._tried_at >= (FETCH_SECONDS if self._keys else _RETRY_SECONDS)

    async def _fetch_if_allowed(self) -> None:
        if self._fetches.is_running(None) or self._may_fetch():
            await self._fetches.run(None, self._fetch)

    async def _fetch(self) -> None:
        self._tried_at = monotonic()
        try:
            keys = await self._request(self._steps())
        except AuthorizationError as exc:
            self._failure, self._found_uri = exc, None
            if self._keys:
                log.warning("accord: the keys of %s could not be fetched anew: %s", self._issuer, exc)
            return
        before, self._keys = self._keys, keys
        self._fetched_at, self._failure = monotonic(), None
        if {each.key.thumbprint() for each in before} - {each.key.thumbprint() for each in keys}:
            self._on_withdrawn()

    def _steps(self) -> Steps[list[IssuerKey]]:
        """Fetch the keys, whose URL the metadata of the issuer has."""
        uri = self._given_uri or self._found_uri
        if uri is None:
            uri = (yield from fetch_server_metadata(self._issuer)).jwks_uri
            if uri is None:
                raise AuthorizationError(SERVER_STEP, f"{self._issuer} has no jwks_uri", "name it: jwks_uri=")
            self._found_uri = uri
        check_url(uri, "jwks_uri")
        response = yield OAuthRequest(KEYS_STEP, "GET", uri, {"Accept": "application/json"})
        if response.status != 200:
            raise response_failure(f"{KEYS_STEP} at {uri}", response)
        document = decode_metadata(response.body, _KeySetDocument, KEYS_STEP)
        keys = [key for each in document.keys[:_KEYS] if (key := _read_key(each, self._algorithms)) is not None]
        if not keys:
            raise AuthorizationError(KEYS_STEP, f"{uri} has no key for {', '.join(self._algorithms)}")
        return keys


def _read_key(parameters: dict[str, Any], accepted: Collection[str]) -> IssuerKey | None:
    """Return a key of a key set; None for one that cannot verify signatures of the accepted algorithms."""
    operations = parameters.get("key_ops")
    if parameters.get("use") not in (None, "sig") or (isinstance(operations, list) and "verify" not in operations):
        return None
    suited = suited_algorithms(parameters) & frozenset(accepted)
    declared, id = parameters.get("alg"), parameters.get("kid")
    if isinstance(declared, str):
        suited &= {declared}
    key = import_public_key(parameters) if suited else None
    return None if key is None else IssuerKey(id if isinstance(id, str) else None, suited, key)


def suited_algorithms(parameters: dict[str, Any]) -> frozenset[str]:
    """Return the algorithms that a key (JWK) can be used for, by its kind and curve."""
    kind, curve = parameters.get("kty"), parameters.get("crv")
    if kind == "RSA":
        return _RSA
    suited = _CURVES.get(curve, set()) if isinstance(curve, str) and kind in ("EC", "OKP") else set()
    return frozenset(suited)


_PUBLIC = ("kty", "n", "e", "crv", "x", "y")


def import_public_key(parameters: dict[str, Any]) -> Key | None:
    """Return the public key of a JWK, or None if it is not valid, or an RSA key that is too short (RFC 7518, 3.3)."""
    from joserfc.errors import JoseError
    from joserfc.jwk import RSAKey, import_key

    modulus = parameters.get("n", "")
    if parameters.get("kty") == "RSA" and (not isinstance(modulus, str) or len(modulus) * 6 < _RSA_BITS):
        return None  # joserfc would warn of it
    try:
        key = import_key({name: parameters[name] for name in _PUBLIC if name in parameters})
        if isinstance(key, RSAKey) and key.public_key.key_size < _RSA_BITS:
            return None
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return key
