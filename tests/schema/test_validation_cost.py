"""A value that would take long to check is refused before; what honest servers send is checked."""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import Mismatch, SchemaError
from accord.limits import Limits
from accord.schema.cost import measure
from accord.schema.subschema_cost import CALLED
from accord.schema.validate import compile
from accord.schema.validation_work import MOST, ValidationWork

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


def work(schema: Any) -> ValidationWork:
    limits = Limits()
    return ValidationWork(schema, measure(schema, limits), limits)


@pytest.mark.parametrize(
    ("schema", "widths"),
    [
        (True, [1, 0]),
        ({}, [1, 0]),
        ({"type": "string", "enum": ["a", "b"]}, [1, 0]),
        ({"enum": ["a", 1, None]}, [10, 0]),
        ({"enum": [1, 2, 10**30]}, [10, 0]),
        ({"anyOf": [{"const": 1}, {"const": 2}]}, [5, 0]),
        ({"items": {"anyOf": [{"const": 1}, {"const": 2}]}}, [1, 5, 0]),
        ({"prefixItems": [{}, {}, {}], "items": {}, "contains": {}}, [1, 3, 0]),
        ({"properties": {"a": {}, "b": {}, "c": {}}}, [1, 1, 0]),
        ({"properties": {"a": {"not": {}}, "b": {}}, "additionalProperties": {}}, [1, 3, 0]),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {}}}]}, [3, 2, 0]),
        ({"allOf": [{"$ref": "#/$defs/two"}, {"$ref": "#/$defs/two"}], "$defs": {"two": {"allOf": [{}, {}]}}}, [9, 0]),
        (TREE, [2, 2, 2, 2]),
        ({"items": {"const": [1, [2, 3]]}}, [1, 14, 0]),
        ({"uniqueItems": True}, [1, CALLED, CALLED]),
        (
            {"properties": {"a": {"uniqueItems": True, "items": {"uniqueItems": True}}}},
            [1, 1, 1 + CALLED, 2 * CALLED, 2 * CALLED],
        ),
        ({"multipleOf": 0.01}, [1 + CALLED, 0]),
        ({"required": ["a", "b"], "dependentRequired": {"a": ["b"]}}, [5, 0]),
        ({"items": {"$ref": "#"}}, [1, 2, 2]),
        ({"dependentSchemas": {"a": {}, "b": {}}}, [3, 0]),
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
        ({"items": {"not": {"enum": [*range(40_000)]}}}, [1.5] * 1_000),
        ({"items": {"not": {"enum": [{"b": n} for n in range(40_000)]}}}, [{"b": -1}] * 1_000),
        ({"items": {"not": {"enum": [[0] * 98 + [n] for n in range(990)]}}}, [[0] * 98 + [-1]] * 1_990),
        ({"allOf": [{"uniqueItems": True}] * 100}, [*range(100_000)]),
        ({"uniqueItems": True, "items": {"$ref": "#"}}, nested_array(120, [*range(100_000)])),
        ({"additionalProperties": {"oneOf": [{"const": n} for n in range(4_000)]}}, dict.fromkeys(NAMES, 1)),
        ({"propertyNames": {"anyOf": [{"const": name} for name in NAMES[:4_000]]}}, dict.fromkeys(NAMES, 1)),
        ({"patternProperties": {f"{n}.*z$": True for n in range(150)}}, {f"k{n}": 1 for n in range(50_000)}),
        ({"allOf": [{"items": {"multipleOf": n}} for n in range(1, 20)]}, [0.0] * 100_000),
        ({"allOf": [{"$ref": "#/$defs/n"}] * 1_000, "$defs": {"n": {"required": NAMES}}}, dict.fromkeys(NAMES, 1)),
    ],
    ids=[
        "anyOf", "contains", "enum", "enum of numbers", "not enum", "enum of arrays", "uniqueItems",
        "nested uniqueItems", "oneOf", "propertyNames", "patternProperties", "multipleOf", "required",
    ],
)  # fmt: skip
def test_a_value_that_would_take_long_is_refused_unlooked_at(schema: Any, value: Any) -> None:
    with pytest.raises(Mismatch, match="too large for this schema"):
        compile(schema).validate(value)


