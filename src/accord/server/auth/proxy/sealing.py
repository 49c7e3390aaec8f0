"""Sealing: encryption of the provider's tokens, and of everything else secret, in the database (AES-256-GCM).

A sealed value is bound to its place, so that a value that was moved to another row does not open. The key is an option,
or a private file beside the database.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from hmac import digest
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from accord.errors import DeclarationError, StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Keys: TypeAlias = "bytes | str | Sequence[bytes | str] | None"
"""Secrets of at least 16 bytes: the first seals, and all open."""

_SECRET_BYTES = 16
_KEY_BYTES = 32
_NONCE_BYTES = 12
_ID_BYTES = 4


class UnsealError(StoreError):
    """A value was sealed with another key, or has changed."""


class Sealer:
    """Seals and opens values with keys derived from secrets; the first one seals."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        derived = [digest(secret, b"accord oauth proxy: sealed values", "sha256") for secret in secrets]
        self._ciphers: dict[bytes, AESGCM] = {sha256(key).digest()[:_ID_BYTES]: AESGCM(key) for key in derived}
        self._current = sha256(derived[0]).digest()[:_ID_BYTES]

    def __repr__(self) -> str:
        return f"Sealer(<{len(self._ciphers)} keys>)"

    def seal(self, value: bytes, place: bytes) -> bytes:
        """Return a value encrypted for its place."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._current + nonce + self._ciphers[self._current].encrypt(nonce, value, place)

    def open(self, sealed: bytes, place: bytes) -> bytes:
        """Return a sealed value. Raises `UnsealError` for another key or place, and for a changed value."""
        from cryptography.exceptions import InvalidTag

        cipher = self._ciphers.get(sealed[:_ID_BYTES])
        nonce, text = sealed[_ID_BYTES : _ID_BYTES + _NONCE_BYTES], sealed[_ID_BYTES + _NONCE_BYTES :]
        try:
            if cipher is not None:
                return cipher.decrypt(nonce, text, place)
        except (InvalidTag, ValueError):
            pass
        raise UnsealError("a value of the OAuth proxy was sealed with another key, or has changed")


def check_keys(keys: Keys) -> list[bytes] | None:
    """Return the secrets of an option, or None for the key file. Raises `DeclarationError`."""
    if keys is None:
        return None
    listed = [keys] if isinstance(keys, bytes | str) else list(keys)
    secrets = [each.encode() if isinstance(each, str) else each for each in listed]
    if not secrets or not all(isinstance(each, bytes) and len(each) >= _SECRET_BYTES for each in secrets):
        raise DeclarationError(
            f"key= must be a random secret of at least {_SECRET_BYTES} bytes, or a list of them: "
            "if it comes from the environment, is the variable set?"
        )
    return secrets


def load_key_file(path: Path) -> bytes:
    """Return the key in a private file, which is created if it does not exist. Raises `StoreError`."""
    try:
        if not path.exists():
            _create_key_file(path)
        if os.name == "posix" and (mode := path.stat().st_mode & 0o077):
            raise StoreError(f"{path} can be read by others (mode {mode:03o} for them): run chmod 600 {path}")
        key = path.read_bytes()
    except OSError as exc:
        raise StoreError(f"the key file {path} cannot be used: {exc.strerror}; give the key: key=...") from exc
    if len(key) != _KEY_BYTES:
        raise StoreError(f"{path} is damaged: it has {len(key)} bytes, not {_KEY_BYTES}; bring back a copy")
    return key


def _create_key_file(path: Path) -> None:
    """Create the file with all of its content at once: another process may do so at the same time."""
    unfinished = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            os.write(descriptor, os.urandom(_KEY_BYTES))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(unfinished, path)
    except FileExistsError:
        pass
    finally:
        unfinished.unlink()
