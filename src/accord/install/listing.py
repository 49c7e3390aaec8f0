"""The servers in the files of all known hosts, and which of them accord has installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from accord.errors import TargetError
from accord.host.host_files import host_paths, read_host_file
from accord.host.known_hosts import KnownHost, known_host
from accord.install.editor import same_values
from accord.install.records import InstallRecord

InstallState: TypeAlias = Literal["installed", "changed since", "missing", "by others", "unreadable"]


class InstalledServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server in the file of a host."""

    host: str
    name: str
    file: str
    line: int | None = None
    state: InstallState
    """Whether accord installed it, and whether the entry is still as accord wrote it."""
    error: str | None = None
    """Why the host's file or this entry cannot be read."""


def installed_servers(
    hosts: Iterable[KnownHost], records: list[InstallRecord], project: Path
) -> Iterator[InstalledServer]:
    """Yield the servers of hosts: of the user, of a project, and of other projects into which accord installed."""
    for host in hosts:
        own = [each for each in records if each.host == host.name]
        paths = [*host_paths(host, project=project), *(Path(each.file) for each in own)]
        for path in dict.fromkeys(each.absolute() for each in paths):
            yield from _servers(host, path, {each.name: each for each in own if Path(each.file) == path})


def _servers(host: KnownHost, path: Path, records: dict[str, InstallRecord]) -> Iterator[InstalledServer]:
    try:
        file = read_host_file(path, host.format)
    except TargetError as exc:
        if path.exists():
            yield InstalledServer(host=host.name, name="", file=str(path), state="unreadable", error=str(exc))
            return
        entries, document = {}, {}
    else:
        entries, document = dict(file.entries), dict(file.document)
    for name, entry in entries.items():
        record = records.get(name)
        is_same = record is not None and any(
            same_values(document[host.format.servers][name], each) for each in record.written
        )
        state: InstallState = "by others" if record is None else "installed" if is_same else "changed since"
        error = entry.error or None
        yield InstalledServer(host=host.name, name=name, file=str(path), line=entry.line, state=state, error=error)
    for name in records:
        if name not in entries:
            yield InstalledServer(host=host.name, name=name, file=str(path), state="missing")


def records_of(
    records: list[InstallRecord], host: str | None, name: str | None, project: Path | None
) -> list[InstallRecord]:
    """Return the records of one server, in each file of the host: those of the user, or of a project.

    Raises `TargetError` if there is none, or if there are several servers.
    """
    place = None if project is None else str(project.absolute())
    found = [each for each in records if host in (None, each.host) and each.project == place]
    found = [each for each in found if name is None or each.name == known_host(each.host).server_name(name)]
    servers = {(each.host, each.name) for each in found}
    if not found:
        what = "a server" if name is None else f"a server {name!r:.100}"
        where = "" if host is None else f" into {known_host(host).title}"
        raise TargetError(f"accord has not installed {what}{where}; accord install --list shows what is where")
    if len(servers) > 1:
        choices = ", ".join(f"--to {each} --name {one}" for each, one in sorted(servers))
        raise TargetError(f"accord has installed several servers; choose one: {choices}")
    return found
