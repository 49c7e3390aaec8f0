"""Servers in the configuration files of installed hosts, and of this folder. None is started or contacted unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from accord.client.target import Command, Remote, parse
from accord.errors import TargetError
from accord.host.host_files import HostEntry, HostFile, host_paths, read_host_file
from accord.host.known_hosts import KNOWN_HOSTS, KnownHost, known_host
from accord.host.secret_references import with_secrets
from accord.inspector.commands import CommandParams, InspectorError, NoParams, PageCommand
from accord.inspector.servers import ServerDescription
from accord.inspector.workspace import Workspace, safe_name
from accord.redaction import redact
from accord.transport.http.redaction import without_credentials
from accord.transport.subprocess import display_command
from accord.visible_text import single_line, truncate

MOST_SERVERS = 1_000
_TEXT = 500


class FoundServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server in a file of a host; or a file that cannot be read, without a name."""

    host: str
    title: str
    """The name of the host for people."""
    file: str
    line: int = 0
    name: str = ""
    kind: Literal["program", "URL", ""] = ""
    target: str = ""
    """The command or the URL, without secrets."""
    variables: list[str] = []
    """The names of environment variables, or headers, that the entry sets."""
    enabled: bool = True
    """Whether the host uses it."""
    error: str = ""


class FoundServers(msgspec.Struct, frozen=True, rename="camel"):
    """The servers of all hosts, in the order of the hosts."""

    servers: list[FoundServer]
    left_out: int


class FoundParams(CommandParams, frozen=True):
    """A server in a file of a host."""

    host: str
    file: str
    name: str


async def list_found(workspace: Workspace, params: NoParams) -> FoundServers:
    """Return the servers in the files of installed hosts. Files are read; nothing is started or contacted."""
    found = await asyncio.to_thread(lambda: list(_found_servers(Path.cwd())))
    return FoundServers(found[:MOST_SERVERS], max(0, len(found) - MOST_SERVERS))


async def add_found(workspace: Workspace, params: FoundParams) -> ServerDescription:
    """Add a server of a host's file; each start of it is approved in the terminal. Raises `InspectorError`."""
    try:
        entry = await asyncio.to_thread(_entry, params, Path.cwd())
        target = parse(await with_secrets(entry))
    except TargetError as exc:
        raise InspectorError(str(exc), "correct the file, and load the page again", status=400) from exc
    assert isinstance(target, Command | Remote), "an entry has a command or a URL"
    name = safe_name(params.name)
    return workspace.add(name, target, "found", file=params.file, entry=entry, needs_approval=True).describe()


def _found_servers(project: Path) -> Iterator[FoundServer]:
    for host in KNOWN_HOSTS.values():
        for path in dict.fromkeys(host_paths(host, project=project)):  # the home folder may be the project
            common: dict[str, Any] = {"host": host.name, "title": host.title, "file": str(path)}
            try:
                file = _read(host, path, project)
            except TargetError as exc:
                yield FoundServer(**common, error=_line(str(exc)))
                continue
            yield from (_found(each, common) for each in file.entries.values())


def _found(entry: HostEntry, common: dict[str, Any]) -> FoundServer:
    raw = entry.entry or {}
    is_url = "url" in raw
    words = [str(raw.get("command", "")), *map(str, raw.get("args") or [])]
    target = without_credentials(str(raw["url"])) if is_url else display_command(words) if raw else ""
    return FoundServer(
        **common,
        line=entry.line,
        name=entry.name,
        kind="" if not raw else "URL" if is_url else "program",
        target=_line(redact(target)),
        variables=[_line(name) for name in sorted(raw.get("headers" if is_url else "env") or {})],
        enabled=entry.enabled,
        error=_line(entry.error),
    )


def _entry(params: FoundParams, project: Path) -> Mapping[str, Any]:
    """Return an entry of a host's file: of one that accord found by itself. Raises `TargetError`."""
    host, path = known_host(params.host), Path(params.file)
    if path not in host_paths(host, project=project):
        raise TargetError(f"{params.file!r:.500} is not a file of {host.title}")
    found = _read(host, path, project).entries.get(params.name)
    if found is None:
        raise TargetError(f"{path} has no server {params.name!r:.100}")
    if found.entry is None:
        raise TargetError(f"{found.where}: {found.error}")
    return found.entry


def _read(host: KnownHost, path: Path, project: Path) -> HostFile:
    return read_host_file(path, host.format, project=project)


def _line(text: str) -> str:
    return truncate(single_line(text), _TEXT)


COMMANDS: Mapping[str, PageCommand] = {
    "servers/found": PageCommand(NoParams, list_found),
    "servers/add-found": PageCommand(FoundParams, add_found),
}
