"""The frontmatter of Markdown files: what JSON can say, and errors with their lines."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from accord.wire.frontmatter import MAX_FRONTMATTER_BYTES, FrontmatterError, read_frontmatter

from tests.measure import costs_at_most


def file(yaml: str) -> bytes:
    return f"---\n{yaml}\n---\nThe text.\n".encode()


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        ("a: text", "text"),
        ("a: 'it''s'", "it's"),
        ("a: yes", "yes"),
        ("a: 2026-01-01", "2026-01-01"),
        ("a: 1_000", "1_000"),
        ("a: 0x10", "0x10"),
        ("a: 12:30", "12:30"),
        ("a: .inf", ".inf"),
        ("a: 1", 1),
        ("a: -1.50", -1.5),
        ("a: 1e3", 1000.0),
        ("a: '1'", "1"),
        ("a: true", True),
        ("a: False", False),
        ("a: null", None),
        ("a:", None),
        ("a: ~", None),
        ("a: [1, [x, true]]", [1, ["x", True]]),
        ("a:\n  b:\n  - c: 1", {"b": [{"c": 1}]}),
        ("a: >\n  one\n  two", "one two\n"),
        ("a: ☃ é 😀", "☃ é 😀"),
        ("<<: {b: 1}\na: x", "x"),
    ],
)
def test_values_are_those_of_json(yaml: str, value: object) -> None:
    found = read_frontmatter(file(yaml))["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"name: x", 1, "does not begin with frontmatter"),
        (b"", 1, "does not begin with frontmatter"),
        (b"---\nname: x\n", 1, "has no end"),
        (b"---\n" + b"a" * (MAX_FRONTMATTER_BYTES + 10), 1, "has no end within 32,768 bytes"),
        (b"---\nname: \xff\n---\n", 2, "not UTF-8"),
        (file("a: 1\nb: ["), 4, "not valid"),
        (file("- a"), 2, "not a mapping"),
        (file(""), 2, "not a mapping"),
        (file("a: 1\na: 2"), 3, "'a' stands twice"),
        (file("a: 1\n2: b"), 3, "a key is not text"),
        (file("a: &x 1\nb: *x"), 2, "a tag or an anchor"),
        (file("é😀: 1\na: &x {b: 1}"), 3, "a tag or an anchor"),
        (file("a: !!python/object:os.system x"), 2, "a tag or an anchor"),
        (file("a: !!str 5"), 2, "a tag or an anchor"),
        (file("\ufeffa: &x 1\nb: *x"), 2, "byte order mark"),
        (file("a: *x"), 2, "not valid"),
        (file("a: 1e400"), 2, "too large"),
        (file(f"a: {'1' * 5000}"), 2, "too many digits"),
        (file("a: b\n...\nc: d"), 4, "not valid"),
    ],
)
def test_what_json_cannot_say_is_an_error_with_its_line(content: bytes, line: int, problem: str) -> None:
    with pytest.raises(FrontmatterError, match=problem) as caught:
        read_frontmatter(content)
    assert caught.value.line == line


@pytest.mark.parametrize("end", ["---", "--- ", "---\r"])
def test_the_fence_may_end_with_blanks(end: str) -> None:
    assert read_frontmatter(f"---\na: b\n{end}\nx".encode()) == {"a": "b"}


@pytest.mark.parametrize(
    "yaml",
    ["a: " + "[" * 15_000, "a: " + "{b: " * 7_000, "\n".join(f"k{n}: v" for n in range(3_500)), "a: " + "- " * 10_000],
    ids=["lists", "objects", "keys", "items"],
)
def test_no_frontmatter_takes_long(yaml: str) -> None:
    with costs_at_most(150), suppress(FrontmatterError):
        read_frontmatter(file(yaml))


WORDS = st.text(st.characters(categories=("L", "N", "P", "S")) | st.just(" "))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc-_", min_size=1), JSON, max_size=4))
def test_json_is_read_as_it_is(value: dict[str, object]) -> None:
    """JSON is YAML (YAML 1.2.2, 1.1); a mapping in one line is a frontmatter."""
    found = read_frontmatter(b"---\n" + json.dumps(value, ensure_ascii=False).encode() + b"\n---\n")
    assert found == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for each in (content, b"---\n" + content + b"\n---\n"):
        try:
            found = read_frontmatter(each)
        except FrontmatterError:
            continue
        assert all(not isinstance(value, float) or math.isfinite(value) for value in found.values())
        json.dumps(found)


@pytest.mark.parametrize("before", ["\ufeff", "x: '\ufeff'\n", "x: 😀\r\n", "# \x85\n", "x: '\u2028'\r"])
def test_aliases_never_multiply_values(before: str) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]" for number in range(1, 5)]
    with pytest.raises(FrontmatterError):
        read_frontmatter(file(before + "\n".join(lines)))
