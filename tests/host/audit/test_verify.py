"""Verification of audit logs: every change is found, and named for what it is."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.errors import StoreError
from accord.host.audit import sqlite_file
from accord.host.audit.chain import Link, new_entry, new_header, read_link
from accord.host.audit.event import AuditEvent
from accord.host.audit.log import AuditLog
from accord.host.audit.verify import AuditReport, verify_log

FORMATS = ["audit.jsonl", "audit.db"]


def event(number: int, **fields: Any) -> AuditEvent:
    return AuditEvent(**{"kind": "sending", "call": str(number), "server": "files", "tool": "read_text", **fields})


def write(path: Path, count: int, *, anchor: Path | None = None, first: int = 1) -> None:
    async def run() -> None:
        async with AuditLog(path, anchor=anchor) as audit:
            for number in range(first, first + count):
                await audit.append(event(number, arguments={"text": "é" * number * 100}))

    asyncio.run(run())


def found(report: AuditReport) -> list[tuple[str, int | None]]:
    return [(problem.kind, problem.number) for problem in report.problems]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "PAGE_BYTES", 512)


@pytest.mark.parametrize("name", FORMATS)
def test_an_intact_log_has_no_problems(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, 5)
    write(tmp_path / name, 80, first=6)
    report = verify_log(tmp_path / name)
    assert (report.entries, report.problems, report.incomplete) == (85, [], None)
    assert len(report.id) == 32


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.usefixtures("small_pages")
def test_every_flipped_byte_is_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, 2)
    whole, chance = bytearray(path.read_bytes()), random.Random(7)
    assert len(whole) < 4_000
    missed = []
    for at in range(len(whole)):
        for flip in {0x01, 1 << chance.randrange(8)} if name == "audit.jsonl" else {1 << chance.randrange(8)}:
            whole[at] ^= flip
            path.write_bytes(whole)
            if not verify_log(path).problems:
                missed.append((at, flip))
            whole[at] ^= flip
    assert missed == []


def test_every_bit_and_every_value_at_the_ends_of_lines_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write(path, 2)
    whole = bytearray(path.read_bytes())
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    for at in {place + step for place in ends for step in (-1, 0, 1) if place + step < len(whole)}:
        old = whole[at]
        for value in set(range(256)) - {old}:
            whole[at] = value
            path.write_bytes(whole)
            assert verify_log(path).problems, (at, value)
        whole[at] = old


@pytest.mark.parametrize("name", FORMATS)
def test_a_flipped_byte_of_a_large_log_is_found_with_its_number(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, 60)
    whole, chance = path.read_bytes(), random.Random(3)
    for number in (1, 33, 60):
        at = whole.index(f'"number":{number},'.encode()) + 250 + chance.randrange(20)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert found(verify_log(path)) == [("edited", number)]


def lines_of(path: Path) -> list[bytes]:
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as db:
            return [line for (line,) in db.execute("SELECT entry FROM entries ORDER BY number")]
    return path.read_bytes().splitlines()


def rewrite(path: Path, lines: list[bytes]) -> None:
    """Write other entries: an attacker who keeps to the format of the file."""
    path.unlink()
    if path.suffix == ".db":
        with closing(sqlite_file.connect(path)) as db:
            for statement in sqlite_file.TABLES:
                db.execute(statement)
            db.executemany(sqlite_file.INSERT, enumerate(lines))
    else:
        path.write_bytes(b"".join(line + b"\n" for line in lines))


Change = Callable[[list[bytes]], object]


def edited(line: bytes) -> bytes:
    return line.replace(b"read_text", b"kill_text")


def reseal(line: bytes) -> bytes:
    """Return an entry with another content, and the hash of that."""
    content = msgspec.json.decode(line)
    return new_entry(Link(content["number"] - 1, "", content["previous"], {}), 0.0, b'{"kind":"sending"}')


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: lines.__setitem__(3, edited(lines[3])), [("edited", 3)]),
        (lambda lines: lines.__setitem__(3, reseal(lines[3])), [("edited", 3)]),
        (lambda lines: lines.__delitem__(3), [("missing", 3)]),
        (lambda lines: lines.__delitem__(slice(3, 6)), [("missing", 3)]),
        (lambda lines: lines.__delitem__(0), [("missing", 0)]),
        (lambda lines: lines.__setitem__(slice(3, 5), lines[4:2:-1]), [("reordered", 3)]),
        (lambda lines: lines.insert(6, lines.pop(2)), [("reordered", 2)]),
        (lambda lines: lines.insert(3, lines.pop(6)), [("reordered", 3), ("reordered", 4), ("reordered", 5)]),
        (lambda lines: lines.insert(4, lines[3]), [("duplicate", 3)]),
        (lambda lines: lines.append(lines[1]), [("duplicate", 1)]),
        (lambda lines: lines.insert(3, b"{}"), [("edited", 3)]),
        (lambda lines: lines.insert(3, lines[0]), [("duplicate", 0)]),
        (lambda lines: lines.insert(3, new_header(0.0)), [("duplicate", 0)]),
        (lambda lines: lines.__setitem__(0, new_header(0.0)), [("edited", 0)]),
    ],
)
def test_each_change_is_named_with_its_entry(
    tmp_path: Path, name: str, change: Change, expected: list[tuple[str, int]]
) -> None:
    path = tmp_path / name
    write(path, 7)
    lines = lines_of(path)
    rewrite(path, lines)
    assert verify_log(path).problems == []
    change(lines)
    rewrite(path, lines)
    assert found(verify_log(path))[: len(expected)] == expected


@pytest.mark.parametrize("name", FORMATS)
def test_every_deletion_swap_duplicate_and_insertion_is_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, 5)
    lines = lines_of(path)
    others = tmp_path / "other.jsonl"
    write(others, 5)
    foreign = lines_of(others)
    changed: list[list[bytes]] = []
    for one in range(len(lines)):
        changed += [[*lines[:one], *lines[one + 1 :]]] if one < len(lines) - 1 else []  # the last needs an anchor
        changed += [[*lines[:one], foreign[other], *lines[one:]] for other in range(6)]
        changed += [[*lines[:one], foreign[one], *lines[one + 1 :]]] if one < len(lines) - 1 else []
        for other in range(one + 1, len(lines)):
            swapped = lines.copy()
            swapped[one], swapped[other] = lines[other], lines[one]
            changed.append(swapped)
        changed += [[*lines[:at], lines[one], *lines[at:]] for at in range(len(lines) + 1)]
    for several in changed:
        rewrite(path, several)
        assert verify_log(path).problems


def test_a_log_that_is_cut_at_any_byte_is_incomplete_or_ends_with_an_entry(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "anchor"
    write(path, 3, anchor=anchor)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        report = verify_log(path)
        rest = size - (whole.rfind(b"\n", 0, size) + 1)
        assert report.problems == []
        assert report.incomplete == (rest if rest or size == 0 else None)
        assert found(verify_log(path, anchor=anchor)) == [("cut off", 3)]


@pytest.mark.usefixtures("small_pages")
def test_a_database_that_is_cut_at_any_byte_is_damaged(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.db", tmp_path / "anchor"
    write(path, 2, anchor=anchor)
    whole = path.read_bytes()
    for size in range(1, len(whole), 13):
        path.write_bytes(whole[:size])
        assert verify_log(path).problems
    path.write_bytes(b"")
    assert verify_log(path).incomplete == 0
    path.write_bytes(whole + bytes(512))
    assert verify_log(path).problems


def test_an_incomplete_last_entry_is_distinguished_from_an_edited_one(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write(path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert (found(verify_log(path)), verify_log(path).incomplete) == ([], len(whole.splitlines()[-1]) - 4)
    for last in (b"notes", whole.splitlines()[2][:80], whole[-1:] + b"x", whole.splitlines()[-1] + b"x"):
        path.write_bytes(whole[: whole[:-1].rindex(b"\n") + 1] + last)
        assert verify_log(path).problems, last


@pytest.mark.parametrize("name", FORMATS)
def test_the_anchor_shows_an_end_that_was_cut_off_or_written_anew(tmp_path: Path, name: str) -> None:
    path, anchor = tmp_path / name, tmp_path / "anchor"
    write(path, 5, anchor=anchor)
    assert verify_log(path, anchor=anchor).after_anchor == 0
    lines = lines_of(path)
    rewrite(path, lines[:-2])
    assert (found(verify_log(path)), found(verify_log(path, anchor=anchor))) == ([], [("cut off", 5)])
    rewrite(path, [*lines[:-1], reseal(lines[-1]).replace(b',"event"', b',"sqlite":0,"event"')])
    if name == "audit.jsonl":
        rewrite(path, [*lines[:-1], reseal(lines[-1])])
        assert found(verify_log(path)) == []
    assert ("edited", 5) in found(verify_log(path, anchor=anchor))
    path.unlink()
    write(path, 9)
    assert found(verify_log(path, anchor=anchor)) == [("edited", 0)]


def test_entries_after_the_anchor_are_counted(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "anchor"
    write(path, 3, anchor=anchor)
    write(path, 4, first=4)
    report = verify_log(path, anchor=anchor)
    assert (report.problems, report.after_anchor) == ([], 4)


@pytest.mark.parametrize("name", FORMATS)
def test_the_anchor_survives_a_write_that_was_interrupted(tmp_path: Path, name: str) -> None:
    path, anchor = tmp_path / name, tmp_path / "anchor"
    write(path, 4, anchor=anchor)
    whole = anchor.read_bytes()
    for at in range(0, len(whole), 7):
        anchor.write_bytes(whole[:at] + b"\0" + whole[at + 1 :])
        assert verify_log(path, anchor=anchor).problems == []
        assert verify_log(path, anchor=anchor).after_anchor in (0, 1)


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with pytest.raises(StoreError, match="cannot be read"):
        verify_log(path)
    write(path, 1)
    with pytest.raises(StoreError, match="there is no anchor"):
        verify_log(path, anchor=tmp_path / "nothing")
    (tmp_path / "notes").write_text("notes")
    with pytest.raises(StoreError, match="is not the anchor"):
        verify_log(path, anchor=tmp_path / "notes")


def test_a_file_of_another_program_is_not_a_log(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text)")
    before = path.read_bytes()
    assert verify_log(path).problems
    with pytest.raises(StoreError, match="is not an audit log"):
        asyncio.run(AuditLog(path).open())
    assert path.read_bytes() == before
    path.write_bytes(b"x" * 1_000_000)
    assert verify_log(path).problems


def test_verification_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    write(path, 3)
    shutil.copyfile(path, tmp_path / "before")
    verify_log(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.db", "before"]
    assert path.read_bytes() == (tmp_path / "before").read_bytes()


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"x" * 70, b'{"number":1}', new_header(0.0)[:-1]])
def test_a_line_that_is_no_entry_is_refused(line: bytes) -> None:
    with pytest.raises(Exception, match="entry"):
        read_link(line)


def test_a_journal_that_a_killed_process_left_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    path, left = tmp_path / "audit.db", tmp_path / "left"
    left.mkdir()
    write(path, 5)
    with closing(sqlite_file.connect(path)) as db:
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN IMMEDIATE")
        db.executemany(sqlite_file.INSERT, ((number, bytes(3_000)) for number in range(6, 200)))
        for file in (path, tmp_path / "audit.db-journal"):
            shutil.copyfile(file, left / file.name)
        db.execute("ROLLBACK")
    files = {file.name: file.read_bytes() for file in left.iterdir()}
    assert files["audit.db"] != path.read_bytes()
    report = verify_log(left / "audit.db")
    assert (report.entries, report.problems) == (5, [])
    assert {file.name: file.read_bytes() for file in left.iterdir()} == files
    write(left / "audit.db", 1, first=6)
    assert verify_log(left / "audit.db").entries == 6
