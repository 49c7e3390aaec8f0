"""The arguments of an operation: parameters and body in one flat object, and back to where each of them belongs.

A model sees `{"id": 7, "name": "Rex"}`, whatever stands in the path and what in the body. A parameter whose name
another argument has is called after its place as well (`id__path`). A body that is not simply an object with members
is one argument, `body`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import Raw

from accord.messages.base import JSONObject
from accord.server.openapi.body import is_written
from accord.server.openapi.operation import FORMS, APIOperation, APIParameter, RequestBody, is_json
from accord.server.openapi.schemas import DocumentSchemas

_WHOLE = "body"
_OWN_RULES = {"allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "dependentRequired"}
_OWN_RULES |= {"propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "enum", "const", "nullable"}
"""What speaks of an object as a whole: it would not mean the same of all arguments together."""
_NO_STRINGS = ("object", "array", "integer", "number", "boolean")
_TEMPLATE_VARIABLE = re.compile(r"\W")


class ArgumentPlaces(msgspec.Struct):
    """The arguments of one call, each where it belongs."""

    path: list[tuple[APIParameter, Any]] = []
    query: list[tuple[APIParameter, Any]] = []
    header: list[tuple[APIParameter, Any]] = []
    cookie: list[tuple[APIParameter, Any]] = []
    body: Any = msgspec.UNSET


class OperationArguments:
    """Those of one operation; `fixed` are parameters, by place and name in small letters, that no caller chooses.

    Raises `SchemaError`.
    """

    def __init__(self, operation: APIOperation, fixed: Collection[tuple[str, str]] = ()) -> None:
        self._operation = operation
        self.body: RequestBody | None = operation.body
        self._members = self._members_of_body()
        parameters = [one for one in operation.parameters if (one.place, one.name.lower()) not in fixed]
        taken = Counter([one.name for one in parameters] + list(self._members or ([_WHOLE] if self.body else [])))
        self.parameters: dict[str, APIParameter] = {}
        """The parameters, by the names of their arguments."""
        for one in parameters:
            name = one.name if taken[one.name] == 1 else f"{one.name}__{one.place}"
            while name in self.parameters or (name != one.name and name in taken):
                name += "_"
            self.parameters[name] = one

    def schema(self, schemas: DocumentSchemas) -> JSONObject:
        """JSON Schema of the arguments. Raises `SchemaError`."""
        properties = {name: _described(one.schema, one.description) for name, one in self.parameters.items()}
        required = [name for name, one in self.parameters.items() if one.required]
        about: JSONObject = {"type": "object", "properties": properties, "additionalProperties": False}
        if self.body is not None:
            required += self._add_body(self.body, properties, about)
        if required:
            about["required"] = required
        return schemas.self_contained(about)

    def split(self, values: JSONObject) -> ArgumentPlaces:
        """The arguments of one call, each where it belongs."""
        places = ArgumentPlaces()
        rest = dict(values)
        for name, parameter in self.parameters.items():
            if name in rest:
                getattr(places, parameter.place).append((parameter, rest.pop(name)))
        if self._members is not None:
            if rest or (self.body is not None and self.body.required):
                places.body = rest
        elif _WHOLE in rest:
            places.body = rest[_WHOLE]
        return places

    def variables(self) -> dict[str, str]:
        """Names that a URI template may have, and the names of the path's and the query's arguments that they are."""
        found: dict[str, str] = {}
        for name, one in self.parameters.items():
            if one.place in ("path", "query"):
                variable = _TEMPLATE_VARIABLE.sub("_", name) if name.isascii() else f"v{len(found)}"
                found[variable if variable not in found else f"{variable}_{len(found)}"] = name
        return found

    def needs_more_than(self, places: Collection[str]) -> bool:
        """Whether there is something that has to be given, in the body or at another place than these."""
        if self.body is not None and self.body.required:
            return True
        return any(one.required and one.place not in places for one in self.parameters.values())

    # --- the body ----------------------------------------------------------------------------------------------

    def _members_of_body(self) -> JSONObject | None:
        """The members of a body that is simply an object."""
        if self.body is None or not (is_json(self.body.media) or self.body.media in FORMS):
            return None
        schema = self._schema_of_body(self.body)
        members = schema.get("properties")
        plain = schema.get("type", "object") == "object" and not schema.keys() & _OWN_RULES
        if not plain or not isinstance(members, dict) or not members or schema.get("additionalProperties"):
            return None
        return {name: one for name, one in members.items() if not self._is_read_only(one)}

    def _resolved(self, schema: Any) -> JSONObject:
        return self._operation.document.resolve(schema) if isinstance(schema, dict) else {}

    def _schema_of_body(self, body: RequestBody) -> JSONObject:
        """What a body is, also where that is the only arm of an `allOf`, as some write to add a description."""
        schema = self._resolved(body.schema)
        arms = schema.get("allOf")
        if isinstance(arms, list) and len(arms) == 1 and schema.keys() <= {"allOf", "title", "description"}:
            return self._resolved(arms[0])
        return schema

    def _is_read_only(self, schema: Any) -> bool:
        return isinstance(schema, dict) and (
            schema.get("readOnly") is True or self._resolved(schema).get("readOnly") is True
        )

    def _add_body(self, body: RequestBody, properties: JSONObject, about: JSONObject) -> list[str]:
        """Add the body's properties; those that are required."""
        if self._members is None:
            kept = body.schema if is_written(body.media) else _FILE
            properties[_WHOLE] = _described(kept, body.description)
            return [_WHOLE] if body.required else []
        for name, one in self._members.items():
            properties[name] = _as_base64(self._resolved(one)) if name in body.files else one
        told = self._schema_of_body(body).get("required")
        names = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
        required = [name for name in names if name in self._members]
        if not body.required and required:  # all of it may be left out, but not a part of what it needs
            about["dependentRequired"] = dict.fromkeys(self._members, required)
            return []
        return required


_FILE: JSONObject = {"type": "string", "contentEncoding": "base64"}


def _as_base64(schema: JSONObject) -> JSONObject:
    """The schema of files in a form, whose bytes travel as base64."""
    made = {"type": "array", "items": _FILE} if schema.get("type") == "array" else _FILE
    return {**made, "description": schema["description"]} if "description" in schema else made


def _described(schema: Any, description: Any) -> Any:
    """A schema with what is said of the argument."""
    held = {} if schema is True else schema
    return {**held, "description": description} if description and isinstance(held, dict) else held


def decode_nested_json(arguments: Raw | None, schema: JSONObject) -> Raw | None:
    """The arguments with JSON in place of strings that hold it, where a schema asks for no string; None if none do."""
    try:
        given = msgspec.json.decode(arguments or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    meant = {name: _decoded(value, schema.get("properties", {}).get(name)) for name, value in given.items()}
    return None if meant == given else Raw(msgspec.json.encode(meant))


def _decoded(value: Any, schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str) or kind not in _NO_STRINGS:
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return value
