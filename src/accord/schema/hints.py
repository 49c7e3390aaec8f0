"""Analysis of type hints: the only reader of hints for schemas, decoders and declaration checks.

    read(hint) -> Node      PlainNode, PathNode, ArrayNode, TupleNode, MapNode, UnionNode, EnumNode, RecordNode,
                            PydanticNode, ConstrainedNode

A node is the meaning of a hint as JSON; `emit` writes it as JSON Schema, `convert` as a type that msgspec can decode. A
built-in takes about a microsecond, so hints are read when a tool is declared; all else waits. A hint without JSON is a
`DeclarationError`; a name that does not exist yet is a `NameError`: read it again later. Optional libraries (pydantic,
attrs, annotated-types, dataclasses) and pathlib are never imported: a hint can only use them if they are in
`sys.modules` already.
"""

from __future__ import annotations

import builtins
import collections.abc as abc
import datetime
import decimal
import enum
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from accord.errors import DeclarationError
from accord.schema import records
from accord.schema.pydantic_types import JSON_TYPES
from accord.schema.records import MISSING as MISSING


class Node(msgspec.Struct, eq=False):
    """The meaning of a hint as JSON. `hint` is the hint itself, resolved if it was a string."""

    hint: Any


class PlainNode(Node):
    """A type that JSON has, or for which there is a common representation."""


class PathNode(Node):
    """A path: `pathlib.Path` or `pathlib.PurePath`."""


class ArrayNode(Node):
    """An array of any length: list, tuple[X, ...], set or frozenset."""

    kind: Any
    item: Node


class TupleNode(Node):
    """An array of fixed length: tuple[X, Y]."""

    items: tuple[Node, ...]


class MapNode(Node):
    """An object with any keys."""

    key: Node
    value: Node


class UnionNode(Node):
    """A union; the arms are tried in order if msgspec cannot tell them apart."""

    arms: tuple[Node, ...]


class EnumNode(Node):
    """Literal or Enum: JSON value to Python value."""

    values: tuple[tuple[Any, Any], ...]


class Field(msgspec.Struct, frozen=True, eq=False):
    """One key of an object: of a record, or a parameter of a function."""

    name: str
    key: str
    node: Node
    default: Any = MISSING
    required: bool = True
    factory: Callable[[], Any] | None = None
    """Creates a default that must not be shared."""


class RecordNode(Node):
    """A class with fields. `fields` is set after the record is known, so that it can refer to itself."""

    name: str
    make: Callable[..., Any]
    fields: tuple[Field, ...] = ()
    closed: bool = False
    """Whether unknown keys are refused."""
    array: bool = False
    """Whether it is an array in JSON: NamedTuple, `array_like=True`."""
    tag: tuple[str, str | int] | None = None


class PydanticNode(Node):
    """A type that only pydantic can handle."""


class ConstrainedNode(Node):
    """Annotated: `bounds` restrict the value, `notes` are keywords of the schema."""

    node: Node
    bounds: dict[str, Any]
    notes: dict[str, Any]
    strict: bool = False
    """Whether only the type itself is accepted, by pydantic's `Field(strict=True)`: no number in a string."""


BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")

ANYTHING = PlainNode(Any)
NULL = PlainNode(None)
_PLAIN: dict[Any, Node] = {
    type_: PlainNode(type_)
    for type_ in (
        str, int, float, bool, bytes, uuid.UUID, decimal.Decimal,
        datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    )
} | {type(None): NULL, None: NULL, object: ANYTHING, Any: ANYTHING, MISSING: ANYTHING, msgspec.Raw:
PlainNode(msgspec.Raw)}  # fmt: skip

_LISTS = {list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable}
_SETS = {set, abc.Set, abc.MutableSet}
_TABLES = {dict, abc.Mapping, abc.MutableMapping}


def is_builtin(hint: Any) -> bool:
    """Return whether a hint is a built-in, the fast answer for most parameters."""
    return type(hint) is type and hint in _PLAIN


def accepts_null(node: Node) -> bool:
    """Return whether a node accepts JSON null."""
    match node:
        case UnionNode(arms=arms):
            return any(map(accepts_null, arms))
        case EnumNode(values=values):
            return any(value is None for value, _ in values)
        case ConstrainedNode(node=inner):
            return accepts_null(inner)
    return node is NULL or node is ANYTHING or isinstance(node, PydanticNode)


def choices(node: Node) -> list[Any]:
    """Return the JSON values, except null, that a hint lists one by one; empty if it does not."""
    match node:
        case UnionNode(arms=arms):
            return [value for arm in arms for value in choices(arm)]
        case EnumNode(values=values):
            return [value for value, _ in values if value is not None]
        case ConstrainedNode(node=inner):
            return choices(inner)
    return [False, True] if node is _PLAIN[bool] else []


