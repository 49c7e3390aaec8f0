"""Proofs of possession of requests (RFC 9449): a copy of a token that is bound to a key is of no use without the key.

    Authorization: DPoP TOKEN
    DPoP: PROOF                 a JWT for this method and URL, signed with the key

The proof is checked after the token. The server verifies the signature of a proof only if the token is valid, and only
with the key to which the token is bound.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from accord.auth.dpop import NONCE_ERROR, NONCE_HEADER
from accord.auth.urls import origin_of
from accord.errors import DeclarationError
from accord.server.auth.authentication import AuthRequest
from accord.server.auth.issuer_keys import import_public_key, suited_algorithms
from accord.server.auth.jwt_claims import MalformedJWT, Number, SignedParts, split_jwt
from accord.server.auth.refusals import InvalidProof
from accord.server.auth.signatures import SignatureAlgorithm, is_signed, load_algorithms
from accord.server.auth.used_proofs import PROOF_SECONDS, UsedProofs

if TYPE_CHECKING:
    from joserfc.jwk import Key

PROOF_ALGORITHMS = ("ES256", "ES384", "Ed25519", "EdDSA", "PS256", "RS256")
"""The algorithms of proofs. Clients choose the keys, so only algorithms with quick verification are accepted."""

_PROOF_BYTES = 8_192
_MODULUS_CHARACTERS = 4_096 // 6 + 1
_EXPONENT_CHARACTERS = 6
_KEYS = 1_024
"""Limit of the decoded keys that are cached."""
_LEEWAY_SECONDS = PROOF_SECONDS / 2

_Base64: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+$")]
_Thumbprint: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{43}$")]
_Secret: TypeAlias = Raw | UnsetType


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The key to which a token is bound (`cnf`; RFC 7800, 3.1), by its thumbprint (RFC 9449, 6.1). Other members demand
    other proofs, and are refused.
    """

    jkt: _Thumbprint


class ProofKey(msgspec.Struct, frozen=True):
    """The public key of a proof (JWK), and the members that only a private key has."""

    kty: str
    crv: str | None = None
    x: _Base64 | None = None
    y: _Base64 | None = None
    n: _Base64 | None = None
    e: _Base64 | None = None
    d: _Secret = UNSET
    p: _Secret = UNSET
    q: _Secret = UNSET
    dp: _Secret = UNSET
    dq: _Secret = UNSET
    qi: _Secret = UNSET
    oth: _Secret = UNSET
    k: _Secret = UNSET

    @property
    def is_private(self) -> bool:
        """Whether it has members of a private key."""
        members = (self.d, self.p, self.q, self.dp, self.dq, self.qi, self.oth, self.k)
        return any(each is not UNSET for each in members)

    @property
    def parameters(self) -> dict[str, str]:
        """The members that identify the key, in lexicographic order (RFC 7638, 3.2)."""
        names = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
        found = ((name, getattr(self, name)) for name in names.get(self.kty, ()))
        return {name: value for name, value in found if value is not None}


class ProofHeader(msgspec.Struct, frozen=True):
    """The header of a proof (RFC 9449, 4.2)."""

    alg: str
    typ: str
    jwk: ProofKey
    crit: Raw | UnsetType = UNSET


class ProofClaims(msgspec.Struct, frozen=True):
    """The claims of a proof (RFC 9449, 4.2)."""

    htm: str
    htu: Annotated[str, Meta(max_length=4_096)]
    iat: Number
    jti: Annotated[str, Meta(min_length=1, max_length=512)]
    ath: str
    nonce: str | None = None


_decode_confirmation = msgspec.json.Decoder(Confirmation).decode
_decode_header = msgspec.json.Decoder(ProofHeader).decode
_decode_claims = msgspec.json.Decoder(ProofClaims).decode


def bound_key(confirmation: Raw | UnsetType) -> str | None:
    """Return the thumbprint of the key to which a token is bound, or None for a bearer token. Raises `ValueError` for
    any other binding.
    """
    if confirmation is UNSET:
        return None
    try:
        return _decode_confirmation(confirmation).jkt
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise ValueError("the token is bound to a key in a way that is not supported") from exc


