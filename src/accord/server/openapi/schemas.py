"""Conversion of OpenAPI schemas to self-contained JSON Schema 2020-12, the dialect of MCP.

A component of the document becomes an entry of the tool's `$defs`; recursive schemas stay recursive. A component is
converted once.

Keywords of OpenAPI 3.0 are translated (`nullable`, `exclusiveMinimum: true`, `example`), keywords of JSON Schema are
copied, and all others (`xml`, `discriminator`, `x-...`) are dropped. A request has no `readOnly` members, a response no
`writeOnly` ones.
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
"""Returns the reference in the converted schema for a reference in the document."""
Resolve = Callable[[Any], JSONObject]
"""Returns the schema at the end of references."""

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
"""Annotations, which may stand beside a reference."""
_PATTERN = 10_000
"""The most characters in a pattern: compiling a megabyte takes seconds."""
_NAMED = {"properties", "patternProperties", "dependentSchemas"}


class SchemaConverter:
    """Converter of schemas for one direction: requests or responses."""

    def __init__(self, refer: Refer, resolve: Resolve, *, request: bool, limits: Limits) -> None:
        self._refer = refer
        self._resolve = resolve
        self._unwanted = "readOnly" if request else "writeOnly"
        self._depth = limits.schema_depth
        self._left = self._most = limits.schema_nodes

    def convert(self, schema: Any, depth: int = 0) -> Any:
        """Return a converted schema. Raises `SchemaError`."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise SchemaError(f"a schema must be an object, not {type(schema).__name__}")
        self._check_bounds(schema, depth)
        converted = {}
        for key, value in schema.items():  # in its order: what is listed is the same in every process
            if key in _COPIED_KEYWORDS:
                converted[key] = value
            elif key in _ONE:
                converted[key] = self.convert(value, depth + 1)
            elif key in _MANY:
                converted[key] = [self.convert(subschema, depth + 1) for subschema in _list_of(schema, key)]
            elif key in _NAMED:
                converted[key] = {
                    name: self.convert(subschema, depth + 1) for name, subschema in self._wanted_members(schema, key)
                }
        if converted.get("required"):
            self._leave_out(schema, converted)
        return self._translate(schema, converted)

    def _check_bounds(self, schema: JSONObject, depth: int) -> None:
        """Raise `SchemaError` for a schema that is too large. Shared objects (YAML aliases, a dict)
        count once per use.
        """
        self._left -= 1
        if self._left < 0:
            raise SchemaError(f"a schema has more than {self._most:,} schemas in it")
        if depth > self._depth:
            raise SchemaError(f"a schema is nested more than {self._depth} levels deep")
        if len(str(schema.get("pattern", ""))) > _PATTERN:
            raise SchemaError(f"a pattern has more than {_PATTERN:,} characters")

    def _wanted_members(self, schema: JSONObject, key: str) -> list[tuple[str, Any]]:
        named = schema[key]
        if not isinstance(named, dict):
            raise SchemaError(f"`{key}` of a schema must be an object, not {type(named).__name__}")
        return [(name, one) for name, one in named.items() if not self._is_unwanted(one)]

    def _is_unwanted(self, schema: Any) -> bool:
        return isinstance(schema, dict) and (
            schema.get(self._unwanted) is True or self._resolve(schema).get(self._unwanted) is True
        )

    def _leave_out(self, schema: JSONObject, converted: JSONObject) -> None:
        """Remove members of the other direction from `required`."""
        properties = schema.get("properties", {})
        wanted = [name for name in _list_of(converted, "required") if not self._is_unwanted(_member(properties, name))]
        converted["required"] = wanted

    def _translate(self, schema: JSONObject, converted: JSONObject) -> JSONObject:
        if isinstance(schema.get("$ref"), str):
            converted["$ref"] = self._refer(schema["$ref"])
        if "$dynamicRef" in schema:
            raise SchemaError("`$dynamicRef` is not supported")
        if "example" in schema:
            converted.setdefault("examples", [schema["example"]])
        _bound(converted, "exclusiveMinimum", "minimum")
        _bound(converted, "exclusiveMaximum", "maximum")
        return _or_null(converted) if schema.get("nullable") is True else converted


def _bound(converted: JSONObject, exclusive: str, inclusive: str) -> None:
    """Translate a boolean exclusive bound of 3.0 into the numeric bound of 2020-12."""
    marked = converted.get(exclusive)
    if isinstance(marked, bool):
        del converted[exclusive]
        if marked and inclusive in converted:
            converted[exclusive] = converted.pop(inclusive)