class HintReader:
    """Reader of hints in one scope: the globals of a function, and the names around it."""

    def __init__(self, scope: Mapping[str, Any], around: Mapping[str, Any]) -> None:
        self.scope = scope
        self.around = around
        self.notes: set[str] = set()
        """Keywords of JSON Schema in the hints read so far."""
        self._records: dict[Any, RecordNode] = {}
        self._variables: dict[Any, Any] = {}
        self._aliases: list[Any] = []

    def resolve(self, text: str) -> Any:
        """Resolve an annotation that is written as a string. Raises `NameError`.

        It may have quotes of its own beside `from __future__ import annotations`.
        """
        found = self._evaluate(text)
        return self._evaluate(found) if isinstance(found, str) else found

    def _evaluate(self, text: str) -> Any:
        for names in (self.around, self.scope, vars(builtins)):
            if text in names:
                return names[text]
        try:
            return eval(text, {**self.scope}, {**self.around})
        except NameError:
            raise
        except Exception as exc:  # evaluation may raise anything
            raise DeclarationError(f"the annotation {text!r} is not a type: {exc}") from exc

    def read(self, hint: Any) -> Node:
        """Return the node of a hint. Raise `DeclarationError`, and `NameError` for a name that does not exist yet."""
        if type(hint) is type and (known := _PLAIN.get(hint)) is not None:
            return known
        if isinstance(hint, str):
            return self.read(self.resolve(hint))
        if isinstance(hint, typing.ForwardRef):
            return self.read(self.resolve(hint.__forward_arg__))
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._generic(hint, origin, typing.get_args(hint))
        return self._unsubscripted(hint)

    def _generic(self, hint: Any, origin: Any, args: tuple[Any, ...]) -> Node:
        if origin is typing.Union or origin is types.UnionType:
            return self._union(hint, args)
        if origin is typing.Literal:
            return EnumNode(hint, tuple((_literal(value), value) for value in args))
        if origin is typing.Annotated:
            return self._annotated(hint, args[0], args[1:])
        if origin in (typing.Required, typing.NotRequired, typing.Final) or _has_name(origin, "ReadOnly"):
            return self.read(args[0])
        if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
            return TupleNode(hint, tuple(map(self.read, args)))
        return self._container(hint, origin, args) or self._class(hint, origin, args)

    def _container(self, hint: Any, origin: Any, args: tuple[Any, ...]) -> Node | None:
        item = args[0] if args else Any
        if origin in _LISTS or origin is tuple:
            return ArrayNode(hint, list if origin in _LISTS else tuple, self.read(item))
        if origin in _SETS or origin is frozenset:
            return ArrayNode(hint, set if origin in _SETS else frozenset, self.read(item))
        if origin in _TABLES:
            key = self.read(args[0] if args else str)
            if not _is_key(key):
                raise _refusal(hint, "the keys of a JSON object are strings")
            return MapNode(hint, key, self.read(args[1] if args else Any))
        return None

    def _unsubscripted(self, hint: Any) -> Node:
        try:
            known = _PLAIN.get(hint) or self._container(hint, hint, ())
        except TypeError:
            raise _refusal(hint) from None
        if known is not None:
            return known
        if "pathlib" in sys.modules and hint in (sys.modules["pathlib"].Path, sys.modules["pathlib"].PurePath):
            return PathNode(hint)
        if isinstance(hint, typing.TypeVar):
            chosen = self._variables.get(hint, hint.__bound__ or hint.__constraints__ or Any)
            return self._union(chosen, chosen) if isinstance(chosen, tuple) else self.read(chosen)
        if isinstance(hint, typing.NewType):
            return self.read(hint.__supertype__)
        if _has_name(type(hint), "TypeAliasType"):
            return self._read_alias(hint)
        return self._class(hint, hint, ())

    def _read_alias(self, alias: Any) -> Node:
        """Read `type X = ...`; where it contains itself, any value is accepted."""
        if alias in self._aliases:
            return ANYTHING
        self._aliases.append(alias)
        try:
            return self.read(alias.__value__)
        finally:
            self._aliases.remove(alias)

    def _union(self, hint: Any, args: tuple[Any, ...]) -> Node:
        arms = tuple(self.read(arm) for arm in args if arm is not msgspec.UnsetType)
        return arms[0] if len(arms) == 1 else UnionNode(hint, arms)

    def _annotated(self, hint: Any, inner: Any, metadata: tuple[Any, ...]) -> Node:
        if records.needs_pydantic(metadata):
            return PydanticNode(hint)
        node = self.read(inner)
        bounds, notes = restrictions(metadata)
        self.notes.update(notes)
        match node:
            case ConstrainedNode(node=inner, bounds=inner_bounds, notes=inner_notes):
                node, bounds, notes = inner, inner_bounds | bounds, inner_notes | notes
        strict = any(_is_strict(piece) for piece in metadata)
        return ConstrainedNode(hint, node, bounds, notes, strict) if bounds or notes or strict else node

    def _class(self, hint: Any, cls: Any, args: tuple[Any, ...]) -> Node:
        if not isinstance(cls, type):
            raise _refusal(hint)
        if issubclass(cls, enum.Enum):
            return EnumNode(hint, tuple((_literal(member.value), member) for member in cls))
        if records.is_pydantic(cls):
            return PydanticNode(hint)
        if hint in self._records:
            return self._records[hint]
        return self._record(hint, cls, args)

    def _record(self, hint: Any, cls: type, args: tuple[Any, ...]) -> Node:
        shape = records.shape(cls)
        if shape is None:
            raise _refusal(hint)
        record = self._records[hint] = RecordNode(
            hint, cls.__name__, cls, closed=shape.closed, array=shape.array, tag=shape.tag
        )
        outer = self._variables
        self._variables = dict(zip(getattr(cls, "__parameters__", ()), map(self._type_argument, args), strict=False))
        types_ = typing.get_type_hints(cls, localns=dict(self.around) or None, include_extras=True)
        try:
            record.fields = tuple(
                self._field(raw, types_[raw.name if raw.name in types_ else raw.key]) for raw in shape.fields
            )
        except DeclarationError as exc:
            raise DeclarationError(f"{cls.__name__}: {exc}") from None
        finally:
            self._variables = outer
        return record

    def _type_argument(self, argument: Any) -> Any:
        return self._variables.get(argument, argument) if isinstance(argument, typing.TypeVar) else argument

    def _field(self, raw: records.RawField, hint: Any) -> Field:
        required = {typing.Required: True, typing.NotRequired: False}.get(typing.get_origin(hint), raw.required)
        return Field(raw.name, raw.key, self.read(hint), raw.default, required)


