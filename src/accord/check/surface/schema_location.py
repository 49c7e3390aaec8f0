"""One location of a JSON Schema for comparison: references are resolved, and `allOf` is split into its parts.

`SchemaLocation.schema` is self-contained: references are replaced by their targets, annotations are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from accord.check.fuzz.schema_document import Conjunction, SchemaDocument, has_reference, objects_in
from accord.check.surface.schema_changes import DEFINITIONS, VALIDATING
from accord.messages.base import JSONObject

_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_DATA = ("const", "enum", "required", "dependentRequired")
_INLINED_KEYWORDS = VALIDATING - DEFINITIONS


class ReferenceInliner:
    """`resolve` returns the target of a reference. `ignores_siblings`: keywords beside `$ref` have no effect."""

    def __init__(self, resolve: Callable[[str], Any], *, ignores_siblings: bool) -> None:
        self._resolve = resolve
        self._ignores_siblings = ignores_siblings

    def inline(self, schema: Any, opened: tuple[str, ...] = ()) -> Any:
        """Return a copy of a schema with its references inlined, except recursive ones, which are in `opened`."""
        if not isinstance(schema, dict):
            return [self.inline(each, opened) for each in schema] if isinstance(schema, list) else schema
        reference = schema.get("$ref")
        if not isinstance(reference, str) or reference in opened:
            return self._keywords(schema, opened)
        target = self.inline(self._resolve(reference), (*opened, reference))
        rest = {} if self._ignores_siblings else {key: schema[key] for key in schema if key != "$ref"}
        siblings = self._keywords(rest, opened)
        return {"allOf": [target, siblings]} if siblings else target

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

_SIBLINGS_IGNORED = ("draft-04", "draft-06", "draft-07")
"""In these dialects, keywords beside `$ref` have no effect."""

_ADDS_MEMBERS = frozenset((
    "additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "if",
    "dependentSchemas", "$ref", "$dynamicRef", "$recursiveRef",
))  # fmt: skip
"""Keywords that may allow members besides those in `properties`."""


class ComparedSchema:
    """A whole schema. Raises `GenerationError` for an invalid or too costly one, and for external references."""

    def __init__(self, schema: Any) -> None:
        self.document: SchemaDocument = SchemaDocument(schema)
        self.dialect: str = schema.get("$schema", "") if isinstance(schema, Mapping) else ""
        self._ignores_siblings: bool = any(draft in self.dialect for draft in _SIBLINGS_IGNORED)
        self.inliner: ReferenceInliner = ReferenceInliner(
            self.document.resolve_reference, ignores_siblings=self._ignores_siblings
        )

    @property
    def root(self) -> SchemaLocation:
        """Return the root location."""
        return SchemaLocation(self, (self.document.root,))

    def flatten(self, schema: Any) -> Iterator[Any]:
        """Yield schemas that are together equivalent to one schema, without `$ref` and `allOf` at their roots."""
        if not isinstance(schema, dict):
            yield from () if schema is True else (schema,)
            return
        rest = {key: value for key, value in schema.items() if key in _COMPARED_KEYWORDS}
        if isinstance(schema.get("$ref"), str):
            yield from self.flatten(self.document.resolve_reference(schema["$ref"]))
            if self._ignores_siblings:
                return
        for part in schema.get("allOf", ()):
            yield from self.flatten(part)
        if rest:
            yield rest


class SchemaLocation:
    """The schemas that apply to one location; `parts` are these schemas, flattened."""

    def __init__(self, compared: ComparedSchema, schemas: Conjunction) -> None:
        self.compared: ComparedSchema = compared
        self.parts: tuple[Any, ...] = tuple(part for schema in schemas for part in compared.flatten(schema))

    @property
    def types(self) -> frozenset[str]:
        """Return the types that a value may have."""
        left = TYPES if False not in self.parts else frozenset[str]()
        for entry in self.keyword_values("type"):
            names = {entry} if isinstance(entry, str) else set(entry)
            left &= names | {"integer"} if "number" in names else names
        return left

    def keyword_values(self, keyword: str) -> list[Any]:
        """Return the values of a keyword in all parts."""
        return [part[keyword] for part in self.parts if isinstance(part, dict) and keyword in part]

    def parts_without(self, *keywords: str) -> list[JSONObject]:
        """Return the parts without some of their keywords."""
        left = (
            {key: part[key] for key in part if key not in keywords} for part in self.parts if isinstance(part, dict)
        )
        return [part for part in left if part]

    def at_schemas(self, *schemas: Any) -> SchemaLocation:
        """Return another location of the same schema."""
        return SchemaLocation(self.compared, schemas)

    def schema(self, *, sent: bool = False) -> JSONObject:
        """Return the location as a self-contained schema; `sent` applies `as_input`."""
        parts = [self.compared.inliner.inline(part) for part in self.parts]
        schema: JSONObject = {"allOf": parts} if parts else {}
        if len(parts) == 1 and isinstance(parts[0], dict):
            schema = as_input(parts[0]) if sent else parts[0]
        if self.compared.dialect:
            schema["$schema"] = self.compared.dialect
        if has_reference(parts):
            schema["$defs"] = {"root": deepcopy(self.compared.document.root)}
        return schema


def are_same(old: SchemaLocation, new: SchemaLocation) -> bool:
    """Return whether two locations have equal parts, whose references have equal targets."""
    if old.parts != new.parts:
        return False
    pending: list[Any] = [old.parts]
    followed = set[str]()
    while pending:
        value = pending.pop()
        if any("$dynamicRef" in each for each in objects_in(value)):
            return False
        references = {each["$ref"] for each in objects_in(value) if isinstance(each.get("$ref"), str)}
        for reference in references - followed:
            target = old.compared.document.resolve_reference(reference)
            if target != new.compared.document.resolve_reference(reference):
                return False
            pending.append(target)
        followed |= references
    return True


def as_input(schema: Any) -> Any:
    """Return the schema of what senders send: only members that it names, unless `additionalProperties` allows more."""
    if not isinstance(schema, dict):
        return schema
    result = {key: _input_keyword(key, value) for key, value in schema.items()}
    named = schema.get("properties")
    if named is not None and set(schema.get("required", ())) <= set(named) and not _ADDS_MEMBERS & schema.keys():
        result["additionalProperties"] = False
    return result


def _input_keyword(key: str, value: Any) -> Any:
    if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
        return {name: as_input(inner) for name, inner in value.items()}
    if key in ("items", "additionalProperties"):
        return as_input(value)
    if key in ("prefixItems", "anyOf", "oneOf") and isinstance(value, list):
        return [as_input(inner) for inner in value]
    return value
