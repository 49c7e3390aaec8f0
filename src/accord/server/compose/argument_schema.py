"""The schema of a tool's arguments, with some of them renamed, described, fixed or hidden.

A keyword that relates several arguments (`oneOf`, `dependentRequired`) is dropped if it may name a renamed or removed
argument; the tool still validates it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.schema.json_values import to_json
from accord.wire.headers import ANNOTATION

_TOGETHER = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired"}
_TOGETHER |= {"dependencies", "propertyNames", "minProperties", "maxProperties"}

_DATA = ("const", "default", "enum", "examples")
_MAPS = ("properties", "$defs", "definitions", "dependentSchemas", "patternProperties")

_WHOLE = "accord.unchanged"
"""The `$defs` entry with the unchanged schema, for references into it."""


class ArgumentChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change to an argument of a tool.

    `default` makes the argument optional. `fixed` removes it, and the tool always receives that value. `hidden` removes
    it, and the tool receives `default` or uses its own. Raises `DeclarationError` for contradictory options.
    """

    name: str | None = None
    description: str | None = None
    default: Any = UNSET
    fixed: Any = UNSET
    hidden: bool = False

    def __post_init__(self) -> None:
        if self.fixed is not UNSET and self.default is not UNSET:
            raise DeclarationError("a fixed argument cannot have a default")
        if self.is_gone and (self.name or self.description):
            raise DeclarationError("a fixed or hidden argument cannot have a name or a description")
        try:
            to_json([value for value in (self.default, self.fixed) if value is not UNSET])
        except ValueError as exc:
            raise DeclarationError(f"the value of an argument must be JSON: {exc}") from exc

    @property
    def is_gone(self) -> bool:
        """Whether the argument is removed, so that clients cannot send it."""
        return self.hidden or self.fixed is not UNSET

    def public_name(self, name: str) -> str | None:
        """Return the public name of the argument, or None if it is removed."""
        return None if self.is_gone else self.name or name


def change_schema(schema: JSONObject, changes: Mapping[str, ArgumentChange]) -> JSONObject:
    """Return the schema with changes by argument. Raises `DeclarationError` if two arguments have one name."""
    properties = _properties(schema, changes)
    names = {
        name: changes[name].public_name(name) if name in changes else name for name in schema.get("properties", ())
    }
    optional = {name for name, change in changes.items() if change.default is not UNSET}
    required = [names.get(name, name) for name in schema.get("required", ()) if name not in optional]
    result = {**schema, "properties": properties, "required": [name for name in required if name is not None]}
    if not result["required"]:
        del result["required"]
    if all(name == other for name, other in names.items()):
        return result
    return _redirect_references({key: value for key, value in result.items() if key not in _TOGETHER}, schema)


def _properties(schema: JSONObject, changes: Mapping[str, ArgumentChange]) -> JSONObject:
    properties: JSONObject = {}
    for name, property_schema in schema.get("properties", {}).items():
        change = changes.get(name)
        outside = name if change is None else change.public_name(name)
        if outside is None:
            continue
        if outside in properties:
            raise DeclarationError(f"two arguments would have the name {outside!r}")
        properties[outside] = property_schema if change is None else _describe(property_schema, change)
    return properties


def _describe(property_schema: Any, change: ArgumentChange) -> Any:
    """Return the schema of one argument; keywords beside a `$ref` take precedence."""
    changed = {} if property_schema is True else property_schema
    if change.description is not None:
        changed = {**changed, "description": change.description}
    if change.default is not UNSET:
        changed = {**changed, "default": change.default}
    return changed if changed else property_schema


def _redirect_references(properties: JSONObject, schema: JSONObject) -> JSONObject:
    """Return the schema with references to arguments redirected to the unchanged schema."""
    redirected: list[str] = []

    def redirect(ref: str) -> str:
        if not ref.startswith("#") or ref.startswith(("#/$defs/", "#/definitions/")):
            return ref
        redirected.append(ref)
        return f"#/$defs/{_WHOLE}{ref[1:]}"

    result = _map_references(properties, redirect)
    if redirected:
        inner = {key: value for key, value in schema.items() if key not in ("$defs", "definitions", "$schema", "$id")}
        # "MUST only be applied to properties [...] reachable"
        whole = _map_references(inner, redirect, without=ANNOTATION)
        result["$defs"] = {**result.get("$defs", {}), _WHOLE: whole}
    return result  # type: ignore[no-any-return]


def _map_references(schema: Any, redirect: Callable[[str], str], without: str = "") -> Any:
    """Return a schema with mapped references, and without one keyword."""
    if isinstance(schema, list):
        return [_map_references(each, redirect, without) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result: JSONObject = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            result[key] = redirect(value)
        elif key in _MAPS and isinstance(value, dict):
            result[key] = {name: _map_references(each, redirect, without) for name, each in value.items()}
        elif key != without:
            result[key] = value if key in _DATA else _map_references(value, redirect, without)
    return result
