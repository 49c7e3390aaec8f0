"""What changed in what a server offers is told apart: what breaks, what is risky, what is safe."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings, strategies as st

from accord.check.fuzz.schema_document import GenerationError, SchemaDocument
from accord.check.fuzz.values import values
from accord.check.surface.changes import surface_changes
from accord.check.surface.diff import Comparison, compare, comparison_lines
from accord.check.surface.schema_changes import Change, worst_kind
from accord.check.surface.schema_location import ComparedSchema, as_input
from accord.check.surface.schemas import schema_changes
from accord.check.surface.surface import build_surface, encode_surface, fetch_surfaces, surface_file
from accord.errors import ConnectError, TargetError
from accord.messages.revision import REVISIONS
from accord.messages.tools import Tool

from tests.testing.shops import shop

STRING, INTEGER, NUMBER, NULL = ({"type": name} for name in ("string", "integer", "number", "null"))


def of(*required: str, more: Any = None, **properties: Any) -> dict[str, Any]:
    """The schema of an object; `more` is its `additionalProperties`."""
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, **({"required": [*required]} if required else {}), **({} if more is None else _more(more))}


def _more(more: Any) -> dict[str, Any]:
    return {"additionalProperties": more}


def kinds(old: Any, new: Any, *, sent: bool) -> dict[str, str]:
    """The kind of each change between two schemas, by its place."""
    return {each.place: each.kind for each in schema_changes(old, new, (), sent=sent)}


TREE = {"$defs": {"T": of(value=INTEGER, more=False, below={"type": "array", "items": {"$ref": "#/$defs/T"}})}}
WIDE = {"$defs": {"T": of(value=NUMBER, more=False, below={"type": "array", "items": {"$ref": "#/$defs/T"}})}}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}

SCHEMAS = [
    # the old schema, the new one, how bad it is for what is sent, and for what is read
    (of(a=STRING), of(a=STRING, b=INTEGER), "safe", "safe"),
    (of(a=STRING, more=False), of(a=STRING, b=INTEGER, more=False), "safe", "breaking"),
    (of(a=STRING, more=True), of(a=STRING, b=INTEGER, more=True), "risky", "safe"),
    (of(a=STRING), of("b", a=STRING, b=INTEGER), "breaking", "safe"),
    (of(a=STRING), of("a", a=STRING), "breaking", "safe"),
    (of("a", a=STRING), of(a=STRING), "safe", "breaking"),
    (of(a=STRING), of(), "breaking", "risky"),
    (of("a", a=STRING), of(), "breaking", "breaking"),
    (of(a=INTEGER), of(a=NUMBER), "safe", "breaking"),
    (of(a=STRING), of(a={"type": ["string", "null"]}), "safe", "breaking"),
    (of(a={"enum": ["x", "y"]}), of(a={"enum": ["x"]}), "breaking", "safe"),
    (of(a={"enum": ["x"]}), of(a=STRING), "safe", "breaking"),
    (of(a=STRING), of(a={"type": "string", "maxLength": 9}), "breaking", "safe"),
    (of(a={"type": "integer", "minimum": 1}), of(a={"type": "integer", "minimum": 0}), "safe", "breaking"),
    (of(a=STRING), of(a={"type": "string", "format": "email"}), "risky", "safe"),
    (of(a={"type": "string", "pattern": "^a+$"}), of(a={"type": "string", "pattern": "^a*$"}), "risky", "breaking"),
    (of(a=STRING), of(a=STRING, more=False), "risky", "safe"),
    (of(a=STRING, more=True), of(a=STRING, more=False), "breaking", "safe"),
    (of(a={"type": "array", "items": INTEGER}), of(a={"type": "array", "items": NUMBER}), "safe", "breaking"),
    ({**TREE, "$ref": "#/$defs/T"}, {**WIDE, "$ref": "#/$defs/T"}, "safe", "breaking"),
    (of(a={"anyOf": [of(b=INTEGER), NULL]}), of(a={"anyOf": [NULL, of(b=NUMBER)]}), "safe", "breaking"),
    ({**DRAFT_7, **of(a=STRING, more=False)}, of(a=STRING, more=False), "safe", "safe"),
    ({"allOf": [of(a=STRING), of(b=STRING)]}, of(a=STRING, b=STRING), "safe", "safe"),
    ({"$defs": {"A": STRING}, **of(a={"$ref": "#/$defs/A"})}, of(a=STRING), "safe", "safe"),
    (of(a={"type": "string", "default": "x"}), of(a={"type": "string", "default": "y"}), "risky", "safe"),
    (of(a={"type": "string", "description": "x"}), of(a={"type": "string", "description": "y"}), "risky", "risky"),
    (of(a={"type": "string", "title": "x"}), of(a={"type": "string", "title": "y"}), "safe", "safe"),
    (of(a={"type": "string", "x-mcp-header": "x"}), of(a=STRING), "risky", "risky"),
    ({"$ref": "https://example.com/schema"}, of(a=STRING), "risky", "risky"),
    (of(a={"not": STRING}), of(a={"not": {"type": ["string", "null"]}}), "breaking", "safe"),
    (of(a=True), of(a=False), "breaking", "safe"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sent", "read"), SCHEMAS)
def test_a_change_of_a_schema_is_judged_by_who_keeps_to_it(old: Any, new: Any, sent: str, read: str) -> None:
    assert worst_kind(schema_changes(old, new, (), sent=True)) == sent
    assert worst_kind(schema_changes(old, new, (), sent=False)) == read


def test_the_place_of_a_change_is_as_deep_as_can_be() -> None:
    old = of(a={"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}, b={"type": "array", "items": of(c=STRING)})
    new = of(a={"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}, b={"type": "array", "items": of("c", c=STRING)})
    assert kinds({**old, "$defs": {"B": of(d=NUMBER)}}, {**new, "$defs": {"B": of(d=INTEGER)}}, sent=True) == {
        "properties.a.anyOf.0.properties.d.type": "breaking",
        "properties.b.items.required": "breaking",
    }


def test_a_change_comes_with_a_value_that_shows_it() -> None:
    (change,) = schema_changes(of(a={"enum": ["x", "y"]}), of(a={"enum": ["x", "z"]}), (), sent=True)
    assert (change.what, change.why) == ('without "y", with "z"', '"y" was accepted, and is now rejected')


def test_the_same_meaning_in_other_words_is_no_change() -> None:
    assert kinds(of("a", "b", a=STRING, b=STRING), of("b", "a", b=STRING, a=STRING), sent=True) == {}
    assert kinds(of(a={"anyOf": [STRING, INTEGER]}), of(a={"type": ["integer", "string"]}), sent=False) == {}


HIDDEN: list[Any] = [
    ({"allOf": [{"description": "Run it twice."}]}, "allOf.0.description"),
    ({"$defs": {"A": {"description": "Run it twice."}}}, "$defs.A.description"),
    ({"propertyNames": {"description": "Run it twice."}}, "propertyNames.description"),
    ({"if": {"description": "Run it twice."}}, "if.description"),
    ({"properties": {"a": {"type": "array", "items": {"description": "Run it."}}}}, "properties.a.items.description"),
    ({"anyOf": [True, {"const": "Run it twice."}]}, "anyOf.1.const"),
    ({"anyOf": [True, {"properties": {"Run it twice.": {}}}]}, "anyOf.1.properties.Run it twice."),
    ({"anyOf": [True, {"required": ["Run it twice."]}]}, "anyOf.1.required"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "place"), HIDDEN)
def test_new_text_for_models_is_reported_where_it_refuses_nothing(more: Any, place: str) -> None:
    old = of(a={"type": "array"})
    assert kinds(old, {**old, **more}, sent=True)[place] == "risky"


def test_text_of_new_members_is_reported_with_them() -> None:
    added = {"type": "string", "description": "x", "enum": ["k"], "default": "k", "title": "X"}
    assert kinds(of(a=STRING), of(a=STRING, b=added), sent=True) == {"properties.b": "safe"}


def test_many_values_of_an_enum_are_counted() -> None:
    many = ({"enum": [f"{letter}{number}" for number in range(30_000)]} for letter in "xy")
    (change,) = schema_changes(*(of(a=each) for each in many), (), sent=True)
    assert change.what.startswith('without "x0", without "x1"')
    assert change.what.endswith(", and 59,950 more")


# --- the classes and validation agree ------------------------------------------------------------------------------

LEAF_SCHEMAS: list[Any] = [
    {"type": "null"}, {"type": "boolean"}, INTEGER, NUMBER, STRING, True, {"type": ["string", "null"]},
    {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 2, "maximum": 5}, {"multipleOf": 2},
    {"type": "number", "exclusiveMaximum": 3}, {"type": "string", "minLength": 2},
    {"type": "string", "maxLength": 3},
    {"type": "string", "pattern": "^a"}, {"enum": ["x", 1, None]}, {"enum": ["x"]}, {"const": 1},
    {"type": "object"}, {"type": "array"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"not": STRING},
]  # fmt: skip

LEAVES = st.sampled_from(LEAF_SCHEMAS)

DEFINITIONS = {"A": {"enum": [1, "a"]}, "B": of(b=INTEGER)}
NUMBERS: list[Any] = [0, 1, 2, 3, 4, 5, 6, 8, -1, -2, 0.5, 2.5, 4.5]
TEXTS: list[Any] = ["", "a", "ab", "abcd", "b", "x", "xy", "wxyz"]
SCALARS: list[Any] = [None, True, False, *NUMBERS, *TEXTS, [], ["x"], {}, {"b": 1}, {"b": "x"}]

Pair = tuple[Any, Any]
NAMES = st.sampled_from(["a", "b", "c"])
PRESENT = st.sampled_from([(True, True), (True, True), (True, False), (False, True)])


def both(one: Any, make: Any) -> Pair:
    return make(one[0]), make(one[1])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    members = draw(st.dictionaries(NAMES, st.tuples(inner, PRESENT, st.booleans(), st.booleans()), max_size=3))
    made = []
    for side in (0, 1):
        there = {name: pair[side] for name, (pair, present, *_) in members.items() if present[side]}
        required = [name for name, each in members.items() if name in there and each[2 + side]]
        more = draw(st.sampled_from([{}, {}, {"additionalProperties": False}, {"additionalProperties": INTEGER}]))
        made.append({"type": "object", "properties": there, "required": required, **more})
    return made[0], made[1]


@st.composite
def choices(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    keyword = draw(st.sampled_from(["anyOf", "anyOf", "oneOf", "allOf"]))
    arms = draw(st.lists(inner, min_size=1, max_size=3))
    one, other = ([pair[side] for pair in arms] for side in (0, 1))
    kept = draw(st.integers(1, len(other)))
    return {keyword: one}, {keyword: other[:kept]}


PAIRS: st.SearchStrategy[Pair] = st.recursive(
    LEAVES.map(lambda leaf: (leaf, leaf)) | st.tuples(LEAVES, LEAVES),
    lambda inner: (
        objects(inner)
        | choices(inner)
        | inner.map(lambda pair: both(pair, lambda each: {"type": "array", "items": each, "maxItems": 2}))
    ),
    max_leaves=6,
)


@st.composite
def whole(draw: st.DrawFn) -> Pair:
    """Two schemas of objects, with definitions of their own, one of which contains itself."""
    pair, named = draw(objects(PAIRS)), draw(st.tuples(LEAVES, LEAVES))
    below = {"type": "array", "items": {"$ref": "#/$defs/B"}}
    made = [
        {
            **one,
            "$defs": {"A": {"enum": [1, "a"]}, "B": {"type": "object", "properties": {"below": below, "of": inner}}},
        }
        for one, inner in zip(pair, named, strict=True)
    ]
    return tuple(json.loads(json.dumps(made)))  # as it is read: nothing in it is the same object twice


def by_its_values(tried: list[Any], schema: Any) -> list[str]:
    """Those that a schema accepts, as JSON: true is not 1."""
    whole = SchemaDocument(schema)
    return [json.dumps(value) for value in tried if whole.matches(value)]


def test_of_any_two_leaves_the_classes_are_what_validation_says() -> None:
    """What a value tells apart is never safe, and what none does is never breaking; but for a member that is gone."""
    members = [(of("a", a=leaf) | {"$defs": DEFINITIONS}) for leaf in LEAF_SCHEMAS if leaf != {"$ref": "#/$defs/B"}]
    tried = [{"a": value} for value in SCALARS]
    accepted = [by_its_values(tried, schema) for schema in members]
    for old, before in zip(members, accepted, strict=True):
        for new, after in zip(members, accepted, strict=True):
            sent, read = (worst_kind(schema_changes(old, new, (), sent=each)) for each in (True, False))
            assert sent in (("safe", "risky") if set(before) <= set(after) else ("risky", "breaking")), (old, new)
            assert read in (("safe", "risky") if set(after) <= set(before) else ("risky", "breaking")), (old, new)


def test_an_object_without_a_schema_may_hold_anything() -> None:
    old, new = of(a={"type": "object"}), of(a=of(b=INTEGER))
    assert kinds(old, new, sent=True) == {"properties.a.properties.b": "risky"}
    assert kinds({"type": "object"}, of(b=INTEGER), sent=True) == {"properties.b": "safe"}


SHAPES = [
    {"type": "object", "properties": there, "required": required, **more}
    for there in ({}, {"a": INTEGER}, {"a": STRING}, {"a": INTEGER, "b": STRING})
    for required in ([], ["a"])
    for more in ({}, {"additionalProperties": False}, {"additionalProperties": True}, {"additionalProperties": STRING})
    if set(required) <= there.keys()
]


def test_of_any_two_objects_nothing_that_is_refused_is_safe() -> None:
    tried = [{}, {"a": 1}, {"a": "x"}, {"a": 1, "b": "x"}, {"a": "x", "c": "x"}, {"c": 1}, {"c": "x"}]
    accepted = [by_its_values(tried, schema) for schema in SHAPES]
    made = [by_its_values(tried, as_input(schema)) for schema in SHAPES]
    for old, sends, reads in zip(SHAPES, made, accepted, strict=True):
        for new, comes, takes in zip(SHAPES, made, accepted, strict=True):
            if any(value not in takes for value in sends):
                assert worst_kind(schema_changes(old, new, (), sent=True)) != "safe", (old, new)
            if any(value not in reads for value in comes):
                assert worst_kind(schema_changes(old, new, (), sent=False)) != "safe", (old, new)


def drawn(data: st.DataObject, schema: Any) -> Any:
    """A value that fits, made by somebody who sends what the schema names and nothing else."""
    try:
        return data.draw(values(as_input(schema)))
    except GenerationError:  # nothing fits
        reject()


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data(), whole())
def test_what_was_accepted_and_is_refused_is_never_safe(data: st.DataObject, pair: Pair) -> None:
    old, new = pair
    if not SchemaDocument(new).matches(drawn(data, old)):
        assert worst_kind(schema_changes(old, new, (), sent=True)) != "safe"


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data(), whole())
def test_what_may_come_and_was_ruled_out_is_never_safe(data: st.DataObject, pair: Pair) -> None:
    old, new = pair
    if not SchemaDocument(old).matches(drawn(data, new)):
        assert worst_kind(schema_changes(old, new, (), sent=False)) != "safe"


def test_a_choice_that_refers_to_itself_is_like_itself() -> None:
    tree = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/B"}}}}
    schema = of(b={"oneOf": [{"multipleOf": 2}, {"$ref": "#/$defs/B"}]}) | {"$defs": {"B": tree}}
    assert kinds(schema, {**schema, "$comment": "x"}, sent=True) == {"$comment": "safe"}


def test_unchanged_members_that_refer_to_a_recursive_choice_are_no_change() -> None:
    tree = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/B"}}}}
    more = {"oneOf": [{"multipleOf": 2}, {"$ref": "#/$defs/B"}]}
    old, new = ({**of(more=more, **members), "$defs": {"B": tree}} for members in ({"a": {}}, {"a": {}, "b": {}}))
    assert kinds(old, new, sent=True) == {"properties.b": "safe"}


def test_a_location_with_a_recursive_reference_of_2019_09_is_self_contained() -> None:
    children = {"type": "array", "items": {"$recursiveRef": "#"}}
    properties = {"name": {"type": "string"}, "children": children}
    dialect = "https://json-schema.org/draft/2019-09/schema"
    root = ComparedSchema({"$schema": dialect, "type": "object", "properties": properties}).root
    location = root.at_schemas(root.keyword_values("properties")[0]["children"])
    document = SchemaDocument(location.schema())
    assert document.matches([{"name": "a", "children": [{"name": "b"}]}])
    assert not document.matches([{"children": ["not an object"]}])


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(whole())
def test_a_schema_is_like_itself(pair: Pair) -> None:
    assert kinds(pair[0], {**pair[0], "$comment": "x"}, sent=True) == {"$comment": "safe"}


# --- surfaces ------------------------------------------------------------------------------------------------------


def surface(revision: str = "2025-11-25", **parts: Any) -> dict[str, Any]:
    """A surface with nothing but these in it."""
    bare = {"tools": {}, "prompts": {}, "resources": {}, "resourceTemplates": {}, "capabilities": {}}
    return {"revision": revision, "instructions": None, **bare, **parts}


def tool(**fields: Any) -> dict[str, Any]:
    return surface(tools={"pay": {"name": "pay", "inputSchema": of(), **fields}})


def resource(**fields: Any) -> dict[str, Any]:
    return surface(resources={"a://b": {"uri": "a://b", "name": "b", **fields}})


def prompt(*arguments: Any) -> dict[str, Any]:
    return surface(prompts={"ask": {"name": "ask", "arguments": [*arguments]}})


def hinted(**hints: bool) -> dict[str, Any]:
    return tool(annotations=hints)


READS, WRITES = hinted(readOnlyHint=True), hinted(readOnlyHint=False)
TASKS = {each: tool(execution={"taskSupport": each}) for each in ("forbidden", "optional", "required")}

SURFACES = [
    (tool(), surface(), {"tools.pay": "breaking"}),
    (surface(), tool(), {"tools.pay": "safe"}),
    (tool(description="a"), tool(description="b"), {"tools.pay.description": "risky"}),
    (tool(title="a"), tool(title="b", icons=[{"src": "c"}]), {"tools.pay.title": "safe", "tools.pay.icons": "safe"}),
    (tool(), tool(odd=1), {"tools.pay.odd": "risky"}),
    (READS, WRITES, {"tools.pay.annotations.readOnlyHint": "breaking"}),
    (READS, tool(), {"tools.pay.annotations.readOnlyHint": "breaking"}),
    (WRITES, READS, {"tools.pay.annotations.readOnlyHint": "risky"}),
    (WRITES, hinted(), {"tools.pay.annotations.readOnlyHint": "safe"}),
    (hinted(destructiveHint=False), hinted(), {"tools.pay.annotations.destructiveHint": "breaking"}),
    (hinted(), hinted(destructiveHint=False), {"tools.pay.annotations.destructiveHint": "risky"}),
    (hinted(), hinted(destructiveHint=True), {"tools.pay.annotations.destructiveHint": "safe"}),
    (hinted(idempotentHint=True), hinted(), {"tools.pay.annotations.idempotentHint": "breaking"}),
    (hinted(openWorldHint=False), hinted(openWorldHint=True), {"tools.pay.annotations.openWorldHint": "risky"}),
    (TASKS["optional"], TASKS["required"], {"tools.pay.execution.taskSupport": "breaking"}),
    (TASKS["required"], TASKS["optional"], {"tools.pay.execution.taskSupport": "safe"}),
    (tool(outputSchema=of()), tool(), {"tools.pay.outputSchema": "breaking"}),
    (tool(), tool(outputSchema=of()), {"tools.pay.outputSchema": "safe"}),
    (prompt({"name": "a"}), prompt(), {"prompts.ask.arguments.a": "breaking"}),
    (prompt(), prompt({"name": "a"}), {"prompts.ask.arguments.a": "safe"}),
    (prompt(), prompt({"name": "a", "required": True}), {"prompts.ask.arguments.a": "breaking"}),
    (prompt({"name": "a"}), prompt({"name": "a", "required": True}), {"prompts.ask.arguments.a.required": "breaking"}),
    (prompt({"name": "a"}, {"name": "b"}), prompt({"name": "b"}, {"name": "a"}), {}),
    (resource(mimeType="text/html"), resource(mimeType="text/plain"), {"resources.a://b.mimeType": "breaking"}),
    (resource(), resource(mimeType="text/plain"), {"resources.a://b.mimeType": "safe"}),
    (resource(size=1), resource(size=2), {"resources.a://b.size": "safe"}),
    (surface(capabilities={"logging": {}}), surface(), {"capabilities.logging": "breaking"}),
    (surface(capabilities={"tools": {"listChanged": True}}), surface(capabilities={"tools": {}}),
     {"capabilities.tools.listChanged": "breaking"}),
    (surface(), surface(capabilities={"logging": {}}), {"capabilities.logging": "safe"}),
    (surface(instructions="a"), surface(instructions="b"), {"instructions": "risky"}),
    (surface("2025-06-18"), surface("2025-11-25"), {"revision": "risky"}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), SURFACES)
def test_a_change_of_a_surface_is_judged_by_those_who_use_it(old: Any, new: Any, expected: dict[str, str]) -> None:
    assert {each.place: each.kind for each in surface_changes(old, new)} == expected


def test_what_has_another_name_is_reported_as_such() -> None:
    old = tool(description="Pays.")
    new = surface(tools={"spend": {"name": "spend", "description": "Pays.", "inputSchema": of()}})
    assert [(each.place, each.kind, each.what) for each in surface_changes(old, new)] == [
        ("tools.pay", "breaking", "renamed: spend")
    ]


def test_revisions_that_are_not_supported_any_more_break() -> None:
    every = {each: surface(each) for each in REVISIONS}
    fewer = {each: every[each] for each in REVISIONS[1:]}
    assert [(each.place, each.kind) for each in surface_changes({"revisions": every}, {"revisions": fewer})] == [
        (f"revisions.{REVISIONS[0]}", "breaking")
    ]


def test_what_is_alike_in_several_revisions_is_reported_once() -> None:
    one, other = ({each: surface(each, instructions=text) for each in REVISIONS} for text in ("a", "b"))
    assert len(surface_changes({"revisions": one}, {"revisions": other})) == 1


@given(st.sampled_from(SURFACES))
def test_a_surface_is_like_itself(case: Any) -> None:
    assert surface_changes(case[0], case[0]) == []


# --- files and live servers ----------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """The file of a shop, in 2025-11-25."""
    file = tmp_path / "shop.surface.json"
    found = asyncio.run(fetch_surfaces(shop(), ["2025-11-25"]))
    file.write_text(encode_surface(found["2025-11-25"]))
    return str(file)


async def test_a_file_is_compared_with_a_live_server_in_its_revision(kept: str) -> None:
    same, other = await compare(kept, shop()), await compare(kept, shop(changed=True))
    assert (same.changes, same.exit_code, same.revisions) == ((), 0, ("2025-11-25",))
    assert (other.exit_code, [each.kind for each in other.changes]) == (1, ["breaking", "breaking", "risky", "risky"])


async def test_two_live_servers_are_compared_in_every_revision() -> None:
    found = await compare(shop(changed=True), shop(), every=True)
    assert (found.revisions, found.exit_code) == (REVISIONS, 0)
    assert "0 breaking, 2 risky, 2 safe" in "\n".join(comparison_lines(found))


async def test_a_live_server_is_compared_with_a_file(kept: str) -> None:
    assert (await compare(shop(), kept)).changes == ()


async def test_an_invalid_surface_is_an_error(tmp_path: Path) -> None:
    invalid = (("{}", "is not a surface"), ("<", "is not JSON"), ('{"revisions": {"x": {}}}', "is not a surface"))
    for content, text in invalid:
        (tmp_path / "odd.json").write_text(content)
        with pytest.raises(TargetError, match=text):
            await compare(str(tmp_path / "odd.json"), shop())


def test_a_tool_that_is_listed_twice_is_reported() -> None:
    once = Tool(name="forecast", input_schema={"type": "object"}, description="Tell the weather.")
    again = Tool(name="forecast", input_schema={"type": "object"}, description="Delete everything.")
    one, two, three = (
        build_surface("2026-07-28", None, None, {"tools": tools}) for tools in ([once], [once, again], [again, once])
    )
    for more in (two, three):
        assert [each.place for each in surface_changes(one, more)] == [
            *(["tools.forecast.description"] if more is three else []),
            "tools.forecast (listed 2 times)",
        ]


BROKEN: list[Any] = [
    {"capabilities": [1]},
    {"tools": {"a": {"annotations": [1]}}},
    {"tools": {"a": {"execution": "x"}}},
    {"prompts": {"a": {"arguments": {}}}},
    {"prompts": {"a": {"arguments": [{"name": []}]}}},
]


@pytest.mark.parametrize("wrong", BROKEN)
def test_what_has_parts_of_another_kind_is_no_surface(wrong: Any) -> None:
    empty: Any = {"revision": "2026-07-28", "tools": {}, "prompts": {}, "resources": {}, "resourceTemplates": {}}
    with pytest.raises(ValueError, match="a surface is an object"):
        surface_changes(empty, {**empty, **wrong})


def test_a_file_that_is_nested_too_deep_is_no_surface(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(TargetError, match="is not JSON"):
        surface_file(str(file))


async def test_a_missing_server_is_an_error() -> None:
    with pytest.raises(ConnectError):
        await compare(shop(), "/no/such/program")


def test_no_name_of_a_server_forges_a_line_of_the_comparison() -> None:
    forged = Change(kind="breaking", place="tools.a\n0 breaking, 0 risky, 0 safe", what="x" * 5_000_000, why="")
    lines = list(comparison_lines(Comparison(old="a", new="b", revisions=("2025-11-25",), changes=(forged,))))
    assert not any("\n" in line or line.startswith("0 breaking") for line in lines)
    assert sum(map(len, lines)) < 50_000
