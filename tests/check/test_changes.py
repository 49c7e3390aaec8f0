"""What changed in what a server offers is told apart: what breaks, what is risky, what is safe."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.check.comparing.change import worst
from accord.check.comparing.schemas import schema_changes
from accord.check.comparing.view import as_sent
from accord.check.generated.document import Document, Unserved
from accord.check.generated.values import values

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


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
    (of(a={"anyOf": [of(b=INTEGER), {"type": "null"}]}), of(a={"anyOf": [{"type": "null"}, of(b=NUMBER)]}), "safe", "breaking"),
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
    assert worst(schema_changes(old, new, (), sent=True)) == sent
    assert worst(schema_changes(old, new, (), sent=False)) == read


def test_the_place_of_a_change_is_as_deep_as_can_be() -> None:
    old = of(a={"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}, b={"type": "array", "items": of(c=STRING)})
    new = of(a={"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}, b={"type": "array", "items": of("c", c=STRING)})
    assert kinds({**old, "$defs": {"B": of(d=NUMBER)}}, {**new, "$defs": {"B": of(d=INTEGER)}}, sent=True) == {
        "properties.a.anyOf.0.properties.d.type": "breaking",
        "properties.b.items.required": "breaking",
    }


def test_a_change_comes_with_a_value_that_shows_it() -> None:
    (change,) = schema_changes(of(a={"enum": ["x", "y"]}), of(a={"enum": ["x", "z"]}), (), sent=True)
    assert (change.what, change.why) == ('without "y", with "z"', '"y" was accepted, and is refused now')


def test_the_same_said_in_other_words_is_no_change() -> None:
    assert kinds(of("a", "b", a=STRING, b=STRING), of("b", "a", b=STRING, a=STRING), sent=True) == {}
    assert kinds(of(a={"anyOf": [STRING, INTEGER]}), of(a={"type": ["integer", "string"]}), sent=False) == {}


# --- the classes and validation agree ------------------------------------------------------------------------------

LEAVES = st.sampled_from(
    [
        {"type": "null"}, {"type": "boolean"}, INTEGER, NUMBER, STRING, True, {"type": ["string", "null"]},
        {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 2, "maximum": 5}, {"multipleOf": 2},
        {"type": "number", "exclusiveMaximum": 3}, {"type": "string", "minLength": 2}, {"type": "string", "maxLength": 3},
        {"type": "string", "pattern": "^a"}, {"enum": ["x", 1, None]}, {"enum": ["x"]}, {"const": 1},
        {"type": "object"}, {"type": "array"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"not": STRING},
    ]
)  # fmt: skip

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
    item = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/B"}}}}
    defs = both(
        named, lambda each: {"A": {"enum": [1, "a"]}, "B": {**item, "properties": {**item["properties"], "of": each}}}
    )
    return {**pair[0], "$defs": defs[0]}, {**pair[1], "$defs": defs[1]}


def usable(schema: Any) -> bool:
    """Whether values can be made of it."""
    try:
        values(as_sent(schema))
    except Unserved:
        return False
    return True


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data(), whole())
def test_what_was_accepted_and_is_refused_is_never_safe(data: st.DataObject, pair: Pair) -> None:
    old, new = pair
    if usable(old):
        value = data.draw(values(as_sent(old)))
        if not Document(new).fits(value):
            assert worst(schema_changes(old, new, (), sent=True)) != "safe"


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data(), whole())
def test_what_may_come_and_was_ruled_out_is_never_safe(data: st.DataObject, pair: Pair) -> None:
    old, new = pair
    if usable(new):
        value = data.draw(values(as_sent(new)))
        if not Document(old).fits(value):
            assert worst(schema_changes(old, new, (), sent=False)) != "safe"


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(whole())
def test_a_schema_is_like_itself(pair: Pair) -> None:
    assert kinds(pair[0], {**pair[0], "$comment": "x"}, sent=True) == {"$comment": "safe"}
