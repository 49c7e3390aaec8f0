"""A folder that nothing leads out of: links, pipes, devices, sizes, and an attacker who changes the tree meanwhile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from accord.server.files.listing import listing
from accord.server.files.names import PathFilter
from accord.server.files.root import MISSING, FileTooLarge, ResolvedRoot, ServedRoot, read_file

INSIDE, OUTSIDE = b"inside", b"OUTSIDE"

Made = ServedRoot | ResolvedRoot
MAKERS = [ServedRoot, ResolvedRoot, lambda path: ServedRoot(path, exact=True)]
every = pytest.mark.parametrize("make", MAKERS, ids=["opened", "resolved", "exact"])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder to serve, beside one that is not."""
    for folder, content in (("root", INSIDE), ("outside", OUTSIDE)):
        (tmp_path / folder / "a").mkdir(parents=True)
        (tmp_path / folder / "a" / "file").write_bytes(content)
        (tmp_path / folder / "file").write_bytes(content)
    return tmp_path / "root"


def refused(root: Made, *parts: str) -> bool:
    try:
        data = root.read(parts, 100)
    except OSError as exc:
        return exc.errno in MISSING
    raise AssertionError(f"{parts} was read: {data!r}")


@every
def test_files_are_read_and_folders_listed(tree: Path, make: type[ServedRoot]) -> None:
    root = make(tree)
    assert root.read(("file",), 100) == INSIDE
    assert root.read(("a", "file"), 100) == INSIDE
    assert {entry.name: (entry.is_folder, entry.size) for entry in root.entries(())}["file"] == (False, len(INSIDE))
    assert [entry.name for entry in root.entries(("a",))] == ["file"]


@every
def test_no_link_is_followed(tree: Path, make: type[ServedRoot]) -> None:
    outside = tree.parent / "outside"
    (tree / "to_file").symlink_to(outside / "file")
    (tree / "to_folder").symlink_to(outside)
    (tree / "relative").symlink_to("../outside")
    (tree / "up").symlink_to("..")
    (tree / "a" / "inner").symlink_to("../../outside/file")
    (tree / "within").symlink_to("a")
    (tree / "loop").symlink_to("loop")
    (tree / "proc").symlink_to("/proc/self/root")
    root = make(tree)
    for parts in (
        ("to_file",),
        ("to_folder", "file"),
        ("relative", "file"),
        ("up", "outside", "file"),
        ("a", "inner"),
        ("within", "file"),
        ("loop",),
        ("loop", "file"),
        ("proc", "etc", "passwd"),
    ):
        assert refused(root, *parts), parts
    assert {entry.name for entry in root.entries(())} == {"a", "file"}
    with pytest.raises(OSError, match=r"Not a directory|No such file"):
        list(root.entries(("to_folder",)))


@every
def test_a_root_that_becomes_a_link_is_gone(tree: Path, make: type[ServedRoot]) -> None:
    root = make(tree)
    tree.rename(tree.parent / "moved")
    tree.symlink_to(tree.parent / "outside")
    assert refused(root, "file")


def test_the_way_to_the_root_may_have_links(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree)
    assert ServedRoot(tmp_path / "link").read(("file",), 100) == INSIDE


