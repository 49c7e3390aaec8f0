"""Installing a server and undoing it: a plan that can be shown first, and its execution.

    plan = plan_install(path, host, "weather", entry)
    print(plan.old, plan.new)
    execute(plan, InstallRecords())

The record is written before the file: whatever kills the process, `--undo` knows of each entry that accord wrote. A
plan is of one text; if the file has changed when it is executed, nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations, islice, pairwise
from pathlib import Path
from typing import Any

import msgspec

from accord.errors import TargetError
from accord.host.known_hosts import KNOWN_HOSTS, FileFormat, KnownHost, known_host
from accord.install import editor
from accord.install.atomic_file import HostFileText
from accord.install.host_spelling import OWN_KEYS, spell
from accord.install.records import InstallRecord, InstallRecords
from accord.install.splice import Splice

_MAX_CANDIDATES = 20


class InstallPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one file."""

    host: KnownHost
    file: HostFileText
    name: str
    new: str | None
    """The new text; None if the file is deleted."""
    record: InstallRecord | None
    """The record to store; None for an undo."""
    note: str = ""
    """What the user should know before the change."""
    has_secret: bool = False
    """Whether the entry contains a secret: then only the owner may read a new file."""

    def __repr__(self) -> str:
        return f"InstallPlan({self.host.name!r}, {self.name!r}, ...)"  # the texts may contain secrets

    @property
    def old(self) -> str:
        """The text as it is."""
        return self.file.text or ""

    @property
    def is_change(self) -> bool:
        """Whether the file will change."""
        return self.new is None or self.new != self.old


def plan_install(
    path: Path,
    host: KnownHost,
    name: str,
    entry: Mapping[str, Any],
    *,
    project: Path | None = None,
    has_secret: bool = False,
) -> InstallPlan:
    """Return the plan that writes an entry, in accord's form, to the file of a host. Raises `TargetError`.

    `project` is the folder of the project whose file it is; `has_secret` is whether the entry contains a secret.
    """
    form, name = host.format, host.server_name(name)
    file = HostFileText.read(path, form.syntax)
    text = file.text or ""
    spelled = spell(entry, name, host)
    before = editor.content(text, form, path)
    replaced = _at(before, form.servers, name)
    previous = replaced[0] if replaced else None
    new_entry = spelled.entry
    if isinstance(previous, dict):
        new_entry = {**new_entry, **{key: each for key, each in previous.items() if _is_users(key, new_entry)}}
    known = editor.input_ids(before, form, path)
    inputs = [each for each in spelled.inputs if each["id"] not in known]
    if replaced and not inputs and editor.same_values(previous, new_entry):
        return InstallPlan(host=host, file=file, name=name, new=text, record=None, note="it is installed already")
    steps = editor.set_entry(text, form, name, new_entry, inputs, path)
    record = InstallRecord(
        host=host.name,
        file=str(path.absolute()),
        name=name,
        project=None if project is None else str(project.absolute()),
        written=[new_entry],
        inputs=[each["id"] for each in inputs],
        replaced=replaced,
        splices=[Splice.between(*each) for each in pairwise([text, *steps])],
        new_file=file.text is None,
    )
    note = "" if not replaced else f"the file has a server {name!r} already; this changes it"
    return InstallPlan(host=host, file=file, name=name, new=steps[-1], record=record, note=note, has_secret=has_secret)


def plan_undo(record: InstallRecord) -> InstallPlan:
    """Return the plan that removes what accord wrote. Raises `TargetError` if that was changed since."""
    host = known_host(record.host)
    path, form = Path(record.file), host.format
    if record.project is not None:
        _check_in_project(path, Path(record.project))
    file = HostFileText.read(path, form.syntax)
    text = file.text or ""
    before = editor.content(text, form, path)
    current = _at(before, form.servers, record.name)
    if not current:
        note = "the entry is not in the file any more; only the record of it is deleted"
        return InstallPlan(host=host, file=file, name=record.name, new=text, record=None, note=note)
    if not any(editor.same_values(current[0], each) for each in record.written):
        raise TargetError(
            f"{path}: the server {record.name!r} was changed since accord installed it, and is left as it is; "
            "remove it by hand, or install it again"
        )
    new = _undone(text, form, record, before)
    is_empty = record.new_file and not new.strip("\ufeff \t\r\n")
    return InstallPlan(host=host, file=file, name=record.name, new=None if is_empty else new, record=None)


