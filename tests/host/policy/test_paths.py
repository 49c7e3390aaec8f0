"""Paths: which texts lie under a folder, which do not, and which are unclear."""

from __future__ import annotations

import errno
import ntpath
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from accord.host.policy.paths import PathReader
from accord.host.policy.real_paths import LocalPaths


class Recorded(LocalPaths):
    """A file system of another kind: what exists there is a table of links and of equal files."""

    def __init__(
        self, *, windows: bool = False, ignores_case: bool = False, links: dict[str, str] | None = None
    ) -> None:
        super().__init__()
        self.windows, self.ignores_case = windows, ignores_case
        self.home = "C:\\Users\\ann" if windows else "/home/ann"
        self._table = links or {}

    def real_path(self, path: str) -> str:
        if self.windows:
            return self._table.get(path, ntpath.normpath(path))
        return super().real_path(path)

    def identity(self, path: str) -> object | None:
        return None

    def _link(self, path: str) -> str | None:
        return self._table.get(path)


def state(text: object, *folders: str, system: LocalPaths | None = None, base: str | None = None) -> str:
    return PathReader(system or Recorded(), base).check(text, folders or ("/srv/data",)).state


@pytest.mark.parametrize(
    "text",
    [
        "/srv/data",
        "/srv/data/",
        "/srv/data/x/y",
        "/srv/data/./x",
        "/srv//data///x",
        "//srv/data/x",
        "/srv/other/../data/x",
        "/srv/data/a/../b",
        "/srv/data/..x",
        "/srv/data/...",
        "/srv/data/100%",
        "/srv/data/a%20b",
        "/srv/data/%zz",
        "/srv/data/é…\u4e16",
        "/srv/data/C#/x?.txt",
        "/srv/data/issue #12.md",
        "/srv/data/#",
        "/srv/data/a b",
        "/../srv/data",
        "file:///srv/data/x",
        "FILE:///srv/data/x",
        "file:/srv/data/x",
        "file://localhost/srv/data/x",
        "file:////srv/data/x",
        "file:///srv/%64ata/a%20b",
    ],
)
def test_a_path_in_the_folder_is_met(text: str) -> None:
    assert state(text) == "met"


@pytest.mark.parametrize(
    "text",
    [
        "/",
        "/srv",
        "/srv/data2",
        "/srv/data-evil/x",
        "/srv/DATA/x",
        "/srv/data/..",
        "/srv/data/../x",
        "/srv/data/x/../../x",
        "/srv/data/../../etc/passwd",
        "/etc/passwd",
        "/srv/dat",
        "/srv/data\u200b/x",
        "file:///srv/data/../x",
        "~",
        "~/x",
    ],
)
def test_a_path_outside_of_the_folder_is_unmet(text: str) -> None:
    assert state(text) == "unmet"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " /srv/data/x",
        "/srv/data/x ",
        "/srv/data/x\n",
        "\t/srv/data/x",
        "/srv/data/x\0.txt",
        "/srv/data/\0/../..",
        "/srv/data/%00",
        "/srv/data/\x1b[31m",
        "/srv/data/\x7f",
        "/srv/data/\ud800",
        "/srv/data/%ff",
        "x",
        "./x",
        "../x",
        "data/x",
        "~ann/x",
        "~root",
        "%7Eroot/x",
        "/srv/data/%2e%2e/x",
        "/srv/data/%2E./x",
        "/srv/data/..%2fx",
        "/srv/data/%252e%252e/x",
        "file:///srv/data/%2e%2e/x",
        "/srv/data/a/%2e%2e/b",
        "/srv/data/a\\..\\b",
        "/srv/data//../data/x",
        "/srv/data/..#/x",
        "/srv/data/..?x",
        "/srv/data/%2e%2e#/x",
        "/srv/data/%2e%2e%23/x",
        "/srv/data#/x",
        "/srv/data/%25252e%25252e/x",
        "/srv/data/%2525252e%2525252e/x",
        "/srv/data/..\\x",
        "\\srv\\data\\x",
        "C:\\srv\\data",
        "/srv/data/..\u2215x",
        "/srv/data/\uff0e\uff0e/x",
        "/srv/data/\u2025/x",
        "/srv/data\uff0fx",
        "/srv/data/x/\uff0e\uff0e\uff0f\uff0e\uff0e",
        "/proc/self/root/srv/data/x",
        "/proc/1/cwd",
        "/dev/fd/3",
        "/dev/stdin",
        "file:",
        "file:x",
        "file://",
        "file://evil.example/srv/data",
        "file:///srv/data/x?y",
        "file:///srv/data/x#y",
        "file:///srv/data/%00",
        "http://example.com/srv/data",
        "sftp://h/srv/data",
        "/srv/data" + "/x" * 300,
        "/srv/data/" + "x" * 5_000,
        None,
        7,
        {},
        True,
    ],
)
def test_a_text_that_programs_may_read_differently_is_unclear(text: object) -> None:
    assert state(text) == "unclear"


