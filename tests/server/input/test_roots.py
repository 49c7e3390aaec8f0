"""Roots: a path counts by where it leads, and what cannot be told is outside."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings, strategies as st

from accord.messages.input_required import Root
from accord.server.input.roots import RootList, local_path

from tests.measure import costs_at_most

posix = pytest.mark.skipif(os.name == "nt", reason="links and paths of POSIX")


def roots(*folders: Path | str) -> RootList:
    return RootList(Root(uri=folder.as_uri() if isinstance(folder, Path) else folder) for folder in folders)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`in` is the root; `out` and `inner` are not, though the last one's name begins alike."""
    top = tmp_path_factory.mktemp("tree").resolve()
    for folder in ("in/a/b", "in/sp ace", "in/%2e%2e", "in/c#", "out/a", "inner"):
        (top / folder).mkdir(parents=True)
    for file in ("in/file", "in/a/file", "out/file", "inner/file"):
        (top / file).write_text(file)
    links = {
        "in/up": "..",
        "in/to_out": "../out",
        "in/to_a": "a",
        "in/a/to_root": top / "in",
        "in/a/to_file": "../../out/file",
        "in/dangling_in": "a/none",
        "in/dangling_out": "../out/none",
        "in/loop": "loop",
        "in/ping": "pong",
        "in/pong": "ping",
        "in/slash": "/",
        "link_to_in": "in",
        "out/to_in": "../in",
    }
    for link, target in links.items():
        (top / link).symlink_to(target)
    return top


INSIDE = """
in
in/
in/.
in//a///b
in/file
in/a/../file
in/a/b/../../file
in/none
in/none/deeper/still
in/none/../file
in/to_a/file
in/to_a/none
in/a/to_root
in/a/to_root/a/to_root/file
in/dangling_in
in/dangling_in/x
in/up/in/file
in/to_out/../in/file
out/to_in/file
link_to_in/file
out/../in/file
in/sp ace
in/%2e%2e
in/%2e%2e/file
in/c#
in/~
in/...
in/file/none
"""

OUTSIDE = """
.
out
out/file
inner
inner/file
in/..
in/../out/file
in/up
in/up/out/file
in/to_out
in/to_out/file
in/to_out/none
in/to_a/../../out
in/a/to_file
in/dangling_out
in/dangling_out/x
in/none/../../out
in/none/../../inner/file
in/a/b/../../../inner
in/loop
in/loop/x
in/loop/../to_out/file
in/ping/x
in/slash
in/slash/etc/passwd
none
in2
In
"""


@posix
@pytest.mark.parametrize("path", INSIDE.split("\n")[1:-1])
def test_what_leads_into_a_root_is_inside(tree: Path, path: str) -> None:
    assert roots(tree / "in").contains(f"{tree}/{path}")
    assert roots(tree / "in").contains(Path(f"{tree}/{path}"))
    assert roots(tree / "in").contains(f"file://{quote(f'{tree}/{path}')}")
    assert roots(tree / "link_to_in").contains(f"{tree}/{path}"), "a root that is itself a link"
    with chdir(tree):
        assert roots(tree / "in").contains(path)


@posix
@pytest.mark.parametrize("path", OUTSIDE.split("\n")[1:-1])
def test_what_leads_elsewhere_is_outside(tree: Path, path: str) -> None:
    assert not roots(tree / "in").contains(f"{tree}/{path}")
    assert not roots(tree / "in").contains(Path(f"{tree}/{path}"))
    assert not roots(tree / "in").contains(f"file://{quote(f'{tree}/{path}')}")
    assert not roots(tree / "link_to_in").contains(f"{tree}/{path}")
    with chdir(tree):
        assert not roots(tree / "in").contains(path)


