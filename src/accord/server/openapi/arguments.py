"""The arguments of an operation: parameters and body as one flat object, and the way back to their places.

A model sees `{"id": 7, "name": "Rex"}`, whether a value belongs in the path or in the body. If two arguments would have
the same name, a parameter's place is appended to its name (`id__path`). A body that is not a plain object with members
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
from accord.messages.codec import decode_text
from accord.server.openapi.body import is_written
from accord.server.openapi.operation import FORMS, APIOperation, APIParameter, RequestBody, is_json
from accord.server.openapi.schemas import DocumentSchemas

_WHOLE = "body"
_OWN_RULES = {"allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "dependentRequired"}
_OWN_RULES |= {"propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "enum", "const", "nullable"}
"""Keywords that constrain an object as a whole: their meaning would change if the body's members were merged with the
parameters.
"""
_NO_STRINGS = ("object", "array", "integer", "number", "boolean")
_TEMPLATE_VARIABLE = re.compile(r"\W")


class ArgumentPlaces(msgspec.Struct):
    """The arguments of one call, by the place of each in the request."""

    path: list[tuple[APIParameter, Any]] = []
    query: list[tuple[APIParameter, Any]] = []
    header: list[tuple[APIParameter, Any]] = []
    cookie: list[tuple[APIParameter, Any]] = []
    body: Any = msgspec.UNSET


class OperationArguments:
    """The arguments of one operation, without the parameters in `fixed` (place and lower-case name), which a client
    cannot set.

    Raises `SchemaError`.
    """

    def __init__(self, operation: APIOperation, fixed: Collection[tuple[str, str]] = ()) -> None:
        self._operation = operation
        self.body: RequestBody | None = operation.body
        self._members = self._members_of_body()
        parameters = [
            parameter for parameter in operation.parameters if (parameter.place, parameter.name.lower()) not in fixed
        ]
        taken = Counter(
            [parameter.name for parameter in parameters] + list(self._members or ([_WHOLE] if self.body else []))
        )
        self.parameters: dict[str, APIParameter] = {}
        """The parameters, by the names of their arguments."""
        for parameter in parameters:
            name = parameter.name if taken[parameter.name] == 1 else f"{parameter.name}__{parameter.place}"
            while name in self.parameters or (name != parameter.name and name in taken):
                name += "_"
            self.parameters[name] = parameter

    def schema(self, schemas: DocumentSchemas) -> JSONObject:
        """Return the JSON Schema of the arguments. Raises `SchemaError`."""
        properties = {
            name: _describe(parameter.schema, parameter.description) for name, parameter in self.parameters.items()
        }
        required = [name for name, parameter in self.parameters.items() if parameter.required]
        schema: JSONObject = {"type": "object", "properties": properties, "additionalProperties": False}
        if self.body is not None:
            required += self._add_body(self.body, properties, schema)
        if required:
            schema["required"] = required
        return schemas.self_contained(schema)

    def split(self, values: JSONObject) -> ArgumentPlaces:
        """Return the arguments of one call by their places."""
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
        """Return the variables of a URI template, each with the name of its path or query argument."""
        variables: dict[str, str] = {}
        for name, parameter in self.parameters.items():
            if parameter.place in ("path", "query"):
                variable = _TEMPLATE_VARIABLE.sub("_", name) if name.isascii() else f"v{len(variables)}"
                variables[variable if variable not in variables else f"{variable}_{len(variables)}"] = name
        return variables

    def needs_more_than(self, places: Collection[str]) -> bool:
        """Return whether an argument is required in the body, or at a place other than `places`."""
        if self.body is not None and self.body.required:
            return True
        return any(parameter.required and parameter.place not in places for parameter in self.parameters.values())

    # --- body --------------------------------------------------------------------------------------------------

    def _members_of_body(self) -> JSONObject | None:
        """Return the members of a body that is a plain object, or None for any other body."""
        if self.body is None or not (is_json(self.body.media) or self.body.media in FORMS):
            return None
        schema = self._schema_of_body(self.body)
        members = schema.get("properties")
        plain = schema.get("type", "object") == "object" and not schema.keys() & _OWN_RULES
        if not plain or not isinstance(members, dict) or not members or schema.get("additionalProperties"):
            return None
        return {name: member for name, member in members.items() if not self._is_read_only(member)}

    def _resolve(self, schema: Any) -> JSONObject:
        return self._operation.document.resolve(schema) if isinstance(schema, dict) else {}

    def _schema_of_body(self, body: RequestBody) -> JSONObject:
        """Return the schema of a body; the only arm of an `allOf` counts, since some documents use that to add a
        description.
        """
        schema = self._resolve(body.schema)
        arms = schema.get("allOf")
        if isinstance(arms, list) and len(arms) == 1 and schema.keys() <= {"allOf", "title", "description"}:
            return self._resolve(arms[0])
        return schema

    def _is_read_only(self, schema: Any) -> bool:
        return isinstance(schema, dict) and (
            schema.get("readOnly") is True or self._resolve(schema).get("readOnly") is True
        )

    def _add_body(self, body: RequestBody, properties: JSONObject, schema: JSONObject) -> list[str]:
        """Add the body's properties, and return the names of those that are required."""
        if self._members is None:
            body_schema = body.schema if is_written(body.media) else _FILE
            properties[_WHOLE] = _describe(body_schema, body.description)
            return [_WHOLE] if body.required else []
        for name, member in self._members.items():
            properties[name] = _as_base64(self._resolve(member)) if name in body.files else member
        names = self._schema_of_body(body).get("required")
        required = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        required = [name for name in required if name in self._members]
        if not body.required and required:  # a partial body is invalid, no body is valid
            schema["dependentRequired"] = dict.fromkeys(self._members, required)
            return []
        return required


_FILE: JSONObject = {"type": "string", "contentEncoding": "base64"}


def _as_base64(schema: JSONObject) -> JSONObject:
    """Return the schema of a file in a form, whose bytes are base64 text."""
    file_schema = {"type": "array", "items": _FILE} if schema.get("type") == "array" else _FILE
    return {**file_schema, "description": schema["description"]} if "description" in schema else file_schema


def _describe(schema: Any, description: Any) -> Any:
    """Return a schema with the description of its argument."""
    base = {} if schema is True else schema
    return {**base, "description": description} if description and isinstance(base, dict) else base


def decode_nested_json(arguments: Raw | None, schema: JSONObject) -> Raw | None:
    """Return the arguments with strings of JSON decoded where the schema expects another type, or None if there are
    none.
    """
    try:
        values = msgspec.json.decode(arguments or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    decoded = {name: _decode(value, schema.get("properties", {}).get(name)) for name, value in values.items()}
    return None if decoded == values else Raw(msgspec.json.encode(decoded))


def _decode(value: Any, schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str) or kind not in _NO_STRINGS:
        return value
    try:
        return decode_text(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value
