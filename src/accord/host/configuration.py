"""The configuration of a host: the servers in `mcpServers`, and accord's own settings under the key `accord`.

    {
      "mcpServers": {"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@2026.1.14"]}},
      "accord": {
        "servers": {"memory": {"start": "lazy", "tools": {"delete_entities": {"hidden": true}}}},
        "policy": [{"name": "reads", "decision": "allow", "tools": ["read_*"]}],
        "audit": "audit.jsonl"
      }
    }

The file of another host is read too, and has no such settings. An error in an entry, or in the settings of a server, is
an error of that server. An error in the policy is one of the whole file, so that no rule is left out in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from accord.client.target import Command, InProcessServer, Remote, parse
from accord.client.variables import expand
from accord.errors import DeclarationError, TargetError
from accord.host import jsonc
from accord.host.consent import digest
from accord.host.documents import MAX_BYTES, decode_text, read_bytes
from accord.host.host_files import HostEntry, HostFile, host_format, project_folder, read_host_file
from accord.host.policy.policy import Policy
from accord.server.compose.change import ToolChange

OWN_KEY = "accord"
"""The key of accord's own settings in a configuration file."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class ToolSettings(ToolChange, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change to a tool, in a configuration file: see `ToolChange`."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a server under `accord.servers`; times in seconds."""

    start: Literal["eager", "lazy"] = "eager"
    """Whether the server starts with the host, or when it is used first."""
    trusted: bool = False
    """Whether the annotations of its tools are trusted: for the policy, and to repeat safe calls."""
    roots: list[str] = []
    """Folders that the server may use, in addition to those of the host."""
    timeout: float | None = None
    """The time of a call without a message, after which it fails."""
    tools: dict[str, ToolSettings] = {}
    """Changes to tools, by the names that the server gives them."""
    max_sampling: int = 20
    """How many sampling requests it may send while the host runs."""


class HostSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """accord's own settings in a configuration file."""

    servers: dict[str, msgspec.Raw] = {}
    policy: list[Any] = []
    """The rules, see `Policy`."""
    approve: Literal["host", "client"] = "host"
    """Who is asked about a call that a client of this program makes: the host's approver, or that client."""
    audit: str | None = None
    """The audit log, relative to the folder of the file."""
    audit_anchor: str | None = None
    """The anchor of the audit log, relative to the folder of the file."""
    search_budget: int | None = None
    """Tokens of definitions beyond which a model gets `search_tools` instead of all tools."""


class ConfiguredServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server of a configuration. One with an `error` is not started."""

    name: str
    """The name, with characters that names of tools may have."""
    file: str
    line: int
    entry: Mapping[str, Any]
    """The entry as in the file: references to variables and to the keyring are not replaced."""
    settings: ServerSettings = ServerSettings()
    file_settings: Mapping[str, Any] = {}
    """accord's own settings as in the file: those of all servers, and of this one."""
    server: InProcessServer | None = None
    """A server in this process, instead of an entry."""
    error: str = ""

    def __repr__(self) -> str:
        return f"ConfiguredServer({self.name!r}, {self.file!r}, ...)"  # the rest may be secret

    @property
    def key(self) -> str:
        """Return the key of its approvals: the file and the name."""
        return f"{self.file}#{self.name}"

    @property
    def digest(self) -> str:
        """Return the digest of the file's path, the name, the entry and the settings."""
        about = [self.file, self.name, dict(self.entry), msgspec.to_builtins(self.settings)]
        return digest(msgspec.json.encode(about, order="deterministic"))

    @property
    def folder(self) -> str | None:
        """Return the folder in which its program starts; None if that is not known."""
        try:
            return expand(self.entry.get("cwd"), "cwd")  # type: ignore[no-any-return]
        except TargetError:
            return None

    def target(self, entry: Mapping[str, Any] | None = None) -> Command | Remote | InProcessServer:
        """Return the target of an entry, by default the own one. Raises `TargetError`."""
        if self.server is not None:
            return self.server
        target = parse(self.entry if entry is None else entry)
        assert isinstance(target, Command | Remote), "an entry has a command or a URL"
        return target


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of one or more files, by name, and the settings."""

    servers: dict[str, ConfiguredServer]
    settings: HostSettings = HostSettings()
    folder: Path = Path()
    """The folder of the file, for relative paths in the settings."""
    policy_place: str = "policy"
    """The file and line of the policy, for errors."""
    names: frozenset[str] = frozenset()
    """The names of all servers, also of those that are disabled."""

    def policy(self) -> Policy:
        """Return the policy of the settings. Raises `PolicyError`."""
        return Policy.from_settings(self.settings.policy, file=self.policy_place, servers=self.names)


def read_configuration(path: Path, *, project: Path | None = None) -> Configuration:
    """Return the configuration in a file. Raises `TargetError` for a file that cannot be read, two servers with the
    same name, and invalid settings, with file and line.
    """
    path = path.absolute()
    if not _is_unicode(str(path)):
        raise TargetError(f"{str(path)!r}: the path is not UTF-8: approvals, which belong to it, could not be stored")
    form = host_format(path)
    file = read_host_file(path, form, project=project or project_folder(path))
    place = policy_place(path) if form.syntax == "json" else str(path)
    settings = _settings(file)
    servers: dict[str, ConfiguredServer] = {}
    for entry in file.entries.values():
        if not entry.enabled:
            continue
        configured = _configured(entry, settings, file.document.get(OWN_KEY, {}))
        if configured.name in servers:
            raise TargetError(f"{entry.where}: two servers would both be named {configured.name!r}; rename one")
        servers[configured.name] = configured
    if unknown := sorted(settings.servers.keys() - file.entries.keys()):
        raise TargetError(f'{path}: "{OWN_KEY}.servers" has settings of {unknown[0]!r}, and there is no such server')
    names = frozenset(_safe_name(entry) for entry in file.entries.values())
    return Configuration(servers=servers, settings=settings, folder=path.parent, policy_place=place, names=names)


def configure(servers: Mapping[str, Any]) -> Configuration:
    """Return a configuration of servers given in the program: `Server` objects, entries, commands or URLs, by name.

    Raises `TargetError`.
    """
    configured = {name: _given(name, value) for name, value in servers.items()}
    return Configuration(servers=configured, names=frozenset(configured))


def _given(name: str, value: Any) -> ConfiguredServer:
    if not _NAME.fullmatch(name):
        raise TargetError(f"{name!r:.100} is not a name of a server: letters, digits, `_`, `-` and `.` only")
    try:
        parsed = parse(value)
    except TargetError as exc:
        hint = f'; give the value of "{name}" alone, or the file' if name in ("mcpServers", "servers") else ""
        raise TargetError(f"{name}: {exc}{hint}") from exc
    if isinstance(parsed, InProcessServer):
        return ConfiguredServer(name=name, file="program", line=0, entry={}, server=parsed)
    if not isinstance(parsed, Command | Remote):
        raise TargetError(f"{name}: a host takes a server, a command or a URL, not {value!r:.100}")
    return ConfiguredServer(name=name, file="program", line=0, entry=_entry_of(parsed))


def _entry_of(target: Command | Remote) -> dict[str, Any]:
    """Return an entry for a parsed target."""
    if isinstance(target, Remote):
        return {"url": target.url, **({"headers": dict(target.headers)} if target.headers else {})}
    entry: dict[str, Any] = {"command": target.argv[0], "args": list(target.argv[1:])}
    return entry | {key: value for key, value in (("env", target.env), ("cwd", target.cwd)) if value}


def _settings(file: HostFile) -> HostSettings:
    try:
        raw = msgspec.json.encode(file.document.get(OWN_KEY, {}))
        return msgspec.json.decode(raw, type=HostSettings)
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError) as exc:  # half of a surrogate pair is no character
        raise TargetError(f'{file.path}: "{OWN_KEY}": {exc}') from None


def _is_unicode(text: str) -> bool:
    """Return whether a text has only characters, so that it has a digest."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _safe_name(entry: HostEntry) -> str:
    return _NOT_IN_A_NAME.sub("_", entry.name).strip("_")[:64] or "server"


def _configured(entry: HostEntry, settings: HostSettings, file_settings: Mapping[str, Any]) -> ConfiguredServer:
    common: dict[str, Any] = {"name": _safe_name(entry), "file": str(entry.file), "line": entry.line}
    if entry.entry is None:
        return ConfiguredServer(**common, entry={}, error=f"{entry.where}: {entry.error}")
    try:
        raw = settings.servers.get(entry.name)
        own = ServerSettings() if raw is None else msgspec.json.decode(raw, type=ServerSettings)
    except (msgspec.ValidationError, DeclarationError) as exc:
        place = f'"{OWN_KEY}.servers.{entry.name}"'
        return ConfiguredServer(**common, entry=entry.entry, error=f"{entry.file}: {place}: {exc}")
    applied = {key: value for key, value in file_settings.items() if key != "servers"}
    if raw is not None:
        applied["servers"] = {entry.name: raw}
    return ConfiguredServer(**common, entry=entry.entry, settings=own, file_settings=applied)


def policy_place(path: Path) -> str:
    """Return file and line of the policy in a file of JSON. Raises `TargetError` for a name that occurs twice.

    A parser takes the last of two members with one name. In a policy, the last could replace a stricter one in silence.
    """
    text = decode_text(read_bytes(path, MAX_BYTES["json"]), path)
    root = _parse_json(text, path)
    own = [member for member in (root.members or () if root is not None else ()) if member.name == OWN_KEY]
    for member in own[1:]:
        raise TargetError(f'{path}:{_line(text, member.start)}: "{OWN_KEY}" occurs twice; remove one')
    nodes = [member.value for member in own]
    while nodes:
        node = nodes.pop()
        if (name := node.duplicate) is not None:
            raise TargetError(f"{path}:{_line(text, node.start)}: {name!r} occurs twice in this object; remove one")
        nodes += [*(member.value for member in node.members or ()), *(node.items or ())]
    policy = own[0].value.member("policy") if own else None
    return str(path) if policy is None else f"{path}:{_line(text, policy.start)}"


def _parse_json(text: str, path: Path) -> jsonc.JSONNode | None:
    try:
        return jsonc.parse(text)
    except jsonc.JSONCError as exc:
        raise TargetError(f"{path}:{exc.line}:{exc.column}: {exc.reason}") from None


def _line(text: str, offset: int) -> int:
    return jsonc.position(text, offset)[0]