def _or_null(converted: JSONObject) -> JSONObject:
    """Return the schema with null allowed: as a second type, or with `anyOf` for a schema without a single type."""
    if isinstance(converted.get("enum"), list) and None not in converted["enum"]:
        converted["enum"] = [*converted["enum"], None]
    if isinstance(converted.get("type"), str) and not (converted.keys() & {"$ref", "const", "allOf", "anyOf", "oneOf"}):
        converted["type"] = [converted["type"], "null"]
        return converted
    annotations: JSONObject = {key: converted.pop(key) for key in _ANNOTATIONS if key in converted}
    return {"anyOf": [converted, {"type": "null"}], **annotations} if converted else annotations


def _list_of(schema: JSONObject, key: str) -> list[Any]:
    if not isinstance(schema[key], list):
        raise SchemaError(f"`{key}` of a schema is an array, not {type(schema[key]).__name__}")
    items: list[Any] = schema[key]
    return items


def _member(properties: Any, name: Any) -> Any:
    return properties.get(name) if isinstance(properties, dict) and isinstance(name, str) else None


_MOST = 500
"""The most components that one schema may refer to: a tool's schema contains all of them."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def _as_json(schema: JSONObject) -> JSONObject:
    """Return the schema as JSON: names and values of YAML and of a dict may be of any type. Raises `SchemaError`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(schema), type=JSONObject)
    except (TypeError, ValueError, RecursionError) as exc:
        raise SchemaError(f"a schema contains values that are not JSON: {exc}") from exc


class DocumentSchemas:
    """Schemas of a document, for requests or for responses."""

    def __init__(self, document: OpenAPIDocument, limits: Limits, *, request: bool) -> None:
        self._document = document
        self._limits = limits
        self._request = request
        self._names: dict[str, str] = {}
        self._references: dict[str, str] = {}
        self._made: dict[str, tuple[Any, set[str]]] = {}

    def self_contained(self, schema: Any) -> JSONObject:
        """Return a schema with all components that it refers to. Raises `SchemaError`."""
        converted, names = self._convert(schema)
        converted, names = self._inline_root(converted, names)
        defs: JSONObject = {}
        pending = sorted(names)
        while pending:
            name = pending.pop()
            if name in defs:
                continue
            if len(defs) == _MOST:
                raise SchemaError(f"it refers to more than {_MOST} schemas, directly or through others")
            defs[name], further = self._component(name)
            pending.extend(further - defs.keys())
        return _as_json({**converted, "$defs": dict(sorted(defs.items()))} if defs else converted)

    def is_object(self, schema: Any) -> bool:
        """Return whether a schema states that it accepts objects only."""
        pending, seen = [schema], set[int]()
        while pending:
            reference_or_schema = pending.pop()
            resolved = self._document.resolve(reference_or_schema) if isinstance(reference_or_schema, dict) else {}
            if id(resolved) in seen or resolved.get("nullable") is True:
                continue
            seen.add(id(resolved))  # a recursive schema may repeat in its own arms
            if resolved["type"] == "object" if "type" in resolved else "properties" in resolved:
                return True
            arms = resolved.get("allOf")
            if "type" not in resolved and isinstance(arms, list):
                pending += arms
        return False

    def _inline_root(self, converted: Any, names: set[str]) -> tuple[JSONObject, set[str]]:
        """Return a schema whose root is not only a reference."""
        if isinstance(converted, bool):
            return ({} if converted else {"not": {}}), names
        seen: set[str] = set()
        while "$ref" in converted and converted.keys() - _ANNOTATIONS == {"$ref"}:
            name = converted["$ref"].removeprefix("#/$defs/")
            if name in seen:
                raise SchemaError(f"{self._references[name]} refers only to itself")
            seen.add(name)
            annotations = {key: value for key, value in converted.items() if key in _ANNOTATIONS}
            target, names = self._component(name)
            converted = {**target, **annotations} if isinstance(target, dict) else {}
        return converted, names

    def _component(self, name: str) -> tuple[Any, set[str]]:
        reference = self._references[name]
        if reference not in self._made:
            self._made[reference] = self._convert(self._document.at(reference))
        return self._made[reference]

    def _convert(self, schema: Any) -> tuple[Any, set[str]]:
        """Return a converted schema, and the names of the components that it refers to."""
        names: set[str] = set()

        def refer(reference: str) -> str:
            names.add(self._name(reference))
            return f"#/$defs/{self._name(reference)}"

        converter = SchemaConverter(refer, self._document.resolve, request=self._request, limits=self._limits)
        return converter.convert(schema), names

    def _name(self, reference: str) -> str:
        """Return a unique name for the target of a reference: its last part, numbered if that is taken."""
        if reference not in self._names:
            self._document.at(reference)
            plain = _NOT_IN_NAMES.sub("_", reference.rpartition("/")[2]) or "schema"
            name, number = plain, 1
            while name in self._references:
                number += 1
                name = f"{plain}_{number}"
            self._names[reference], self._references[name] = name, reference
        return self._names[reference]
