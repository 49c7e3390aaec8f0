"""A JSON Schema of a peer, prepared for the generation of values.

It is first compiled (`accord.schema.validate`), which rejects invalid and costly schemas and external references. Then
the schema moves to `#/$defs/root` of a new document, and every reference becomes an absolute JSON pointer, also one to
an anchor or below an `$id`. So each part of the schema can be compiled alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from accord.errors import Mismatch, SchemaError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.schema import validate
from accord.schema.references import resolve

Schema: TypeAlias = dict[str, Any] | bool
Conjunction: TypeAlias = tuple[Any, ...]
"""Schemas that all apply to one location of a value."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_ROOT = "#/$defs/root"
_DATA = frozenset(("const", "enum", "default", "examples"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"))
_ANCHORS = ("$anchor", "$dynamicAnchor")
_NAMES = ("$id", *_ANCHORS, "$recursiveAnchor", "$schema")


_Cached = TypeVar("_Cached")


class GenerationError(Exception):
    """No value can be generated for a schema; the message is the reason."""


class SchemaDocument:
    """A schema and its parts, with validation. Raises `GenerationError` for a schema that cannot be compiled."""

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
        """Return the schema that a reference points to."""
        found: Schema = resolve(reference, self._root_document)
        return found

    def matches(self, value: Any, conjunction: Conjunction | None = None) -> bool:
        """Return whether a value matches the schema, or all parts of `conjunction`."""
        try:
            self.cached(SchemaDocument.compile, (self.root,) if conjunction is None else conjunction).validate(value)
        except (Mismatch, SchemaError):  # a conjunction may exceed the cost bound that each part meets
            return False
        return True

    def cached(self, make: Callable[..., _Cached], conjunction: Conjunction, *more: int) -> _Cached:
        """Return `make(self, conjunction, *more)`, computed once."""
        key = (make, more, *map(id, conjunction))
        if key not in self._cache:
            # The entry refers to the conjunction, so that its id stays unique.
            self._cache[key] = conjunction, make(self, conjunction, *more)
        found: _Cached = self._cache[key][1]
        return found

    def compile(self, conjunction: Conjunction) -> validate.Validator:
        """Compile the conjunction of the parts. Raises `SchemaError` if it exceeds the cost bound."""
        parts = {"allOf": [True, *conjunction]}
        document = self._root_document if has_reference(parts) else self._dialect
        return validate.compile({**document, **parts}, self._limits)


def has_reference(value: Any) -> bool:
    """Return whether a part of a schema refers to the rest of its document."""
    return any(isinstance(each.get(keyword), str) for each in objects_in(value) for keyword in REFERENCES)


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a JSON value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending.extend(each.values())
        elif isinstance(each, list | tuple):
            pending.extend(each)


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
    if isinstance(schema, dict) and "2019-09" in str(schema.get("$schema")):
        for each, _, _ in found:
            _replace_recursive_reference(each)
    return root


def _replace_recursive_reference(schema: dict[str, Any]) -> None:
    """Write `$recursiveRef` as `$ref`, because in 2019-09 "the value of the "$recursiveRef" property MUST be "#""."""
    if isinstance(pointer := schema.pop("$recursiveRef", None), str):
        schema["allOf"] = [*schema.get("allOf", ()), {"$ref": pointer}]


def _pointer(reference: str, resource: str, anchors: dict[tuple[str, str], str]) -> str:
    fragment = reference.removeprefix("#")
    return anchors[resource, fragment] if (resource, fragment) in anchors else resource + fragment


def _subschemas(value: Any, path: str, resource: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield every subschema, its pointer, and the pointer to the base of its references."""
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
