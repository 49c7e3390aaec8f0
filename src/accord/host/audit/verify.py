"""Verification of an audit log: whether entries were edited, removed or reordered, and which.

    report = verify_log("audit.jsonl", anchor="/mnt/other/audit.anchor")
    report.problems          what was changed; empty for an intact log
    report.incomplete        the bytes of a last entry whose process was killed, else None

Without an anchor, two changes cannot be found: a log that was cut off at the end of an entry, and a log that was
written anew from some entry on by somebody who knows the format.

A log in SQLite has to be verified in another process than the one that appends to it: closing a file releases the locks
of the whole process (POSIX).
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from accord.errors import StoreError
from accord.host.audit.anchor import Anchor, Anchored
from accord.host.audit.chain import MAX_ENTRY_BYTES
from accord.host.audit.chain_check import AuditProblem, ChainCheck
from accord.host.audit.file_lock import locked
from accord.host.audit.log import is_database
from accord.host.audit.sqlite_layout import DamagedLayout, check_layout, copy_log, read_entries


class AuditReport(msgspec.Struct, frozen=True):
    """The outcome of a verification."""

    path: str
    id: str
    """The id of the log, from its header."""
    entries: int
    """The number of the last entry."""
    hash: str
    """The hash of the last entry."""
    problems: list[AuditProblem]
    """What was changed."""
    incomplete: int | None = None
    """The bytes of an incomplete last entry, of which no caller was told that it is stored; None if there is none."""
    after_anchor: int | None = None
    """The entries after the one in the anchor; None without an anchor."""


class _AnchorCheck:
    """Compares a chain with its anchor, while it is read."""

    def __init__(self, anchored: Anchored | None) -> None:
        self.anchored = anchored
        self._found: str | None = None

    def see(self, chain: ChainCheck) -> None:
        """Look at the last entry of the chain."""
        if self.anchored is not None and chain.last is not None and chain.last.number == self.anchored.number:
            self._found = chain.last.hash

    def problem(self, chain: ChainCheck) -> AuditProblem | None:
        """Return what the anchor shows."""
        anchored, last = self.anchored, -1 if chain.last is None else chain.last.number
        if anchored is None:
            return None
        if last >= 0 and chain.id != anchored.id:
            return AuditProblem("edited", 0, f"the anchor is of another log, with the id {anchored.id[:64]!r}")
        if last < anchored.number:
            text = f"its end was cut off: the anchor knows of entry {anchored.number:,}, and the last is {last:,}"
            return AuditProblem("cut off", anchored.number, text)
        if self._found is not None and self._found != anchored.hash:
            text = f"entry {anchored.number:,} is not the one that the anchor knows"
            return AuditProblem("edited", anchored.number, text)
        return None


def verify_log(path: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None) -> AuditReport:
    """Return what was changed in a log. Raises `StoreError` if the log or the anchor cannot be read."""
    file = Path(path)
    anchors = _AnchorCheck(None if anchor is None else _read_anchor(Path(anchor)))
    chain = ChainCheck()
    try:
        is_empty = file.stat().st_size == 0  # the process was killed before it wrote the header
        (_read_database if is_database(file) and not is_empty else _read_lines)(file, chain, anchors)
    except OSError as exc:
        raise StoreError(f"{file} cannot be read: {exc.strerror or exc}") from exc
    problem = anchors.problem(chain)
    last = chain.last
    return AuditReport(
        path=str(file),
        id=chain.id,
        entries=0 if last is None else last.number,
        hash="" if last is None else last.hash,
        problems=[*chain.problems, *([problem] if problem else [])],
        incomplete=chain.incomplete,
        after_anchor=None
        if anchors.anchored is None or last is None
        else max(0, last.number - anchors.anchored.number),
    )


def _read_anchor(path: Path) -> Anchored:
    found = Anchor(path).read()
    if found is None:
        raise StoreError(f"there is no anchor {path}")
    return found


def _read_lines(path: Path, chain: ChainCheck, anchors: _AnchorCheck) -> None:
    rest = b""
    with path.open("rb") as file:
        left = _size(file)
        while line := file.readline(min(left, MAX_ENTRY_BYTES + 2)):
            left -= len(line)
            if not line.endswith(b"\n") and len(line) <= MAX_ENTRY_BYTES:
                rest = line  # the end of the file
                break
            chain.read(line.removesuffix(b"\n"))
            anchors.see(chain)
    chain.finish(rest)


def _size(file: BinaryIO) -> int:
    """Return the size of a log at a moment when no process writes to it, if the system can tell."""
    with suppress(OSError), locked(file.fileno()):
        return os.fstat(file.fileno()).st_size
    return os.fstat(file.fileno()).st_size


def _read_database(path: Path, chain: ChainCheck, anchors: _AnchorCheck) -> None:
    with tempfile.TemporaryDirectory(prefix="accord-audit-") as folder:
        copy = copy_log(path, Path(folder))
        damage = misplaced = None
        try:
            with closing(sqlite3.connect(copy)) as db:
                for at, (number, line) in enumerate(read_entries(db)):
                    chain.read(line)
                    anchors.see(chain)
                    misplaced = number if misplaced is None and number != at else misplaced
            if chain.problems or chain.last is None:
                pass
            elif misplaced is not None:
                raise DamagedLayout(f"row {misplaced:,} has another number than its entry")
            else:
                check_layout(copy, Path(folder), chain.last.content.get("sqlite"))
        except (DamagedLayout, sqlite3.Error, OverflowError, UnicodeError) as exc:
            damage = AuditProblem("edited", None, f"the file was edited, outside of its entries: {exc}")
        if chain.last is not None:
            chain.finish()
        if damage is not None:
            chain.problems.append(damage)