def restrictions(metadata: Iterable[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the bounds and notes of metadata: msgspec.Meta, annotated-types, pydantic.Field, or a description."""
    bounds: dict[str, Any] = {}
    notes: dict[str, Any] = {}
    for piece in metadata:
        if isinstance(piece, str):
            notes["description"] = piece
            continue
        inner_bounds, inner_notes = restrictions(getattr(piece, "metadata", None) or ())
        bounds |= inner_bounds
        notes |= inner_notes | _notes(piece)
        bounds |= {name: value for name in BOUNDS if (value := getattr(piece, name, None)) is not None}
    return bounds, notes


def _notes(piece: Any) -> dict[str, Any]:
    description = getattr(piece, "description", None) or getattr(piece, "documentation", None)
    examples = getattr(piece, "examples", None)
    extra = getattr(piece, "extra_json_schema", None) or getattr(piece, "json_schema_extra", None)
    title = getattr(piece, "title", None)
    notes: dict[str, Any] = {"title": title} if isinstance(title, str) else {}
    if isinstance(description, str):
        notes["description"] = description
    if isinstance(examples, list):
        notes["examples"] = examples
    return notes | extra if isinstance(extra, dict) else notes


def _is_strict(piece: Any) -> bool:
    return getattr(piece, "strict", None) is True or any(map(_is_strict, getattr(piece, "metadata", None) or ()))


def _literal(value: Any) -> Any:
    value = value.value if isinstance(value, enum.Enum) else value
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise DeclarationError(f"{value!r} cannot be a JSON value; use strings, numbers, booleans or None")


def _is_key(node: Node) -> bool:
    match node:
        case PlainNode(hint=hint):
            return hint is not None and hint not in (bool, bytes, msgspec.Raw)
        case EnumNode(values=values):
            return all(isinstance(value, str) for value, _ in values)
        case ConstrainedNode(node=inner):
            return _is_key(inner)
    return False


def _has_name(thing: Any, name: str) -> bool:
    return bool(getattr(thing, "__name__", getattr(thing, "_name", "")) == name)


def _refusal(hint: Any, reason: str = "") -> DeclarationError:
    name = hint.__qualname__ if isinstance(hint, type) else repr(hint)
    return DeclarationError(f"{name} cannot be a JSON value: {reason or JSON_TYPES}")