class DPoPNonces:
    """The nonces of proofs (RFC 9449, 9). `key` is common to all processes of a server; `clock` returns
    seconds since 1970.

    A nonce is derived from the time, and so needs no memory. It is current for a minute, and accepted for another.
    """

    def __init__(self, key: bytes | None = None, clock: Callable[[], float] = time.time) -> None:
        self._key = key or secrets.token_bytes(32)
        self._clock = clock
        self._period = 0
        self._current = self._previous = ""

    def current(self) -> str:
        """Return the current nonce."""
        period = int(self._clock() // _LEEWAY_SECONDS)
        if period != self._period:
            self._period = period
            self._current, self._previous = self._derive(period), self._derive(period - 1)
        return self._current

    def accepts(self, nonce: str | None) -> bool:
        """Return whether a nonce is the current one, or the one before."""
        return nonce in (self.current(), self._previous)

    def _derive(self, period: int) -> str:
        digest = hmac.digest(self._key, b"accord dpop nonce %d" % period, "sha256")
        return urlsafe_b64encode(digest[:18]).decode()


class DPoPVerifier:
    """The check of proofs. Every proof needs a nonce if `requires_nonces`; otherwise only one whose time is not that of
    this server, since the clock of a client may be wrong. `clock` returns seconds since 1970.
    """

    def __init__(
        self, nonces: DPoPNonces, requires_nonces: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self._nonces = nonces
        self._requires_nonces = requires_nonces
        self._clock = clock
        self._used = UsedProofs()
        self._keys: dict[str, Key] = {}
        self._algorithms = load_algorithms("DPoP", PROOF_ALGORITHMS)

    def check(self, request: AuthRequest, token: bytes, thumbprint: str) -> None:
        """Check the proof of a request (RFC 9449, 4.3), whose token is bound to the key with this thumbprint.

        Raises `InvalidProof`.
        """
        proof = request.headers.get(b"dpop")
        if proof is None:
            raise InvalidProof("the token is bound to a key, and the request has no DPoP header")
        parts, header, claims = _parse(proof)
        algorithm = self._check_key(header, thumbprint)
        if claims.htm != request.method:
            raise InvalidProof("the proof is for another method")
        if not _is_same_url(claims.htu, request.url):
            raise InvalidProof("the proof is for another URL")
        if claims.ath != _digest(token):
            raise InvalidProof("the proof is for another token")
        self._check_time(request, claims)
        if not is_signed(algorithm, parts.signed, parts.signature, self._key(header.jwk, thumbprint)):
            raise InvalidProof("the signature of the proof is not valid")
        if not self._used.add(thumbprint, claims.jti, claims.iat):
            raise InvalidProof("the proof was used before")

    def _check_key(self, header: ProofHeader, thumbprint: str) -> SignatureAlgorithm:
        """Return the algorithm of a proof. Raises `InvalidProof` for a header that is not that of a proof with this
        key.
        """
        if header.typ != "dpop+jwt":
            raise InvalidProof("the proof is of another type")
        if header.crit is not UNSET:
            raise InvalidProof("the proof has a critical header that is not known")
        parameters = header.jwk.parameters
        if header.alg not in PROOF_ALGORITHMS or header.alg not in suited_algorithms(parameters):
            raise InvalidProof("the algorithm of the proof is not accepted")
        if header.jwk.is_private:
            raise InvalidProof("the proof has a private key")
        if _thumbprint(parameters) != thumbprint:
            raise InvalidProof("the token is bound to another key")
        return self._algorithms[header.alg]

    def _check_time(self, request: AuthRequest, claims: ProofClaims) -> None:
        """Raise `InvalidProof` for a proof that is not of now: "as determined by either the iat claim or a server
        managed timestamp via the nonce claim" (RFC 9449, 4.3).
        """
        current = self._nonces.current()
        if not self._nonces.accepts(claims.nonce):
            now = self._clock()
            if now - _LEEWAY_SECONDS <= claims.iat <= now + _LEEWAY_SECONDS and not self._requires_nonces:
                return
            request.response_headers += ((NONCE_HEADER.encode(), current.encode()),)
            raise InvalidProof("the proof needs the nonce of this response", NONCE_ERROR)
        if claims.nonce != current:
            request.response_headers += ((NONCE_HEADER.encode(), current.encode()),)

    def _key(self, key: ProofKey, thumbprint: str) -> Key:
        """Return a key that can verify signatures. Raises `InvalidProof` for one that is not valid, or too large."""
        found = self._keys.get(thumbprint)
        if found is not None:
            return found
        imported = None
        if len(key.n or "") <= _MODULUS_CHARACTERS and len(key.e or "") <= _EXPONENT_CHARACTERS:
            imported = import_public_key(dict[str, Any](key.parameters))
        if imported is None:
            raise InvalidProof("the key of the proof is not valid")
        if len(self._keys) >= _KEYS:
            del self._keys[next(iter(self._keys))]
        self._keys[thumbprint] = imported
        return imported


def dpop_verifier(dpop: str, nonces: bool | str) -> DPoPVerifier | None:
    """Return the check of proofs for the options of a token verifier; None without joserfc. Raises `DeclarationError`
    for options that are not valid, or need joserfc.
    """
    if dpop not in ("accepted", "required"):
        raise DeclarationError(f'dpop= is "accepted" or "required", not {dpop!r}')
    if isinstance(nonces, str) and len(nonces) < 16:
        raise DeclarationError("dpop_nonces= is True, or a common secret of all processes of at least 16 characters")
    if find_spec("joserfc") is not None:
        key = nonces.encode() if isinstance(nonces, str) else None
        return DPoPVerifier(DPoPNonces(key), bool(nonces))
    if dpop == "required" or nonces:
        raise DeclarationError("dpop= needs joserfc: pip install 'accord[auth]'")
    return None


def _parse(proof: bytes) -> tuple[SignedParts, ProofHeader, ProofClaims]:
    if len(proof) > _PROOF_BYTES:
        raise InvalidProof("the proof is too long")
    try:
        parts = split_jwt(proof)
        return parts, _decode_header(parts.header), _decode_claims(parts.payload)
    except (MalformedJWT, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidProof("the DPoP header is not one proof with its header and claims") from None


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()


def _thumbprint(parameters: dict[str, str]) -> str:
    """Return the thumbprint of a key (RFC 7638, 3)."""
    return _digest(msgspec.json.encode(parameters))


_UNRESERVED = re.compile(r"%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])")


def _is_same_url(found: str, expected: str) -> bool:
    """Return whether two URLs are equivalent (RFC 3986, 6.2.2 and 6.2.3), "ignoring any query and fragment parts"
    (RFC 9449, 4.3), and a slash at the end.
    """
    try:
        return found == expected or _normalized(found) == _normalized(expected)
    except ValueError:
        return False


def _normalized(url: str) -> str:
    """Raises `ValueError` for a text that is not a URL of a server."""
    parts = urlsplit(url)
    if not parts.netloc or "@" in parts.netloc or not url.isprintable():
        raise ValueError
    path = _UNRESERVED.sub(lambda match: unquote(match[0]), parts.path)
    return origin_of(url) + re.sub("%..", lambda match: match[0].upper(), path).rstrip("/")
