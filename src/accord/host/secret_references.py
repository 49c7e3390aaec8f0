"""Secrets in an entry of a configuration: `keyring:service/name` stands for an entry of the system's keyring.

`references` returns them, the environment variables, and files, for an approval: what a server receives.
`login_places` returns the servers that a login names, which may be others than that of the URL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from accord.auth.secret_keyring import KEYRING, referenced_secret
from accord.client.variables import VARIABLE, expand
from accord.errors import StoreError, TargetError

_BEARER = "Bearer "
_FILE = "_file"
"""The end of the names of settings that are a file: `token_file`."""
_PLACES = ("issuer", "authServerMetadataUrl", "idp_token_endpoint", "resource")
"""The settings of a login that name a server: one that receives its secrets, or one that its tokens are for."""


async def with_secrets(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with its references replaced, also after `Bearer `. Raises `TargetError` with the key."""
    return {key: await _replaced(value, key) for key, value in entry.items()}


async def _replaced(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: await _replaced(item, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, list):
        return [await _replaced(item, key) for item in value]
    if not isinstance(value, str) or not _is_reference(value):
        return value
    scheme, reference, _ = value.rpartition(value.removeprefix(_BEARER))
    try:
        return scheme + await referenced_secret(reference)
    except StoreError as exc:
        raise TargetError(f"{key}: {exc}") from exc


def _is_reference(text: str) -> bool:
    return text.removeprefix(_BEARER).startswith(KEYRING)


def without_login_settings(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as it can be described before it is approved: without the settings of its login, whose secrets
    are in files or the keyring, which are not read before.
    """
    login = entry.get("auth")
    if isinstance(login, Mapping):
        return {**entry, "auth": "oauth"}
    is_reference = isinstance(login, str) and _is_reference(login)
    return {**entry, "auth": "token"} if is_reference else dict(entry)  # its name need not be one of a token


def references(entry: Any) -> set[str]:
    """Return the references to environment variables and to the keyring in an entry, as they are written, and the files
    that its login reads.
    """
    login = entry.get("auth") if isinstance(entry, Mapping) else None
    settings = login.items() if isinstance(login, Mapping) else ()
    found = {f"file {value}" for key, value in settings if key.endswith(_FILE)}
    for text in texts(entry):
        found.update(match[0] for match in VARIABLE.finditer(text))
        if _is_reference(text):
            found.add(text.removeprefix(_BEARER))
    return found


def login_places(entry: Mapping[str, Any]) -> Iterator[str]:
    """Return the servers that the login of an entry names, with the names of their settings. A stranger's entry could
    have a secret sent to another server than that of its URL, or request a token for another one. Raises `TargetError`.
    """
    for login in (entry.get("auth"), entry.get("oauth")):
        if isinstance(login, Mapping):
            yield from (f"{key} {expand(login[key], key)}" for key in _PLACES if login.get(key) is not None)


def texts(value: Any) -> Iterator[str]:
    """Return the texts of an entry, in order, without the names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts(item)