def test_home_is_that_of_the_user() -> None:
    assert state("~/x", "~") == state("/home/ann/x", "~/") == state("~/x", "/home/ann") == "met"
    assert state("~/x/../../bob", "~") == "unmet"


def test_relative_paths_need_the_working_directory_of_the_server() -> None:
    assert state("x/y", base="/srv/data") == "met"
    assert state("../x", base="/srv/data") == "unmet"
    assert state("data/x", base="/srv") == "met"
    assert state("data/x") == "unclear"
    assert state("x", base="data") == state("x", base="${DATA}") == "unclear"


@pytest.mark.parametrize("text", ["-rf", "--output=/etc/x", "$HOME/x", "${X}", "%20x"])
def test_a_relative_path_that_may_be_an_option_or_a_variable_is_unclear(text: str) -> None:
    assert state(text, base="/srv/data") == "unclear"
    assert state(f"./{text}", base="/srv/data") == "met"


def test_a_folder_that_programs_read_differently_is_unclear() -> None:
    system = Recorded(links={"/srv/link": "/etc/deep"})
    assert state("/srv/x", "/srv/link/../x", system=system) == "unclear"


def test_of_several_folders_one_is_enough() -> None:
    assert state("/b/x", "/a", "/b") == "met"
    assert state("/c/x", "/a", "/b") == "unmet"


@pytest.mark.parametrize("folder", ["/srv/C#", "/srv/100%25", "/srv/what?"])
def test_a_folder_of_a_rule_is_taken_literally(folder: str) -> None:
    assert state(f"{folder}/x", folder) == "unclear"
    assert state("/srv/x", folder) == "unmet"


def test_the_root_has_all_paths() -> None:
    assert state("/etc", "/") == "met"


def test_symbolic_links_are_followed() -> None:
    links = {"/srv/data/out": "/etc", "/srv/data/up": "..", "/in": "srv/data", "/srv/data/b": "/srv/data/a"}
    system = Recorded(links=links)
    assert state("/srv/data/out/passwd", system=system) == "unmet"
    assert state("/srv/data/up/x", system=system) == "unmet"
    assert state("/in/x", system=system) == "met"
    assert state("/srv/data/x", "/in", system=system) == "met"
    assert state("/srv/data/b/c", system=system) == "met"


def test_dots_after_a_link_are_unclear_if_the_ways_to_remove_them_differ() -> None:
    system = Recorded(links={"/srv/data/out": "/etc/deep", "/srv/data/in": "/srv/data/a/b"})
    assert state("/srv/data/out/../x", system=system) == "unclear"
    assert state("/srv/data/in/../x", system=system) == "met"


def test_a_loop_of_links_is_unclear() -> None:
    system = Recorded(links={"/srv/data/a": "b", "/srv/data/b": "a"})
    assert state("/srv/data/a/x", system=system) == "unclear"


def test_systems_that_ignore_case_compare_without_it() -> None:
    system = Recorded(ignores_case=True)
    assert state("/SRV/Data/x", system=system) == "met"
    assert state(unicodedata.normalize("NFD", "/srv/Café/x"), "/srv/café", system=system) == "met"
    assert state("/srv/STRASSE", "/srv/straße", system=system) == "met"


def test_another_composition_of_characters_is_unclear() -> None:
    assert state(unicodedata.normalize("NFD", "/srv/café/x"), "/srv/café") == "unclear"
    assert state("/srv/café/x", unicodedata.normalize("NFD", "/srv/café")) == "unclear"


WINDOWS = Recorded(
    windows=True, ignores_case=True, links={"C:\\data\\PROGRA~1": "C:\\secret", "C:\\data\\out": "C:\\other"}
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C:\\data\\x", "met"),
        ("c:/DATA/x", "met"),
        ("C:\\data\\..\\data\\x", "met"),
        ("\\\\?\\C:\\data\\x", "met"),
        ("\\\\.\\C:\\data\\x", "met"),
        ("file:///C:/data/x", "met"),
        ("file:///c%3A/data/x", "met"),
        ("C:\\data2", "unmet"),
        ("D:\\data\\x", "unmet"),
        ("C:\\data\\..\\x", "unmet"),
        ("C:\\data\\out", "unmet"),
        ("\\\\server\\share\\data", "unmet"),
        ("\\\\?\\UNC\\server\\share\\x", "unmet"),
        ("~\\x", "unmet"),
        ("C:data\\x", "unclear"),
        ("\\data\\x", "unclear"),
        ("/data/x", "unclear"),
        ("data\\x", "unclear"),
        ("\\\\?\\C:\\data\\..\\x", "unclear"),
        ("\\\\?\\GLOBALROOT\\Device\\x", "unclear"),
        ("\\\\.\\PhysicalDrive0", "unclear"),
        ("\\\\.\\pipe\\x", "unclear"),
        ("\\\\?\\Volume{b75e2c83}\\x", "unclear"),
        ("\\\\localhost\\C$\\data\\x", "unclear"),
        ("\\\\server", "unclear"),
        ("\\\\server@SSL\\share\\x", "unclear"),
        ("C:\\data\\x:stream", "unclear"),
        ("C:\\data\\x::$DATA", "unclear"),
        ("C:\\data.\\x", "unclear"),
        ("C:\\data \\x", "unclear"),
        ("C:\\data\\NUL", "unclear"),
        ("C:\\data\\com1.txt", "unclear"),
        ("C:\\data\\x*", "unclear"),
        ("C:\\data\\SECRET~1\\x", "unclear"),
        ("C:\\data\\%2e%2e\\x", "unclear"),
        ("file://server/share/x", "unclear"),
    ],
)
def test_paths_of_windows(text: str, expected: str) -> None:
    assert state(text, "C:\\data", system=WINDOWS) == expected


