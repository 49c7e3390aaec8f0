"""Checks of values: each error has its field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from accord.inspector.forms.check import check_value

PERSON: Any = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "pets": {
            "type": "array",
            "items": {
                "oneOf": [
                    {
                        "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
                        "required": ["kind", "lives"],
                    },
                    {"properties": {"kind": {"const": "dog"}, "tail": {"type": "string"}}, "required": ["kind"]},
                ]
            },
        },
        "a/b~c": {"type": "integer"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def errors(value: Any, schema: Any = PERSON) -> dict[str, str]:
    found = check_value(msgspec.json.encode(schema), msgspec.json.encode(value))
    assert found.problem is None
    return {error.pointer: error.reason for error in found.errors}


def test_a_valid_value_has_no_errors() -> None:
    assert errors({"name": "Ada", "pets": [{"kind": "cat", "lives": 9}]}) == {}


def test_all_errors_are_at_their_fields() -> None:
    assert errors({"pets": 5, "a/b~c": "x", "other": 1}) == {
        "/name": "required, and missing",
        "/pets": '5 is not of type "array"',
        "/a~1b~0c": '"x" is not of type "integer"',
        "/other": "not a member that the schema allows",
    }


def test_errors_of_the_chosen_alternative_are_at_its_fields() -> None:
    assert errors({"name": "Ada", "pets": [{"kind": "dog", "tail": 1}, {"kind": "cat"}]}) == {
        "/pets/0/tail": '1 is not of type "string"',
        "/pets/1/lives": "required, and missing",
    }


def test_errors_of_alternatives_that_are_not_clear_are_at_the_value() -> None:
    assert list(errors({"name": "Ada", "pets": [{}]})) == ["/pets/0"]


def test_a_large_value_has_its_first_error() -> None:
    value = {"name": "Ada", "pets": [5] * 50_000}
    assert len(errors(value)) == 1


def test_there_are_at_most_100_errors() -> None:
    assert len(errors([1] * 200, {"items": {"type": "string"}})) == 100


def test_of_a_large_value_only_the_first_error_is_searched_for() -> None:
    """Each error has a copy of its value: together they could take long."""
    assert list(errors([1] * 10_000, {"items": {"type": "string"}})) == ["/0"]


@pytest.mark.parametrize("text", ["", "{", '{"a": 01}', "[1,]", b"\xff"])
def test_a_text_that_is_no_json_is_an_error_of_the_value(text: str | bytes) -> None:
    (error,) = check_value("{}", text).errors
    assert error.pointer == ""
    assert "not valid JSON" in error.reason


def test_a_number_out_of_range_cannot_be_checked() -> None:
    assert "out of range" in (check_value("{}", "1e999").problem or "")


@pytest.mark.parametrize("schema", ['{"$ref": "#"}', "[]", "{", '{"pattern": "("}'])
def test_a_schema_that_cannot_be_used_is_a_problem(schema: str) -> None:
    assert check_value(schema, "{}").problem
