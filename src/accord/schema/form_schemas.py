"""The fields of a form as JSON Schema: read from the schema of any revision, written for one.

    2025-06-18              a default for booleans only; titles of choices in `enumNames`; one choice, not several
    2025-11-25, 2026-07-28  a default for every field; `oneOf` with titles; several choices, as an array

The written schema has exactly what the revision allows; no revision has `pattern`, so it is not sent. The read schema
may have more: servers also send what their libraries generate for a type, such as `anyOf` with null, `$ref`, `const`,
`exclusiveMinimum`. A field that cannot be interpreted has the kind "other"; it is never an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from accord.errors import Mismatch, NotSupported, SchemaError
from accord.messages.revision import Rules
from accord.schema.cost import count_values
from accord.schema.form_fields import FormField, Kind, Scalar, check_value, is_number, text_of
from accord.schema.pattern_work import max_characters

JSONObject = dict[str, Any]
Schema = Mapping[str, Any]
Choices = tuple[tuple[Scalar, str], ...]

_KINDS: dict[Any, Kind] = {"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}
_FORMATS: dict[Any, Kind] = {"email": "email", "uri": "uri", "date": "date", "date-time": "date-time"}
_TYPES: dict[Kind, JSONObject] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "choice": {"type": "string"},
    "choices": {"type": "array"},
    "email": {"type": "string", "format": "email"},
    "uri": {"type": "string", "format": "uri"},
    "date": {"type": "string", "format": "date"},
    "date-time": {"type": "string", "format": "date-time"},
}

# Kind -> the attributes that are its bounds, by their keyword.
_CHARACTERS = {"min_length": "minLength", "max_length": "maxLength"}
_ITEMS = {"min_length": "minItems", "max_length": "maxItems"}
_RANGE = {"minimum": "minimum", "maximum": "maximum"}
_BOUNDS: dict[Kind, dict[str, str]] = {
    "text": _CHARACTERS, "email": _CHARACTERS, "uri": _CHARACTERS, "choices": _ITEMS, "number": _RANGE,
    "integer": _RANGE,
}  # fmt: skip

_REFERENCES = 16
"""Limit of references that are followed one after the other; it ends cycles."""
_REFERENCE_LENGTH = 8 << 10
"""Limit of the characters of a reference; a longer one leads nowhere."""
_VALUE_CHARACTERS = 4_000
"""1,000 characters, by their upper bound (`max_characters`)."""


def requested_schema(fields: Iterable[FormField], rules: Rules) -> JSONObject:
    """Return the `requestedSchema` of these fields. Raise `NotSupported` for a field that the revision does not
    support."""
    fields = list(fields)
    written: JSONObject = {
        "type": "object",
        "properties": {field.name: _field_schema(field, rules) for field in fields},
    }
    required = [field.name for field in fields if field.required]
    return {**written, "required": required} if required else written


def _field_schema(field: FormField, rules: Rules) -> JSONObject:
    if field.kind == "choices" and not rules.form_multi_select:
        raise NotSupported(
            f'a form of revision {rules.revision} cannot ask for several choices at once, as "{field.name}" does: '
            "ask for one choice, or for yes or no about each"
        )
    about = {"title": field.title, "description": field.description}
    about |= {keyword: getattr(field, name) for name, keyword in _BOUNDS.get(field.kind, {}).items()}
    if rules.form_defaults or field.kind == "boolean":
        about["default"] = _encode_default(field, field.default)
    keywords = {keyword: value for keyword, value in about.items() if value is not None}
    return {**_TYPES[field.kind], **keywords, **_choices_schema(field, rules)}


def _encode_default(field: FormField, value: Any) -> Any:
    """Return a default with its choices as strings."""
    if value is None or not field.choices:
        return value
    return [text_of(item) for item in value] if isinstance(value, list) else text_of(value)


def _choices_schema(field: FormField, rules: Rules) -> JSONObject:
    if not field.choices:
        return {}
    texts = [text_of(value) for value, _ in field.choices]
    titles = [title for _, title in field.choices]
    titled = [{"const": text, "title": title} for text, title in zip(texts, titles, strict=True)]
    if field.kind == "choices":
        return {"items": {"type": "string", "enum": texts} if titles == texts else {"anyOf": titled}}
    if titles == texts:
        return {"enum": texts}
    return {"oneOf": titled} if rules.form_titled_choices else {"enum": texts, "enumNames": titles}


def fields(requested: Schema) -> list[FormField]:
    """Return the fields of a `requestedSchema`, in its order."""
    properties, required = requested.get("properties"), requested.get("required")
    if not isinstance(properties, dict):
        return []
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    required_names = set(names)
    return [_field(name, schema, name in required_names, requested) for name, schema in properties.items()]


def count_expanded(requested: Schema, depth: int, most: int) -> int:
    """Return the number of values in a `requestedSchema`, with those of each reference as often as it expands; there,
    1,000 characters count as one value.

    Raises `SchemaError` for more than `most`, and for deeper nesting.
    """
    size = count_values(requested, depth, most)
    sizes: dict[int, int] = {}
    for reference in _references(requested):
        for target in _targets(reference, requested):
            if id(target) not in sizes:
                sizes[id(target)] = count_values(target, depth, most) + max_characters(target) // _VALUE_CHARACTERS
            size += sizes[id(target)]
        if size > most:
            raise SchemaError(f"the schema has more than {most:,} values, references counted as often as they expand")
    return size


def _references(requested: Schema) -> Iterator[Schema]:
    """Yield the schemas that have a `$ref`."""
    pending: list[Any] = [requested]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
            if "$ref" in value:
                yield value
        elif isinstance(value, list):
            pending += value


def _field(name: str, schema: Any, required: bool, root: Schema) -> FormField:
    schema, _ = without_null(schema, root)
    kind, choices = _kind(schema, root)
    field = FormField(
        name=name,
        kind=kind,
        title=_string(schema.get("title")),
        description=_string(schema.get("description")),
        required=required,
        choices=choices,
        **_bounds(kind, schema),
    )
    default = schema.get("default")
    return msgspec.structs.replace(field, default=default) if _fits(field, default) else field


def _fits(field: FormField, value: Any) -> bool:
    try:
        check_value(field, value)
    except Mismatch:
        return False
    return True


def without_null(schema: Any, root: Schema) -> tuple[Schema, bool]:
    """Return a schema with resolved references and without null, and whether it allows null."""
    schema = _resolve(schema, root)
    type_, enum = schema.get("type"), schema.get("enum")
    arms = [_resolve(arm, root) for arm in _arms(schema)]
    present = [arm for arm in arms if not _is_null(arm)]
    if isinstance(type_, list) and len(named := [name for name in type_ if name != "null"]) == 1:
        schema = {**schema, "type": named[0]}
    if (only := _single_arm(present)) is not None:
        schema = {**only, **{key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}}
    null_in_lists = any(
        isinstance(keyword_value, list) and nothing in keyword_value
        for keyword_value, nothing in ((type_, "null"), (enum, None))
    )
    return schema, len(present) < len(arms) or null_in_lists


def _single_arm(arms: list[Schema]) -> Schema | None:
    """Return the arm to which a union is reduced: its only one, unless that is a choice; the number in a union of
    number and text, which is the schema of a decimal."""
    if len(arms) == 1:
        return None if "const" in arms[0] else arms[0]
    numbers = [arm for arm in arms if arm.get("type") == "number"]
    texts = [arm for arm in arms if arm.get("type") == "string" and "const" not in arm]
    return numbers[0] if len(numbers) == len(texts) == 1 and len(arms) == 2 else None


def _resolve(schema: Any, root: Schema) -> Schema:
    """Return a schema with resolved references into `$defs`; empty if it is not a schema."""
    if not isinstance(schema, dict):
        return {}
    resolved: Schema = schema
    for target in _targets(schema, root):
        resolved = {**target, **{key: value for key, value in resolved.items() if key != "$ref"}}
    return resolved


def _targets(schema: Schema, root: Schema) -> Iterator[Schema]:
    """Yield the target of a reference, and the targets of further references in it."""
    for _ in range(_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return
        if len(reference) > _REFERENCE_LENGTH:
            return
        schema = _member(_member(root, "$defs"), reference.removeprefix("#/$defs/"))
        yield schema


def _member(value: Any, key: str) -> Schema:
    member = value.get(key)
    return member if isinstance(member, dict) else {}


def _arms(schema: Schema) -> list[Any]:
    arms = schema.get("anyOf") or schema.get("oneOf")
    return arms if isinstance(arms, list) else []


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or ("const" in schema and schema["const"] is None)


def _kind(schema: Schema, root: Schema) -> tuple[Kind, Choices]:
    if choices := _choices(schema):
        return "choice", choices
    type_ = schema.get("type")
    if type_ == "array":
        choices = _choices(without_null(schema.get("items"), root)[0])
        return ("choices", choices) if choices else ("other", ())
    if schema.keys() & {"enum", "const", "anyOf", "oneOf", "contentEncoding"} or not isinstance(type_, str):
        return "other", ()
    if type_ == "string" and isinstance(format_ := schema.get("format"), str):
        return _FORMATS.get(format_, "text"), ()
    return _KINDS.get(type_, "other"), ()


def _choices(schema: Schema) -> Choices:
    """Return the values and titles of a choice; empty if a value cannot be a choice."""
    options = [(value, title) for value, title in _options(schema) if value is not None]
    if not all(isinstance(value, str) or is_number(value) for value, _ in options):
        return ()
    return tuple((value, title if isinstance(title, str) else text_of(value)) for value, title in options)


def _options(schema: Schema) -> list[tuple[Any, Any]]:
    """Return the values and titles as written: keywords with titles take precedence."""
    arms = _arms(schema)
    if arms and all(isinstance(arm, dict) and "const" in arm for arm in arms):
        return [(arm["const"], arm.get("title")) for arm in arms]
    enum, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(enum, list):
        titles: list[Any] = names if isinstance(names, list) and len(names) == len(enum) else [None] * len(enum)
        return list(zip(enum, titles, strict=True))
    return [(schema["const"], None)] if "const" in schema else []


def _bounds(kind: Kind, schema: Schema) -> dict[str, Any]:
    bounds = {name: schema.get(keyword) for name, keyword in _BOUNDS.get(kind, {}).items()}
    if "min_length" in bounds:
        return {name: int(value) for name, value in bounds.items() if is_number(value) and value >= 0}
    least = [schema.get("minimum"), _inclusive_bound(kind, schema.get("exclusiveMinimum"), 1)]
    most = [schema.get("maximum"), _inclusive_bound(kind, schema.get("exclusiveMaximum"), -1)]
    return {
        "minimum": max(filter(is_number, least), default=None),
        "maximum": min(filter(is_number, most), default=None),
    }


def _inclusive_bound(kind: Kind, bound: Any, step: int) -> Any:
    """Return the first value inside an exclusive bound. For fractions there is none: a form can only name the bound."""
    if kind != "integer" or not is_number(bound):
        return bound
    return (math.floor(bound) if step > 0 else math.ceil(bound)) + step


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None
