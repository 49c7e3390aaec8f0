"""Schemas of 3.0 and 3.1 as JSON Schema 2020-12."""

from __future__ import annotations

from typing import Any

import pytest

from accord import Limits
from accord.schema.validate import compile
from accord.server.openapi.document import OpenAPIDocument
from accord.server.openapi.schemas import DocumentSchemas

from tests.server.openapi.echo import document


def made(schema: Any, *, request: bool = True, **components: Any) -> Any:
    whole = document({}, version="3.0.3", components={"schemas": components})
    return DocumentSchemas(OpenAPIDocument(whole), Limits(), request=request).self_contained(schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"nullable": True}, {}),
        (
            {"allOf": [{"type": "string"}], "nullable": True, "title": "T"},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}], "title": "T"},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 3}, {"exclusiveMinimum": 1, "exclusiveMaximum": 3}),
        ({"example": 7}, {"examples": [7]}),
        ({"xml": {}, "discriminator": {}, "x-own": 1, "externalDocs": {}, "type": "string"}, {"type": "string"}),
        ({"properties": {"nullable": {"type": "string"}, "example": True}}, None),
        ({"enum": [{"nullable": True}], "default": {"example": 1}}, None),
        ({"if": {"type": "string"}, "then": {"minLength": 1}, "prefixItems": [{}], "$id": "https://x"}, ...),
    ],
)
def test_keywords_of_3_0_are_converted_to_json_schema(old: Any, new: Any) -> None:
    if new is ...:
        new = {key: value for key, value in old.items() if key != "$id"}
    assert made(old) == (old if new is None else new)


def test_a_schema_brings_along_what_it_refers_to_and_loops_stay_loops() -> None:
    tree = {
        "type": "object",
        "properties": {"next": {"$ref": "#/components/schemas/Tree"}, "leaf": {"$ref": "#/components/schemas/Leaf"}},
    }
    found = made({"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}, Tree=tree, Leaf={}, Other={})
    assert set(found["$defs"]) == {"Tree", "Leaf"}
    compile(found).validate([{"next": {"next": {}}}])


def test_the_root_says_what_it_is() -> None:
    pet = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Pet"}}}
    found = made(
        {"$ref": "#/components/schemas/Alias"}, Pet=pet, Alias={"$ref": "#/components/schemas/Pet", "title": "A"}
    )
    assert (found["type"], found["title"]) == ("object", "A")
    assert set(found["$defs"]) == {"Pet"}


def test_components_of_one_name_and_odd_names_are_distinguished() -> None:
    references = [{"$ref": "#/components/schemas/A~1B"}, {"$ref": "#/components/schemas/A%20B"}]
    odd: Any = {"A/B": {"type": "string"}, "A B": {"type": "integer"}}
    found = made({"anyOf": references}, **odd)
    compile(found).validate(7)
    compile(found).validate("x")
    assert len(found["$defs"]) == 2


def test_each_direction_has_its_own_members() -> None:
    user = {
        "type": "object",
        "required": ["id", "password"],
        "properties": {"id": {"type": "integer", "readOnly": True}, "password": {"type": "string", "writeOnly": True}},
    }
    assert made(user)["required"] == ["password"]
    assert list(made(user)["properties"]) == ["password"]
    assert made(user, request=False)["required"] == ["id"]
    assert list(made(user, request=False)["properties"]) == ["id"]
