"""Several processes that append to one audit log, and processes that are killed while they do."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from accord.host.audit.verify import verify_log

from tests.host.audit.test_verify import lines_of

WRITER = Path(__file__).with_name("writer.py")
FORMATS = ["audit.jsonl", "audit.db"]


def start(path: Path, anchor: Path | str, count: int, *more: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(path), str(anchor), str(count), *map(str, more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")


def written(process: subprocess.Popen[str]) -> list[str]:
    """The hashes of the entries that a process was told are stored."""
    with process:
        assert process.stdout is not None
        return [line.strip() for line in process.stdout if line.endswith("\n")]


@pytest.mark.parametrize("name", FORMATS)
def test_several_processes_share_one_chain(tmp_path: Path, name: str) -> None:
    path, anchor = tmp_path / name, tmp_path / "anchor"
    processes = [start(path, anchor, 25) for _ in range(4)]
    hashes = {found for process in processes for found in written(process)}
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    report = verify_log(path, anchor=anchor)
    assert (report.entries, report.problems, report.incomplete, report.after_anchor) == (100, [], None, 0)
    assert len(hashes) == 100


@pytest.mark.parametrize("name", FORMATS)
def test_a_killed_process_loses_no_entry_that_was_stored(tmp_path: Path, name: str) -> None:
    path, anchor, chance = tmp_path / name, tmp_path / "anchor", random.Random(5)
    stored: list[str] = []
    for _ in range(4):
        process = start(path, anchor, 10_000)
        assert process.stdout is not None
        stored += [process.stdout.readline().strip() for _ in range(chance.randrange(1, 12))]
        process.kill()
        stored += written(process)
        report = verify_log(path, anchor=anchor)
        assert report.problems == []
    hashes = [line[-66:-2].decode() for line in lines_of(path)]
    assert set(filter(None, stored)) <= set(hashes)


@pytest.mark.parametrize("size", [1, 60, 170, 171, 172, 400, 900, 1_500])
def test_a_process_that_is_killed_while_it_writes_leaves_an_incomplete_entry_at_most(tmp_path: Path, size: int) -> None:
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "anchor"
    stored = written(start(path, "", 10, size))
    report = verify_log(path)
    assert report.problems == []
    assert report.entries >= len(stored)
    assert written(start(path, anchor, 3))
    after = verify_log(path, anchor=anchor)
    assert (after.problems, after.incomplete, after.after_anchor) == ([], None, 0)
    assert set(stored) <= {line[-66:-2].decode() for line in lines_of(path)}


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_is_verified_while_others_append_to_it(tmp_path: Path, name: str) -> None:
    path, anchor = tmp_path / name, tmp_path / "anchor"
    with start(path, anchor, 10_000) as one, start(path, anchor, 10_000) as other:
        for process in (one, other):
            assert process.stdout is not None
            assert process.stdout.readline()
        reports = [verify_log(path, anchor=anchor) for _ in range(30)]
        one.kill()
        other.kill()
    assert [report for report in reports if report.problems or report.incomplete is not None] == []
    assert reports[-1].entries > 2
