"""The login in an entry of a configuration: `auth`, or the `oauth` of other hosts.

    "auth": "${TOKEN}"                                     a bearer token
    "auth": "oauth"                                        the login of a user
    "auth": {"type": "oauth", "client_id": "...", ...}     likewise, with the settings of `OAuth`
    "auth": {"type": "client_credentials", ...}            a program; also `workload_identity`, `enterprise_managed`
    "auth": {"CLIENT_ID": "...", "scopes": [...]}          as in Cursor
    "oauth": {"clientId": "...", "callbackPort": 8111}     as in Claude Code, VS Code, Gemini CLI, opencode

An unknown key is an error, which names it. A key of another host that accord does not need is a warning. No error has a
value of the entry: it may be a secret.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from accord.auth.callback import PATH
from accord.auth.oauth import OAuth
from accord.auth.program_grants import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from accord.auth.urls import OPENID_CONFIGURATION, SERVER_METADATA
from accord.errors import AccordError, TargetError
from accord.locked_cache import safe_convert

if TYPE_CHECKING:
    from accord.client.target import ClientAuth

log: logging.Logger = logging.getLogger("accord")

Scopes: TypeAlias = list[str] | str | None

_MAX_CHARACTERS = 1 << 20
"""Limit of a file with a key or a token."""


class _LoginEntry(msgspec.Struct, forbid_unknown_fields=True, tag_field="type", kw_only=True):
    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"  # without the secrets

    def login(self) -> ClientAuth | str:
        """Return the login. Raises `AccordError`."""
        raise NotImplementedError  # subclasses implement it


class _BearerEntry(_LoginEntry, tag="bearer"):
    token: str

    def login(self) -> str:
        return self.token


class _OAuthEntry(_LoginEntry, tag="oauth"):
    client_id: str | None = None
    client_secret: str | None = None
    client_metadata_url: str | None = None
    client_name: str = "accord"
    scopes: Scopes = None
    port: int = 0
    issuer: str | None = None
    resource: str | None = None
    assume_pkce: bool = False
    device: bool = False

    def login(self) -> OAuth:
        settings = msgspec.structs.asdict(self)
        return OAuth(**settings | {"scopes": _scopes(self.scopes)})


class _ClientCredentialsEntry(_LoginEntry, tag="client_credentials"):
    client_id: str
    client_secret: str | None = None
    key: str | None = None
    key_file: str | None = None
    algorithm: str = "ES256"
    scopes: Scopes = None
    issuer: str | None = None

    def login(self) -> ClientCredentials:
        key = self.key if self.key_file is None else _read(self.key_file)
        return ClientCredentials(
            self.client_id,
            secret=self.client_secret,
            key=key,
            algorithm=self.algorithm,
            scopes=_scopes(self.scopes),
            issuer=self.issuer,
        )


class _WorkloadEntry(_LoginEntry, tag="workload_identity"):
    client_id: str
    token: str | None = None
    token_file: str | None = None
    scopes: Scopes = None
    issuer: str | None = None

    def login(self) -> WorkloadIdentity:
        token = _token_source(self.token, self.token_file, "token")
        return WorkloadIdentity(self.client_id, token, scopes=_scopes(self.scopes), issuer=self.issuer)


class _EnterpriseEntry(_LoginEntry, tag="enterprise_managed", kw_only=True):
    client_id: str
    client_secret: str | None = None
    idp_token_endpoint: str
    idp_client_id: str
    idp_client_secret: str | None = None
    id_token: str | None = None
    id_token_file: str | None = None
    scopes: Scopes = None
    issuer: str | None = None

    def login(self) -> EnterpriseManaged:
        return EnterpriseManaged(
            self.client_id,
            secret=self.client_secret,
            idp_token_endpoint=self.idp_token_endpoint,
            idp_client_id=self.idp_client_id,
            idp_secret=self.idp_client_secret,
            id_token=_token_source(self.id_token, self.id_token_file, "id_token"),
            scopes=_scopes(self.scopes),
            issuer=self.issuer,
        )


_ENTRIES: dict[str, type[_LoginEntry]] = {
    "bearer": _BearerEntry,
    "oauth": _OAuthEntry,
    "client_credentials": _ClientCredentialsEntry,
    "workload_identity": _WorkloadEntry,
    "enterprise_managed": _EnterpriseEntry,
}

_HOST_NAMES = {
    "CLIENT_ID": "client_id",
    "CLIENT_SECRET": "client_secret",
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "clientName": "client_name",
    "callbackPort": "port",
    "scope": "scopes",
}
"""The names that other hosts give to settings."""

_DISCOVERED = ("authorizationUrl", "tokenUrl", "registrationUrl")
_UNUSED = {
    **dict.fromkeys(_DISCOVERED, "accord discovers it"),
    **dict.fromkeys(("tokenParamName", "audiences", "xaa"), "accord does not support it"),
}
"""Settings of other hosts that accord does not use, with the reason."""


def configured_login(auth: Any, oauth: Any, prefix: str) -> ClientAuth | str | None:
    """Return the login of an entry: credentials, a bearer token, or None. `prefix` begins errors.

    Raises `TargetError`.
    """
    if auth is not None and oauth is not None:
        raise TargetError(f'{prefix}"auth" and "oauth" are both in the entry; leave one out')
    if oauth is not None:
        return _login(_host_settings(oauth, f"{prefix}oauth"), f"{prefix}oauth")
    if isinstance(auth, str) and auth != "oauth":
        return _checked_token(auth, f"{prefix}auth")
    settings = {"type": "oauth"} if isinstance(auth, str) else auth
    if isinstance(settings, Mapping):
        settings = {"type": "oauth", **_renamed(settings, f"{prefix}auth")}
    return _login(settings, f"{prefix}auth")


def _login(settings: Any, place: str) -> ClientAuth | str | None:
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        raise TargetError(f'{place} must be a bearer token, "oauth", or an object with "type"')
    entry = _ENTRIES.get(settings["type"]) if isinstance(settings["type"], str) else None
    if entry is None:
        raise TargetError(f"{place}.type is none of {', '.join(_ENTRIES)}")
    try:
        login = safe_convert(settings, entry, strict=False).login()
    except msgspec.ValidationError as exc:
        raise TargetError(f"{place}: {exc}; its keys are {', '.join(entry.__struct_fields__)}") from None
    except TargetError as exc:
        raise TargetError(f"{place}: {exc}") from None
    except AccordError:
        raise TargetError(f"{place}: these settings cannot be used: {_DEMANDS[settings['type']]}") from None
    return _checked_token(login, place) if isinstance(login, str) else login


_DEMANDS = {
    "bearer": "token is needed",
    "oauth": "client_metadata_url must be an https URL with a path",
    "client_credentials": "one of client_secret and key (or key_file) is needed; a key is a private one, as PEM",
    "workload_identity": "one of token and token_file is needed",
    "enterprise_managed": "idp_token_endpoint must be an https URL",
}
"""What the login of each type demands, for errors without values."""


def _checked_token(token: str, place: str) -> str:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise TargetError(f'{place} must be a token of visible ASCII characters, without "Bearer"')
    return token


def _renamed(settings: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return settings under the names of accord. Raises `TargetError` for one that is there twice."""
    renamed: dict[str, Any] = {}
    for key, value in settings.items():
        name = _HOST_NAMES.get(key, key)
        if name in renamed:
            raise TargetError(f"{place}: {name} is there twice, under two names")
        renamed[name] = value
    return renamed


