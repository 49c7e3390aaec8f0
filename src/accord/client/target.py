"""The targets of a client, in one grammar for `Client` and every command.

"python weather.py --fast"        a command line, split as a shell splits words; no shell is run
["python", "weather.py"]          the same, already split
"weather.py", "weather.py:app"    a file that contains a `Server` (named `server`, `mcp` or `app`, or as given)
"https://example.com/mcp"         a URL, over any HTTP transport of the server
{"command": "npx", "args": [...]} an entry of an `mcpServers` configuration; also `env`, `cwd`
{"url": "https://...", "headers": {...}, "type": "sse"}    likewise; the last two are optional; `serverUrl` and
                                  `httpUrl` mean `url`; `auth` and `oauth` are its login (`target_auth`). `${NAME}` and
                                  `${NAME:-default}` are replaced by environment variables in any text of an entry
a `Server`                        in this process, over memory
a `Transport`                     any object that sends and receives messages
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import urlsplit

import msgspec

from accord.client.variables import expand
from accord.errors import TargetError, log_line
from accord.transport.base import Transport
from accord.transport.http.redaction import without_credentials, without_credentials_malformed
from accord.transport.http.settings import HTTPSettings, validated_headers
from accord.transport.subprocess import display_command

if TYPE_CHECKING:
    from ssl import SSLContext

    from accord.auth.credentials import GrantCredentials

log: logging.Logger = logging.getLogger("accord")


@runtime_checkable
class InProcessServer(Protocol):
    """A server in this process."""

    @property
    def serve(self) -> Callable[..., Awaitable[None]]:
        """Serve one connection, a `Transport`, until it ends; for `principal=`, if one is given."""


class PrincipalLike(Protocol):
    """The sender of requests to a server in this process: an `accord.Principal`."""

    @property
    def id(self) -> str:
        """Return the id of the person or program."""

    @property
    def scopes(self) -> frozenset[str]:
        """Return the granted scopes."""


class ClientAuth(Protocol):
    """The authorization of a client: `OAuth()`, `ClientCredentials(...)`."""

    def credentials(self, server: str, *, ssl: SSLContext | None, proxy: str | None) -> GrantCredentials:
        """Return the credentials of one client for `server`, the URL of an MCP server."""


def check_principal(principal: PrincipalLike | None, target: Command | Remote | InProcessServer | Transport) -> None:
    """Raise `TargetError` for an invalid principal, or one that the target does not use."""
    if principal is None:
        return
    if not isinstance(target, InProcessServer):
        raise TargetError(
            "principal= is for an in-memory Server; a server at a URL authenticates you by a key or token"
        )
    if not isinstance(getattr(principal, "id", None), str) or not isinstance(principal.scopes, frozenset):
        raise TargetError(f'principal= is a Principal("ann", frozenset({{"read"}})), not {principal!r:.200}')


def identity(target: Command | Remote | InProcessServer | Transport, http: HTTPSettings | None = None) -> Hashable:
    """Return a key that is equal for two targets with the same server: the command with its environment, the URL with
    its headers, or the object.
    """
    if isinstance(target, Remote):
        return _identity_of_remote(target, http or HTTPSettings())
    if isinstance(target, Command):
        return (target.argv, tuple(sorted((target.env or {}).items())), target.cwd)
    return target if isinstance(target, Hashable) else object()


def _identity_of_remote(remote: Remote, http: HTTPSettings) -> Hashable:
    """Return the key of a URL with its headers (as a digest), TLS settings and proxy, which may select a server."""
    fixed, source = validated_headers(remote.headers or {}), http.headers
    if isinstance(source, Mapping):
        fixed, source = fixed | validated_headers(source), None
    if not fixed and (source, http.ssl, http.proxy) == (None, None, None):
        return remote.url
    digest = hashlib.sha256(repr((sorted(fixed.items()), http.proxy)).encode()).digest()
    return remote.url, digest, source if isinstance(source, Hashable) else object(), http.ssl


_URL = re.compile("https?://", re.IGNORECASE)
_CONFIG = re.compile(r"(?P<file>\S.*\.json)(?:[#:](?P<name>(?s:.+)))?")


class Command(msgspec.Struct, frozen=True):
    """A server to start as a child process, with its stdin and stdout as the connection."""

    argv: tuple[str, ...]
    env: dict[str, str] | None = None
    cwd: str | None = None
    label: str = ""
    """The name in errors and logs; by default, the command line without folders."""
    is_file: bool = False
    """Whether the target was a Python file."""
    inherit_env: bool = False
    """Whether the process inherits the whole environment, instead of a safe part of it."""

    def __str__(self) -> str:
        return self.label or display_command(self.argv)

    def __repr__(self) -> str:
        return f"Command({str(self)!r}, ...)"  # the rest may be secret


class Remote(msgspec.Struct, frozen=True):
    """A server at a URL."""

    url: str
    headers: Mapping[str, str] | None = None
    """The headers of each request, from its configuration."""
    sse: bool = False
    """Whether its configuration requires HTTP+SSE."""
    auth: ClientAuth | None = None
    """The login of its configuration; a bearer token is in `headers`."""

    def __str__(self) -> str:
        """Return the URL for errors and logs, without credentials."""
        return without_credentials(self.url)

    def __repr__(self) -> str:
        return f"Remote({without_credentials(self.url)!r}, ...)"


Target: TypeAlias = (
    str | Sequence[str] | Mapping[str, Any] | Command | Remote | InProcessServer | Transport | os.PathLike[str]
)


def parse(target: Target) -> Command | Remote | InProcessServer | Transport:
    """Return the parsed target. Raises `TargetError`."""
    if isinstance(target, Command | Remote):
        return target
    if isinstance(target, str):
        return _from_text(target)
    if isinstance(target, os.PathLike):
        return _from_text(os.fspath(target))
    if isinstance(target, Mapping):
        return _from_entry(target)
    if isinstance(target, Sequence):
        if not target or not all(isinstance(word, str) for word in target):
            raise TargetError("a command must be a list of strings, the program first")
        return Command(tuple(target))
    if isinstance(target, InProcessServer) or all(hasattr(target, name) for name in ("receive", "send", "close")):
        return target
    raise TargetError(f"not a target: {target!r}; give a command, a URL, FILE.py[:server], a Server or a transport")


def _from_text(text: str) -> Command | Remote:
    if not text.strip():
        raise TargetError("the target is empty; give a command, a URL or FILE.py[:server]")
    if _URL.match(text):
        return _from_url(text)
    path, _, name = text.partition(".py:") if ".py:" in text else (text, "", "")
    file = Path(path + ".py" if name else path)
    if file.suffix == ".py" and " " not in name and (file.is_file() or " " not in text):
        if not file.is_file():
            raise TargetError(f"{file}: no such file")
        # -P: files in the working directory must not shadow accord or the standard library.
        argv = (sys.executable, "-P", "-m", "accord", "run", os.path.abspath(text))
        return Command(argv, label=text, is_file=True)
    config = configuration(text)
    if config is not None:
        return _from_config(*config)
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise TargetError(f"{text!r} is not a command line: {exc}") from exc
    return Command(tuple(words))


def _from_url(text: str, headers: Mapping[str, str] | None = None, sse: bool = False) -> Remote:
    try:
        split = urlsplit(text)
        usable = split.hostname and (split.port is None or split.port > 0)
    except ValueError:
        usable = False
    if not usable or not _URL.match(text) or not text.isprintable() or " " in text:
        raise TargetError(
            f"{without_credentials_malformed(text)!r:.500} is not the URL of a server; write it as https://example.com/mcp"
        )
    return Remote(text, headers, sse)


def configuration(text: str) -> tuple[Path, str | None] | None:
    """Return the file and the name of `mcp.json#name`, or None for another kind of target."""
    match = _CONFIG.fullmatch(text)
    if match is None or _URL.match(text) or (" " in text and not Path(match["file"]).is_file()):
        return None
    return Path(match["file"]), match["name"]


def entries(file: Path) -> dict[str, Any]:
    """Return the entries of a configuration file, by name. Raises `TargetError`."""
    try:
        content = msgspec.json.decode(file.read_bytes())
    except OSError as exc:
        raise TargetError(f"{file}: {exc.strerror}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise TargetError(f"{file} is not JSON: {exc}") from exc
    servers = content.get("mcpServers", content.get("servers")) if isinstance(content, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise TargetError(f'{file} has no "mcpServers"')
    return servers


def _from_config(file: Path, name: str | None) -> Command | Remote:
    servers = entries(file)
    if name is None and len(servers) == 1:
        (name,) = servers
    if name not in servers or not isinstance(servers[name], dict):
        choices = ", ".join(f"{file}#{key}" for key in servers)
        raise TargetError(f"{file} has no server {name!r}; there are {choices}" if name else f"name one of {choices}")
    return _from_entry(servers[name], f"{file}#{name}: ")


def _from_entry(raw: Mapping[str, Any], prefix: str = "") -> Command | Remote:
    """Return the target of a configuration entry; `prefix` begins errors. Raises `TargetError`."""
    if isinstance(servers := raw.get("mcpServers", raw.get("servers")), Mapping):
        if len(servers) != 1 or not isinstance(single := next(iter(servers.values())), Mapping):
            raise TargetError(_choice(raw, servers))
        return _from_entry(single)
    entry = {key: expand(value, f"{prefix}{key}") for key, value in raw.items() if key in _FIELDS}
    _warn_of_unknown(raw, prefix)
    url = next((entry[key] for key in _URL_FIELDS if entry.get(key)), None)
    if url is not None:
        headers = entry.get("headers") or None
        if headers is not None and not isinstance(headers, Mapping):
            raise TargetError(f'{prefix}"headers" of a configuration entry must be an object')
        return _with_login(
            _from_url(str(url), headers and validated_headers(headers), entry.get("type") == "sse"), entry, prefix
        )
    if "auth" in entry or entry.get("oauth"):
        raise TargetError(f'{prefix}"auth" and "oauth" are for a server at a URL; a command gets its secrets by "env"')
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not command:
        raise TargetError(f'{prefix}a configuration entry needs "command" (a string) or "url"')
    if not isinstance(args, Sequence) or isinstance(args, str):
        raise TargetError(f'{prefix}"args" of a configuration entry must be a list of strings')
    variables = entry.get("env") or {}
    if not isinstance(variables, Mapping):
        raise TargetError(f'{prefix}"env" of a configuration entry must be an object')
    env = {str(key): str(value) for key, value in variables.items()} or None
    label = display_command(
        [str(word) for word in (raw["command"], *raw.get("args", []))]
    )  # without the values of variables
    return Command((command, *map(str, args)), env, entry.get("cwd"), label)


def _with_login(remote: Remote, entry: Mapping[str, Any], prefix: str) -> Remote:
    """Return a URL with the login of its entry. Raises `TargetError`."""
    auth, oauth = entry.get("auth"), entry.get("oauth")
    if auth is None and oauth is None:
        return remote
    if any(name.lower() == "authorization" for name in remote.headers or ()):
        raise TargetError(f"{prefix}the entry has a login and the header Authorization; leave one out")
    login = _configured_login(auth, oauth, prefix)
    if isinstance(login, str):
        return msgspec.structs.replace(remote, headers={**(remote.headers or {}), "authorization": f"Bearer {login}"})
    return msgspec.structs.replace(remote, auth=login)


def _configured_login(auth: Any, oauth: Any, prefix: str) -> ClientAuth | str | None:
    from accord.client.target_auth import configured_login

    return configured_login(auth, oauth, prefix)


def _warn_of_unknown(raw: Mapping[str, Any], prefix: str) -> None:
    """Log the keys of an entry that have no effect here, unless a host keeps them for itself."""
    for key in sorted(map(str, raw.keys() - _FIELDS - _HOST_FIELDS)):
        log.warning("accord: %sthe key %s of a configuration entry has no effect", prefix, log_line(repr(key)))


_URL_FIELDS = ("url", "serverUrl", "httpUrl")
_FIELDS = frozenset((*_URL_FIELDS, "headers", "type", "command", "args", "env", "cwd", "auth", "oauth"))
_HOST_FIELDS = frozenset(
    ("name", "title", "description", "icon", "version", "gallery", "metadata", "_meta", "tags", "dev", "transport")
) | frozenset(
    ("disabled", "enabled", "trust", "timeout", "init_timeout", "initTimeout", "startupTimeout", "keepAlive", "tools")
) | frozenset(
    ("alwaysAllow", "alwaysLoad", "autoApprove", "disabledTools", "enabledTools", "includeTools", "excludeTools")
)  # fmt: skip
"""What hosts keep in their entries about themselves, and not about the connection."""


def _choice(raw: Mapping[str, Any], servers: Mapping[str, Any]) -> str:
    """Return the error text for a configuration with several servers."""
    field = "mcpServers" if "mcpServers" in raw else "servers"
    names = ", ".join(map(repr, servers)) or "none"
    return (
        f"this configuration has {len(servers)} servers ({names}), and a client has one: "
        f"give one entry, Client(config[{field!r}][{next(iter(servers), 'name')!r}])"
    )
