"""One place of a JSON Schema, as it is compared: references are followed, and `allOf` is spread out into its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from accord.check.comparing.inlining import Inlining
from accord.check.comparing.keywords import DEFINITIONS, JUDGING
from accord.check.generated.document import Conjunction, Document
from accord.messages.base import JSONObject

TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))

_KEPT = JUDGING - DEFINITIONS - {"$ref", "allOf"}

_REFERENCE_ALONE = ("draft-04", "draft-06", "draft-07")
"""In these dialects nothing counts that stands beside `$ref`."""

_SAYS_MORE = frozenset((
    "additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "if",
    "dependentSchemas", "$ref", "$dynamicRef", "$recursiveRef",
))  # fmt: skip
"""Beside these it is not `properties` alone that says which members there are."""


class Whole:
    """A whole schema. Raises `Unserved` for one that cannot be used: invalid, too costly, with references outside."""

    def __init__(self, schema: Any) -> None:
        self.document: Document = Document(schema)
        self.dialect: str = schema.get("$schema", "") if isinstance(schema, Mapping) else ""
        self._alone: bool = any(draft in self.dialect for draft in _REFERENCE_ALONE)
        self.inlining: Inlining = Inlining(self.document.target, alone=self._alone)

    @property
    def view(self) -> View:
        """The outermost place."""
        return View(self, (self.document.root,))

    def spread(self, schema: Any) -> Iterator[Any]:
        """The schemas that say together what one says, none of them with a reference or an `allOf` at its root."""
        if not isinstance(schema, dict):
            yield from () if schema is True else (schema,)
            return
        rest = {key: value for key, value in schema.items() if key in _KEPT}
        if isinstance(schema.get("$ref"), str):
            yield from self.spread(self.document.target(schema["$ref"]))
            if self._alone:
                return
        for part in schema.get("allOf", ()):
            yield from self.spread(part)
        if rest:
            yield rest


class View:
    """What schemas say together of one place. `parts` are they, spread out."""

    def __init__(self, whole: Whole, schemas: Conjunction) -> None:
        self.whole: Whole = whole
        self.parts: tuple[Any, ...] = tuple(part for schema in schemas for part in whole.spread(schema))

    @property
    def types(self) -> frozenset[str]:
        """Those that a value may have."""
        left = TYPES if False not in self.parts else frozenset[str]()
        for said in self.all("type"):
            names = {said} if isinstance(said, str) else set(said)
            left &= names | {"integer"} if "number" in names else names
        return left

    def all(self, keyword: str) -> list[Any]:
        """What all parts say in a keyword."""
        return [part[keyword] for part in self.parts if isinstance(part, dict) and keyword in part]

    def rest(self, *keywords: str) -> list[JSONObject]:
        """The parts without some of their keywords."""
        left = (
            {key: part[key] for key in part if key not in keywords} for part in self.parts if isinstance(part, dict)
        )
        return [part for part in left if part]

    def at(self, *schemas: Any) -> View:
        """Another place of the same schema."""
        return View(self.whole, schemas)

    def schema(self, *, sent: bool = False) -> JSONObject:
        """The place as a schema of its own; `sent` reads it as `as_sent` does."""
        parts = [self.whole.inlining.of(part) for part in self.parts]
        made: JSONObject = {"allOf": parts} if parts else {}
        if len(parts) == 1 and isinstance(parts[0], dict):
            made = as_sent(parts[0]) if sent else parts[0]
        if self.whole.dialect:
            made["$schema"] = self.whole.dialect
        if refers(parts):
            made["$defs"] = {"root": deepcopy(self.whole.document.root)}
        return made


def refers(value: Any) -> bool:
    """Whether there is a reference anywhere in it."""
    return any(isinstance(each.get(key), str) for each in _inside(value) for key in ("$ref", "$dynamicRef"))


def as_sent(schema: Any) -> Any:
    """A schema as those read it who fill it in: they send the members that it names, and invent no others unless
    `additionalProperties` invites them.
    """
    if not isinstance(schema, dict):
        return schema
    made = {key: _filled_in(key, value) for key, value in schema.items()}
    named = schema.get("properties")
    if named is not None and set(schema.get("required", ())) <= set(named) and not _SAYS_MORE & schema.keys():
        made["additionalProperties"] = False
    return made


def _filled_in(key: str, value: Any) -> Any:
    if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
        return {name: as_sent(inner) for name, inner in value.items()}
    if key in ("items", "additionalProperties"):
        return as_sent(value)
    if key in ("prefixItems", "anyOf", "oneOf") and isinstance(value, list):
        return [as_sent(inner) for inner in value]
    return value


def _inside(value: Any) -> Iterator[JSONObject]:
    """All the objects in a JSON value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending.extend(each.values())
        elif isinstance(each, list | tuple):
            pending.extend(each)
