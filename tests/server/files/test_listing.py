"""All files of a tree at one moment, and what is different at the next."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from accord.server.files.listing import TreeListing, difference, listing
from accord.server.files.names import DEEPEST, PathFilter
from accord.server.files.root import DirectoryEntry, ServedRoot


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def paths(root: Path, most: int = 100, choice: PathFilter | None = None) -> list[str]:
    return list(listing(ServedRoot(root), choice or PathFilter(), most).files)


def test_files_stand_in_order_folder_by_folder(tmp_path: Path) -> None:
    write(tmp_path, "b", "a/z", "a/b/c", "c/d", "a.txt")
    assert paths(tmp_path) == ["a/b/c", "a/z", "a.txt", "b", "c/d"]


def test_what_is_left_out_is_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.txt", ".git/config", "node_modules/x/readme.md", "guide/c.md")
    found = listing(ServedRoot(tmp_path), PathFilter(["*.md"], ["node_modules"]), 100)
    assert list(found.files) == ["a.md", "guide/c.md"]
    assert found.folders == ["", "guide"]


def test_names_that_no_uri_can_have_are_not_listed(tmp_path: Path) -> None:
    write(tmp_path, "good")
    for name in (b"caf\xe9", b"a\nb", b"a\\b", b"C:x", b"\x1b[0m"):
        with open(os.fsencode(tmp_path) + b"/" + name, "w"):
            pass
    assert paths(tmp_path) == ["good"]


@pytest.mark.parametrize(("count", "cut"), [(9, False), (10, False), (11, True), (30, True)])
def test_at_most_so_many_files_are_listed(tmp_path: Path, count: int, cut: bool) -> None:
    write(tmp_path, *(f"{number:03}" for number in range(count)))
    found = listing(ServedRoot(tmp_path), PathFilter(), 10)
    assert list(found.files) == [f"{number:03}" for number in range(min(count, 10))]
    assert found.is_truncated is cut


def test_folders_without_files_are_bounded_too(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:03}").mkdir()
    found = listing(ServedRoot(tmp_path), PathFilter(), 10)
    assert len(found.folders) == 1 + 10
    assert found.is_truncated


def test_a_tree_that_is_too_deep_is_listed_as_far_as_paths_go(tmp_path: Path) -> None:
    write(tmp_path, "/".join(["d"] * (DEEPEST - 1)) + "/last", "/".join(["d"] * DEEPEST) + "/beyond")
    assert [path.rpartition("/")[2] for path in paths(tmp_path)] == ["last"]


@contextmanager
def as_somebody() -> Iterator[None]:
    """Not as root, who may look into every folder."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_folder_that_may_not_be_looked_into_is_left_out() -> None:
    with tempfile.TemporaryDirectory() as folder:  # that of pytest lies in a folder of root's
        root = Path(folder)
        root.chmod(0o755)
        write(root, "a/b", "c")
        (root / "a").chmod(0)
        try:
            with as_somebody():
                assert paths(root) == ["c"]
        finally:
            (root / "a").chmod(stat.S_IRWXU)


def test_a_root_that_is_gone_has_no_files(tmp_path: Path) -> None:
    found = listing(ServedRoot(tmp_path / "root"), PathFilter(), 10)
    assert (found.files, found.folders) == ({}, [])


Moment = dict[str, tuple[int, int]]
moments: st.SearchStrategy[Moment] = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.integers(0, 2), st.integers(0, 2))
)


@given(moments, moments)
def test_the_difference_leads_from_one_moment_to_the_next(before: Moment, after: Moment) -> None:
    def at(moment: Moment) -> TreeListing:
        files = {path: DirectoryEntry(path, False, size, changed) for path, (size, changed) in moment.items()}
        return TreeListing(files, [""], False, 0, 0)

    found = difference(at(before), at(after))
    kept = {path: about for path, about in before.items() if path not in found.removed}
    assert not set(found.added) & set(before)
    assert all(before[path] != after[path] for path in found.changed)
    assert kept | {path: after[path] for path in (*found.added, *found.changed)} == after
    assert sorted(found.all) == sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
