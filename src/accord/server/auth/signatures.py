"""Signatures of JSON Web Tokens and proofs, by the algorithms of joserfc."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from accord.errors import DeclarationError
from accord.server.auth.issuer_keys import ALGORITHMS


class SignatureAlgorithm(Protocol):
    """An algorithm of joserfc."""

    def check_key(self, key: Any) -> None:
        """Raise an error unless the key suits the algorithm."""

    def verify(self, msg: bytes, sig: bytes, key: Any) -> bool:
        """Return whether a signature is valid."""


def is_signed(algorithm: SignatureAlgorithm, signed: bytes, signature: bytes, key: Any) -> bool:
    """Return whether a signature is valid, and the key suits its algorithm."""
    from joserfc.errors import JoseError

    try:
        algorithm.check_key(key)
        return algorithm.verify(signed, signature, key)
    except (JoseError, ValueError):
        return False


def load_algorithms(user: str, names: Collection[str]) -> dict[str, SignatureAlgorithm]:
    """Return the algorithms of signatures by their names; `user` needs them. Raises `DeclarationError`."""
    try:
        from joserfc.jws import JWSRegistry
    except ImportError as exc:
        raise DeclarationError(f"{user} needs joserfc: pip install 'accord[auth]'") from exc
    unknown = sorted(name for name in names if name not in ALGORITHMS)
    if unknown or not names:
        known = ", ".join(sorted(ALGORITHMS))
        raise DeclarationError(f"algorithms= takes signatures with a public key, not {unknown}: {known}")
    registry = JWSRegistry(algorithms=[*ALGORITHMS])
    return {name: registry.get_alg("Ed25519" if name == "EdDSA" else name) for name in sorted(names)}
