"""The schemas of one document, each with what it refers to: a tool's schema stands on its own.

What a document keeps in its components, a tool keeps in `$defs`; loops stay loops. A component is converted once,
whoever refers to it.

A schema of OpenAPI 3.0 or 3.1 as JSON Schema 2020-12, the dialect of MCP.

What 3.0 says in its own way is translated (`nullable`, `exclusiveMinimum: true`, `example`); what is known to JSON
Schema stays as it is; everything else (`xml`, `discriminator`, `x-...`) is left out. Members that only one direction
has are left out in the other: a request has no `readOnly` ones, an answer no `writeOnly` ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from accord.errors import SchemaError
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.server.openapi.document import OpenAPIDocument

Refer = Callable[[str], str]
"""What a reference of the document is called in the schema that is made."""
Resolve = Callable[[Any], JSONObject]
"""The schema at the end of references."""

_COPIED_KEYWORDS = {
    "type",
    "enum",
    "const",
    "default",
    "title",
    "description",
    "format",
    "deprecated",
    "examples",
    "pattern",
}
_COPIED_KEYWORDS |= {
    "multipleOf",
    "maximum",
    "minimum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
}
_COPIED_KEYWORDS |= {
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
}
_COPIED_KEYWORDS |= {"required", "dependentRequired", "contentEncoding", "contentMediaType"}
_ONE = {"not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "contentSchema"}
_ONE |= {"unevaluatedItems", "unevaluatedProperties"}
_MANY = {"allOf", "anyOf", "oneOf", "prefixItems"}
_ANNOTATIONS = ("title", "description", "default", "examples", "deprecated")
"""What may stand beside a reference without a meaning of its own."""
_PATTERN = 10_000
"""Characters of a pattern: a megabyte of it takes seconds to be read."""
_NAMED = {"properties", "patternProperties", "dependentSchemas"}


class SchemaConverter:
    """Converts schemas for one direction: those of requests, or else those of answers."""

    def __init__(self, refer: Refer, resolve: Resolve, *, request: bool, limits: Limits) -> None:
        self._refer = refer
        self._resolve = resolve
        self._unwanted = "readOnly" if request else "writeOnly"
        self._depth = limits.schema_depth
        self._left = self._most = limits.schema_nodes

    def convert(self, schema: Any, depth: int = 0) -> Any:
        """One schema. Raises `SchemaError`."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise SchemaError(f"a schema must be an object, not {type(schema).__name__}")
        self._check_bounds(schema, depth)
        made = {}
        for key, value in schema.items():  # in its order: what is listed is the same in every process
            if key in _COPIED_KEYWORDS:
                made[key] = value
            elif key in _ONE:
                made[key] = self.convert(value, depth + 1)
            elif key in _MANY:
                made[key] = [self.convert(one, depth + 1) for one in _listed(schema, key)]
            elif key in _NAMED:
                made[key] = {name: self.convert(one, depth + 1) for name, one in self._wanted(schema, key)}
        if made.get("required"):
            self._leave_out(schema, made)
        return self._translated(schema, made)

    def _check_bounds(self, schema: JSONObject, depth: int) -> None:
        """In a dict, and in YAML, one schema may stand in many places: what it comes to is counted here."""
        self._left -= 1
        if self._left < 0:
            raise SchemaError(f"a schema has more than {self._most:,} schemas in it")
        if depth > self._depth:
            raise SchemaError(f"a schema is nested more than {self._depth} levels deep")
        if len(str(schema.get("pattern", ""))) > _PATTERN:
            raise SchemaError(f"a pattern has more than {_PATTERN:,} characters")

    def _wanted(self, schema: JSONObject, key: str) -> list[tuple[str, Any]]:
        named = schema[key]
        if not isinstance(named, dict):
            raise SchemaError(f"`{key}` of a schema must be an object, not {type(named).__name__}")
        return [(name, one) for name, one in named.items() if not self._is_unwanted(one)]

    def _is_unwanted(self, schema: Any) -> bool:
        return isinstance(schema, dict) and (
            schema.get(self._unwanted) is True or self._resolve(schema).get(self._unwanted) is True
        )

    def _leave_out(self, schema: JSONObject, made: JSONObject) -> None:
        """What this direction does not have is not required in it either."""
        properties = schema.get("properties", {})
        wanted = [name for name in _listed(made, "required") if not self._is_unwanted(_member(properties, name))]
        made["required"] = wanted

    def _translated(self, schema: JSONObject, made: JSONObject) -> JSONObject:
        if isinstance(schema.get("$ref"), str):
            made["$ref"] = self._refer(schema["$ref"])
        if "$dynamicRef" in schema:
            raise SchemaError("`$dynamicRef` is not supported")
        if "example" in schema:
            made.setdefault("examples", [schema["example"]])
        _bound(made, "exclusiveMinimum", "minimum")
        _bound(made, "exclusiveMaximum", "maximum")
        return _or_null(made) if schema.get("nullable") is True else made


