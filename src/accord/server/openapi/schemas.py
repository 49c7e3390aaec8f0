"""The schemas of one document, each with what it refers to: a tool's schema stands on its own.

What a document keeps in its components, a tool keeps in `$defs`; loops stay loops. A component is converted once,
whoever refers to it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from accord.errors import SchemaError
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.server.openapi.document import OpenAPIDocument
from accord.server.openapi.schema_converter import SchemaConverter

_MOST = 500
"""Components that one schema may bring along: each tool is listed with its own."""
_ABOUT = {"title", "description", "default", "examples", "deprecated"}
"""What may stand beside a reference without a meaning of its own."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def _as_json(schema: JSONObject) -> JSONObject:
    """The same as JSON has it: in YAML and in a dict, names and values may be of any type. Raises `SchemaError`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(schema), type=JSONObject)
    except (TypeError, ValueError, RecursionError) as exc:
        raise SchemaError(f"a schema holds what JSON does not have: {exc}") from exc


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
        while "$ref" in made and made.keys() - _ABOUT == {"$ref"}:
            name = made["$ref"].removeprefix("#/$defs/")
            if name in seen:
                raise SchemaError(f"{self._references[name]} refers to itself, and to nothing else")
            seen.add(name)
            about = {key: value for key, value in made.items() if key in _ABOUT}
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
