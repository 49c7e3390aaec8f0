"""The repository stands alone: a clone of it, in an empty folder, has all that its tests need; CI runs in such a clone.

What is not committed yet is copied into the clone, so that a change can be tested before it is committed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parent.parent

SECONDS = 800
"""For one command, on a busy machine."""

SPECIFICATION = [
    "tests/check/test_levels.py",
    "tests/check/test_requirements.py",
    "tests/check/test_schema_comments.py",
    "tests/data",
    "tests/messages/test_examples.py",
    "tests/server/test_json_grammar.py",
    "tests/test_schema_parity.py",
]
"""What compares accord with the specification."""

STUB = """#!/usr/bin/env bash
trap 'echo interrupted; exit 130' INT
echo "in $PWD, HOME with $(ls -A "$HOME" | wc -l) entries, beside it: $(ls -A ..)"
echo "committed: $(cat file), arguments: $*"
sleep 1000 &
echo "$!"
echo ready
if [ "${1:-}" = wait ]; then wait; fi
exit 7
"""
"""In the place of `scripts/check`: tells where it runs, and leaves a process behind."""


def git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, timeout=SECONDS, check=True).stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the repository, alone in its folder."""
    made = tmp_path_factory.mktemp("alone") / "accord"
    if not (ROOT / ".git").exists():  # an archive of the sources
        return Path(shutil.copytree(ROOT, made, ignore=shutil.ignore_patterns(".venv*", ".cache", "__pycache__")))
    git(ROOT, "clone", "--quiet", "--no-local", f"file://{ROOT}", str(made))
    changed = git(ROOT, "diff", "--name-only", "-z", "HEAD") + git(
        ROOT, "ls-files", "-z", "--others", "--exclude-standard"
    )
    for name in filter(None, os.fsdecode(changed).split("\0")):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, made / name)
        else:
            (made / name).unlink(missing_ok=True)
    take_caches(made)
    return made


def take_caches(made: Path) -> None:
    """Copy what is derived from the files alone: to compile all takes three times as long as the collection, and to
    find their constants, as hypothesis does, half as long.
    """
    if (ROOT / ".hypothesis" / "constants").exists():  # named by the digests of the files
        shutil.copytree(ROOT / ".hypothesis" / "constants", made / ".hypothesis" / "constants")
    for folder in (made / "src", made / "tests"):
        for source in folder.rglob("*.py"):
            original = ROOT / source.relative_to(made)
            if original.read_bytes() == source.read_bytes():  # by its time and size, bytecode belongs to a source
                os.utime(source, ns=(original.stat().st_atime_ns, original.stat().st_mtime_ns))
        for cache in (ROOT / folder.relative_to(made)).rglob("__pycache__"):
            place = made / cache.relative_to(ROOT)
            if place.parent.is_dir():
                shutil.copytree(cache, place, ignore=shutil.ignore_patterns("*.pyc.*"))


def run_pytest(clone: Path, *arguments: str) -> list[str]:
    """Run pytest in the clone, with the clone's accord; return its lines, none of which tells of an error or a skip."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "ACCORD_"))}
    environment = {**kept, "PYTHONPATH": str(clone / "src"), "HOME": str(clone.parent)}
    command = [sys.executable, "-m", "pytest", *arguments]
    done = subprocess.run(
        command, cwd=clone, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, "\n".join([*lines[-30:], done.stderr])
    assert [line for line in lines if line.startswith(("SKIPPED", "ERROR", "XFAIL"))] == []
    return lines


def test_every_test_is_collected_in_a_clone(clone: Path) -> None:
    lines = run_pytest(clone, "--collect-only")
    collected = {line.partition("::")[0] for line in lines if "::" in line}
    modules = {path.relative_to(clone).as_posix() for path in (clone / "tests").rglob("test_*.py")}
    assert modules - collected == {"tests/data/test_sources.py"}, "what compares with the sources needs them beside it"


def test_what_compares_with_the_specification_passes_in_a_clone(clone: Path) -> None:
    *_, summary = run_pytest(clone, *SPECIFICATION)
    assert " passed in " in summary


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository in which CI runs the stub."""
    made = tmp_path / "a folder" / "small"
    for name in (".ci/run", "scripts/python"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, made / name)
    (made / "scripts/check").write_text(STUB)
    (made / "scripts/check").chmod(0o755)
    (made / "file").write_text("as committed")
    (made.parent / "shared").mkdir()
    git(made, "init", "--quiet")
    git(made, "add", ".")
    git(made, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "Begin")
    return made


def ci(small: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run CI, with its temporary folder beside the repository's."""
    temporary = small.parent.parent / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([small / ".ci/run", *arguments], env=environment, text=True, **pipes)


def ended(pid: str) -> bool:
    """Whether a process has ended, or is about to be reaped."""
    stat = Path("/proc", pid, "stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_ci_runs_the_check_in_a_clone_alone_and_leaves_nothing(small: Path) -> None:
    (small / "file").write_text("changed")
    said, complaints = ci(small, "tests/wire").communicate(timeout=SECONDS)
    place, content, pid, _ = said.splitlines()
    assert place.endswith("/alone/accord, HOME with 0 entries, beside it: accord")
    assert content == "committed: as committed, arguments: tests/wire"
    assert "without what is not committed" in complaints
    assert f"left behind by the check: {pid}" in complaints
    assert ended(pid)
    assert os.listdir(small.parent.parent / "temporary") == []


def test_ci_exits_as_the_check_does(small: Path) -> None:
    with ci(small) as running:
        assert running.wait(SECONDS) == 7


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_ci_that_is_ended_ends_the_check(small: Path, name: str) -> None:
    with ci(small, "wait") as running:
        assert running.stdout is not None
        said = [running.stdout.readline() for _ in range(4)]
        running.send_signal(signal.Signals[name])
        assert running.wait(SECONDS) == 128 + signal.Signals[name]
        assert running.stdout.read() == "interrupted\n"
    assert ended(said[2].strip())
    assert os.listdir(small.parent.parent / "temporary") == []


def test_ci_takes_a_folder_without_a_repository(small: Path) -> None:
    shutil.rmtree(small / ".git")
    said, complaints = ci(small).communicate(timeout=SECONDS)
    assert "committed: as committed" in said
    assert "no git repository: the check runs on a copy" in complaints
