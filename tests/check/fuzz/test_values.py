"""Values made of JSON Schemas: those that should fit do, those that should not do not, for every schema there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord import Client
from accord.check.fuzz.boundaries import boundaries
from accord.check.fuzz.invalid_values import invalid_variants
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.check.fuzz.values import draw_values, values
from accord.errors import Mismatch, SchemaError
from accord.schema.validate import compile

from tests.check.fuzz.corpus import CORPUS, SAMPLES, SCHEMAS, TREE

EVERYTHING = Path(__file__).parents[3] / "examples" / "everything.py"

every_schema = pytest.mark.parametrize("schema", CORPUS.values(), ids=CORPUS.keys())


def fits(schema: Any, value: Any) -> bool:
    """As the schema stands, with none of its parts moved."""
    try:
        compile(schema).validate(value)
    except Mismatch:
        return False
    return True


@every_schema
def test_the_smallest_value_fits_and_is_the_same_again(schema: Any) -> None:
    value = smallest(schema)
    assert fits(schema, value)
    assert msgspec.json.encode(smallest(schema)) == msgspec.json.encode(value)


@every_schema
def test_every_value_that_is_drawn_fits(schema: Any) -> None:
    found = draw_values(schema, 60, seed=1)
    assert found
    assert all(fits(schema, value) for value in found)


@every_schema
def test_every_edge_fits_and_every_breach_does_not(schema: Any) -> None:
    edges = list(boundaries(schema))
    assert edges
    assert all(fits(schema, edge.value) for edge in edges)
    assert not any(fits(schema, breach.value) for breach in invalid_variants(schema))


async def test_every_tool_of_the_example_has_all_kinds_of_values() -> None:
    async with Client(str(EVERYTHING)) as client:
        schemas = [tool.input_schema for tool in await client.list_tools()]
    assert len(schemas) > 20
    for schema in schemas:
        assert fits(schema, smallest(schema))
        assert all(fits(schema, value) for value in draw_values(schema, 20, seed=2))
        assert all(fits(schema, edge.value) for edge in boundaries(schema))
        assert not any(fits(schema, breach.value) for breach in invalid_variants(schema))


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(schema=SCHEMAS, data=st.data())
def test_of_any_schema_a_value_is_made_if_a_small_one_fits(schema: Any, data: st.DataObject) -> None:
    try:
        compile(schema)
    except SchemaError:
        return
    try:
        strategy = values(schema)
    except GenerationError:
        assert not [sample for sample in SAMPLES if fits(schema, sample)]
        return
    assert fits(schema, smallest(schema))
    assert fits(schema, data.draw(strategy))
    assert all(fits(schema, edge.value) for edge in boundaries(schema))
    assert not any(fits(schema, breach.value) for breach in invalid_variants(schema))


def test_a_text_of_other_letters_is_tried_where_a_pattern_is_forbidden() -> None:
    schema = {"not": {"pattern": "^a*$"}}
    assert fits(schema, smallest(schema))


@pytest.mark.parametrize(
    "schema",
    [False, {"not": {}}, {"type": "integer", "minimum": 2, "maximum": 1}, {"enum": [1], "type": "string"}],
)
def test_a_schema_that_nothing_fits_is_refused(schema: Any) -> None:
    with pytest.raises(GenerationError):
        smallest(schema)
    with pytest.raises(GenerationError):
        values(schema)


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"$ref": "https://example.com/x"}, {"$ref": "#"}, 5])
def test_a_schema_that_cannot_be_used_is_refused(schema: Any) -> None:
    with pytest.raises(GenerationError):
        smallest(schema)


def test_a_tree_that_cannot_end_is_refused_in_bounded_time() -> None:
    endless = {"type": "object", "required": ["child"], "properties": {"child": {"$ref": "#"}}}
    with pytest.raises(GenerationError):
        smallest(endless)


def test_the_smallest_value_has_nothing_that_need_not_be_there() -> None:
    assert smallest(TREE) == {"name": "a", "children": []}
    assert smallest(CORPUS["an object"]) == {"b": 0}
    assert smallest({"type": "string", "examples": ["Oslo"], "default": "Rome"}) == "Oslo"
    assert smallest({"type": "string", "default": "Rome"}) == "Rome"


def test_drawn_values_reach_deep_and_wide() -> None:
    found = [json.dumps(value) for value in draw_values(TREE, 200, seed=3)]
    assert any(text.count("children") > 3 for text in found)
    assert len(set(found)) > 50


def test_the_same_seed_draws_the_same_values() -> None:
    schema = CORPUS["one of, told apart"]
    assert draw_values(schema, 50, seed=7) == draw_values(schema, 50, seed=7)
    assert draw_values(schema, 50, seed=7) != draw_values(schema, 50, seed=8)


def test_edges_are_at_the_bounds() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 9}}}
    found = [edge.value.get("n") for edge in boundaries(schema)]
    assert {3, 4, 8, 9, None} == set(found)
    lengths = {len(edge.value) for edge in boundaries({"type": "string", "minLength": 2, "maxLength": 6})}
    assert {2, 6} <= lengths


def test_breaches_say_what_is_wrong_and_where() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "maximum": 9},
            "s": {"enum": ["a"]},
            "t": {"minLength": 2, "type": "string"},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    found = {(breach.wrong, breach.path) for breach in invalid_variants(schema)}
    assert {
        ("missing", "$"),
        ("extra", "$"),
        ("kind", "$.n"),
        ("range", "$.n"),
        ("value", "$.s"),
        ("length", "$.t"),
    } <= found
    one = next(breach for breach in invalid_variants(schema) if breach.wrong == "range")
    assert one.value["n"] == 10
    assert "too large" in one.what
