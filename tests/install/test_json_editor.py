"""Editing JSON with comments in place: what is added, and that all other characters stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.host.jsonc import JSONCError, parse
from accord.install.json_editor import append_item, remove_item, remove_member, set_member
from accord.install.splice import Splice

from tests.host.test_jsonc import VALUES, documents

PATH = ("mcpServers", "new")
ENTRY = {"command": "x", "args": ["y"]}

ADDED = [
    ("", '{\n  "mcpServers": {\n    "new": {"c": 1}\n  }\n}\n'),
    ("// only this\n", '// only this\n{\n  "mcpServers": {\n    "new": {"c": 1}\n  }\n}\n'),
    ("\ufeff", '\ufeff{\n  "mcpServers": {\n    "new": {"c": 1}\n  }\n}\n'),
    ("{}", '{\n  "mcpServers": {\n    "new": {"c": 1}\n  }\n}'),
    ("{}\r\n", '{\r\n  "mcpServers": {\r\n    "new": {"c": 1}\r\n  }\r\n}\r\n'),
    ('{"a": 1}', '{"a": 1, "mcpServers": {"new": {"c": 1}}}'),
    ('{ "a": 1 }', '{ "a": 1, "mcpServers": {"new": {"c": 1}} }'),
    ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"mcpServers": {\n\t\t"new": {"c": 1}\n\t}\n}\n'),
    ('{\n    "a": 1 // one\n}', '{\n    "a": 1, // one\n    "mcpServers": {\n        "new": {"c": 1}\n    }\n}'),
    ('{\n  "a": 1, // one\n}', '{\n  "a": 1, // one\n  "mcpServers": {\n    "new": {"c": 1}\n  },\n}'),
    ('{\n  "a": 1}', '{\n  "a": 1,\n  "mcpServers": {\n    "new": {"c": 1}\n  }\n}'),
    ('{"mcpServers": {}}', '{"mcpServers": {"new": {"c": 1}}}'),
    ('{\n  "mcpServers": {}\n}', '{\n  "mcpServers": {\n    "new": {"c": 1}\n  }\n}'),
    (
        '{\n  "mcpServers": {\n    // none\n  }\n}',
        '{\n  "mcpServers": {\n    // none\n    "new": {"c": 1}\n  }\n}',
    ),
    (
        '{\n  "mcpServers": {\n    "a": {}, /* last */\n    // end\n  },\n}',
        '{\n  "mcpServers": {\n    "a": {}, /* last */\n    // end\n    "new": {"c": 1},\n  },\n}',
    ),
    (
        '{\n  "mcpServers": {\n    "a": {} /* last */\n\n  }\n}',
        '{\n  "mcpServers": {\n    "a": {}, /* last */\n    "new": {"c": 1}\n\n  }\n}',
    ),
    ('{"mcpServers": {"new": {"old": 1}, "b": 2}}', '{"mcpServers": {"new": {"c": 1}, "b": 2}}'),
]


@pytest.mark.parametrize(("before", "after"), ADDED)
def test_a_member_is_added_in_the_style_of_the_text(before: str, after: str) -> None:
    end = "\r\n" if "\r\n" in before else "\n"
    found = set_member(before, PATH, {"c": 1})
    if "\n" in after and '"old"' not in before:  # the value itself is on several lines too
        inner = after[: after.index('{"c"')].splitlines()[-1]
        indent = inner[: len(inner) - len(inner.lstrip())]
        unit = "\t" if "\t" in before else "    " if '\n    "a": 1 //' in before else "  "
        after = after.replace('{"c": 1}', f'{{{end}{indent}{unit}"c": 1{end}{indent}}}')
    assert found == after


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.data())
def test_adding_and_removing_any_member_leaves_every_byte(value: dict[str, Any], data: st.DataObject) -> None:
    text = data.draw(documents({name: each for name, each in value.items() if name not in PATH}))
    new = set_member(text, PATH, ENTRY)
    node = parse(new)
    assert node is not None
    assert node.plain() == {**parse(text).plain(), "mcpServers": {"new": ENTRY}}  # type: ignore[union-attr]
    splice = Splice.between(text, new)
    assert next(splice.inverses(new)) == text
    rest = iter(new)
    assert all(each in rest for each in text if not each.isspace())  # in this order


@given(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=4), st.data())
def test_removing_a_member_leaves_the_others_and_their_comments(value: dict[str, Any], data: st.DataObject) -> None:
    text = data.draw(documents({"mcpServers": value}))
    name = data.draw(st.sampled_from(list(value)))
    node = parse(remove_member(text, ("mcpServers", name)))
    assert node is not None
    expected = {each: inner for each, inner in value.items() if each != name}
    assert json.dumps(node.plain()) == json.dumps({"mcpServers": expected})


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), VALUES, st.data())
def test_replacing_a_value_changes_only_its_characters(value: dict[str, Any], other: Any, data: st.DataObject) -> None:
    text = data.draw(documents({"mcpServers": {**value, "new": other}}))
    node = parse(set_member(text, PATH, ENTRY))
    assert node is not None
    assert json.dumps(node.plain()) == json.dumps({"mcpServers": {**value, "new": ENTRY}})


@given(st.lists(VALUES, max_size=4), st.data())
def test_an_item_is_added_at_the_end_of_an_array_and_removed(value: list[Any], data: st.DataObject) -> None:
    text = data.draw(documents({"inputs": value}))
    new = append_item(text, ("inputs",), {"id": "k"})
    node = parse(new)
    assert node is not None
    assert node.plain() == {"inputs": [*value, {"id": "k"}]}
    removed = parse(remove_item(new, ("inputs",), len(value)))
    assert removed is not None
    assert removed.plain() == {"inputs": value}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "a": 1,\n  "b": 2, // two\n  "c": 3\n}', '{\n  "a": 1,\n // two\n  "c": 3\n}'),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "a": 1\n}'),
        ('{\n  "b": 2\n}', "{\n}"),
        ('{"a": 1, "b": 2}', '{"a": 1}'),
        ('{"b": 2, "a": 1}', '{"a": 1}'),
    ],
)
def test_a_removed_member_takes_its_line(before: str, after: str) -> None:
    assert remove_member(before, ("b",)) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"mcpServers": {"new": 1, "new": 2}}', "1:27: the name 'new' is there twice"),
        ('{"mcpServers": {}, "mcpServers": {}}', "1:20: the name 'mcpServers' is there twice"),
        ('{"mcpServers": null}', "1:16: expected an object"),
        ("[]", "1:1: expected an object"),
    ],
)
def test_a_text_that_cannot_be_edited_safely_is_refused(text: str, reason: str) -> None:
    with pytest.raises(JSONCError, match=reason):
        set_member(text, PATH, ENTRY)


def test_characters_that_are_not_printable_are_escaped() -> None:
    assert set_member("{}", ("é",), "a\u202eb\x07") == '{\n  "é": "a\\u202eb\\u0007"\n}'
