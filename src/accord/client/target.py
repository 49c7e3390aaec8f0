"""What a client can be pointed at, in one grammar for `Client` and every command.

"python weather.py --fast"        a command line, split as a shell splits words; no shell is run
["python", "weather.py"]          the same, split already
"weather.py", "weather.py:app"    a file that holds a `Server` (named `server`, `mcp` or `app`, or the one named)
"https://example.com/mcp"         a URL, over HTTP in whichever form the server speaks
{"command": "npx", "args": [...]} an entry of an `mcpServers` configuration; also `env`, `cwd`
{"url": "https://...", "headers": {...}, "type": "sse"}    likewise; the last two may be left out; `serverUrl` and
                                  `httpUrl` mean `url`. `${NAME}` and `${NAME:-default}` stand for variables of the
                                  environment, in any text of an entry
a `Server`                        in this process, over memory
a `Transport`                     anything that moves messages
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import urlsplit

import msgspec

from accord.errors import TargetError
from accord.transport.base import Transport
from accord.transport.http.redaction import without_credentials, without_credentials_malformed
from accord.transport.http.settings import HTTPSettings, validated_headers
from accord.transport.subprocess import display_command


@runtime_checkable
class InProcessServer(Protocol):
    """A server in this process."""

    @property
    def serve(self) -> Callable[..., Awaitable[None]]:
        """Serve one connection, a `Transport`, until it ends; for `principal=`, if one is given."""


class PrincipalLike(Protocol):
    """Who asks, as a server in this process takes it: an `accord.Principal`."""

    @property
    def id(self) -> str:
        """Which person or program it is."""

    @property
    def scopes(self) -> frozenset[str]:
        """What it was granted."""


def check_principal(principal: PrincipalLike | None, target: Command | Remote | InProcessServer | Transport) -> None:
    """Raise `TargetError` for a principal that cannot be one, or that nobody would be told."""
    if principal is None:
        return
    if not isinstance(target, InProcessServer):
        raise TargetError(
            "principal= is for an in-memory Server; a server at a URL authenticates you by a key or token"
        )
    if not isinstance(getattr(principal, "id", None), str) or not isinstance(principal.scopes, frozenset):
        raise TargetError(f'principal= is a Principal("ann", frozenset({{"read"}})), not {principal!r:.200}')


def identity(target: Command | Remote | InProcessServer | Transport, http: HTTPSettings | None = None) -> Hashable:
    """What tells whether two clients have the same server: the command with all it is started with, the URL and the
    headers, or the object.
    """
    if isinstance(target, Remote):
        return _identity_of_remote(target, http or HTTPSettings())
    if isinstance(target, Command):
        return (target.argv, tuple(sorted((target.env or {}).items())), target.cwd)
    return target if isinstance(target, Hashable) else object()


def _identity_of_remote(remote: Remote, http: HTTPSettings) -> Hashable:
    """The headers may decide which server it is, and whom it takes us for; they are not kept, but a digest of them. So
    may the TLS settings (a certificate of ours, or one of the server's that nobody else trusts) and the proxy.
    """
    fixed, source = validated_headers(remote.headers or {}), http.headers
    if isinstance(source, Mapping):
        fixed, source = fixed | validated_headers(source), None
    if not fixed and (http.auth, source, http.ssl, http.proxy) == (None, None, None, None):
        return remote.url
    digest = hashlib.sha256(repr((sorted(fixed.items()), http.auth, http.proxy)).encode()).digest()
    return remote.url, digest, source if isinstance(source, Hashable) else object(), http.ssl


_URL = re.compile("https?://", re.IGNORECASE)
_CONFIG = re.compile(r"(?P<file>\S.*\.json)(?:[#:](?P<name>.+))?")


class Command(msgspec.Struct, frozen=True):
    """A server to start as a child process, spoken to over its stdin and stdout."""

    argv: tuple[str, ...]
    env: dict[str, str] | None = None
    cwd: str | None = None
    label: str = ""
    """What to call it in errors and logs; the command line, without folders, if empty."""
    is_file: bool = False
    """Whether it serves a Python file, which was given as the target."""
    inherit_env: bool = False
    """Whether the process gets all of our environment, instead of a safe part of it."""

    def __str__(self) -> str:
        return self.label or display_command(self.argv)

    def __repr__(self) -> str:
        return f"Command({str(self)!r}, ...)"  # the rest may be secret


class Remote(msgspec.Struct, frozen=True):
    """A server reached over HTTP."""

    url: str
    headers: Mapping[str, str] | None = None
    """What its configuration wants to be sent with each request."""
    sse: bool = False
    """Whether its configuration says that it speaks HTTP+SSE."""

    def __str__(self) -> str:
        """The URL as errors and logs have it: without a password, and what may stand for one."""
        return without_credentials(self.url)

    def __repr__(self) -> str:
        return f"Remote({without_credentials(self.url)!r}, ...)"


Target: TypeAlias = (
    str | Sequence[str] | Mapping[str, Any] | Command | Remote | InProcessServer | Transport | os.PathLike[str]
)


def parse(target: Target) -> Command | Remote | InProcessServer | Transport:
    """Understand a target. Raises `TargetError`."""
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
        # -P: what happens to lie in the working directory is not imported instead of us or the standard library.
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
    """Return the file and the name of `mcp.json#name`, or None where a text is another target."""
    found = _CONFIG.fullmatch(text)
    if found is None or _URL.match(text) or (" " in text and not Path(found["file"]).is_file()):
        return None
    return Path(found["file"]), found["name"]


def entries(file: Path) -> dict[str, Any]:
    """The entries of a configuration of servers, by their names. Raises `TargetError`."""
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


def _from_entry(written: Mapping[str, Any], where: str = "") -> Command | Remote:
    """Understand an entry of a configuration; `where` stands before what is wrong with it. Raises `TargetError`."""
    if isinstance(servers := written.get("mcpServers", written.get("servers")), Mapping):
        if len(servers) != 1 or not isinstance(only := next(iter(servers.values())), Mapping):
            raise TargetError(_choice(written, servers))
        return _from_entry(only)
    entry = {key: _expand(value, f"{where}{key}") for key, value in written.items() if key in _FIELDS}
    url = next((entry[key] for key in _URL_FIELDS if entry.get(key)), None)
    if url is not None:
        headers = entry.get("headers") or None
        if headers is not None and not isinstance(headers, Mapping):
            raise TargetError(f'{where}"headers" of a configuration entry must be an object')
        return _from_url(str(url), headers and validated_headers(headers), entry.get("type") == "sse")
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not command:
        raise TargetError(f'{where}a configuration entry needs "command" (a string) or "url"')
    if not isinstance(args, Sequence) or isinstance(args, str):
        raise TargetError(f'{where}"args" of a configuration entry must be a list of strings')
    given = entry.get("env") or {}
    if not isinstance(given, Mapping):
        raise TargetError(f'{where}"env" of a configuration entry must be an object')
    env = {str(key): str(value) for key, value in given.items()} or None
    label = display_command(
        [str(word) for word in (written["command"], *written.get("args", []))]
    )  # without the values
    return Command((command, *map(str, args)), env, entry.get("cwd"), label)


_URL_FIELDS = ("url", "serverUrl", "httpUrl")
_FIELDS = frozenset((*_URL_FIELDS, "headers", "type", "command", "args", "env", "cwd"))
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def _expand(value: Any, where: str) -> Any:
    """An entry's value with the variables of the environment in place of their names. Raises `TargetError`."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found, where), value)
    if isinstance(value, Mapping):
        return {key: _expand(each, f"{where}.{key}") for key, each in value.items()}
    return [_expand(each, where) for each in value] if isinstance(value, list | tuple) else value


def _variable(found: re.Match[str], where: str) -> str:
    name, default = found.groups()
    value = os.environ.get(name)
    if value or (value is not None and default is None):
        return value
    if default is None:
        raise TargetError(
            f"{where}: the environment variable {name} is not set; set it, or write ${{{name}:-a default}}"
        )
    return default  # as a shell does, also where the variable is empty


def _choice(written: Mapping[str, Any], servers: Mapping[str, Any]) -> str:
    """What to write in place of a configuration of several servers."""
    field = "mcpServers" if "mcpServers" in written else "servers"
    names = ", ".join(map(repr, servers)) or "none"
    return (
        f"this configuration has {len(servers)} servers ({names}), and a client has one: "
        f"give one entry, Client(config[{field!r}][{next(iter(servers), 'name')!r}])"
    )
