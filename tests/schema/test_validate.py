"""Schemas from peers: what is right is compiled, what is hostile is refused, and either takes no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accord.errors import Mismatch, SchemaError
from accord.limits import Limits
from accord.schema.validate import compile

from tests.measure import costs_at_most


@pytest.fixture(autouse=True)
def _takes_a_moment() -> Iterator[None]:
    with costs_at_most(300):  # without bounds it is minutes
        yield


def nested(depth: int, wrap: Callable[[Any], Any], inner: Any) -> Any:
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def array(depth: int) -> Any:
    return nested(depth, lambda inner: [inner], 1)


def test_the_first_failure_is_reported_with_its_path() -> None:
    validator = compile({"properties": {"days": {"items": {"type": "integer"}}}, "required": ["city"]})
    validator.validate({"days": [1], "city": "Oslo"})
    with pytest.raises(Mismatch, match=r'^\$\.days\[1\]: "x" is not of type "integer"$') as caught:
        validator.validate({"days": [1, "x"], "city": "Oslo"})
    assert caught.value.path == "$.days[1]"


@pytest.mark.parametrize("value", [b"x", object(), "\ud800", {1: 2}, {"\ud800": 1}])
def test_what_is_not_json_is_a_mismatch(value: Any) -> None:
    with pytest.raises(Mismatch):
        compile({"type": "integer"}).validate(value)


@pytest.mark.parametrize("schema", [True, {}, {"type": "object"}])
def test_small_schemas_are_fine(schema: Any) -> None:
    compile(schema).validate({})


@pytest.mark.parametrize("schema", [None, [], "x", 1])
def test_a_schema_is_an_object_or_a_boolean(schema: Any) -> None:
    with pytest.raises(SchemaError, match="an object or a boolean"):
        compile(schema)


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"pattern": "("}, {"required": 1}, {"minLength": "\ud800"}])
def test_an_invalid_schema_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError, match="not a valid JSON Schema"):
        compile(schema)


@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-04/schema#",
    ],
)
def test_known_dialects_are_read(dialect: str) -> None:
    with pytest.raises(Mismatch):
        compile({"$schema": dialect, "type": "integer"}).validate("x")


@pytest.mark.parametrize("dialect", ["http://example.com/schema", 3])
def test_an_unknown_dialect_is_named(dialect: Any) -> None:
    with pytest.raises(SchemaError, match=f"dialect .*{dialect}"):
        compile({"$schema": dialect})


def test_the_default_dialect_is_2020_12() -> None:
    with pytest.raises(Mismatch):
        compile({"prefixItems": [{"type": "integer"}]}).validate(["x"])


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json", "//x/y"])
def test_a_reference_outside_is_refused_and_never_fetched(reference: str) -> None:
    with pytest.raises(SchemaError, match="only references inside it"):
        compile({"properties": {"a": {"$ref": reference}}})


@pytest.mark.parametrize("reference", ["#/nope", "#nope", "#/$defs/a/b"])
def test_a_reference_to_nothing_is_refused(reference: str) -> None:
    with pytest.raises(SchemaError, match="which does not exist"):
        compile({"$ref": reference, "$defs": {"a": {"type": "integer"}}})


def test_references_inside_are_followed() -> None:
    schema = {"$defs": {"a/b": {"type": "integer"}, "c": {"$anchor": "c", "type": "string"}}}
    with pytest.raises(Mismatch):
        compile({**schema, "$ref": "#/$defs/a~1b"}).validate("x")
    with pytest.raises(Mismatch):
        compile({**schema, "$ref": "#c"}).validate(1)


def test_a_subschema_with_an_id_is_its_own_root() -> None:
    inner = {"$id": "inner", "$ref": "#/$defs/q", "$defs": {"q": {"type": "integer"}}}
    with pytest.raises(Mismatch):
        compile({"$id": "http://example.com/x", "$defs": {"a": inner}, "$ref": "#/$defs/a"}).validate("x")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": {"$ref": "#"}}},
    ],
)
def test_a_reference_that_goes_round_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError, match="without end"):
        compile(schema)


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_composition_bomb_is_refused(keyword: str) -> None:
    definitions: dict[str, Any] = {f"a{i}": {keyword: [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(30)}
    with pytest.raises(SchemaError, match="costs more than 5,000"):
        compile({"$ref": "#/$defs/a0", "$defs": {**definitions, "a30": {"type": "integer"}}})


def test_a_bomb_without_references_is_refused() -> None:
    with pytest.raises(SchemaError, match="costs more"):
        compile(nested(3, lambda inner: {"oneOf": [inner] * 18}, {"type": "integer"}))


def test_nested_unevaluated_is_exponential_and_refused() -> None:
    wrap: Callable[[Any], Any] = lambda inner: {"anyOf": [inner, {}], "unevaluatedProperties": False}  # noqa: E731
    with pytest.raises(SchemaError, match="costs more"):
        compile(nested(30, wrap, {}))
    compile(nested(3, wrap, {"properties": {"a": {}}})).validate({})


@pytest.mark.parametrize("depth", [129, 10_000])
def test_a_deep_schema_is_refused(depth: int) -> None:
    with pytest.raises(SchemaError, match="levels deep"):
        compile(nested(depth, lambda inner: {"not": inner}, {}))
    with pytest.raises(SchemaError, match="levels deep"):
        compile({"const": array(depth)})


def test_a_long_chain_of_references_is_refused() -> None:
    definitions: dict[str, Any] = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(3000)}
    with pytest.raises(SchemaError, match="64 subschemas deep"):
        compile({"$ref": "#/$defs/a0", "$defs": {**definitions, "a3000": {}}})


def test_the_limits_can_be_changed() -> None:
    schema = {"anyOf": [{}, {}, {}]}
    with pytest.raises(SchemaError):
        compile(schema, Limits(schema_nodes=3))
    compile(schema, Limits(schema_nodes=4))


def test_a_tree_may_be_as_deep_as_a_message() -> None:
    validator = compile({"type": ["array", "integer"], "items": {"$ref": "#"}})
    validator.validate(array(120))
    with pytest.raises(Mismatch, match="nested more than 128"):
        validator.validate(array(20_000))


def test_branches_at_different_places_are_one_tree() -> None:
    validator = compile({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "type": "object"})
    validator.validate(nested(100, lambda inner: {"left": inner, "right": {}}, {}))


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]},
        {"items": {"allOf": [{"$ref": "#"}, {"items": {"$ref": "#"}}]}},
        {"anyOf": [{"items": {"$ref": "#"}, "not": {}}] * 4},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"allOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]}}},
        {"unevaluatedItems": False, "anyOf": [{"items": {"$ref": "#"}}]},
    ],
)
def test_looking_at_one_place_through_many_references_is_bounded_by_the_depth_of_the_value(
    schema: Any,
) -> None:
    validator = compile(schema)
    for depth in range(1, 129):
        try:
            validator.validate(array(depth))
        except Mismatch as exc:
            if "too deep for this schema" in exc.reason:
                return
    pytest.fail("any depth was looked at")


def test_dependent_schemas_that_check_one_member_are_bounded_by_the_depth_of_the_value() -> None:
    validator = compile({"dependentSchemas": {name: {"properties": {"c": {"$ref": "#"}}} for name in "ab"}})
    validator.validate(nested(10, lambda inner: {"a": 1, "b": 1, "c": inner}, {}))
    with pytest.raises(Mismatch, match="too deep for this schema"):
        validator.validate(nested(100, lambda inner: {"a": 1, "b": 1, "c": inner}, {}))


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?=a)(a+)+$", r"(a*)*\1b", "(a|aa)+$", "(?!b)(a|a?)+$"])
def test_a_catastrophic_pattern_ends(pattern: str) -> None:
    with pytest.raises(Mismatch):
        compile({"pattern": pattern}).validate("a" * 30_000 + "!")


def test_look_around_works_on_ordinary_text() -> None:
    validator = compile({"pattern": r"^(?=.*\d)(?=.*[a-z]).{8,}$"})
    validator.validate("correct horse battery staple 1")
    with pytest.raises(Mismatch):
        validator.validate("correct horse battery staple")


def test_a_pattern_too_large_to_compile_is_refused() -> None:
    with pytest.raises(SchemaError):
        compile({"pattern": "(a{1,1000}){1,1000}"})
    with pytest.raises(SchemaError):
        compile({"properties": {f"a{i}": {"pattern": f"(a{{1,100}}){{1,20}}{i}"} for i in range(1000)}})


@pytest.mark.parametrize(
    "schema", [{"pattern": "a" * 1_000_000}, {"patternProperties": {"a|b" * 20_000: {}}}], ids=["one", "of names"]
)
def test_a_long_pattern_is_refused_before_it_is_compiled(schema: Any) -> None:
    with costs_at_most(50), pytest.raises(SchemaError, match="costs more"):
        compile(schema)
    compile({"pattern": "a" * 5_000})


def test_large_values_are_checked_in_time() -> None:
    compile({"uniqueItems": True}).validate([[i] for i in range(20_000)])
    with pytest.raises(Mismatch, match="because the value is too large"):
        compile({"anyOf": [{"items": {"type": "string"}}] * 1000}).validate([1] * 1_500)
    with pytest.raises(Mismatch) as caught:
        compile({"enum": [str(i) for i in range(50_000)]}).validate("x" * 100_000)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("values", [[str(n) for n in range(100_000)], [{"a": n} for n in range(50_000)]])
def test_a_schema_with_too_many_values_is_refused_before_it_is_compiled(values: list[Any]) -> None:
    with costs_at_most(50), pytest.raises(SchemaError, match="the schema has more than 100,000 values"):
        compile({"enum": values})


@pytest.mark.parametrize("place", ["9" * 5_000, "999", "\u0663" * 5_000])
def test_a_reference_to_a_place_that_no_list_has_is_an_error_of_the_schema(place: str) -> None:
    with pytest.raises(SchemaError, match="which does not exist"):
        compile({"allOf": [{"type": "object"}], "properties": {"a": {"$ref": f"#/allOf/{place}"}}})
