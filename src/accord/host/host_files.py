"""The configuration files of hosts: reading them into entries, each with its file and line.

    file = read_host_file(Path(".vscode/mcp.json"), known_host("vscode").format, project=Path.cwd())
    file.entries["weather"].entry      # as `Client` takes it; None if the entry is invalid, which `.error` explains

An invalid entry is an error of that entry only. A file that cannot be read is an error with line and column. The size
of a file is bounded, because the file of a project may come from a stranger.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from accord.errors import TargetError
from accord.host.canonical_entry import canonical_entry
from accord.host.documents import MAX_PROJECT_BYTES, read_document
from accord.host.known_hosts import KNOWN_HOSTS, MCP_SERVERS, FileFormat, KnownHost, user_folders

MAX_ENTRIES = 1_000
"""Limit of the number of servers in a file."""


class HostEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A server in the file of a host."""

    name: str
    file: Path
    line: int
    """The line of its name, from 1."""
    entry: Mapping[str, Any] | None
    """The entry as `accord.client.target.parse` takes it; None if it is invalid."""
    error: str = ""
    """What is wrong with an invalid entry, without its values."""
    enabled: bool = True
    """Whether the host uses it."""

    def __repr__(self) -> str:
        return f"HostEntry({self.name!r}, {self.where!r}, ...)"  # the rest may be secret

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}"


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a host's file."""

    path: Path
    entries: Mapping[str, HostEntry]
    """The servers by name."""
    document: Mapping[str, Any]
    """The whole content."""

    def __repr__(self) -> str:
        return f"HostFile({str(self.path)!r}, {list(self.entries)!r})"


def read_host_file(path: Path, form: FileFormat, *, project: Path | None = None) -> HostFile:
    """Return the servers of a file. Raises `TargetError` for a file that cannot be read, with line and column.

    `project` is the folder of the project: for the file of a project, and for servers of this project in a user's file.
    A file of several megabytes takes a second.
    """
    limit = MAX_PROJECT_BYTES if project is not None and _belongs_to(path, project) else None
    document = read_document(path, form.syntax, limit=limit)
    entries: dict[str, HostEntry] = {}
    for names in _places(form, project):
        servers = document.at(*names)
        if servers is None:
            continue
        if not isinstance(servers, Mapping):
            raise TargetError(f'{path}:{document.line(*names)}: "{names[-1]}" must be an object')
        if len(servers) > MAX_ENTRIES:
            raise TargetError(f"{path} has more than {MAX_ENTRIES:,} servers")
        for name, raw in servers.items():
            line = document.line(*names, str(name))
            entries[str(name)] = _entry(str(name), raw, form, path, line, project)
    return HostFile(path=path, entries=entries, document=document.value)


def host_format(path: Path) -> FileFormat:
    """Return the format of a file: that of the known host whose file it is, or else `mcpServers` in JSON."""
    folders = user_folders()
    for host in KNOWN_HOSTS.values():
        if path in map(Path, host.user_files(folders)) or (host.project_file and path.match(host.project_file)):
            return host.format
    return MCP_SERVERS


def project_folder(path: Path) -> Path:
    """Return the folder of the project that a file configures: that above `.vscode` for `.vscode/mcp.json`."""
    for host in KNOWN_HOSTS.values():
        if host.project_file and path.match(host.project_file):
            return path.parents[host.project_file.count("/")]
    return path.parent


def _belongs_to(path: Path, project: Path) -> bool:
    """Return whether a file is in a project; the home folder, which has the user's own files, is none."""
    folder = project.absolute()
    return path.absolute().is_relative_to(folder) and folder != Path.home()


def host_paths(host: KnownHost, *, project: Path | None = None) -> list[Path]:
    """Return the files of a host that exist: those of the user, then that of the project."""
    paths = [Path(each) for each in host.user_files(user_folders())]
    if project is not None and host.project_file is not None:
        paths.append(project / host.project_file)
    return [each for each in paths if each.is_file()]


def _places(form: FileFormat, project: Path | None) -> list[tuple[str, ...]]:
    """Return the paths of names to servers in a file; the later ones have priority."""
    places: list[tuple[str, ...]] = [(form.servers,)]
    if form.local is not None and project is not None:
        places.append((form.local, str(project), form.servers))
    return places


def _entry(name: str, raw: Any, form: FileFormat, path: Path, line: int, project: Path | None) -> HostEntry:
    settings = raw if isinstance(raw, Mapping) else {}
    enabled = settings.get("disabled") is not True and settings.get("enabled") is not False
    try:
        entry, error = canonical_entry(raw, form, project), ""
    except TargetError as exc:
        entry, error = None, str(exc)
    return HostEntry(name=name, file=path, line=line, entry=entry, error=error, enabled=enabled)
