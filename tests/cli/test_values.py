"""`key=value` words under a schema."""

from __future__ import annotations

from typing import Any

import click
import pytest

from accord.cli.schema_text import parameters
from accord.cli.values import arguments_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["text", "count"],
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number", "default": 0.5},
        "on": {"type": "boolean", "default": False},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "unit": {"enum": ["C", "F"]},
        "level": {"enum": [1, 2]},
        "place": {"$ref": "#/$defs/Place"},
        "many": {"type": ["array", "null"], "items": {"anyOf": [{"type": "integer"}, {"const": "all"}]}},
        "free": {},
        "loop": {"$ref": "#/properties/loop"},
        "lost": {"$ref": "#/$defs/Nowhere"},
        "odd": True,
    },
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}

FITTING = [
    ("text=7", "7"),
    ("text=", ""),
    ("text=a=b", "a=b"),
    ("text=two\nlines", "two\nlines"),
    ("count=7", 7),
    ("count=-7", -7),
    ("ratio=2.5", 2.5),
    ("ratio=2", 2),
    ("on=true", True),
    ('tags=["a","b"]', ["a", "b"]),
    ("tags=a", ["a"]),
    ("maybe=3", 3),
    ("maybe=null", None),
    ("either=3", "3"),
    ("either:=3", 3),
    ("unit=C", "C"),
    ("level=2", 2),
    ('place={"city":"Oslo"}', {"city": "Oslo"}),
    ("free=3", "3"),
    ("loop=3", "3"),
    ("lost=3", "3"),
    ("odd=3", "3"),
    ("unknown=3", "3"),
    ("unknown:=[1]", [1]),
]


@pytest.mark.parametrize(("word", "value"), FITTING)
def test_a_value_is_read_as_the_schema_says(word: str, value: Any) -> None:
    (found,) = arguments_of([word], SCHEMA).values()
    assert found == value
    assert type(found) is type(value)


def test_an_array_may_be_given_one_item_at_a_time() -> None:
    assert arguments_of(["tags=a", "tags=1", "sizes=1", "sizes=2"], SCHEMA) == {"tags": ["a", "1"], "sizes": [1, 2]}


UNFIT = [
    (["count=x"], "count: expected integer, got 'x'"),
    (["count=1.5"], "count: expected integer, got '1.5'"),
    (["count=true"], "count: expected integer, got 'true'"),
    (["on=yes"], "on: expected boolean, got 'yes'"),
    (["maybe=x"], "maybe: expected integer or null, got 'x'"),
    (["sizes=x"], "sizes: expected integer, got 'x'"),
    (["place=Oslo"], "place: expected object, got 'Oslo'"),
    (["free:={"], "free: expected JSON, got '{'"),
    (["text=a", "text=b"], "text is given twice"),
    (["=x"], "'=x' is not key=value"),
]


@pytest.mark.parametrize(("words", "message"), UNFIT)
def test_a_value_that_does_not_fit_is_named(words: list[str], message: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        arguments_of(words, SCHEMA)
    assert caught.value.message == message


def test_parameters_read_like_a_signature() -> None:
    assert parameters(SCHEMA) == [
        "text: string",
        "count: integer",
        "ratio: number = 0.5",
        "on: boolean = false",
        "tags?: string[]",
        "sizes?: integer[]",
        "maybe?: integer | null",
        "either?: integer | string",
        'unit?: "C" | "F"',
        "level?: 1 | 2",
        "place?: object",
        'many?: (integer | "all")[] | null',
        "free?: any",
        "loop?: any",
        "lost?: any",
        "odd?: any",
    ]


def test_a_schema_that_refers_to_itself_allows_what_its_other_arms_allow() -> None:
    itself = {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "integer"}, {"$ref": "#/$defs/n"}]}
    schema = {"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": itself}}
    assert arguments_of(["n=3"], schema) == {"n": 3}
    endless = {"type": "array", "items": {"$ref": "#/properties/a"}}
    with pytest.raises(click.UsageError, match="expected array"):
        arguments_of(["a=x"], {"properties": {"a": endless}})


def test_a_union_of_unions_is_read_in_as_many_steps_as_it_has_schemas() -> None:
    arms = {f"d{depth}": {"anyOf": [{"$ref": f"#/$defs/d{depth + 1}"}] * 2} for depth in range(60)}
    schema = {"properties": {"n": {"$ref": "#/$defs/d0"}}, "$defs": {**arms, "d60": {"type": "integer"}}}
    assert arguments_of(["n=3"], schema) == {"n": 3}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": 1},
        {"properties": {"a": 1}},
        {"properties": {"a": {"type": [1, {}]}}},
        {"properties": {"a": {"enum": 1}}},
        {"properties": {"a": {"anyOf": 1}}},
        {"properties": {"a": {"anyOf": [1]}}},
        {"properties": {"a": {"$ref": "#/" + "a/" * 1_000}}},
    ],
    ids=str,
)
def test_a_schema_that_is_none_takes_texts(schema: dict[str, Any]) -> None:
    assert arguments_of(["a=x"], schema) == {"a": "x"}
    assert all(isinstance(each, str) for each in parameters({**schema, "required": {"a": 1}}))


def test_a_type_that_a_server_names_forges_no_line() -> None:
    with pytest.raises(click.UsageError) as raised:
        arguments_of(["a=x"], {"properties": {"a": {"type": "odd\nerror: forged"}}})
    assert "\n" not in raised.value.format_message()


def test_parameters_of_a_schema_that_grows_are_written_up_to_a_bound() -> None:
    wide = {"anyOf": [{"$ref": "#/$defs/x"}] * 1_000}
    assert parameters({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": wide}}) == ["a?: …"]
    (many,) = parameters({"properties": {"a": {"enum": list(range(100_000))}}})
    assert many.endswith(" | …")
    assert len(many) < 10_000
    named = parameters({"properties": {str(number): {} for number in range(100_000)}})
    assert named[-1] == "…"
    assert len(named) < 10_000
    (long,) = parameters({"properties": {"a": {"type": ["x" * 100_000, "string"]}}})
    assert long.endswith("x | string")
    assert len(long) < 10_000
