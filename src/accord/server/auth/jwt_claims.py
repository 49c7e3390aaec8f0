"""Header and claims of a JSON Web Token (RFC 7515, 7519, 9068), parsed strictly and not verified.

Members of a wrong type, duplicate members, and any text outside the alphabet of base64url are refused: two parsers that
disagree about a token would accept different ones.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from string import ascii_letters, digits
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.auth.challenge import parse_scopes
from accord.messages.duplicate_members import has_duplicates

_BASE64URL = f"{ascii_letters}{digits}-_".encode()
Number: TypeAlias = int | float
Names: TypeAlias = str | list[str] | None
LAST_EXPIRY = 1e11
"""`exp` is in seconds; a greater one is in milliseconds, or no time at all."""


class JOSEHeader(msgspec.Struct, frozen=True):
    """The header: `jwk`, `jku`, `x5u` and `x5c` are ignored, since the sender of a token must not name its key."""

    alg: str
    typ: str | None = None
    kid: str | None = None
    crit: Raw | UnsetType = UNSET


class TokenClaims(msgspec.Struct, frozen=True):
    """The claims that a resource server reads."""

    iss: str | None = None
    sub: str | None = None
    aud: Names = None
    exp: Number | None = None
    nbf: Number | None = None
    iat: Number | None = None
    scope: Names = None
    scp: Names = None
    client_id: str | None = None
    azp: str | None = None
    appid: str | None = None
    cid: str | None = None
    token_use: str | None = None
    typ: Any = None
    nonce: Raw | UnsetType = UNSET
    at_hash: Raw | UnsetType = UNSET
    c_hash: Raw | UnsetType = UNSET
    events: Raw | UnsetType = UNSET
    cnf: Raw | UnsetType = UNSET

    @property
    def audiences(self) -> list[str]:
        """The recipients of the token."""
        return [self.aud] if isinstance(self.aud, str) else self.aud or []

    @property
    def client(self) -> str | None:
        """The client, as RFC 9068, OpenID Connect, Entra and Okta name it."""
        return self.client_id or self.azp or self.appid or self.cid

    @property
    def is_access_token(self) -> bool:
        """Whether nothing shows that the token is another one: an ID token has `nonce`, `at_hash` or `c_hash`, a logout
        token `events`; Cognito and Keycloak name the kind.
        """
        others = (self.nonce, self.at_hash, self.c_hash, self.events)
        return (
            all(each is UNSET for each in others)
            and self.token_use in (None, "access")
            and self.typ not in ("ID", "Refresh", "Offline", "Logout")
        )


class SignedParts(msgspec.Struct, frozen=True):
    """The parts of a signed JWT: header and claims are JSON without duplicate members."""

    header: bytes
    payload: bytes
    signed: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "SignedParts(...)"  # it is the token


class JWTParts(msgspec.Struct, frozen=True):
    """A token that is well-formed, and not verified."""

    header: JOSEHeader
    claims: TokenClaims
    payload: bytes
    """The claims, as JSON."""
    signed: bytes
    signature: bytes

    def __repr__(self) -> str:
        return f"JWTParts({self.header!r})"  # the rest is the token


_decode_header = msgspec.json.Decoder(JOSEHeader).decode
_decode_claims = msgspec.json.Decoder(TokenClaims).decode


class MalformedJWT(ValueError):
    """A text that is not a signed JWT; the text of the error names no content of it."""


def parse_jwt(token: bytes) -> JWTParts:
    """Return the parts of a token, decoded. Raises `MalformedJWT`."""
    parts = split_jwt(token)
    try:
        header, claims = _decode_header(parts.header), _decode_claims(parts.payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise MalformedJWT("the token has an invalid header or claim") from exc
    return JWTParts(header, claims, parts.payload, parts.signed, parts.signature)


def split_jwt(token: bytes) -> SignedParts:
    """Return the parts of a signed JWT of any kind. Raises `MalformedJWT`."""
    parts = token.split(b".")
    if not all(parts) or token.translate(None, _BASE64URL) != b"..":
        raise MalformedJWT("the token is not a signed JWT")
    header, payload, signature = parts
    signed = token[: -len(signature) - 1]
    return SignedParts(_decoded(header, "header"), _decoded(payload, "claims"), signed, _decoded(signature, None))


def _decoded(part: bytes, what: str | None) -> bytes:
    """Return the content of one part; `what` names JSON. Raises `MalformedJWT`."""
    try:
        content = urlsafe_b64decode(part + b"=" * (-len(part) % 4))
        repeats = what is not None and has_duplicates(content)
    except (ValueError, RecursionError) as exc:
        raise MalformedJWT("a part of the token is not base64url") from exc
    if repeats:
        raise MalformedJWT(f"a member of the {what} occurs twice")
    return content


def unverified_issuer(token: bytes) -> str | None:
    """Return the issuer that a JWT names, only to choose who verifies it; None for any other token."""
    try:
        return parse_jwt(token).claims.iss
    except MalformedJWT:
        return None


def scopes_in(*values: Names) -> frozenset[str]:
    """Return the scopes in claims, each a text with blanks or a list."""
    found: set[str] = set()
    for value in values:
        found.update(parse_scopes(value) if isinstance(value, str) else value or ())
    return frozenset(found)