def _bound(made: JSONObject, exclusive: str, inclusive: str) -> None:
    """3.0 marks a bound as exclusive; 2020-12 has another bound for it."""
    marked = made.get(exclusive)
    if isinstance(marked, bool):
        del made[exclusive]
        if marked and inclusive in made:
            made[exclusive] = made.pop(inclusive)


def _or_null(made: JSONObject) -> JSONObject:
    """The same, and null. Only what has a type has an easy way to say so."""
    if isinstance(made.get("enum"), list) and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    if isinstance(made.get("type"), str) and not (made.keys() & {"$ref", "const", "allOf", "anyOf", "oneOf"}):
        made["type"] = [made["type"], "null"]
        return made
    about: JSONObject = {key: made.pop(key) for key in _ANNOTATIONS if key in made}
    return {"anyOf": [made, {"type": "null"}], **about} if made else about


def _listed(schema: JSONObject, key: str) -> list[Any]:
    if not isinstance(schema[key], list):
        raise SchemaError(f"`{key}` of a schema is an array, not {type(schema[key]).__name__}")
    found: list[Any] = schema[key]
    return found


def _member(properties: Any, name: Any) -> Any:
    return properties.get(name) if isinstance(properties, dict) and isinstance(name, str) else None


_MOST = 500
"""Components that one schema may bring along: each tool is listed with its own."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def _as_json(schema: JSONObject) -> JSONObject:
    """The same as JSON has it: in YAML and in a dict, names and values may be of any type. Raises `SchemaError`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(schema), type=JSONObject)
    except (TypeError, ValueError, RecursionError) as exc:
        raise SchemaError(f"a schema contains values that are not JSON: {exc}") from exc


class DocumentSchemas:
    """Schemas of a document, for requests or else for answers."""

    def __init__(self, document: OpenAPIDocument, limits: Limits, *, request: bool) -> None:
        self._document = document
        self._limits = limits
        self._request = request
        self._names: dict[str, str] = {}
        self._references: dict[str, str] = {}
        self._made: dict[str, tuple[Any, set[str]]] = {}

    def self_contained(self, schema: Any) -> JSONObject:
        """A schema with all that it refers to. Raises `SchemaError`."""
        made, found = self._convert(schema)
        made, found = self._rooted(made, found)
        defs: JSONObject = {}
        pending = sorted(found)
        while pending:
            name = pending.pop()
            if name in defs:
                continue
            if len(defs) == _MOST:
                raise SchemaError(f"it refers to more than {_MOST} schemas, directly or through others")
            defs[name], further = self._component(name)
            pending.extend(further - defs.keys())
        return _as_json({**made, "$defs": dict(sorted(defs.items()))} if defs else made)

    def is_object(self, schema: Any) -> bool:
        """Whether a schema is for objects only, as far as it says so plainly."""
        pending, seen = [schema], set[int]()
        while pending:
            found = pending.pop()
            one = self._document.resolve(found) if isinstance(found, dict) else {}
            if id(one) in seen or one.get("nullable") is True:
                continue
            seen.add(id(one))  # it may stand in its own arms, twice in each
            if one["type"] == "object" if "type" in one else "properties" in one:
                return True
            arms = one.get("allOf")
            if "type" not in one and isinstance(arms, list):
                pending += arms
        return False

    def _rooted(self, made: Any, found: set[str]) -> tuple[JSONObject, set[str]]:
        """A schema whose root says what it is, rather than where that stands."""
        if isinstance(made, bool):
            return ({} if made else {"not": {}}), found
        seen: set[str] = set()
        while "$ref" in made and made.keys() - _ANNOTATIONS == {"$ref"}:
            name = made["$ref"].removeprefix("#/$defs/")
            if name in seen:
                raise SchemaError(f"{self._references[name]} refers only to itself")
            seen.add(name)
            about = {key: value for key, value in made.items() if key in _ANNOTATIONS}
            target, found = self._component(name)
            made = {**target, **about} if isinstance(target, dict) else {}
        return made, found

    def _component(self, name: str) -> tuple[Any, set[str]]:
        reference = self._references[name]
        if reference not in self._made:
            self._made[reference] = self._convert(self._document.at(reference))
        return self._made[reference]

    def _convert(self, schema: Any) -> tuple[Any, set[str]]:
        """A schema, and the names of what it refers to."""
        found: set[str] = set()

        def refer(reference: str) -> str:
            found.add(self._name(reference))
            return f"#/$defs/{self._name(reference)}"

        converter = SchemaConverter(refer, self._document.resolve, request=self._request, limits=self._limits)
        return converter.convert(schema), found

    def _name(self, reference: str) -> str:
        """A name of its own for what a reference leads to; the last part of it where nothing else has that."""
        if reference not in self._names:
            self._document.at(reference)
            plain = _NOT_IN_NAMES.sub("_", reference.rpartition("/")[2]) or "schema"
            name, number = plain, 1
            while name in self._references:
                number += 1
                name = f"{plain}_{number}"
            self._names[reference], self._references[name] = name, reference
        return self._names[reference]
