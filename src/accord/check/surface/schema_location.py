"""One place of a JSON Schema, as it is compared: references are followed, and `allOf` is spread out into its parts.

A schema that stands alone: what its references lead to is in their place, and what refuses no value is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from accord.check.fuzz.schema_document import Conjunction, SchemaDocument
from accord.check.surface.schema_changes import DEFINITIONS, VALIDATING
from accord.messages.base import JSONObject

_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_DATA = ("const", "enum", "required", "dependentRequired")
_INLINED_KEYWORDS = VALIDATING - DEFINITIONS


class ReferenceInliner:
    """`target` gives what a reference leads to. `alone`: nothing counts that stands beside a reference."""

    def __init__(self, target: Callable[[str], Any], *, alone: bool) -> None:
        self._target = target
        self._alone = alone

    def inline(self, schema: Any, opened: tuple[str, ...] = ()) -> Any:
        """A copy of a schema. References that lead back to what they stand in, one of `opened`, are left."""
        if not isinstance(schema, dict):
            return [self.inline(each, opened) for each in schema] if isinstance(schema, list) else schema
        reference = schema.get("$ref")
        if not isinstance(reference, str) or reference in opened:
            return self._keywords(schema, opened)
        led = self.inline(self._target(reference), (*opened, reference))
        beside = {} if self._alone else self._keywords({key: schema[key] for key in schema if key != "$ref"}, opened)
        return {"allOf": [led, beside]} if beside else led

    def _keywords(self, schema: JSONObject, opened: tuple[str, ...]) -> JSONObject:
        return {key: self._keyword(key, value, opened) for key, value in schema.items() if key in _INLINED_KEYWORDS}

    def _keyword(self, key: str, value: Any, opened: tuple[str, ...]) -> Any:
        if key in _DATA:
            return value
        if key in _NAMED and isinstance(value, dict):
            return {name: self.inline(inner, opened) for name, inner in value.items()}
        return self.inline(value, opened)


TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))

_COMPARED_KEYWORDS = VALIDATING - DEFINITIONS - {"$ref", "allOf"}

_REFERENCE_ALONE = ("draft-04", "draft-06", "draft-07")
"""In these dialects nothing counts that stands beside `$ref`."""

_ADDS_MEMBERS = frozenset((
    "additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "if",
    "dependentSchemas", "$ref", "$dynamicRef", "$recursiveRef",
))  # fmt: skip
"""Beside these it is not `properties` alone that says which members there are."""


class ComparedSchema:
    """A whole schema. Raises `GenerationError` for one that cannot be used: invalid, too costly, with references
    outside."""

    def __init__(self, schema: Any) -> None:
        self.document: SchemaDocument = SchemaDocument(schema)
        self.dialect: str = schema.get("$schema", "") if isinstance(schema, Mapping) else ""
        self._alone: bool = any(draft in self.dialect for draft in _REFERENCE_ALONE)
        self.inlining: ReferenceInliner = ReferenceInliner(self.document.resolve_reference, alone=self._alone)

    @property
    def root(self) -> SchemaLocation:
        """The outermost place."""
        return SchemaLocation(self, (self.document.root,))

    def flatten(self, schema: Any) -> Iterator[Any]:
        """The schemas that say together what one says, none of them with a reference or an `allOf` at its root."""
        if not isinstance(schema, dict):
            yield from () if schema is True else (schema,)
            return
        rest = {key: value for key, value in schema.items() if key in _COMPARED_KEYWORDS}
        if isinstance(schema.get("$ref"), str):
            yield from self.flatten(self.document.resolve_reference(schema["$ref"]))
            if self._alone:
                return
        for part in schema.get("allOf", ()):
            yield from self.flatten(part)
        if rest:
            yield rest


class SchemaLocation:
    """What schemas say together of one place. `parts` are they, spread out."""

    def __init__(self, whole: ComparedSchema, schemas: Conjunction) -> None:
        self.compared: ComparedSchema = whole
        self.parts: tuple[Any, ...] = tuple(part for schema in schemas for part in whole.flatten(schema))

    @property
    def types(self) -> frozenset[str]:
        """Those that a value may have."""
        left = TYPES if False not in self.parts else frozenset[str]()
        for entry in self.keyword_values("type"):
            names = {entry} if isinstance(entry, str) else set(entry)
            left &= names | {"integer"} if "number" in names else names
        return left

    def keyword_values(self, keyword: str) -> list[Any]:
        """What all parts say in a keyword."""
        return [part[keyword] for part in self.parts if isinstance(part, dict) and keyword in part]

    def parts_without(self, *keywords: str) -> list[JSONObject]:
        """The parts without some of their keywords."""
        left = (
            {key: part[key] for key in part if key not in keywords} for part in self.parts if isinstance(part, dict)
        )
        return [part for part in left if part]

    def at_schemas(self, *schemas: Any) -> SchemaLocation:
        """Another place of the same schema."""
        return SchemaLocation(self.compared, schemas)

    def schema(self, *, sent: bool = False) -> JSONObject:
        """The place as a schema of its own; `sent` reads it as `as_input` does."""
        parts = [self.compared.inlining.inline(part) for part in self.parts]
        made: JSONObject = {"allOf": parts} if parts else {}
        if len(parts) == 1 and isinstance(parts[0], dict):
            made = as_input(parts[0]) if sent else parts[0]
        if self.compared.dialect:
            made["$schema"] = self.compared.dialect
        if _has_reference(parts):
            made["$defs"] = {"root": deepcopy(self.compared.document.root)}
        return made


def are_same(old: SchemaLocation, new: SchemaLocation) -> bool:
    """Return whether two places have the same parts, and references in them lead to the same."""
    if old.parts != new.parts:
        return False
    pending: list[Any] = [old.parts]
    followed = set[str]()
    while pending:
        value = pending.pop()
        if any("$dynamicRef" in each for each in _objects_in(value)):
            return False
        references = {each["$ref"] for each in _objects_in(value) if isinstance(each.get("$ref"), str)}
        for reference in references - followed:
            target = old.compared.document.resolve_reference(reference)
            if target != new.compared.document.resolve_reference(reference):
                return False
            pending.append(target)
        followed |= references
    return True


def _has_reference(value: Any) -> bool:
    """Return whether a value contains a reference."""
    return any(isinstance(each.get(key), str) for each in _objects_in(value) for key in ("$ref", "$dynamicRef"))


def as_input(schema: Any) -> Any:
    """A schema as those read it who fill it in: they send the members that it names, and invent no others unless
    `additionalProperties` invites them.
    """
    if not isinstance(schema, dict):
        return schema
    made = {key: _input_keyword(key, value) for key, value in schema.items()}
    named = schema.get("properties")
    if named is not None and set(schema.get("required", ())) <= set(named) and not _ADDS_MEMBERS & schema.keys():
        made["additionalProperties"] = False
    return made


def _input_keyword(key: str, value: Any) -> Any:
    if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
        return {name: as_input(inner) for name, inner in value.items()}
    if key in ("items", "additionalProperties"):
        return as_input(value)
    if key in ("prefixItems", "anyOf", "oneOf") and isinstance(value, list):
        return [as_input(inner) for inner in value]
    return value


def _objects_in(value: Any) -> Iterator[JSONObject]:
    """All the objects in a JSON value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending.extend(each.values())
        elif isinstance(each, list | tuple):
            pending.extend(each)
