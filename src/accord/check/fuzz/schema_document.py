"""A JSON Schema of a peer, made ready for making values.

It was compiled before (`accord.schema.validate`), which refuses what is invalid, too costly, or elsewhere. Then its
references are made plain: the schema moves to `#/$defs/root` of a new one, and every reference becomes a pointer from
there, whether it named an anchor or stood below an `$id` of its own. So any part of it can be compiled alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from accord.errors import Mismatch, SchemaError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.schema import validate
from accord.schema.cost import target

Schema: TypeAlias = dict[str, Any] | bool
Conjunction: TypeAlias = tuple[Any, ...]
"""Schemas that all hold at one place of a value."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_ROOT = "#/$defs/root"
_DATA = frozenset(("const", "enum", "default", "examples"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"))
_ANCHORS = ("$anchor", "$dynamicAnchor")
_NAMES = ("$id", *_ANCHORS, "$recursiveAnchor", "$schema")


_Cached = TypeVar("_Cached")


class GenerationError(Exception):
    """No value can be made of a schema: why."""


class SchemaDocument:
    """A schema, its parts, and what fits them. Raises `GenerationError` for a schema that cannot be used at all."""

    def __init__(self, schema: Any, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._cache: dict[tuple[Any, ...], tuple[Conjunction, Any]] = {}
        try:
            validate.compile(schema, limits)
            self.root: Schema = _with_absolute_references(schema)
        except SchemaError as exc:
            raise GenerationError(str(exc)) from exc
        self._dialect: dict[str, Any] = {}
        if isinstance(schema, dict) and "$schema" in schema:
            self._dialect["$schema"] = schema["$schema"]
        self._root_document: dict[str, Any] = {"$defs": {"root": self.root}, **self._dialect}

    def resolve_reference(self, reference: str) -> Schema:
        """What a reference leads to."""
        found: Schema = target(reference, self._root_document, {})
        return found

    def matches(self, value: Any, conjunction: Conjunction | None = None) -> bool:
        """Whether a value fits the schema, or all the parts that are given."""
        try:
            self.cached(SchemaDocument.compile, (self.root,) if conjunction is None else conjunction).validate(value)
        except (Mismatch, SchemaError):  # put together, parts may cost more than each of them
            return False
        return True

    def cached(self, make: Callable[..., _Cached], conjunction: Conjunction, *more: int) -> _Cached:
        """What `make(self, conjunction, *more)` gives, made only once."""
        key = (make, more, *map(id, conjunction))
        if key not in self._cache:
            self._cache[key] = conjunction, make(self, conjunction, *more)  # kept together: only the living have an id
        found: _Cached = self._cache[key][1]
        return found

    def compile(self, conjunction: Conjunction) -> validate.Validator:
        """All the parts as one. Raises `SchemaError` if together they cost too much."""
        parts = {"allOf": [True, *conjunction]}
        whole = self._root_document if _has_reference(parts) else self._dialect
        return validate.compile({**whole, **parts}, self._limits)


def _has_reference(value: Any) -> bool:
    """Whether a part may refer to the rest of its document."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if not each.keys().isdisjoint(REFERENCES):
                return True
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return False


def _with_absolute_references(schema: Any) -> Any:
    root = copy.deepcopy(schema)
    found = list(_subschemas(root, _ROOT, _ROOT))
    anchors = {
        (resource, each[name]): path
        for each, path, resource in found
        for name in _ANCHORS
        if isinstance(each.get(name), str)
    }
    for each, _, resource in found:
        for keyword in REFERENCES:
            if isinstance(each.get(keyword), str):
                each[keyword] = _pointer(each[keyword], resource, anchors)
        for name in _NAMES:
            each.pop(name, None)
    return root


def _pointer(reference: str, resource: str, anchors: dict[tuple[str, str], str]) -> str:
    fragment = reference.removeprefix("#")
    return anchors[resource, fragment] if (resource, fragment) in anchors else resource + fragment


def _subschemas(value: Any, path: str, resource: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every subschema, its pointer, and the pointer to where its references start from."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("$id"), str) and not value["$id"].startswith("#"):
        resource = path
    yield value, path, resource
    for keyword, inner in value.items():
        below = f"{path}/{_escaped(keyword)}"
        if keyword in _NAMED and isinstance(inner, dict):
            for name, each in inner.items():
                yield from _subschemas(each, f"{below}/{_escaped(name)}", resource)
        elif isinstance(inner, list) and keyword not in _DATA:
            for index, each in enumerate(inner):
                yield from _subschemas(each, f"{below}/{index}", resource)
        elif keyword not in _DATA:
            yield from _subschemas(inner, below, resource)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1").replace("%", "%25")