@pytest.mark.parametrize("digits", [100, 1_000, 4_000])
def test_long_numbers_are_not_compared_by_many_subschemas(digits: int) -> None:
    validator = compile({"items": {"allOf": [{"minimum": n} for n in range(200)]}})
    validator.validate([10**digits])
    with costs_at_most(300), pytest.raises(Mismatch, match="too many digits for this schema"):
        validator.validate([10**digits] * 4_000)


def test_a_few_numbers_of_many_digits_are_checked() -> None:
    key = {"properties": {name: {"type": "integer", "minimum": 0} for name in ("n", "e", "d", "p", "q")}}
    compile({"items": key}).validate([{"n": 2**4_096, "e": 65_537, "d": 2**4_095, "p": 2**2_048, "q": 2**2_047}] * 100)


@pytest.mark.parametrize("arm", [{"type": "integer"}, {"properties": {"a": {"type": "integer"}}}])
def test_failures_of_many_arms_do_not_copy_a_long_text(arm: Any) -> None:
    with pytest.raises(Mismatch, match="at a place that was not searched for"):
        compile({"anyOf": [arm] * 1_000}).validate({"a": "x" * 1_000_000} if "properties" in arm else "x" * 1_000_000)


@pytest.mark.parametrize("keyword", ["enum", "const", "required", "dependentRequired"])
def test_failures_of_many_arms_do_not_copy_what_is_long_in_the_schema(keyword: str) -> None:
    long = "x" * 1_000_000
    value = {"enum": [long], "const": long, "required": [long], "dependentRequired": {"a": [long]}}[keyword]
    with pytest.raises(Mismatch, match="at a place that was not searched for"):
        compile({"anyOf": [{"$ref": "#/$defs/x"}] * 500, "$defs": {"x": {keyword: value}}}).validate({"a": 1})


@pytest.mark.parametrize(("parts", "reason"), [(1_000, 'is not of type "string"'), (300_000, "was not searched for")])
def test_a_single_failure_does_not_copy_very_many_values(parts: int, reason: str) -> None:
    with pytest.raises(Mismatch, match=reason):
        compile({"type": "string"}).validate([[number] for number in range(parts)])


def test_failures_of_many_arms_do_not_copy_many_values() -> None:
    value = [[{"a": {"a": [0, number]}}] for number in range(3_000)]
    with costs_at_most(100), pytest.raises(Mismatch, match="at a place that was not searched for"):
        compile({"anyOf": [{"enum": [-1]}] * 440}).validate(value)


GOES_BACK = {"pattern": "(a*)*(?=b)b"}
LONG = "a" * 50


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"propertyNames": GOES_BACK}, {f"{LONG}{number}": 1 for number in range(2_000)}),
        (
            {"allOf": [{"properties": {"a": GOES_BACK}}, *[{"type": "integer"}] * 2_000]},
            {"a": LONG, "b": "x" * 100_000},
        ),
    ],
    ids=["names", "text"],
)
def test_failures_beside_a_pattern_that_goes_back_too_often_are_not_all_copied(schema: Any, value: Any) -> None:
    with costs_at_most(100), pytest.raises(Mismatch, match="at a place that was not searched for"):
        compile(schema).validate(value)


def test_the_place_of_a_text_that_goes_back_too_often_is_reported_in_a_small_value() -> None:
    validator = compile({"properties": {"rows": {"items": {"properties": {"a": GOES_BACK}}}}})
    with pytest.raises(Mismatch, match=r"^\$\.rows\[1\]\.a: too much work for the text"):
        validator.validate({"rows": [{"a": "bb"}, {"a": LONG}]})


def test_failures_of_many_arms_do_not_copy_long_paths() -> None:
    schema = {"anyOf": [{"properties": {"x" * 8_000: {"anyOf": [{"type": "null"}] * 2_000}}}, {"type": "null"}]}
    with pytest.raises(Mismatch, match="at a place that was not searched for"):
        compile(schema).validate({"x" * 8_000: 1})


