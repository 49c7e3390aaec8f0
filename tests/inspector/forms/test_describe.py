"""Descriptions of forms: what they show, and that each schema gives one within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from accord.inspector.forms.describe import MOST_CHARACTERS, MOST_NODES, describe_form
from accord.inspector.forms.description import FormDescription, FormNode
from accord.inspector.forms.subschemas import FormSchema


def describe(schema: Any, *references: str) -> FormDescription:
    return describe_form(msgspec.json.encode(schema), references)


def root(schema: Any) -> FormNode:
    return describe(schema).root


def member(schema: Any, name: str = "a") -> FormNode:
    """Return the node of a member of an object with one property."""
    return named(root({"type": "object", "properties": {name: schema}}), name)


def named(node: FormNode, name: str) -> FormNode:
    assert node.object is not None
    return next(each.node for each in node.object.properties if each.name == name)


def nodes(node: FormNode) -> Iterator[FormNode]:
    """Yield a node and all nodes inside it."""
    yield node
    inside = list(node.alternatives or ())
    if node.object is not None:
        inside += [each.node for each in node.object.properties]
        inside += [each.node for each in node.object.pattern_properties or ()]
        inside += [node.object.additional] if node.object.additional else []
    if node.array is not None:
        inside += [*(node.array.prefix or ()), *([node.array.items] if node.array.items else [])]
    for each in inside:
        yield from nodes(each)


def test_annotations_are_shown() -> None:
    node = member(
        {
            "type": "string",
            "title": "Name",
            "description": "who",
            "format": "email",
            "default": "a@b",
            "examples": ["x@y", 1],
            "minLength": 1,
            "maxLength": 5,
            "pattern": "^a",
            "readOnly": True,
            "writeOnly": True,
            "deprecated": True,
        }
    )
    assert (node.title, node.description, node.format, node.default_json) == ("Name", "who", "email", '"a@b"')
    assert node.examples_json == ['"x@y"', "1"]
    assert node.constraints == ["at least 1 character", "at most 5 characters", "matches ^a"]
    assert node.read_only
    assert node.write_only
    assert node.deprecated


def test_numbers_of_the_schema_keep_their_text() -> None:
    form = describe_form('{"default": 1.0, "examples": [9007199254740993, 1.10, 1e400], "enum": [0.10]}')
    assert form.root.default_json == "1.0"
    assert form.root.examples_json is not None
    assert form.root.examples_json[:2] == ["9007199254740993", "1.10"]
    assert Decimal(form.root.examples_json[2]) == Decimal("1e400")
    assert [value.value_json for value in form.root.values or ()] == ["0.10"]


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, ["string"]),
        ({"type": ["null", "string"]}, ["string", "null"]),
        ({"type": "number"}, ["number"]),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, ["integer"]),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, []),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["string", "null"]),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "boolean"}}}, ["boolean"]),
        (False, []),
        ({"minLength": 1}, ["string", "object", "array", "number", "boolean", "null"]),
    ],
)
def test_types_are_those_that_all_subschemas_allow(schema: Any, types: list[str]) -> None:
    assert root(schema).types == types


def test_anything_is_one_node() -> None:
    assert root(True).is_any
    assert root({}).is_any
    assert member({}).is_any


def test_titled_choices_have_their_titles() -> None:
    for schema in (
        {"enum": [1, 2], "enumNames": ["one", "two"]},
        {"oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]},
        {"anyOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]},
        {"enum": [2, 1, 3], "oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]},
    ):
        assert [(value.value_json, value.title) for value in root(schema).values or ()] == [("1", "one"), ("2", "two")]
    assert [value.value_json for value in root({"const": None}).values or ()] == ["null"]
    nullable = root({"anyOf": [{"enum": ["a"]}, {"type": "null"}]})
    assert [value.value_json for value in nullable.values or ()] == ['"a"', "null"]


def test_alternatives_have_all_that_applies_beside_them() -> None:
    node = root(
        {
            "type": "object",
            "properties": {"kind": {"type": "string"}, "both": {"type": "integer"}},
            "oneOf": [
                {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["lives"]},
                {"title": "Dog", "properties": {"kind": {"const": "dog"}}},
                {"$ref": "#/$defs/Bird"},
            ],
            "$defs": {"Bird": {"type": "object"}},
        }
    )
    assert node.alternatives is not None
    assert [each.label for each in node.alternatives] == ['kind: "cat"', "Dog", "Bird"]
    cat = node.alternatives[0]
    assert cat.object is not None
    assert [(each.name, each.required) for each in cat.object.properties] == [
        ("kind", False),
        ("both", False),
        ("lives", True),
    ]
    assert [value.value_json for value in named(cat, "kind").values or ()] == ['"cat"']


def test_maps_and_arrays() -> None:
    node = root({"type": "object", "additionalProperties": {"type": "integer"}, "patternProperties": {"^x": {}}})
    assert node.object is not None
    assert node.object.is_map
    assert node.object.additional is not None
    assert node.object.additional.types == ["integer"]
    assert [each.pattern for each in node.object.pattern_properties or ()] == ["^x"]
    closed = root({"type": "object", "additionalProperties": False})
    assert closed.object is not None
    assert closed.object.additional is None
    open_ended = root({"type": "object"})
    assert open_ended.object is not None
    assert open_ended.object.additional is not None
    assert open_ended.object.additional.is_any
    assert not open_ended.object.is_map
    tuple_ = root({"type": "array", "prefixItems": [{"type": "string"}], "items": False})
    assert tuple_.array is not None
    assert tuple_.array.items is None
    assert [each.types for each in tuple_.array.prefix or ()] == [["string"]]
    old = root({"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "null"}})
    assert old.array is not None
    assert old.array.items is not None
    assert old.array.items.types == ["null"]


def test_a_required_member_without_a_schema_is_in_the_form() -> None:
    node = root({"type": "object", "required": ["x"]})
    assert node.object is not None
    assert [(each.name, each.required, each.node.is_any) for each in node.object.properties] == [("x", True, True)]


def test_a_schema_that_contains_itself_is_described_on_request() -> None:
    schema = {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "v": {"type": "number"}}}
        },
    }
    node = root(schema)
    for _ in range(10):
        left = named(node, "left")
        assert left.expand
        node = describe(schema, *left.expand).root
        assert named(node, "v").types == ["number"]


def test_a_place_with_several_subschemas_is_described_on_request() -> None:
    schema = {
        "type": "object",
        "properties": {"next": {"allOf": [{"$ref": "#"}, {"required": ["v"]}], "description": "more"}},
        "anyOf": [{"properties": {"v": {"type": "string"}}}, {"properties": {"w": {"type": "string"}}}],
    }
    first = (root(schema).alternatives or [])[0]
    following = describe(schema, *(named(first, "next").expand or ())).root
    arm = (following.alternatives or [])[0]
    assert arm.object is not None
    assert {each.name: each.required for each in arm.object.properties} == {"next": False, "v": True}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"$ref": "#"}, "refers to itself without end"),
        ({"allOf": [{"$ref": "#"}]}, "refers to itself without end"),
        ({"$ref": "https://example.com/schema"}, "only references inside it"),
        ({"$ref": "#/$defs/none"}, "does not exist"),
        ([], "must be an object or a boolean"),
        ({"type": 5}, "not a valid JSON Schema"),
        ({"$schema": "https://example.com/other"}, "is not supported"),
        ({"pattern": "("}, "not a valid JSON Schema"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: Any, problem: str) -> None:
    assert problem in (describe(schema).problem or "")


def test_a_text_that_is_no_json_says_so() -> None:
    assert "not valid JSON" in (describe_form("{").problem or "")
    assert "not valid JSON" in (describe_form("[" * 100_000).problem or "")


def many(count: int, schema: Any) -> dict[str, Any]:
    return {f"p{number}": schema for number in range(count)}


LARGE: dict[str, Any] = {
    "properties": {"type": "object", "properties": many(20_000, {"type": "string"})},
    "the same large one": {
        "type": "object",
        "properties": many(500, {"$ref": "#/$defs/large"}),
        "$defs": {"large": {"type": "object", "properties": many(20_000, True), "enum": [*range(20_000)]}},
    },
    "doubling": {
        "$defs": {f"d{at}": {"properties": many(10, {"$ref": f"#/$defs/d{at + 1}"})} for at in range(50)},
        "$ref": "#/$defs/d0",
    },
    "doubling at one place": {
        "$defs": {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 10} for at in range(50)},
        "$ref": "#/$defs/d0",
    },
    "alternatives of alternatives": {
        "$defs": {f"d{at}": {"anyOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 20} for at in range(50)},
        "$ref": "#/$defs/d0",
    },
    "alternatives of itself": {"anyOf": [{"$ref": "#"}, {"oneOf": [{"$ref": "#"}, {"$ref": "#"}]}]},
    "texts": {
        "type": "object",
        "properties": many(300, {"$ref": "#/$defs/x"}),
        "$defs": {
            "x": {
                "title": "t" * 100_000,
                "description": "d" * 100_000,
                "default": "v" * 100_000,
                "pattern": "p" * 100_000,
            }
        },
    },
    "values": {"properties": many(300, {"$ref": "#/$defs/x"}), "$defs": {"x": {"enum": [["v" * 50_000]] * 50}}},
    "prefix": {"type": "array", "prefixItems": [{"type": "string"}] * 20_000},
    "names": {"type": "object", "properties": {"n" * 100_000: True}, "required": ["m" * 100_000]},
    "deep": msgspec.json.decode('{"properties":{"a":' * 100 + "{}" + "}}" * 100),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_schema_gives_a_form_within_bounds(name: str) -> None:
    form = describe(LARGE[name])
    assert sum(1 for _ in nodes(form.root)) <= 2 * MOST_NODES
    assert len(msgspec.json.encode(form)) < 4 * MOST_CHARACTERS


# --- generated schemas -----------------------------------------------------------------------------------------

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["a", "b", "~/", "", "$ref"])
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#x", "http://other/", "#/$defs/none", "%"]
)
TYPE = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null", "wrong"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas with any keywords, some of which have values of a wrong type."""
    listed = st.lists(inner, max_size=3)
    by_name = st.dictionaries(NAMES, inner, max_size=3)
    right: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPE | st.lists(TYPE, max_size=3),
        "properties": by_name,
        "patternProperties": by_name,
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "required": st.lists(NAMES, max_size=2),
        "items": inner | listed,
        "prefixItems": listed,
        "additionalItems": inner,
        "allOf": listed,
        "anyOf": listed,
        "oneOf": listed,
        "not": inner,
        "$ref": REFERENCES,
        "$dynamicRef": REFERENCES,
        "$id": st.sampled_from(["http://a/", "#x"]),
        "$anchor": st.just("x"),
        "$schema": st.sampled_from(["http://json-schema.org/draft-07/schema#", "http://other/"]),
        "enum": st.lists(values, max_size=4),
        "enumNames": st.lists(st.text(max_size=3), max_size=4),
        "const": values,
        "default": values,
        "examples": st.lists(values, max_size=2),
        "title": st.text(max_size=5),
        "minimum": st.integers(),
        "maxLength": st.integers(0, 9),
        "uniqueItems": st.booleans(),
        "$defs": st.fixed_dictionaries({"a": inner, "b": inner}),
    }
    any_value = {keyword: strategy | values for keyword, strategy in right.items()}
    return st.fixed_dictionaries({}, optional=any_value).map(lambda found: dict(list(found.items())[:6]))


schemas = st.recursive(st.booleans() | st.just({}) | TYPE.map(lambda name: {"type": name}), keywords, max_leaves=6)


@settings(max_examples=100, deadline=None)
@given(schemas)
def test_each_schema_gives_a_form_and_each_place_in_it_too(schema: Any) -> None:
    text = msgspec.json.encode(schema)
    forms = [describe_form(text)]
    for _ in range(3):
        found = [each for form in forms for each in nodes(form.root)]
        assert len(found) <= 2 * MOST_NODES
        assert all(each.expand is None or each.expand for each in found)
        forms = [describe_form(text, each.expand) for each in found if each.expand][:5]
        for form in forms:
            assert form.problem is None
            assert form.root.expand is None


@settings(max_examples=50, deadline=None)
@given(schemas)
def test_references_lead_back_to_their_subschemas(schema: Any) -> None:
    if not isinstance(schema, (dict, bool)):
        return
    document = FormSchema(msgspec.json.encode(schema))
    for part in document.place(document.top()).parts:
        assert document.resolve(document.reference(part)).schema is part.schema
