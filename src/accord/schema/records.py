"""Classes with fields of any origin: dataclass, TypedDict, NamedTuple, msgspec.Struct, attrs.

`shape(cls)` returns the names of its fields, which are required, and their defaults. It imports nothing: the library
that created a class is in `sys.modules`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""No annotation, or no default. (msgspec.NODEFAULT cannot be a default itself.)"""


class RawField(msgspec.Struct, frozen=True):
    """A field before its hint is read."""

    name: str
    key: str
    default: Any = MISSING
    required: bool = True


class RecordShape(msgspec.Struct, frozen=True):
    """The shape of a class as JSON."""

    fields: tuple[RawField, ...]
    closed: bool = False
    array: bool = False
    tag: tuple[str, str | int] | None = None


def shape(cls: Any) -> RecordShape | None:
    """Return the shape of a class with fields; None for any other."""
    for mark, read in _SHAPES.items():
        if hasattr(cls, mark):
            return read(cls)
    return None


def _struct(cls: Any) -> RecordShape:
    config = cls.__struct_config__
    names, keys, defaults = cls.__struct_fields__, cls.__struct_encode_fields__, cls.__struct_defaults__
    required = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
    return RecordShape(
        tuple(map(_optional, names, keys, required + defaults)),
        closed=config.forbid_unknown_fields,
        array=config.array_like,
        tag=None if config.tag is None else (config.tag_field, config.tag),
    )


def _optional(name: str, key: str, default: Any) -> RawField:
    """Return a field; a factory or UNSET makes it optional, without a default for the schema."""
    if default is msgspec.NODEFAULT:
        return RawField(name, key)
    has_default = default is not msgspec.UNSET and type(default).__name__ != "Factory"
    return RawField(name, key, default if has_default else MISSING, required=False)


def _dataclass(cls: Any) -> RecordShape:
    dataclasses = sys.modules["dataclasses"]
    return RecordShape(
        tuple(
            RawField(
                field.name,
                field.name,
                MISSING if field.default is dataclasses.MISSING else field.default,
                required=field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
            )
            for field in dataclasses.fields(cls)
            if field.init
        )
    )


def _attrs(cls: Any) -> RecordShape:
    nothing = sys.modules["attr"].NOTHING
    return RecordShape(
        tuple(
            _optional(field.alias, field.name, msgspec.NODEFAULT if field.default is nothing else field.default)
            for field in cls.__attrs_attrs__
            if field.init
        )
    )


def _typed_dict(cls: Any) -> RecordShape:
    required = cls.__required_keys__
    return RecordShape(tuple(RawField(name, name, required=name in required) for name in cls.__annotations__))


def _named_tuple(cls: Any) -> RecordShape:
    defaults = cls._field_defaults
    return RecordShape(
        tuple(RawField(name, name, defaults.get(name, MISSING), required=name not in defaults) for name in cls._fields),
        array=True,
    )


_SHAPES = {
    "__struct_fields__": _struct,
    "__dataclass_fields__": _dataclass,
    "__attrs_attrs__": _attrs,
    "__required_keys__": _typed_dict,
    "_field_defaults": _named_tuple,
}


def is_pydantic(cls: Any) -> bool:
    """Return whether only pydantic can read a class: a model, its dataclass, a type of its own."""
    return "pydantic" in sys.modules and (
        hasattr(cls, "__pydantic_core_schema__") or hasattr(cls, "__get_pydantic_core_schema__")
    )


def is_field(piece: Any) -> bool:
    """Return whether a piece of metadata is `pydantic.Field(...)`."""
    return type(piece).__name__ == "FieldInfo" and type(piece).__module__ == "pydantic.fields"


def needs_pydantic(metadata: Iterable[Any]) -> bool:
    """Return whether Annotated metadata has validators or discriminators that only pydantic can run."""
    return any(
        piece.discriminator is not None or needs_pydantic(piece.metadata)
        if is_field(piece)
        else hasattr(piece, "__get_pydantic_core_schema__")
        for piece in metadata
    )