@pytest.mark.parametrize(
    ("keywords", "value"),
    [
        ({"maxLength": 1_500_000}, "é" * 1_000_000),
        ({"uniqueItems": True}, ["é" * 500_000, "e" * 500_000]),
        ({"uniqueItems": True}, [{"é" * 1_000_000: 1}, 0]),
        ({"propertyNames": {"maxLength": 1_500_000}}, {"é" * 1_000_000: 1}),
        ({"items": {"not": {"const": "é" * 999_999 + "e"}}}, ["é" * 1_000_000]),
    ],
    ids=["maxLength", "uniqueItems", "names of unique items", "propertyNames", "const"],
)
def test_a_long_text_is_not_read_by_many_subschemas(keywords: Any, value: Any) -> None:
    with pytest.raises(Mismatch, match="too much text for this schema"):
        compile({"allOf": [{"$ref": "#/$defs/x"}] * 500, "$defs": {"x": keywords}}).validate(value)


def test_a_long_text_is_not_read_by_nested_arrays_of_unique_items() -> None:
    with pytest.raises(Mismatch, match="too much text for this schema"):
        compile({"uniqueItems": True, "items": {"$ref": "#"}}).validate(nested_array(60, "é" * 500_000))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"uniqueItems": True}, ["é" * 3_000_000, "e" * 3_000_000]),
        (
            {"properties": {f"k{n}": {"maxLength": 100_000} for n in range(300)}},
            {f"k{n}": "é" * 20_000 for n in range(300)},
        ),
        ({"items": {"required": ["a"], "properties": {"a": {"maxLength": 9_000}}}}, [{"a": "é" * 9_000}] * 500),
        ({"items": {"multipleOf": 0.01}}, [1.25] * 100_000),
        ({"uniqueItems": True}, [*range(100_000)]),
    ],
    ids=["unique texts", "fields", "rows", "amounts", "unique numbers"],
)
def test_much_text_and_many_numbers_of_honest_servers_are_checked(schema: Any, value: Any) -> None:
    compile(schema).validate(value)


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


def test_the_references_of_a_schema_to_itself_are_counted_in_a_moment() -> None:
    schema: dict[str, Any] = {"properties": {f"p{n}": {"$ref": "#/$defs/whole"} for n in range(2_000)}}
    for _ in range(50):
        schema = {"items": schema}
    with pytest.raises(SchemaError, match="refers to itself in too many ways"):
        measure({"$ref": "#/$defs/whole", "$defs": {"whole": schema}}, Limits())


def test_definitions_that_nothing_refers_to_cost_nothing() -> None:
    slow = {f"d{n}": {"pattern": f"(?<=a{{100}})[a-z]{{400}}{n}", "description": "(?<=a)" * 10_000} for n in range(30)}
    unused = {"x": {"allOf": [{"$ref": "#/$defs/x"}] * 5_000}, **slow}
    with costs_at_most(30):
        compile({"$defs": unused, "description": "(?<=a)(?:a|b)*" * 100_000}).validate(1)


def bomb(keyword: str) -> dict[str, Any]:
    """Definitions of which one takes 2**40 steps."""
    place = f"#/{keyword}"
    steps = {f"b{n + 1}": {"allOf": [{"$ref": f"{place}/b{n}"}, {"$ref": f"{place}/b{n}"}]} for n in range(40)}
    return {"b0": {"minimum": 0}, **steps, "b": {"$ref": f"{place}/b40"}}


DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
LITTLE: dict[str, Any] = {name: {} for name in bomb("$defs")}
TO_IT = [{"$ref": "#/$defs/b"}]
OLD: dict[str, Any] = {"definitions": bomb("definitions")}
OLD_LITTLE: dict[str, Any] = {"definitions": LITTLE}
OLD_TO_IT = [{"$ref": "#/definitions/b"}]


