"""The hosts whose configuration files accord reads and writes: one row of data per host.

A row has the files of the user on each operating system and the file of a project, the format of the file, and the
spelling of an entry: how the host names the URL, the variables and the type, and how it writes a reference to a secret.
`host_files` reads with these rows, and `accord install` writes with them.

The source of each row is the documentation of the host, as of November 2026. A comment says where that is silent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Literal, TypeAlias

import msgspec

from accord.errors import TargetError

OperatingSystem: TypeAlias = Literal["linux", "macos", "windows"]
Syntax: TypeAlias = Literal["json", "toml", "yaml"]
TransportKind: TypeAlias = Literal["stdio", "http", "sse"]


class FileFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The format of a configuration file, and the spelling of its entries."""

    syntax: Syntax = "json"
    """`json` includes comments and trailing commas."""
    servers: str = "mcpServers"
    """The top-level key of the servers by name."""
    local: str | None = None
    """The top-level key of settings by project folder, which may have `servers` too."""
    lower_case: bool = False
    """Whether the names of servers are in lower case."""
    transports: frozenset[TransportKind] = frozenset(("stdio", "http", "sse"))
    """How the host connects to servers."""
    types: Mapping[TransportKind, str] = {}
    """The value of `type`; without one, the host infers the transport."""
    command: str = "command"
    env: str = "env"
    url: str = "url"
    sse_url: str | None = None
    """The key of the URL of an HTTP+SSE server, if it is another one."""
    headers: str = "headers"
    has_name: bool = False
    """Whether an entry has its name in `name` too."""
    has_cwd: bool = False
    """Whether an entry may have `cwd`."""
    fixed: Mapping[str, str | int | bool] = {}
    """What a new entry has as well."""
    reference: str | None = None
    """A reference to an environment variable in a value, with `%s` for the name; None if there is none."""
    has_defaults: bool = False
    """Whether a reference may have a default, as in `${NAME:-default}`."""
    bare_variables: bool = False
    """Whether `$NAME` is a reference too."""
    editor_variables: bool = False
    """Whether values may have variables of an editor, such as `${workspaceFolder}`."""
    inputs: str | None = None
    """The top-level key of questions to the user; with it, `reference` refers to one of them."""
    env_names: str | None = None
    """The key of the names of environment variables that the host passes to the program."""
    header_names: str | None = None
    """The key of headers whose values are names of environment variables."""
    bearer_name: str | None = None
    """The key of the name of the environment variable that has a bearer token."""


class KnownHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host: where its files are, and what is in them."""

    name: str
    """The name in commands, such as `claude-desktop`."""
    title: str
    """The name in texts for people."""
    files: Mapping[OperatingSystem, tuple[str, ...]]
    """The files of a user, as `BASE:PATH`, the usual one first; see `Folders.path`."""
    project_file: str | None = None
    """The file of a project, relative to its folder."""
    format: FileFormat
    after: str
    """What the user has to do after a change of the file."""

    def server_name(self, name: str) -> str:
        """Return the name of a server as the host writes it."""
        return name.lower() if self.format.lower_case else name

    def user_files(self, folders: Folders) -> tuple[PurePath, ...]:
        """Return the files of the user, the usual one first."""
        return tuple(folders.path(each) for each in self.files[folders.system])


class Folders(msgspec.Struct, frozen=True):
    """The folders of a user: an operating system, the home folder, and environment variables that move folders."""

    system: OperatingSystem
    home: str
    environment: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Folders({self.system!r}, {self.home!r}, ...)"  # environment variables may be secret

    def path(self, place: str) -> PurePath:
        """Return the path of `BASE:PATH`; the bases are the keys of `_BASES`."""
        base, _, rest = place.partition(":")
        variable, usual = _BASES[base]
        flavour = PureWindowsPath if self.system == "windows" else PurePosixPath
        folder = flavour(self.environment.get(variable, ""))
        if not folder.is_absolute():  # "consider the path invalid and ignore it" (XDG Base Directory Specification)
            folder = flavour(self.home, usual)
        return folder / rest


def user_folders() -> Folders:
    """Return the folders of the current user."""
    systems: dict[str, OperatingSystem] = {"win32": "windows", "cygwin": "windows", "darwin": "macos"}
    return Folders(systems.get(sys.platform, "linux"), str(Path.home()), dict(os.environ))


_BASES = {
    "home": ("", ""),
    "xdg": ("XDG_CONFIG_HOME", ".config"),
    "support": ("", "Library/Application Support"),
    "appdata": ("APPDATA", "AppData/Roaming"),
    "localappdata": ("LOCALAPPDATA", "AppData/Local"),
    "claude": ("CLAUDE_CONFIG_DIR", ""),
    "codex": ("CODEX_HOME", ".codex"),
}
"""Folders: the environment variable that names one, and where it is otherwise, relative to the home folder."""


def _everywhere(place: str) -> dict[OperatingSystem, tuple[str, ...]]:
    return {"linux": (place,), "macos": (place,), "windows": (place,)}


def _configuration(path: str) -> dict[OperatingSystem, tuple[str, ...]]:
    """Return the places of a file in the configuration folder of each operating system."""
    return {"linux": (f"xdg:{path}",), "macos": (f"support:{path}",), "windows": (f"appdata:{path}",)}


MCP_SERVERS = FileFormat(has_cwd=True, reference="${%s}", has_defaults=True)
"""The common format, `{"mcpServers": {NAME: {...}}}`, in the form of `accord.client.target`."""

_TYPES: dict[TransportKind, str] = {"stdio": "stdio", "http": "http", "sse": "sse"}

_PACKAGED_CLAUDE = "localappdata:Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"
"""Windows redirects the configuration folder of an app from the Store or an MSIX package to this one."""

_HOSTS = (
    KnownHost(
        name="claude-desktop",
        title="Claude Desktop",
        # The documentation has macOS and Windows; builds for Linux read the configuration folder, as Electron does.
        files=_configuration("Claude/claude_desktop_config.json")
        | {"windows": ("appdata:Claude/claude_desktop_config.json", _PACKAGED_CLAUDE)},
        # References in values are not documented: they would reach the program as they are.
        format=FileFormat(transports=frozenset(("stdio",))),
        after="quit and restart Claude Desktop",
    ),
    KnownHost(
        name="claude-code",
        title="Claude Code",
        files=_everywhere("claude:.claude.json"),
        project_file=".mcp.json",
        # ${NAME} is documented for .mcp.json; that it is replaced in .claude.json too is not.
        format=FileFormat(types=_TYPES, reference="${%s}", has_defaults=True, local="projects"),
        after="restart Claude Code; /mcp shows the state of the server",
    ),
    KnownHost(
        name="cursor",
        title="Cursor",
        files=_everywhere("home:.cursor/mcp.json"),
        project_file=".cursor/mcp.json",
        format=FileFormat(reference="${env:%s}", editor_variables=True),
        after="enable the server in the settings of Cursor, under MCP",
    ),
    KnownHost(
        name="vscode",
        title="VS Code",
        files=_configuration("Code/User/mcp.json"),  # of the default profile
        project_file=".vscode/mcp.json",
        format=FileFormat(
            servers="servers",
            types=_TYPES,
            has_cwd=True,
            editor_variables=True,
            inputs="inputs",
            reference="${input:%s}",
        ),
        after="start the server with the command MCP: List Servers",
    ),
    KnownHost(
        name="windsurf",
        title="Windsurf",
        # The documentation of the plugin for other editors has ~/.codeium/mcp_config.json.
        files=_everywhere("home:.codeium/windsurf/mcp_config.json"),
        format=FileFormat(url="serverUrl", reference="${env:%s}"),
        after="refresh the list of MCP servers in Windsurf",
    ),
    KnownHost(
        name="zed",
        title="Zed",
        files={
            "linux": ("xdg:zed/settings.json",),
            "macos": ("home:.config/zed/settings.json",),
            "windows": ("appdata:Zed/settings.json",),
        },
        project_file=".zed/settings.json",
        # References in values are not documented, nor is HTTP+SSE.
        format=FileFormat(servers="context_servers", transports=frozenset(("stdio", "http"))),
        after="Zed reads the change by itself; the settings of its agent show the state of the server",
    ),
    KnownHost(
        name="gemini",
        title="Gemini CLI",
        files=_everywhere("home:.gemini/settings.json"),
        project_file=".gemini/settings.json",
        format=FileFormat(url="httpUrl", sse_url="url", has_cwd=True, reference="${%s}", bare_variables=True),
        after="restart Gemini CLI; /mcp shows the state of the server",
    ),
    KnownHost(
        name="codex",
        title="Codex",
        files=_everywhere("codex:config.toml"),
        project_file=".codex/config.toml",
        format=FileFormat(
            syntax="toml",
            servers="mcp_servers",
            transports=frozenset(("stdio", "http")),
            headers="http_headers",
            has_cwd=True,
            env_names="env_vars",
            header_names="env_http_headers",
            bearer_name="bearer_token_env_var",
        ),
        after="restart Codex; it reads the file of a project only where you trust the project",
    ),
    KnownHost(
        name="goose",
        title="goose",
        files={
            "linux": ("xdg:goose/config.yaml",),
            "macos": ("xdg:goose/config.yaml",),
            "windows": ("appdata:Block/goose/config/config.yaml",),
        },
        format=FileFormat(
            syntax="yaml",
            servers="extensions",
            lower_case=True,
            transports=frozenset(("stdio", "http")),
            types={"stdio": "stdio", "http": "streamable_http"},
            command="cmd",
            env="envs",
            url="uri",
            has_name=True,
            fixed={"enabled": True, "timeout": 300},
            env_names="env_keys",
            bare_variables=True,
            reference="${%s}",  # in headers, for the variables in env_keys
        ),
        after="start a new session of goose; it finds the variables in the keyring or in its environment",
    ),
)

KNOWN_HOSTS: Mapping[str, KnownHost] = {each.name: each for each in _HOSTS}
"""The known hosts by name."""


def known_host(name: str) -> KnownHost:
    """Return the host with a name. Raises `TargetError`, which lists the names."""
    if name not in KNOWN_HOSTS:
        raise TargetError(f"unknown host {name!r:.100}; there are {', '.join(KNOWN_HOSTS)}")
    return KNOWN_HOSTS[name]
