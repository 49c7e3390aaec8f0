"""A few values of a JSON text change, and all other characters stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.redaction.json_splice import decode, splice

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda items: st.lists(items) | st.dictionaries(st.text(), items),
    max_leaves=20,
)
separators = st.sampled_from([(",", ":"), (" , ", " \t:\n"), (", ", ": ")])


def shout(value: Any) -> Any:
    """The value with "X" in place of texts that contain a b; the same objects where nothing changes."""
    if isinstance(value, str):
        return "X" if "b" in value else value
    if isinstance(value, list):
        items = [shout(item) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        members = {key: shout(item) for key, item in value.items()}
        return members if any(members[key] is not value[key] for key in value) else value
    return value


@given(values, separators, st.booleans())
def test_only_what_changes_is_written_anew(value: Any, separators: tuple[str, str], ascii: bool) -> None:
    text = json.dumps(value, separators=separators, ensure_ascii=ascii)
    before = decode(text)
    assert splice(text, before, before) == text
    spliced = splice(text, before, shout(before))
    assert json.loads(spliced) == shout(value)


def test_spaces_escapes_numbers_and_repeated_keys_stay() -> None:
    text = ' {"\\u0061" : 1.50 ,\n"b":"b", "b" : [ 1e400, "b"] , "c":{ } }\t'
    before = decode(text)
    assert splice(text, before, shout(before)) == ' {"\\u0061" : 1.50 ,\n"b":"X", "b" : [ 1e400, "X"] , "c":{ } }\t'


def test_a_key_changes() -> None:
    text = '{"a" : 1, "b":[2] }'
    before = decode(text)
    assert splice(text, before, {"z": before["a"], "b": before["b"]}) == '{"z" : 1, "b":[2] }'


def test_an_object_with_fewer_keys_is_replaced() -> None:
    text = '[{"a":1,"b":2}, 3]'
    before = decode(text)
    assert splice(text, before, [{"a": 0}, before[1]]) == '["[...]", 3]'


def test_a_lone_surrogate_stays_an_escape() -> None:
    assert splice('["b"]', decode('["b"]'), ["\ud800"]) == '["\\ud800"]'


@pytest.mark.parametrize("text", ["", "{", "[1,]", '"\x01"', "[" * 100_000, "1 2"])
def test_other_texts_are_no_json(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        decode(text)


def test_a_long_number_is_not_converted() -> None:
    assert decode("[" + "9" * 10_000 + "]") == [0]
