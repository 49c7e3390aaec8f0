"""The API key of a model: a text, or an entry of the keyring. It is never shown."""

from __future__ import annotations

from accord.auth.secret_keyring import KEYRING, referenced_secret
from accord.errors import ModelError, StoreError, TargetError


class APIKey:
    """An API key; there may be none.

    `value` is the key itself, or `keyring:service/name`, which is read when it is first needed. Raises `TargetError`
    for a key that cannot be sent.
    """

    def __init__(self, value: str | None) -> None:
        self._key = value if value is None or value.startswith(KEYRING) else _checked(value)

    def __repr__(self) -> str:
        return "APIKey(...)"

    async def resolve(self) -> str | None:
        """Return the key, or None. Raises `ModelError` if the keyring does not have it."""
        if self._key is not None and self._key.startswith(KEYRING):
            self._key = await _from_keyring(self._key)
        return self._key


def _checked(key: str) -> str:
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise TargetError("the API key must consist of visible ASCII characters, or be written keyring:service/name")
    return key


async def _from_keyring(reference: str) -> str:
    try:
        return _checked(await referenced_secret(reference))
    except StoreError as exc:
        raise ModelError(f"the API key: {exc}") from exc
