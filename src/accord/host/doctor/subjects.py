"""The subjects of `accord doctor`: the servers in files, and the entries that `accord install` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from accord.client.target import Command, Remote, configuration, parse
from accord.errors import TargetError
from accord.host.doctor.known_facts import SECONDS, MayStart, Subject
from accord.host.documents import read_document
from accord.host.host_files import host_format, host_paths, project_folder, read_host_file
from accord.host.known_hosts import KnownHost, known_host
from accord.visible_text import single_line

EntryState: TypeAlias = Literal["present", "changed", "missing", "unknown"]

OTHER_SERVERS_KEY = "servers"
"""The key of the servers in some files, instead of `mcpServers`."""


def subjects_of_target(text: str, *, seconds: float = SECONDS) -> list[Subject]:
    """Return the servers of a target: itself, an entry of a file, or all of them. Raises `TargetError`."""
    found = configuration(text)
    if found is None:
        target = parse(text)
        assert isinstance(target, Command | Remote), "a text is a command or a URL"
        return [Subject(name=str(target), target=target, seconds=seconds)]
    path, name = found
    path = path.absolute()
    form = host_format(path)
    common: dict[str, Any] = {"path": path, "form": form, "project": project_folder(path), "seconds": seconds}
    if name is not None:
        return [Subject(name=name, **_with_form(common, path))]
    return list(_subjects_in(_with_form(common, path)))


def _with_form(common: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the fields of a subject with the key that the file really has."""
    form = common["form"]
    try:
        document = read_document(path, form.syntax).value
    except TargetError:
        return common  # the step reports it
    if form.servers not in document and OTHER_SERVERS_KEY in document:
        return {**common, "form": msgspec.structs.replace(form, servers=OTHER_SERVERS_KEY)}
    return common


def subjects_of_hosts(
    hosts: Sequence[KnownHost], may_start: MayStart, *, project: Path, seconds: float = SECONDS
) -> list[Subject]:
    """Return the servers in the files of hosts that exist. `may_start` is asked before one is started or contacted."""
    return [
        subject
        for host in hosts
        for path in dict.fromkeys(host_paths(host, project=project))  # the home folder may be the project
        for subject in _subjects_in(
            {
                "path": path,
                "form": host.format,
                "host": host.name,
                "project": project,
                "may_start": may_start,
                "seconds": seconds,
            }
        )
    ]


def _subjects_in(common: dict[str, Any]) -> Iterator[Subject]:
    """Yield the servers of a file; if it cannot be read, one without a name."""
    try:
        file = read_host_file(common["path"], common["form"], project=common["project"])
    except TargetError:
        yield Subject(name="", **common)
        return
    for name in file.entries:
        yield Subject(name=name, file=file, **common)


# --- installed entries -----------------------------------------------------------------------------------------------


class InstalledEntry(msgspec.Struct, frozen=True):
    """An entry that accord wrote into the file of a host."""

    host: str
    file: str
    name: str
    written: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"InstalledEntry({self.host!r}, {self.file!r}, {self.name!r})"  # the entry may have secrets


class InstalledEntryResult(msgspec.Struct, frozen=True):
    """The result for an entry that accord wrote: it is still there, or not."""

    host: str
    file: str
    name: str
    state: EntryState
    evidence: str
    remedy: str = ""


def check_installed(installed: InstalledEntry) -> InstalledEntryResult:
    """Return whether an entry is still in its file: some hosts overwrite the file with what they had in memory."""
    state, evidence, remedy = _find_installed(installed)
    return InstalledEntryResult(
        installed.host, installed.file, installed.name, state, single_line(evidence), single_line(remedy)
    )


def _find_installed(installed: InstalledEntry) -> tuple[EntryState, str, str]:
    again = "the host may have overwritten its file: quit it, and run accord install again"
    try:
        host = known_host(installed.host)
        if not Path(installed.file).exists():
            return "missing", f"{installed.file} does not exist any more", again
        document = read_document(Path(installed.file), host.format.syntax)
    except TargetError as exc:
        return "unknown", str(exc), "correct the file"
    found = document.at(host.format.servers, installed.name)
    place = f"{installed.file}:{document.line(host.format.servers, installed.name)}"
    if found is None:
        return "missing", f"the entry {installed.name!r} is not in {installed.file} any more", again
    differing = [
        key for key, value in installed.written.items() if not isinstance(found, Mapping) or found.get(key) != value
    ]
    if differing:
        text = f"{place}: changed since it was installed: {', '.join(differing)}"
        return "changed", text, "nothing, if you changed it; otherwise run accord install again"
    return "present", place, ""