HOW_URIS_ARE_WRITTEN: list[tuple[Callable[[Path], str], bool]] = [
    (lambda top: f"file://{top}/in/file", True),
    (lambda top: f"FILE://{top}/in/file", True),
    (lambda top: f"File://LocalHost{top}/in/file", True),
    (lambda top: f"file:{top}/in/file", True),
    (lambda top: f"file:///{top}/in/file", True),
    (lambda top: f"file://{top}/in/a/%2E%2e/file", True),
    (lambda top: f"file://{top}/in/%252e%252e", True),
    (lambda top: f"file://{top}/in/%252e%252e/../file", True),
    (lambda top: f"file://{top}/in/c%23", True),
    (lambda top: f"file://{top}/in/%2e%2e/out/file", False),
    (lambda top: f"file://{top}/in/..%2Fout", False),
    (lambda top: f"file://{top}/in/c#", False),
    (lambda top: f"file://{top}/in/file?x", False),
    (lambda top: f"file://{top}/in/file\ud800", False),
    (lambda top: f"file://{top}/in/file%00", False),
    (lambda top: f"file://{top}/in/file%0a", False),
    (lambda top: f"file://{top}/in/file\n", False),
    (lambda top: f"file://elsewhere{top}/in/file", False),
    (lambda top: f"file://127.0.0.1{top}/in/file", False),
    (lambda top: f"file://user@localhost{top}/in/file", False),
    (lambda top: f"file://localhost:80{top}/in/file", False),
    (lambda top: f"file:in{top}", False),
    (lambda top: "file:in/file", False),
    (lambda top: "file://in/file", False),
    (lambda top: "file:", False),
    (lambda top: "file://", False),
    (lambda top: f"http://localhost{top}/in/file", False),
    (lambda top: "https://example.com/", False),
]


@posix
@pytest.mark.parametrize(("write", "inside"), HOW_URIS_ARE_WRITTEN)
def test_uris_are_decoded_once_and_name_this_host(tree: Path, write: Callable[[Path], str], inside: bool) -> None:
    with chdir(tree / "in"):  # where a text that is taken for a relative path would be inside
        assert roots(tree / "in").contains(write(tree)) is inside


@posix
def test_relative_paths_count_from_the_working_directory(tree: Path) -> None:
    with chdir(tree / "in" / "a"):
        assert roots(tree / "in").contains("file")
        assert roots(tree / "in").contains("..")
        assert not roots(tree / "in").contains("../..")
        assert not roots(tree / "in").contains(""), "no path at all"


@posix
def test_without_a_working_directory_a_relative_path_is_outside(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with chdir(tmp_path):
        os.chdir(gone)
        gone.rmdir()
        assert not roots("file:///").contains("file")


@posix
def test_the_root_of_all_contains_all_that_can_be_notified(tree: Path) -> None:
    everything = roots("file:///")
    assert everything.contains("/")
    assert everything.contains(tree / "out")
    assert not everything.contains(tree / "in" / "loop" / "x")
    assert not everything.contains("a\0b")


def test_an_empty_list_contains_nothing(tmp_path: Path) -> None:
    assert not RootList().contains(tmp_path)
    assert not RootList().contains("/")


def test_roots_that_are_no_folders_here_contain_nothing(tmp_path: Path) -> None:
    strange = roots(f"https://localhost{tmp_path}", f"file://elsewhere{tmp_path}", "", "file:", str(tmp_path), "file:x")
    assert not strange.contains(tmp_path)
    assert strange.paths == []
    assert len(strange) == 6


@posix
def test_any_of_several_roots_will_do(tree: Path) -> None:
    both = roots("https://example.com/", tree / "in", tree / "inner")
    assert both.contains(tree / "inner" / "file")
    assert both.contains(tree / "in" / "file")
    assert not both.contains(tree / "out" / "file")


@posix
def test_roots_behind_the_first_ten_thousand_names_contain_nothing(tree: Path) -> None:
    deep = [f"file:///{'a/' * 1_000}{number}" for number in range(1_000)]
    with costs_at_most(50):
        assert roots(tree / "in", *deep).contains(tree / "in/file")
        assert not roots(*deep, tree / "in").contains(tree / "in/file")


def test_a_root_that_is_gone_is_judged_by_its_name(tmp_path: Path) -> None:
    assert roots(tmp_path / "gone").contains(tmp_path / "gone" / "file")
    assert not roots(tmp_path / "gone").contains(tmp_path / "file")


@posix
def test_nothing_is_remembered_when_links_change(tmp_path: Path) -> None:
    folder, outside = tmp_path / "root" / "folder", tmp_path / "outside"
    folder.mkdir(parents=True)
    outside.mkdir()
    listed = roots(tmp_path / "root")
    assert listed.contains(folder / "file")
    folder.rmdir()
    folder.symlink_to(outside)
    assert not listed.contains(folder / "file")
    (tmp_path / "root").rename(tmp_path / "old")
    (tmp_path / "root").symlink_to(outside)
    assert listed.contains(outside / "file")
    assert not listed.contains(tmp_path / "old" / "other")


@posix
def test_paths_are_those_the_client_named(tree: Path) -> None:
    listed = roots(tree / "link_to_in", "https://example.com/", "file:///sp%20ace/..", "file:///nul%00")
    assert listed.paths == [tree / "link_to_in", Path("/sp ace/..")]


def test_a_list_of_roots_is_a_sequence_of_them() -> None:
    first, second = Root(uri="file:///a", name="A"), Root(uri="file:///b")
    listed = RootList([first, second])
    assert list(listed) == [first, second]
    assert (len(listed), listed[0], listed[-1].uri, second in listed) == (2, first, "file:///b", True)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///C:/Users/me", r"C:\Users\me"),
        ("file:///c%3A/Users/me", r"c:\Users\me"),
        ("file://localhost/C:/x", r"C:\x"),
        ("file:///C:", "C:\\"),
        ("file:///C:/", "C:\\"),
        ("file:///C|/x", r"C:\x"),
        ("file:////server/share/x", r"\\server\share\x"),
        ("file://server/share/x", None),
        ("file:///Users/me", None),
        ("file:///CD:/x", None),
        ("file:///C:x", None),
        ("C:/x", None),
    ],
)
def test_drives_and_shares_of_windows(uri: str, path: str | None) -> None:
    assert local_path(uri, windows=True) == path


