"""A value that would take long to check is refused before; what honest servers send is checked."""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import Mismatch, SchemaError
from accord.limits import Limits
from accord.schema.cost import measure
from accord.schema.validate import MOST, Work, compile

from tests.measure import assert_linear, costs_at_most

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "left": {"$ref": "#/$defs/node"},
                "more": {"items": {"$ref": "#/$defs/node"}},
            },
        }
    },
}  # fmt: skip
NAMES = [str(n) for n in range(5_000)]


def nested_array(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value, 0]
    return value


def work(schema: Any) -> Work:
    limits = Limits()
    return Work(schema, measure(schema, limits), limits)


@pytest.mark.parametrize(
    ("schema", "widths"),
    [
        (True, [1, 0]),
        ({}, [1, 0]),
        ({"type": "string", "enum": ["a", "b"]}, [1, 0]),
        ({"enum": ["a", 1, None]}, [4, 0]),
        ({"anyOf": [{"const": 1}, {"const": 2}]}, [3, 0]),
        ({"items": {"anyOf": [{"const": 1}, {"const": 2}]}}, [1, 3, 0]),
        ({"prefixItems": [{}, {}, {}], "items": {}, "contains": {}}, [1, 3, 0]),
        ({"properties": {"a": {}, "b": {}, "c": {}}}, [1, 1, 0]),
        ({"properties": {"a": {"not": {}}, "b": {}}, "additionalProperties": {}}, [1, 3, 0]),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {}}}]}, [3, 2, 0]),
        ({"allOf": [{"$ref": "#/$defs/two"}, {"$ref": "#/$defs/two"}], "$defs": {"two": {"allOf": [{}, {}]}}}, [9, 0]),
        (TREE, [2, 2, 2, 2]),
        ({"items": {"const": [1, [2, 3]]}}, [1, 5, 0]),
        ({"uniqueItems": True}, [1, 1, 1]),
        ({"properties": {"a": {"uniqueItems": True, "items": {"uniqueItems": True}}}}, [1, 1, 2, 2, 2]),
        ({"items": {"$ref": "#"}}, [1, 2, 2]),
    ],
)
def test_widths_count_the_subschemas_that_look_at_one_place(schema: Any, widths: list[int]) -> None:
    assert work(schema).widths == widths


def test_deeper_levels_of_a_schema_that_refers_to_itself_are_as_wide_as_its_widest() -> None:
    assert work(TREE).fits([1] * 50)
    many = {"items": {"$ref": "#"}, "anyOf": [{"const": n} for n in range(4_000)]}
    assert work(many).fits([1, 1, 1])
    assert not work(many).fits([1, 1, 1, 10_000])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"anyOf": [{"const": n} for n in range(4_000)]}}, [3_999] * 10_000),
        ({"contains": {"anyOf": [{"const": n} for n in range(4_000)]}}, [-1] * 10_000),
        ({"items": {"enum": [{"a": n} for n in range(40_000)]}}, [{"a": 39_999}] * 1_000),
        ({"items": {"not": {"enum": [{"b": n} for n in range(40_000)]}}}, [{"b": -1}] * 1_000),
        ({"items": {"not": {"enum": [[0] * 98 + [n] for n in range(990)]}}}, [[0] * 98 + [-1]] * 1_990),
        ({"allOf": [{"uniqueItems": True}] * 100}, [*range(100_000)]),
        ({"uniqueItems": True, "items": {"$ref": "#"}}, nested_array(120, [*range(100_000)])),
        ({"additionalProperties": {"oneOf": [{"const": n} for n in range(4_000)]}}, dict.fromkeys(NAMES, 1)),
        ({"propertyNames": {"anyOf": [{"const": name} for name in NAMES[:4_000]]}}, dict.fromkeys(NAMES, 1)),
        ({"patternProperties": {f"{n}.*z$": True for n in range(150)}}, {f"k{n}": 1 for n in range(50_000)}),
    ],
    ids=[
        "anyOf", "contains", "enum", "not enum", "enum of arrays", "uniqueItems", "nested uniqueItems", "oneOf",
        "propertyNames", "patternProperties",
    ],
)  # fmt: skip
def test_a_value_that_would_take_long_is_refused_unlooked_at(schema: Any, value: Any) -> None:
    with pytest.raises(Mismatch, match="too large for this schema"):
        compile(schema).validate(value)


@pytest.mark.parametrize("arm", [{"type": "integer"}, {"properties": {"a": {"type": "integer"}}}])
def test_failures_of_many_arms_do_not_copy_a_long_text(arm: Any) -> None:
    with pytest.raises(Mismatch, match="at a place that was not searched for"):
        compile({"anyOf": [arm] * 1_000}).validate({"a": "x" * 1_000_000} if "properties" in arm else "x" * 1_000_000)


