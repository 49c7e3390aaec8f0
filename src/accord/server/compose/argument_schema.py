"""The schema of a tool's arguments, with some of them renamed, described anew, or taken out.

What the tool says of several arguments together (`oneOf`, `dependentRequired`) is left out where an argument that it
may name has another name or is gone: the tool itself checks it still.
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
"""Where the schema stands as the tool has it, for references into it."""


class ArgumentChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is different about an argument of a tool.

    `default` makes it optional. `fixed` takes it out, and the tool always gets that value; `hidden` takes it out, and
    the tool gets `default`, or what it takes by itself. Raises `DeclarationError` for what contradicts itself.
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
        """Whether it is not shown, and nobody may give it."""
        return self.hidden or self.fixed is not UNSET

    def shown(self, name: str) -> str | None:
        """The name under which it is shown; None where it is not."""
        return None if self.is_gone else self.name or name


def change_schema(schema: JSONObject, changes: Mapping[str, ArgumentChange]) -> JSONObject:
    """The schema with these changes, by argument. Raises `DeclarationError` for two arguments of one name."""
    shown = _properties(schema, changes)
    names = {name: changes[name].shown(name) if name in changes else name for name in schema.get("properties", ())}
    optional = {name for name, change in changes.items() if change.default is not UNSET}
    required = [names.get(name, name) for name in schema.get("required", ()) if name not in optional]
    result = {**schema, "properties": shown, "required": [name for name in required if name is not None]}
    if not result["required"]:
        del result["required"]
    if all(name == other for name, other in names.items()):
        return result
    return _with_whole({key: value for key, value in result.items() if key not in _TOGETHER}, schema)


def _properties(schema: JSONObject, changes: Mapping[str, ArgumentChange]) -> JSONObject:
    shown: JSONObject = {}
    for name, about in schema.get("properties", {}).items():
        change = changes.get(name)
        outside = name if change is None else change.shown(name)
        if outside is None:
            continue
        if outside in shown:
            raise DeclarationError(f"two arguments would have the name {outside!r}")
        shown[outside] = about if change is None else _described(about, change)
    return shown


def _described(about: Any, change: ArgumentChange) -> Any:
    """One argument; beside a `$ref`, what is said here goes first for those who read it."""
    said = {} if about is True else about
    if change.description is not None:
        said = {**said, "description": change.description}
    if change.default is not UNSET:
        said = {**said, "default": change.default}
    return said if said else about


def _with_whole(shown: JSONObject, schema: JSONObject) -> JSONObject:
    """The schema, with references to arguments or to all of them led to where these stand unchanged."""
    found: list[str] = []

    def led(ref: str) -> str:
        if not ref.startswith("#") or ref.startswith(("#/$defs/", "#/definitions/")):
            return ref
        found.append(ref)
        return f"#/$defs/{_WHOLE}{ref[1:]}"

    result = _each_reference(shown, led)
    if found:
        inner = {key: value for key, value in schema.items() if key not in ("$defs", "definitions", "$schema", "$id")}
        whole = _each_reference(inner, led, without=ANNOTATION)  # "MUST only be applied to properties [...] reachable"
        result["$defs"] = {**result.get("$defs", {}), _WHOLE: whole}
    return result  # type: ignore[no-any-return]


def _each_reference(schema: Any, led: Callable[[str], str], without: str = "") -> Any:
    """A schema with other references, and without a keyword."""
    if isinstance(schema, list):
        return [_each_reference(each, led, without) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made: JSONObject = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            made[key] = led(value)
        elif key in _MAPS and isinstance(value, dict):
            made[key] = {name: _each_reference(each, led, without) for name, each in value.items()}
        elif key != without:
            made[key] = value if key in _DATA else _each_reference(value, led, without)
    return made
