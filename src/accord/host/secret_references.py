"""Secrets in an entry of a configuration: `keyring:service/name` stands for an entry of the system's keyring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accord.auth.secret_keyring import KEYRING, referenced_secret
from accord.errors import StoreError, TargetError

_BEARER = "Bearer "


async def with_secrets(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with its references replaced, also after `Bearer `. Raises `TargetError` with the key."""
    return {key: await _replaced(value, key) for key, value in entry.items()}


async def _replaced(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: await _replaced(item, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, list):
        return [await _replaced(item, key) for item in value]
    if not isinstance(value, str) or not value.removeprefix(_BEARER).startswith(KEYRING):
        return value
    scheme, reference, _ = value.rpartition(value.removeprefix(_BEARER))
    try:
        return scheme + await referenced_secret(reference)
    except StoreError as exc:
        raise TargetError(f"{key}: {exc}") from exc
