"""Schemas for which values are made in tests: what tools have, every keyword of 2020-12, and what is awkward."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}

TREE: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "required": ["name", "children"],
            "properties": {"name": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "additionalProperties": False,
        }
    },
}

CORPUS: dict[str, Any] = {
    "anything": True,
    "no keyword": {},
    "a text": TEXT,
    "a type of two": {"type": ["string", "null"]},
    "a constant": {"const": {"a": [1, None]}},
    "an enumeration": {"enum": ["a", 2, None, [3]]},
    "an enumeration cut by a type": {"enum": ["a", 2, None], "type": "integer"},
    "bounds": {"type": "integer", "minimum": 3, "exclusiveMaximum": 5},
    "one integer": {"type": "integer", "minimum": -7, "maximum": -7},
    "far integers": {"type": "integer", "minimum": 1 << 60},
    "a part of one": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "multiples": {"type": "integer", "multipleOf": 7, "minimum": 10},
    "multiples of two numbers": {"allOf": [{"multipleOf": 6}, {"multipleOf": 4}], "type": "integer", "minimum": 1},
    "hundredths": {"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 2},
    "lengths": {"type": "string", "minLength": 3, "maxLength": 5},
    "a long text": {"type": "string", "minLength": 300},
    "a pattern": {"type": "string", "pattern": "^[A-Z]{2,3}-[0-9]+$"},
    "a pattern with a length": {"type": "string", "pattern": "^a+$", "minLength": 7, "maxLength": 9},
    "a pattern without an end": {"type": "string", "pattern": "b"},
    "alternatives in a pattern": {"type": "string", "pattern": "^(?:yes|no|[^a-z]\\w{2}\\s?)$"},
    **{
        f"the format {form}": {"type": "string", "format": form}
        for form in ("date-time", "date", "email", "uri", "uuid", "ipv6", "duration", "hostname", "made-up")
    },
    "items": {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 4},
    "unique items": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
    "a tuple": {"type": "array", "prefixItems": [TEXT, NUMBER], "items": False, "minItems": 2},
    "a tuple and more": {"type": "array", "prefixItems": [TEXT], "items": {"type": "boolean"}, "minItems": 3},
    "containing": {"type": "array", "contains": {"const": "x"}, "minContains": 2, "maxContains": 3},
    "containing among others": {"type": "array", "items": {"type": ["string", "integer"]}, "contains": NUMBER},
    "an object": {"type": "object", "properties": {"a": TEXT, "b": NUMBER}, "required": ["b"]},
    "a closed object": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
    "names by pattern": {
        "type": "object",
        "patternProperties": {"^x-": NUMBER},
        "additionalProperties": False,
        "minProperties": 2,
    },
    "a map": {"type": "object", "additionalProperties": NUMBER, "minProperties": 1, "maxProperties": 3},
    "names in bounds": {"type": "object", "propertyNames": {"pattern": "^[a-c]{2}$"}, "minProperties": 2},
    "names of a list": {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 1},
    "many members": {"type": "object", "minProperties": 5},
    "one needs another": {
        "type": "object",
        "properties": {"card": TEXT, "street": TEXT},
        "dependentRequired": {"card": ["street"]},
        "required": ["card"],
    },
    "one brings a schema": {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}},
        "dependentSchemas": {"kind": {"required": ["size"], "properties": {"size": NUMBER}}},
        "required": ["kind"],
    },
    "all of": {"allOf": [{"type": "integer"}, {"minimum": 5}, {"maximum": 6}]},
    "any of": {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]},
    "one of, overlapping": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
    "one of, told apart": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "r": NUMBER}, "required": ["kind", "r"]},
            {"type": "object", "properties": {"kind": {"const": "point"}}, "required": ["kind"]},
        ]
    },
    "not a text": {"not": TEXT},
    "not one value": {"type": "integer", "minimum": 0, "maximum": 1, "not": {"const": 0}},
    "not both": {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "not": {"required": ["a", "b"]},
        "minProperties": 1,
    },
    "not any of": {"not": {"anyOf": [TEXT, {"type": "null"}, {"type": "object"}]}},
    "not a product": {"not": {"properties": {"kind": {"const": "a"}}}, "type": "object"},
    "if and then": {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "size": NUMBER},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["size"]},
        "else": {"properties": {"size": False}},
    },
    "a tree": TREE,
    "a tree that must have a child": {
        "type": "object",
        "properties": {"child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["child"],
    },
    "an anchor": {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "integer"}}},
    "a resource of its own": {
        "$id": "https://example.com/outer",
        "$ref": "#/$defs/inner",
        "$defs": {
            "inner": {"$id": "https://example.com/inner", "$ref": "#/$defs/q", "$defs": {"q": {"type": "integer"}}}
        },
    },
    "a pointer with signs": {"$ref": "#/$defs/a~1b%25c", "$defs": {"a/b%c": {"type": "null"}}},
    "a dynamic reference": {"$dynamicRef": "#d", "$defs": {"x": {"$dynamicAnchor": "d", "type": "boolean"}}},
    "a reference with more beside it": {"$ref": "#/$defs/n", "minimum": 5, "$defs": {"n": NUMBER}},
    "nothing unevaluated": {
        "type": "object",
        "allOf": [{"properties": {"a": TEXT}, "required": ["a"]}],
        "properties": {"b": NUMBER},
        "unevaluatedProperties": False,
    },
    "members called like keywords": {
        "type": "object",
        "properties": {"$ref": TEXT, "default": NUMBER, "enum": TEXT, "properties": TEXT},
        "required": ["$ref", "default", "enum"],
    },
    "draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"url": {"type": "string", "format": "uri"}, "pair": {"$ref": "#/definitions/pair"}},
        "required": ["url", "pair"],
        "definitions": {"pair": {"type": "array", "items": [TEXT, NUMBER], "additionalItems": False, "minItems": 2}},
    },
    "an optional of pydantic": {
        "type": "object",
        "properties": {"limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None}},
    },
    "suggestions that do not fit": {"type": "integer", "examples": ["x"], "default": "y"},
}

SAMPLES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 5, 0.5, 10**6, "", "a", "aa", "text", [], [0], ["a"], [0, 1], {}, {"a": 0},
    {"a": "a"}, {"b": 0}, {"a": 0, "b": 0}, {"a": "a", "b": "a"}, {"a": None}, {"a": []}, {"b": None}, [None], [True],
    [[]],
    [{}],
]  # fmt: skip
"""Small values: if one of these fits a schema, values can be made of it."""

_NAMES = st.sampled_from(["a", "b", "c"])
_SMALL = st.integers(-3, 6)
_SIZES = st.integers(0, 3)


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A few keywords at once, whether or not they go together."""
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(_NAMES, inner, max_size=3)
    kinds = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
    table = {
        "type": st.one_of(kinds, st.lists(kinds, min_size=1, max_size=3, unique=True)),
        "minimum": _SMALL,
        "exclusiveMaximum": _SMALL,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": _SIZES,
        "maxLength": _SIZES,
        "pattern": st.sampled_from(["^a*$", "b", "^[ab]{2}$"]),
        "items": inner,
        "prefixItems": some,
        "contains": inner,
        "minItems": _SIZES,
        "maxItems": _SIZES,
        "uniqueItems": st.booleans(),
        "properties": named,
        "required": st.lists(_NAMES, max_size=2, unique=True),
        "additionalProperties": inner,
        "propertyNames": st.sampled_from([{"pattern": "^[abc]$"}, {"maxLength": 2}]),
        "minProperties": _SIZES,
        "maxProperties": _SIZES,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }
    chosen = st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(lambda keywords: st.fixed_dictionaries({keyword: table[keyword] for keyword in keywords}))


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.booleans(),
        st.sampled_from([{"type": "integer"}, TEXT, {"enum": [1, "a", None]}, {"type": "array"}, {"type": "object"}]),
    ),
    _keywords,
    max_leaves=6,
)
"""Schemas of every kind; some of them nothing fits."""