@every
@pytest.mark.timeout(30)
def test_only_regular_files_are_read_and_nothing_is_waited_for(
    tree: Path, make: type[ServedRoot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)  # the path of a socket has no room for that of a test
    os.mkfifo(tree / "pipe")
    (tree / "socket").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        root = make(tree)
        assert refused(root, "pipe")
        assert refused(root, "socket")
        assert refused(root, "a")
        assert {entry.name for entry in root.entries(())} == {"a", "file"}


def test_a_device_is_not_opened() -> None:
    assert refused(ServedRoot(Path("/dev")), "zero")


@every
def test_what_is_not_there_is_missing(tree: Path, make: type[ServedRoot]) -> None:
    root = make(tree)
    for parts in (("nothing",), ("nothing", "file"), ("file", "file"), ("x" * 300,)):
        assert refused(root, *parts)


@pytest.mark.parametrize("make", MAKERS[1:], ids=["resolved", "exact"])
def test_only_the_spelling_of_the_folder_counts(
    tree: Path, make: type[ServedRoot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a system that takes `file` for `FILE`: the one is opened, the other is what the folder shows."""
    root = make(tree)
    monkeypatch.setattr(os, "listdir", lambda folder: ["FILE", "A"])
    assert refused(root, "file")
    assert refused(root, "a", "file")
    monkeypatch.setattr(os, "listdir", lambda folder: ["file", "a"])
    assert root.read(("a", "file"), 100) == INSIDE


def test_at_most_so_many_bytes_are_read(tree: Path) -> None:
    (tree / "large").write_bytes(b"x" * 101)
    with pytest.raises(FileTooLarge):
        ServedRoot(tree).read(("large",), 100)
    assert len(ServedRoot(tree).read(("large",), 101)) == 101


def test_a_file_that_has_more_than_it_says_is_bounded() -> None:
    """Files of /proc say that they are empty, as one that grows while it is read says less than it has."""
    with pytest.raises(FileTooLarge):
        read_file("/proc/self/smaps", 100)


def test_a_hundred_reads_leave_no_descriptor(tree: Path) -> None:
    (tree / "link").symlink_to("a")
    root, before = ServedRoot(tree), len(os.listdir("/proc/self/fd"))
    for _ in range(100):
        assert refused(root, "link", "file")
        assert refused(root, "a", "nothing")
        root.read(("a", "file"), 100)
        next(root.entries(()))
    assert len(os.listdir("/proc/self/fd")) == before


SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
here, there = (os.fsencode(path) for path in sys.argv[1:])
print("swapping", flush=True)
while True:  # until it is killed
    if libc.renameat2(-100, here, -100, there, 2):  # AT_FDCWD, RENAME_EXCHANGE
        sys.exit(os.strerror(ctypes.get_errno()))
"""


@contextmanager
def swapping(here: Path, there: Path) -> Iterator[None]:
    """An attacker: another process that exchanges two names as fast as it can."""
    attacker = subprocess.Popen([sys.executable, "-c", SWAP, here, there], stdout=subprocess.PIPE)
    try:
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == b"swapping\n"
        yield
        assert attacker.poll() is None, "the attacker gave up"
    finally:
        attacker.kill()
        attacker.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2")
@pytest.mark.parametrize("swapped", ["a", "a/file"])
def test_never_a_byte_from_outside_while_a_folder_or_file_becomes_a_link(tree: Path, swapped: str) -> None:
    outside = tree.parent / "outside" / swapped
    (tree / "link").symlink_to(outside)
    root, seen = ServedRoot(tree), {"inside": 0, "refused": 0}
    with swapping(tree / swapped, tree / "link"):
        until = time.monotonic() + 30
        while min(seen.values()) < 2_000 and time.monotonic() < until:
            try:
                data = root.read(("a", "file"), 100)
            except OSError as exc:
                if exc.errno not in MISSING:
                    raise
                seen["refused"] += 1
            else:
                assert data == INSIDE
                seen["inside"] += 1
    assert min(seen.values()) > 100, seen  # the attacker was there, and so was the file


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2")
def test_nothing_from_outside_is_listed_while_a_folder_becomes_a_link(tree: Path) -> None:
    (tree.parent / "outside" / "a" / "only outside").write_bytes(OUTSIDE)
    (tree / "link").symlink_to(tree.parent / "outside" / "a")
    root, seen = ServedRoot(tree), {"inside": 0, "left out": 0}
    with swapping(tree / "a", tree / "link"):
        until = time.monotonic() + 30
        while min(seen.values()) < 500 and time.monotonic() < until:
            found = listing(root, PathFilter(), 100).files
            assert "only outside" not in str(found)
            seen["inside" if found.keys() & {"a/file", "link/file"} else "left out"] += 1
    assert min(seen.values()) > 20, seen


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2")
def test_the_attacker_wins_against_a_check_of_paths(tree: Path) -> None:
    """What the test above is worth: who resolves, compares and then opens, reads from outside."""
    (tree / "link").symlink_to(tree.parent / "outside" / "a")
    with swapping(tree / "a", tree / "link"):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            path = tree / "a" / "file"
            with suppress(OSError):
                if path.resolve().is_relative_to(tree) and path.read_bytes() == OUTSIDE:
                    return
    raise AssertionError("this attacker is too slow to prove anything")