def _host_settings(oauth: Any, place: str) -> dict[str, Any] | None:
    """Return the settings of `OAuth` for the `oauth` of another host; None if it is off. Raises `TargetError`."""
    if isinstance(oauth, bool):
        oauth = {"enabled": oauth}
    if not isinstance(oauth, Mapping):
        raise TargetError(f"{place} must be an object")
    settings = _renamed(oauth, place)
    for key in [key for key in settings if key in _UNUSED]:
        log.warning("accord: %s.%s is not used: %s", place, key, _UNUSED[key])
        del settings[key]
    is_enabled = settings.pop("enabled", True)
    for key, (name, convert) in _HOST_URLS.items():
        if key in settings:
            settings[name] = convert(settings.pop(key), f"{place}.{key}")
    if "type" in settings:
        raise TargetError(f'{place}: unknown key type; "auth" has types of logins')
    return {"type": "oauth", **settings} if is_enabled is not False else None


def _port_of_callback(url: Any, place: str) -> int:
    """Return the port of a redirect URI. Raises `TargetError` for one that is not a callback of accord."""
    try:
        parts = urlsplit(str(url))
        if (parts.scheme, parts.path) == ("http", PATH) and parts.hostname in ("127.0.0.1", "localhost") and parts.port:
            return parts.port
    except ValueError:
        pass
    raise TargetError(f"{place} cannot be used: the callback of accord is http://127.0.0.1:PORT{PATH}")


def _issuer_of_metadata(url: Any, place: str) -> str:
    """Return the issuer whose metadata is at a URL. Raises `TargetError` for one that is no well-known URI."""
    text = str(url)
    if text.endswith(OPENID_CONFIGURATION):
        return text.removesuffix(OPENID_CONFIGURATION)
    match = re.fullmatch(rf"(https?://[^/]+)(?:{SERVER_METADATA}|{OPENID_CONFIGURATION})(/.*)?", text)
    if match is None:
        raise TargetError(f"{place} cannot be used: it is no well-known URI; name the issuer: auth.issuer")
    return match[1] + (match[2] or "")


_HOST_URLS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "redirectUri": ("port", _port_of_callback),
    "callbackUrl": ("port", _port_of_callback),
    "authServerMetadataUrl": ("issuer", _issuer_of_metadata),
}
"""URLs of other hosts: the setting that each stands for, and its conversion."""


def _scopes(value: Scopes) -> list[str] | None:
    return value.split() if isinstance(value, str) else value


def _token_source(token: str | None, file: str | None, name: str) -> str | Callable[[], str]:
    """Return a token, or the function that reads its file. Raises `TargetError` unless there is one of them."""
    if (token is None) == (file is None):
        raise TargetError(f"one of {name} and {name}_file is needed")
    return token if token is not None else lambda: _read(str(file)).strip()


def _read(file: str) -> str:
    """Return the text of a regular file of at most 1 MiB: a configuration may name a device, or a pipe without a
    writer. Raises `TargetError`.
    """
    try:
        with open(Path(file).expanduser(), encoding="utf-8", opener=_open_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise TargetError(f"{file} is not a regular file")
            text = stream.read(_MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as exc:
        raise TargetError(f"{file} cannot be read: {getattr(exc, 'strerror', None) or 'it is not UTF-8'}") from None
    if len(text) > _MAX_CHARACTERS:
        raise TargetError(f"{file} is larger than 1 MiB")
    return text


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
