"""Names of a tree: what is one, what was chosen."""

from __future__ import annotations

import os
import pathlib
import re
from urllib.parse import quote

import pytest
from hypothesis import example, given, strategies as st

from accord import DeclarationError
from accord.server.declare.templates import Template
from accord.server.files.names import DEEPEST, LONGEST, PathFilter, is_name, split

from tests.measure import costs_at_most

TEMPLATE = Template("docs://{+path}")

HOSTILE = [
    "..",
    ".",
    "../secret",
    "guide/../../secret",
    "guide/..",
    "guide/./a",
    "/etc/passwd",
    "//etc/passwd",
    "guide//a",
    "guide//",
    "/",
    "C:/windows",
    "c:secret",
    "guide/C:a",
    "..\\secret",
    "guide\\..\\..\\secret",
    "\\\\host\\share",
    "a\0",
    "a\0.md",
    "a\nb",
    "a\rb",
    "\x1b[31m",
    "a\x7f",
    "a\ud800",
    "x" * (LONGEST + 1),
    "a/" * (DEEPEST + 1) + "a",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_what_is_more_than_names_is_no_path(path: str) -> None:
    assert split(path) is None


@pytest.mark.parametrize(
    "escaped", ["%2e%2e/a", "%2e%2e%2fa", "..%2fa", "%2E./a", ".%2e/a", "a%2f..%2f..%2fb", "%2fetc", "a%00", "a%5cb"]
)
def test_what_is_escaped_once_counts_as_what_it_means(escaped: str) -> None:
    found = TEMPLATE.match("docs://" + escaped)
    assert found is not None
    assert split(found["path"]) is None


@pytest.mark.parametrize("escaped", ["%252e%252e%252fa", "%25%32%65%25%32%65"])
def test_what_is_escaped_twice_is_a_name_with_a_percent_sign(escaped: str) -> None:
    found = TEMPLATE.match("docs://" + escaped)
    assert found is not None
    assert split(found["path"]) is not None
    assert "%2e" in found["path"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a/b.md", ("a", "b.md")),
        ("a/b/", ("a", "b")),
        ("...", ("...",)),
        ("..a/b..", ("..a", "b..")),
        ("a b/é/日本", ("a b", "é", "日本")),
        ("a?b#c", ("a?b#c",)),
        ("ab:c", ("ab:c",)),
        ("%2e%2e", ("%2e%2e",)),
    ],
)
def test_a_path_is_its_names(path: str, parts: tuple[str, ...]) -> None:
    assert split(path) == parts


@given(st.text(alphabet=st.sampled_from("./\\:%2eaC\0 ~é"), max_size=20))
@example("a/../..")
@example("a/b/../../..")
def test_no_path_leads_out_of_the_root(path: str) -> None:
    parts = split(path)
    if parts is not None:
        for read in (os.path.normpath, os.path.abspath):
            assert read("/root/" + "/".join(parts)).startswith("/root")
        windows = pathlib.PureWindowsPath("D:\\root", *parts)
        assert windows.parts[:2] == ("D:\\", "root")
        assert ".." not in windows.parts
        assert all(map(is_name, parts))


@given(st.lists(st.text(min_size=1, max_size=8).filter(is_name), min_size=1, max_size=4))
def test_every_name_comes_back_from_its_uri(parts: list[str]) -> None:
    found = TEMPLATE.match("docs://" + quote("/".join(parts)))
    assert found is not None
    assert split(found["path"]) == tuple(parts)


def chosen(path: str, **options: object) -> bool:
    return PathFilter(**options).allows(tuple(path.split("/")))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [".env", ".git/config", "a/.ssh/id", "a/b/.hidden"])
def test_hidden_names_are_left_out_at_any_depth(path: str) -> None:
    assert not chosen(path)
    assert chosen(path, hidden=True)


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("*.md", ["a.md", "x/y/a.md"], ["a.txt", "a.md.txt"]),
        ("/*.md", ["a.md"], ["x/a.md"]),
        ("guide/*", ["guide/a"], ["a", "x/guide/a"]),
        ("guide/**", ["guide/a", "guide/b/c"], ["a", "x/guide/a"]),
        ("**/test/*.py", ["test/a.py", "x/y/test/a.py"], ["test/x/a.py"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("[ab].txt", ["a.txt"], ["c.txt"]),
    ],
)
def test_patterns_say_what_is_served(pattern: str, fits: list[str], others: list[str]) -> None:
    assert all(chosen(path, include=[pattern]) for path in fits)
    assert not any(chosen(path, include=[pattern]) for path in others)
    assert not any(chosen(path, exclude=[pattern]) for path in fits)
    assert all(chosen(path, exclude=[pattern]) for path in others)


def test_a_folder_that_is_left_out_takes_its_contents_along() -> None:
    assert not chosen("a/private/b/c.md", exclude=["private"])
    assert not chosen("drafts/c.md", exclude=["drafts/**"])


def test_what_is_left_out_is_so_in_any_spelling() -> None:
    assert not chosen("a/SECRET.Key", exclude=["*.key"])
    assert not chosen("Private/a", exclude=["private"])


def test_what_is_left_out_is_so_however_its_accents_are_written() -> None:
    one, two = "caf\u00e9", "cafe\u0301"
    assert not chosen(f"{two}/a.md", exclude=[one])
    assert not chosen(f"{one}/a.md", exclude=[two, "*.txt"])
    assert not chosen(f"x/{two.upper()}.md", exclude=[f"x/{one}.*"])


def test_a_pattern_of_any_folders_and_a_hostile_path_take_no_time() -> None:
    with costs_at_most(500):
        for _ in range(10):
            assert not chosen("a/" * 63 + "x", include=["**/a*/" * 8 + "*.md"], exclude=["**/*a/" * 8 + "*.key"])


PIECES = st.lists(st.sampled_from(["a", "b", "**", "*", "a*"]), min_size=2, max_size=6)


@given(PIECES, st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6))
def test_a_pattern_fits_what_its_expression_does(pattern: list[str], parts: list[str]) -> None:
    meaning = {"**": "(?:[^/]+/)*", "*": "[^/]*/", "a*": "a[^/]*/"}
    expression = "".join(meaning.get(piece, piece + "/") for piece in pattern)
    assert chosen("/".join(parts), include=["/".join(pattern)]) == bool(re.fullmatch(expression, "/".join(parts) + "/"))


def test_one_pattern_in_the_place_of_several_is_refused() -> None:
    for wrong in ({"include": "*.md"}, {"exclude": "*.key"}):
        with pytest.raises(DeclarationError, match="patterns must be a list"):
            PathFilter(**wrong)