def execute(plan: InstallPlan, records: InstallRecords) -> None:
    """Write the file and the record. Raises `TargetError` or `StoreError`; the file is then as it was."""
    path = plan.file.path
    if plan.record is not None and plan.new is not None:
        with records.transaction() as transaction:
            earlier = transaction.get(path, plan.name)
            transaction.put(plan.record.after(earlier))
        try:
            with (
                records.transaction()
            ):  # the lock, which the rename needs: another process may have checked the file too
                plan.file.replace(plan.new, private=plan.has_secret)
        except BaseException:
            with records.transaction() as transaction:
                transaction.put(earlier) if earlier is not None else transaction.delete(path, plan.name)
            raise
        return
    with records.transaction() as transaction:
        if plan.new is None:
            plan.file.delete()
        elif plan.is_change:
            plan.file.replace(plan.new)
        transaction.delete(path, plan.name)


def _undone(text: str, form: FileFormat, record: InstallRecord, before: editor.Content) -> str:
    """Return a text without what accord wrote: by the inverse of each change if that fits, else by the entry alone."""
    path = Path(record.file)
    rest = editor.without_entry(before, form, record.name, ())
    used = json.dumps(rest[form.servers], default=str)
    known = editor.input_ids(before, form, path)
    inputs = [each for each in record.inputs if f"${{input:{each}}}" not in used and each in known]
    expected = editor.with_entry(before, form, record.name, record.replaced[0], ()) if record.replaced else rest
    expected = editor.without_inputs(expected, form, inputs)
    for length in range(len(record.splices), 0, -1):
        for candidate in islice(_inverses(text, record.splices[:length]), _MAX_CANDIDATES):
            if any(editor.has_content(candidate, form, path, each) for each in _variants(expected, form)):
                return candidate
    if record.replaced:
        return editor.set_entry(text, form, record.name, record.replaced[0], (), path)[-1]
    return editor.remove_entry(text, form, record.name, inputs, path)


def _inverses(text: str, splices: list[Splice]) -> Iterator[str]:
    """Yield the texts before several changes in order."""
    if not splices:
        yield text
        return
    for each in splices[-1].inverses(text):
        yield from _inverses(each, splices[:-1])


def _variants(expected: editor.Content, form: FileFormat) -> Iterator[editor.Content]:
    """Yield a content, and those in which what is empty now was missing or null."""
    empty = [key for key in (form.servers, form.inputs) if key is not None and expected.get(key) in ({}, [])]
    for count in range(len(empty) + 1):
        for keys in combinations(empty, count):
            yield {key: each for key, each in expected.items() if key not in keys}
    yield {**expected, **dict.fromkeys(empty)}


def _is_users(key: str, entry: Mapping[str, Any]) -> bool:
    """Return whether a key of an existing entry is the user's own setting for the host."""
    return key not in OWN_KEYS and key not in entry


def _at(before: editor.Content, servers: str, name: str) -> list[Any]:
    """Return the entry with a name, in a list; an empty list if there is none."""
    found = before.get(servers)
    return [found[name]] if isinstance(found, dict) and name in found else []


def install_paths(host: KnownHost, project: Path | None, user_files: list[Path]) -> list[Path]:
    """Return the files to write: that of the project, or those of the user whose folder exists.

    Raises `TargetError` for a host without a file in projects.
    """
    if project is None:
        return [each for each in user_files if each.parent.is_dir()] or user_files[:1]
    if host.project_file is None:
        names = ", ".join(each.name for each in KNOWN_HOSTS.values() if each.project_file is not None)
        raise TargetError(f"{host.title} has no file in a project; these hosts have one: {names}")
    path = project / host.project_file
    _check_in_project(path, project)
    return [path]


def _check_in_project(path: Path, project: Path) -> None:
    """Raise `TargetError` for a link to a file elsewhere: a project may come from a stranger."""
    if not path.resolve().is_relative_to(project.resolve()):
        raise TargetError(f"{path} is a link to {path.resolve()}, which is not in the project; nothing was changed")
