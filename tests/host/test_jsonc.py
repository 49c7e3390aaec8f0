"""JSON with comments: values, positions, and errors with line and column."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.host import jsonc
from accord.host.jsonc import JSONCError, parse

from tests.measure import assert_linear

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
SPACE = st.sampled_from(["", " ", "\t", "\n", "\r\n", '// a, ] } " comment\n', "/* [ * / \n */", "/**/", "/***/"])


@st.composite
def documents(draw: st.DrawFn, value: Any = None) -> str:
    """The text of a value, with comments and trailing commas anywhere."""

    def text(each: Any) -> str:
        if isinstance(each, dict):
            parts = [f"{json.dumps(name)}{draw(SPACE)}:{draw(SPACE)}{text(inner)}" for name, inner in each.items()]
            return wrapped("{", parts, "}")
        return wrapped("[", [text(inner) for inner in each], "]") if isinstance(each, list) else json.dumps(each)

    def wrapped(begin: str, parts: list[str], end: str) -> str:
        inside = f"{draw(SPACE)},{draw(SPACE)}".join(parts)
        comma = draw(st.sampled_from(["", ",", ", // last\n"])) if parts else ""
        return f"{begin}{draw(SPACE)}{inside}{draw(SPACE)}{comma}{draw(SPACE)}{end}"

    return f"{draw(SPACE)}{text(value)}{draw(SPACE)}"


@given(VALUES, st.data())
def test_comments_and_trailing_commas_change_no_value(value: Any, data: st.DataObject) -> None:
    node = parse(data.draw(documents(value)))
    assert node is not None
    assert node.plain() == value


@given(VALUES)
def test_plain_json_is_read_as_the_standard_library_reads_it(value: Any) -> None:
    text = json.dumps(value, indent=2)
    node = parse(text)
    assert node is not None
    assert node.plain() == json.loads(text)
    assert text[node.start : node.end] == text


def test_a_value_has_its_offsets_and_its_path() -> None:
    text = '\ufeff// note\n{"a": {"b": [1, "x"]}, "a": {"b": 2}}'
    node = parse(text)
    assert node is not None
    found = node.at("a", "b")
    assert found is not None
    assert (text[found.start : found.end], found.value) == ("2", 2)  # the last one counts
    assert node.duplicate == "a"
    assert node.at("a", "c") is None
    assert node.at("a", "b", "c") is None


@pytest.mark.parametrize("text", ["", " \n", "// only this", "/* or this */\n", "\ufeff"])
def test_a_text_without_a_value_is_empty(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("{", (1, 2), "expected a name in double quotes, found the end of the file"),
        ('{"a"}', (1, 5), "expected ':', found '}'"),
        ('{"a":}', (1, 6), "expected a value, found '}'"),
        ('{\n  "a": 1\n  "b": 2\n}', (3, 3), "expected a comma or }"),
        ("[1,,2]", (1, 4), "expected a value, found ','"),
        ("[,]", (1, 2), "expected a value, found ','"),
        ("{\r\n\"a\": 'x'}", (2, 6), 'expected a value, found "\'"'),
        ("{a: 1}", (1, 2), "expected a name in double quotes"),
        ('["a\nb"]', (1, 2), "this string does not end on its line"),
        ('["\\x"]', (1, 2), "invalid value"),
        ("[1] 2", (1, 5), "expected the end of the file"),
        ("[1 /* x", (1, 4), "this comment does not end"),
        ("[NaN]", (1, 2), "expected a value"),
        ("[01]", (1, 3), "expected a comma or ]"),
        (f"[{'1' * 5000}]", (1, 2), "invalid value"),
        ("[" * 200, (1, 102), "nested deeper than 100 levels"),
    ],
)
def test_an_error_has_line_and_column(text: str, place: tuple[int, int], reason: str) -> None:
    with pytest.raises(JSONCError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == place
    assert reason in caught.value.reason


@pytest.mark.parametrize("part", ['"a",', "[],", "//\n", "/*/ */", " ", '{"a":1},'])
def test_reading_takes_linear_time(part: str) -> None:
    assert_linear(lambda size: parse(f"[{part * size}1]"), 2_000)


@pytest.mark.parametrize("text", ["a\nb\nc", "a\r\nb\r\nc", "a\rb\rc"])
def test_each_kind_of_line_end_begins_a_line(text: str) -> None:
    assert jsonc.position(text, text.index("c")) == (3, 1)