ROW = {"type": "object", "properties": {f"column{n}": {"type": ["string", "null"]} for n in range(100)}}
TYPED = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "levels"),
    [
        ({"items": {**ROW, "required": [f"column{n}" for n in range(100)]}}, [1, 10_000, 1_000_000]),
        ({"items": TYPED}, [1, 3_000_000]),
        ({"items": {"enum": [f"code {n}" for n in range(10_000)]}}, [1, 1_000_000]),
        ({"items": {"properties": {f"f{n}": TYPED for n in range(300)}}}, [1, 3_000, 900_000]),
        ({"items": {"oneOf": [ROW, ROW, ROW]}}, [1, 10_000, 1_000_000]),
    ],
    ids=["rows", "numbers", "codes", "fields", "kinds of rows"],
)
def test_large_results_of_honest_servers_are_checked(schema: Any, levels: list[int]) -> None:
    assert work(schema).fits(levels)


def test_the_count_itself_is_bounded() -> None:
    branches = {f"b{n}": {"$ref": "#/$defs/n"} for n in range(40)}
    nested: dict[str, Any] = {"$defs": {"n": {}}}
    for _ in range(50):
        nested = {
            "$defs": {"n": {}},
            "properties": {"a": nested, **branches},
            "additionalProperties": {"$ref": "#/$defs/n"},
        }
    counted = work(nested)
    assert len(counted.widths) <= 53
    assert counted.fits([1] * 50)
    assert MOST >= 1_000_000


@pytest.mark.parametrize("member", ["items", "additionalProperties"])
def test_the_count_itself_is_bounded_where_many_subschemas_look_at_any_of_many_places(member: str) -> None:
    """Each of the places has its own subschema and all of those that look at any place."""
    any_place = {"anyOf": [{member: {"minLength": n}} for n in range(1_200)]}
    places: dict[str, Any] = (
        {"prefixItems": [{}] * 2_000} if member == "items" else {"properties": {name: {} for name in NAMES[:2_000]}}
    )
    found = work({"items": {"allOf": [any_place, places]}})
    assert found.steps < 110_000
    assert found.widths[-1] >= 2_000, "what was not counted is taken to look at every place"


def test_anchors_are_looked_for_once() -> None:
    def schema(size: int) -> dict[str, Any]:
        properties = {f"p{number}": {"$ref": "#x"} for number in range(size)}
        return {"$defs": {"x": {"$anchor": "x"}}, "properties": properties, "examples": [[]] * 20 * size}

    assert_linear(lambda size: measure(schema(size), Limits()), 100)


def test_an_anchor_belongs_to_its_own_resource() -> None:
    schema = {
        "properties": {"a": {"$ref": "#x"}},
        "$defs": {
            "one": {"$anchor": "x", "type": "integer"},
            "two": {"$id": "inner", "$anchor": "x", "type": "string"},
        },
    }
    assert measure(schema, Limits()).branching == 1
    compile(schema).validate({"a": 1})
    with pytest.raises(Mismatch, match="integer"):
        compile(schema).validate({"a": "x"})
    with pytest.raises(SchemaError, match="which does not exist"):
        measure({"$ref": "#z", "$defs": {"a": {"$id": "inner", "$anchor": "z"}}}, Limits())


SLOW = r"(?=a)(a+)+$"
HONEST = r"^(?=.*\d)(?=.*[a-z])(?!-)[a-z0-9-]+$"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": SLOW}, "a" * 1_000_000 + "b"),
        ({"items": {"not": {"pattern": SLOW}}}, ["a" * 100 + "b"] * 10_000),
        ({"anyOf": [{"pattern": f"{SLOW}{n}"} for n in range(100)]}, "a" * 20_000),
        ({"propertyNames": {"pattern": SLOW}}, {"a" * 500_000 + "b": 1}),
        ({"patternProperties": {SLOW: False}}, {"a" * 500_000 + "b": 1}),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"additionalProperties": {"pattern": SLOW}}}},
            {"x": "a" * 500_000 + "b"},
        ),
    ],
)
def test_a_pattern_with_look_around_takes_no_longer_on_a_long_text(schema: Any, value: Any) -> None:
    validator = compile(schema)
    with costs_at_most(100), pytest.raises(Mismatch, match=r"too much work for the text|not valid under any"):
        validator.validate(value)


@pytest.mark.parametrize("pattern", [HONEST, r"^(?!\s*$)[\s\S]+$", r"^(?!.*<script)[\s\S]*$"])
def test_a_long_text_fits_an_honest_pattern_with_look_around(pattern: str) -> None:
    compile({"pattern": pattern}).validate("a1" * 2_000_000)


def test_a_long_text_beside_one_with_look_around_takes_nothing_from_it() -> None:
    schema = {"properties": {"name": {"pattern": "^(?:(?!--)[a-z-])+$"}, "content": {"type": "string"}}}
    compile(schema).validate({"name": "a-b" * 100, "content": "a" * 8_000_000})
    lists = {"properties": {"rows": {"items": {"prefixItems": [schema["properties"]["name"]]}}}}
    compile(lists).validate({"rows": [["a-b" * 30, "a" * 8_000]] * 100})