def test_a_share_of_windows_is_a_folder() -> None:
    assert state("\\\\SERVER\\share\\x", "\\\\server\\share", system=WINDOWS) == "met"
    assert state("//server/share/../other", "\\\\server\\share\\a", system=WINDOWS) == "unmet"


# --- on this file system ----------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder `in` with links, beside a folder `out`."""
    for name in ("in/a/b", "out/secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "out" / "secret" / "key").write_text("secret")
    (tmp_path / "in" / "file").write_text("fine")
    (tmp_path / "in" / "leads_out").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "leads_in").symlink_to("a/b")
    (tmp_path / "in" / "dangling").symlink_to(tmp_path / "nothing" / "there")
    (tmp_path / "in" / "self").symlink_to("/proc/self/cwd")
    (tmp_path / "to_in").symlink_to("in")
    return tmp_path


def local(text: str, folder: Path) -> str:
    return state(text, str(folder), system=LocalPaths())


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_links_of_this_file_system(tree: Path) -> None:
    inside = tree / "in"
    assert local(f"{tree}/in/file", inside) == "met"
    assert local(f"{tree}/in/leads_in/new/file", inside) == "met"
    assert local(f"{tree}/to_in/file", inside) == "met"
    assert local(f"{tree}/in/file", tree / "to_in") == "met"
    assert local(f"{tree}/in/leads_out/secret/key", inside) == "unmet"
    assert local(f"{tree}/in/dangling", inside) == "unmet"
    assert local(f"{tree}/in/leads_out/../in/file", inside) in ("met", "unclear")
    assert local(f"{tree}/in/leads_in/../../out", inside) == "unclear"
    assert local(f"{tree}/in/self/x", inside) == "unclear"


def test_a_folder_that_cannot_be_searched_is_unclear(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may search any folder, so the error is made up."""
    read_link = os.readlink

    def refuse(path: str) -> str:
        if path.startswith(f"{tree}/out/"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_link(path)

    monkeypatch.setattr(os, "readlink", refuse)
    assert local(f"{tree}/out/secret/key", tree / "in") == "unclear"


def test_folders_that_are_the_same_file_are_the_same_folder(tree: Path) -> None:
    class Mounted(LocalPaths):
        def identity(self, path: str) -> object | None:
            return super().identity(path.replace("/mount", str(tree / "in"), 1) if path.startswith("/mount") else path)

    assert state("/mount/file", str(tree / "in"), system=Mounted()) == "met"
    assert state("/mounted/file", str(tree / "in"), system=Mounted()) == "unmet"


def test_the_lookups_of_one_decision_are_limited(tmp_path: Path) -> None:
    system = LocalPaths()
    states = {state(f"{tmp_path}{f'/{n}' * 200}", str(tmp_path), system=system) for n in range(100)}
    assert states == {"met", "unclear"}


PARTS = ["..", ".", "in", "a", "b", "file", "leads_out", "leads_in", "to_in", "out", "secret", "key", "%2e%2e", ""]


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=8), st.sampled_from(["/", "\\", "%2f"]))
@example(["in", "leads_in", "..", "..", "..", "out", "secret", "key"], "/")
def test_no_path_that_is_met_leads_out_for_any_program(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], separator: str
) -> None:
    tree = tmp_path_factory.getbasetemp() / "tree"
    if not tree.exists():
        for name in ("in/a/b", "out/secret"):
            (tree / name).mkdir(parents=True)
        (tree / "in" / "file").write_text("")
        (tree / "out" / "secret" / "key").write_text("")
        (tree / "in" / "leads_out").symlink_to(tree / "out")
        (tree / "in" / "leads_in").symlink_to("a/b")
        (tree / "to_in").symlink_to("in")
    text = f"{tree}/{separator.join(parts)}"
    found = local(text, tree / "in")
    decoded = text.replace("%2f", "/").replace("%2e", ".")
    programs = [text, decoded, text.replace("\\", "/"), decoded.replace("\\", "/")]
    reached = {os.path.realpath(each) for path in programs for each in (path, os.path.normpath(path))}
    inside = {path == str(tree / "in") or path.startswith(f"{tree / 'in'}/") for path in reached}
    expected = {(True,): "met", (False,): "unmet"}.get(tuple(inside), "unclear")
    is_plain = separator == "/" and "%" not in text and "//" not in text
    assert found == expected or (found == "unclear" and not is_plain)
