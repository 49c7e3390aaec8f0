"""Forms: the questions of a server to a user, as a Python type, and their processing in a client.

    form(Order)                 a flat class: each attribute is a field
    form(bool), form(Color)     one value; on the wire it is a form with the one field "value"
    form(["S", "M", "L"])       a choice; {"S": "Small", ...} sets the titles
    form(None)                  no fields: the answer is only accept or decline

A `FormType` writes itself as the `requestedSchema` of a revision, and converts an answer to the type. Constraints that
a form cannot express (a pattern, a validator) are checked when the answer arrives. A client reads a `requestedSchema`
with `fields`, parses input with `parse`, and validates an answer with `check` before it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from accord.errors import DeclarationError, Mismatch
from accord.messages.revision import Rules
from accord.schema import emit, explain
from accord.schema.form_fields import (
    FormField as FormField,
    Scalar,
    check_value,
    is_numbered as is_numbered,
    parse as parse,
    text_of as text_of,
)
from accord.schema.form_schemas import fields as fields, requested_schema, without_null
from accord.schema.hints import NULL, ArrayNode, ConstrainedNode, EnumNode, HintReader, Node, RecordNode, UnionNode
from accord.schema.type_converter import TypeConverter

Email: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "email"})]
"""A text that is an email address."""
Uri: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri"})]
"""A text that is a URI."""

JSONObject = dict[str, Any]

_VALUE = "value"
"""The field for a type that is not a class."""
_UNTYPED = ("email", "uri")
"""Kinds that are plain texts in a Python type, which therefore does not check them."""


class FormType:
    """A type as a form; `form` creates it from a hint, or pass it the node of a hint.

    `titles` are the displayed texts of a choice. Raises `DeclarationError` for a type that is not flat.
    """

    fields: tuple[FormField, ...]
    """The fields, in order."""
    wraps: bool
    """Whether the answer is the one field "value"."""

    def __init__(self, node: Node, titles: Mapping[Any, str] | None = None) -> None:
        self._node = node
        self._converter = TypeConverter(node)
        self._schemas: dict[str, JSONObject] = {}
        schema = emit.schema(node)
        self.wraps = node is not NULL and not (schema.get("type") == "object" and "properties" in schema)
        if self.wraps:
            schema = {"properties": {_VALUE: schema}, "required": [_VALUE], "$defs": schema.get("$defs", {})}
        nullable = {name for name, about in schema.get("properties", {}).items() if without_null(about, schema)[1]}
        own_fields = [field for field in fields(schema) if field.name != _tag(node)]
        self._none = {field.name for field in own_fields if field.required and field.name in nullable}
        self.fields = tuple(self._display_field(field, titles) for field in own_fields)
        self._choice_values = {field.name: _choice_values(field) for field in self.fields}

    def _display_field(self, field: FormField, titles: Mapping[Any, str] | None) -> FormField:
        """Return a field for display: its choices have titles, and a nullable field is optional."""
        if field.kind == "other":
            raise DeclarationError(
                f"{_name(self._node)}{'' if self.wraps else f'.{field.name}'} cannot be asked in a form, which is "
                "flat: make it a str, int, float, bool, date, datetime, Literal, Enum or a list of one of the last "
                "two, or ask for it by itself"
            )
        titles = titles or _titles(self._node_of(field))
        choices = tuple((value, titles.get(value, title)) for value, title in field.choices)
        return msgspec.structs.replace(field, choices=choices, required=field.required and field.name not in self._none)

    def _node_of(self, field: FormField) -> Node:
        bare = _unconstrained(self._node)
        return next(own.node for own in bare.fields if own.key == field.name) if isinstance(bare, RecordNode) else bare

    def schema(self, rules: Rules) -> JSONObject:
        """Return the `requestedSchema`; do not change it. Raise `NotSupported` if the revision does not support a
        field."""
        if rules.revision not in self._schemas:
            self._schemas[rules.revision] = requested_schema(self.fields, rules)
        return self._schemas[rules.revision]

    def read(self, content: Mapping[str, Any] | None) -> Any:
        """Return an accepted answer as the type. Raises `Mismatch`, with the path.

        A missing field takes its default, null counts as missing, and unknown fields are ignored.
        """
        if content is not None and not isinstance(content, Mapping):
            raise Mismatch(f"expected object, got {explain.excerpt(content)}")
        values = self._check_content(content or {})
        if self._node is NULL:
            return None
        if self.wraps:
            return self._converter.convert(values[_VALUE], f"$.{_VALUE}")
        return self._converter.convert(values)

    def _check_content(self, content: Mapping[str, Any]) -> JSONObject:
        values: JSONObject = dict.fromkeys(self._none)
        for field in self.fields:
            value = content.get(field.name)
            if value is not None:
                check_value(field if field.kind in _UNTYPED else _any_value_field(field), value)
                values[field.name] = _decode_choices(value, self._choice_values[field.name])
            elif field.required:
                raise Mismatch(f'missing "{field.name}"')
        return values


def form(hint: Any) -> FormType:
    """Return the form of a type; a list of strings is a choice, a dict a choice with titles, None an empty form.

    Raises `DeclarationError` for a type that is not flat, or names a type that does not exist.
    """
    if isinstance(hint, list | Mapping):
        return _choice(hint)
    try:
        hash(hint)
    except TypeError:  # metadata without a hash
        return _make_form(hint, "")
    return _cached(hint, repr(hint))


def _make_form(hint: Any, _spelling: str) -> FormType:
    try:
        return FormType(HintReader({}, {}).read(hint))
    except NameError as exc:
        raise DeclarationError(
            f"{hint!r}: an annotation refers to a name that does not exist at module level: {exc}"
        ) from exc


# Literal["a", "b"] equals Literal["b", "a"], but the displayed order differs: so the representation is part of the key.
_cached = lru_cache(maxsize=256)(_make_form)


def _choice(values: Iterable[Any]) -> FormType:
    values, titles = list(values), dict(values) if isinstance(values, Mapping) else {}
    if not values or not all(isinstance(text, str) for text in (*values, *titles.values())):
        raise DeclarationError("choices must be a list of strings, or a dict of strings to titles")
    literal: Any = Literal
    return FormType(HintReader({}, {}).read(literal[tuple(values)]), titles)


def check(content: Any, requested: Mapping[str, Any]) -> None:
    """Validate the accepted answer to a `requestedSchema`. Raises `Mismatch` for the first failure.

    Unknown fields are a failure too: the server must not receive more than it asked for.
    """
    values = {} if content is None else content
    if not isinstance(values, Mapping):
        raise Mismatch(f"expected object, got {explain.excerpt(content)}")
    known = {field.name: field for field in fields(requested)}
    for name, value in values.items():
        if name not in known:
            raise Mismatch("the form has no such field", f"$.{explain.shorten(str(name))}")
        check_value(known[name], value)
    for field in known.values():
        if field.required and field.name not in values:
            raise Mismatch(f'missing "{field.name}"')


def defaults(requested: Mapping[str, Any]) -> JSONObject:
    """Return the initial values of a form ("Clients that support defaults SHOULD pre-populate")."""
    return {field.name: field.default for field in fields(requested) if field.default is not None}


def _unconstrained(node: Node) -> Node:
    return _unconstrained(node.node) if isinstance(node, ConstrainedNode) else node


def _tag(node: Node) -> str | None:
    """Return the key that identifies a tagged record, or None: it is not a field of the form."""
    bare = _unconstrained(node)
    return bare.tag[0] if isinstance(bare, RecordNode) and bare.tag else None


def _name(node: Node) -> str:
    hint = node.hint
    return hint.__qualname__ if isinstance(hint, type) else repr(hint)


def _titles(node: Node) -> dict[Any, str]:
    """Return the displayed texts of the members of an Enum: the value if it has several words, else the name."""
    match node:
        case ConstrainedNode(node=inner) | ArrayNode(item=inner):
            return _titles(inner)
        case UnionNode(arms=arms):
            return {value: title for arm in arms for value, title in _titles(arm).items()}
        case EnumNode(values=values):
            return {value: _title(member) for value, member in values if isinstance(member, Enum)}
    return {}


def _title(member: Enum) -> str:
    if isinstance(member.value, str) and " " in member.value:
        return member.value
    return member.name.replace("_", " ").strip().capitalize()


def _any_value_field(field: FormField) -> FormField:
    """Return a field with the minimal check of an answer; its type checks the rest."""
    return FormField(name=field.name, kind="other")


def _choice_values(field: FormField) -> dict[str, Scalar]:
    """Return the numeric choices in Python, by their text on the wire. Raise `DeclarationError` for equal texts."""
    texts = [text_of(value) for value, _ in field.choices]
    if len(set(texts)) < len(texts):
        raise DeclarationError(f'the choices of "{field.name}" are not unique: they are sent as strings')
    return {text_of(value): value for value, _ in field.choices if not isinstance(value, str)}


def _decode_choices(value: Any, meanings: Mapping[str, Scalar]) -> Any:
    if isinstance(value, list | tuple):
        return [_decode_choices(item, meanings) for item in value]
    return meanings.get(value, value) if meanings and isinstance(value, str) else value