# --- any text at all ------------------------------------------------------------------------------------------


def where(path: str) -> str | None:
    """Where the kernel says that a path leads; what is missing is put behind what is there. None for a loop."""
    try:
        handle = os.open(path, os.O_PATH)
    except (FileNotFoundError, NotADirectoryError):
        return of_missing(path)
    except OSError:
        return None
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def of_missing(path: str) -> str | None:
    head, _, name = path.rstrip("/").rpartition("/")
    if os.path.islink(f"{head}/{name}"):
        return where(os.path.join(head, os.readlink(f"{head}/{name}")))
    before = where(head or "/")
    if before is None or name in ("", "."):
        return before
    if name == "..":
        return os.path.dirname(before)
    there = f"{before.rstrip('/')}/{name}"
    return where(there) if os.path.lexists(there) else there


NAMES = ["in", "a", "b", "file", "up", "to_out", "to_a", "to_root", "to_file", "dangling_in", "dangling_out"]
NAMES += ["loop", "ping", "slash", "out", "none", "inner", ".", ".."]
steps = st.lists(st.sampled_from([*NAMES, ""]), max_size=12).map("/".join)


@pytest.mark.skipif(sys.platform != "linux", reason="the oracle reads /proc")
@given(steps)
@example("in/loop/../to_out/file")
@settings(max_examples=1_000)
def test_the_kernel_agrees_on_any_path(tree: Path, steps: str) -> None:
    path, root = f"{tree}/{steps}", f"{tree}/in"
    real = where(path) or where(os.path.normpath(path))  # the way out of a loop is by its name
    inside = real is not None and (real == root or real.startswith(root + "/"))
    assert roots(tree / "in").contains(path) is inside


@pytest.fixture(scope="module")
def within(tree: Path) -> Iterator[Path]:
    with chdir(tree / "in"):
        yield tree


AWKWARD = ["file:", "//", "/", "..", "%2e", "%2F", "%00", "%", "\0", "\n", "\\", "C:", "~", "\ud800", "?", *NAMES]


@given(st.lists(st.sampled_from(AWKWARD) | st.text(max_size=5), max_size=10).map("".join))
@settings(max_examples=500)
def test_no_text_raises_whether_path_or_root(within: Path, text: str) -> None:
    assert roots(within / "in").contains(text) in (True, False)
    assert RootList([Root(uri=text)]).contains(within / "in") in (True, False)
    assert all(path.is_absolute() for path in RootList([Root(uri=text)]).paths)


@pytest.mark.parametrize("step", ["a/", "../", "./", "none/", "loop/", "x" * 255 + "/", "x", "//", "%2e/"])
@pytest.mark.parametrize("size", [4_000, 10_000_000])
def test_long_paths_take_bounded_time(within: Path, step: str, size: int) -> None:
    path = step * (size // len(step))
    with costs_at_most(400):
        for start in ("", f"{within}/in/", f"file://{within}/in/"):
            roots(within / "in").contains(start + path)
