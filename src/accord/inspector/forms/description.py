"""The description of a form, which the page draws.

A node describes one place of a value. Values of the schema (defaults, choices, examples) are JSON texts, because
JavaScript would change their numbers. A node that is not described yet has `expand`: references to the subschemas that
apply to it, for a further request.
"""

from __future__ import annotations

import msgspec

JSONType = str
"""A type of JSON Schema: "null", "boolean", "integer", "number", "string", "array", "object"."""

TYPES: tuple[JSONType, ...] = ("object", "array", "string", "number", "integer", "boolean", "null")


class _Described(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base class: camelCase in JSON, without fields that have their default."""


class FormValue(_Described):
    """A value to choose, of `enum`, of `const`, or of titled alternatives."""

    value_json: str
    title: str | None = None
    description: str | None = None


class FormNode(_Described):
    """One place of a value. `types` are those that the schema allows; none if it allows no value at all."""

    is_any: bool = False
    """Whether any JSON value is allowed; nothing else is described then."""
    types: list[JSONType] = []
    title: str | None = None
    description: str | None = None
    label: str | None = None
    """The name of an alternative."""
    values: list[FormValue] | None = None
    """All allowed values, if the schema lists them."""
    alternatives: list[FormNode] | None = None
    """The schema allows one of these (`oneOf`), or several (`anyOf`); each has all that applies beside it."""
    object: ObjectForm | None = None
    array: ArrayForm | None = None
    default_json: str | None = None
    examples_json: list[str] | None = None
    format: str | None = None
    constraints: list[str] | None = None
    """What else a value must fulfil, as text."""
    notes: list[str] | None = None
    """What is wrong with the schema here, or left out of the form."""
    read_only: bool = False
    write_only: bool = False
    deprecated: bool = False
    expand: list[str] | None = None
    """References to the subschemas of a place that is described on request."""


class FormProperty(_Described):
    """A named member of an object."""

    name: str
    node: FormNode
    required: bool = False


class PatternProperties(_Described):
    """The members of an object whose names match a pattern."""

    pattern: str
    node: FormNode


class ObjectForm(_Described):
    """The members of an object. `additional` describes all members that are not named: None if none are allowed."""

    properties: list[FormProperty] = []
    pattern_properties: list[PatternProperties] | None = None
    additional: FormNode | None = None
    is_map: bool = False
    """Whether the schema describes the additional members, so that it means a map."""


class ArrayForm(_Described):
    """The items of an array: `prefix` describes the first ones, `items` the further ones: None if none are allowed."""

    prefix: list[FormNode] | None = None
    items: FormNode | None = None


class FormDescription(_Described):
    """A form. `problem` says why the schema cannot be used to check values, if so."""

    root: FormNode
    problem: str | None = None
