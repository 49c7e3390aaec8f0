"""Authentication of a client at a token endpoint: by its ID alone, a secret, or a signed assertion."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import quote_plus

from accord.auth.registration import ClientRegistration
from accord.errors import DeclarationError
from accord.wire.headers import basic_auth

_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 60

_KeyType: TypeAlias = Literal["EC", "RSA", "OKP"]
_KEY_TYPES: dict[str, _KeyType] = {
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    "EdDSA": "OKP",
}
"""The signature algorithms, and the types of their keys."""


class ClientAuthentication(Protocol):
    """Authenticates a client at a token endpoint: it adds to the headers and the form of a request."""

    def authenticate(self, endpoint: str, headers: dict[str, str], form: dict[str, str]) -> None:
        """Add the proof for a request to `endpoint`."""


class SecretAuthentication:
    """Authentication by `client_id`, and a secret if the client has one (OAuth 2.1, 2.4.1)."""

    def __init__(self, client: ClientRegistration) -> None:
        self._client = client

    def authenticate(self, endpoint: str, headers: dict[str, str], form: dict[str, str]) -> None:
        client = self._client
        if client.client_secret is None or client.auth_method == "none":
            form["client_id"] = client.client_id
        elif client.auth_method == "client_secret_basic":
            # "encoded using the application/x-www-form-urlencoded encoding algorithm" (RFC 6749, 2.3.1)
            headers["Authorization"] = basic_auth(quote_plus(client.client_id), quote_plus(client.client_secret))
        else:
            form |= {"client_id": client.client_id, "client_secret": client.client_secret}


class AssertionKey:
    """A private key that signs assertions: `pem` for `algorithm`. It needs `accord[auth]`.

    Raises `DeclarationError` for an unknown algorithm, and a key that is not one for it.
    """

    def __init__(self, pem: str, algorithm: str) -> None:
        if algorithm not in _KEY_TYPES:
            raise DeclarationError(f"unknown algorithm {algorithm!r:.50}; there are {', '.join(_KEY_TYPES)}")
        if find_spec("joserfc") is None:
            raise DeclarationError("a client key needs joserfc: install accord[auth], or give a secret")
        self._algorithm = algorithm
        self._key = _import_private_key(pem, algorithm)

    def __repr__(self) -> str:
        return f"AssertionKey({self._algorithm})"

    def sign(self, claims: dict[str, Any]) -> str:
        """Return the claims as a signed JSON Web Token."""
        from joserfc import jwt

        return jwt.encode({"alg": self._algorithm}, claims, self._key, algorithms=[self._algorithm])


def _import_private_key(pem: str, algorithm: str) -> Any:
    from joserfc import jwk
    from joserfc.errors import JoseError

    key_type = _KEY_TYPES[algorithm]
    try:
        key = jwk.import_key(pem, key_type)
        if key.is_private:
            return key
    except (JoseError, ValueError, TypeError):
        pass  # the error may show the key
    raise DeclarationError(f"key= is not a private {key_type} key as PEM, which {algorithm} needs")


class KeyAuthentication:
    """Authentication by a signed assertion (RFC 7523, 2.2) for one issuer. `now` returns seconds since 1970."""

    def __init__(self, client_id: str, key: AssertionKey, issuer: str, now: Callable[[], float]) -> None:
        self._client_id = client_id
        self._key = key
        self._issuer = issuer
        self._now = now

    def authenticate(self, endpoint: str, headers: dict[str, str], form: dict[str, str]) -> None:
        """See `ClientAuthentication.authenticate`. The client is named by the assertion alone (RFC 7523, 3)."""
        now = int(self._now())
        claims = {
            "iss": self._client_id,
            "sub": self._client_id,
            "aud": self._issuer,
            "jti": secrets.token_urlsafe(16),
            "iat": now,
            "exp": now + _ASSERTION_SECONDS,
        }
        form |= {"client_assertion_type": _CLIENT_ASSERTION, "client_assertion": self._key.sign(claims)}