@pytest.mark.parametrize(
    "schema",
    [
        {**DRAFT_4, **OLD_LITTLE, "allOf": [{"id": "http://x/y", **OLD, "allOf": OLD_TO_IT}]},
        {**DRAFT_4, **OLD, "allOf": [{"$id": "http://x/y", **OLD_LITTLE, "allOf": OLD_TO_IT}]},
        {**DRAFT_7, **OLD, "allOf": [{"$id": "http://x/y", **OLD_LITTLE, **OLD_TO_IT[0]}]},
        {
            "$defs": {**LITTLE, "q": {"$id": "q", "$defs": bomb("$defs"), "not": {"allOf": TO_IT}}},
            "$ref": "#/$defs/q/not",
        },
        {"$defs": bomb("$defs"), "allOf": [{"$id": "", "$defs": LITTLE, "allOf": TO_IT}]},
        {"$id": "http://x/", "$defs": bomb("$defs"), "allOf": [{"$id": "http://x/", "$defs": LITTLE, "allOf": TO_IT}]},
        {
            "$id": "http://x/",
            "$defs": {**bomb("$defs"), "n": {"$dynamicAnchor": "n", "allOf": TO_IT}},
            "allOf": [{"$id": "y", "$defs": {"n": {"$dynamicAnchor": "n"}}, "$dynamicRef": "#n"}],
        },
        {"$defs": {**bomb("$defs"), "one": {"$anchor": "n"}, "two": {"$anchor": "n", "allOf": TO_IT}}, "$ref": "#n"},
        {"$defs": {**bomb("$defs"), "two": {"$anchor": "n", "allOf": TO_IT}, "one": {"$anchor": "n"}}, "$ref": "#n"},
    ],
    ids=[
        "id of draft 4", "$id in draft 4", "$id beside $ref", "pointer into a resource", "empty $id", "one $id twice",
        "dynamic anchor", "one anchor twice", "one anchor twice, reversed",
    ],
)  # fmt: skip
def test_a_reference_counts_for_each_place_that_it_may_lead_to(schema: Any) -> None:
    with pytest.raises(SchemaError, match=r"64 subschemas deep|more than 5,000 subschemas"):
        compile(schema)


def test_a_schema_with_many_ids_is_refused_before_each_is_resolved() -> None:
    many = {f"d{n}": {"$id": f"d{n}", "properties": {"a": {"$ref": "#"}} if n < 4 else {}} for n in range(40)}
    compile({"$defs": many, "properties": {f"p{n}": {"$ref": f"#/$defs/d{n}"} for n in range(40)}}).validate({})
    for identified in ({f"d{n}": {"$id": f"d{n}"} for n in range(101)}, {"d": {"$id": "http://x/" + "a" * 17_000}}):
        with pytest.raises(SchemaError, match="more than 50 subschemas with an"):
            compile({"$defs": identified})


@pytest.mark.parametrize("keyword", ["$anchor", "$ref", "$dynamicRef"])
def test_long_names_that_each_reference_would_copy_are_refused(keyword: str) -> None:
    schema = {"$defs": {"x": {keyword: "#/" + "x" * 10_000}}, "allOf": [{"$ref": "#/$defs/x"}] * 500}
    with pytest.raises(SchemaError, match="10,002 characters, expected at most 8,192"):
        compile(schema)


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
        ({"pattern": r"(?!(?:(.*)){15})z"}, "a" * 30_000),
        ({"pattern": r"(a?)(?=(?:(?:(?:[ab]*){15}[ab]*a|((?:[ab]*){15}))){15})z"}, "a" * 3_000),
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
    with (
        costs_at_most(100),
        pytest.raises(Mismatch, match=r"too much work for|too much text for the patterns|not valid under any"),
    ):
        validator.validate(value)


@pytest.mark.parametrize("pattern", [HONEST, r"^(?!\s*$)[\s\S]+$", r"^(?!.*<script)[\s\S]*$"])
def test_a_long_text_fits_an_honest_pattern_with_look_around(pattern: str) -> None:
    compile({"pattern": pattern}).validate("a1" * 2_000_000)


def test_a_long_text_beside_one_with_look_around_takes_nothing_from_it() -> None:
    schema = {"properties": {"name": {"pattern": "^(?:(?!--)[a-z-])+$"}, "content": {"type": "string"}}}
    compile(schema).validate({"name": "a-b" * 100, "content": "a" * 8_000_000})
    lists = {"properties": {"rows": {"items": {"prefixItems": [schema["properties"]["name"]]}}}}
    compile(lists).validate({"rows": [["a-b" * 30, "a" * 8_000]] * 100})
