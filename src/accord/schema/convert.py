"""Nodes as types that msgspec can decode.

A hint that msgspec knows stays unchanged. For the rest there is `Converted`: a generated class that msgspec treats as a
custom type and passes, through `dec_hook`, to a function of this module. It serves unions that msgspec cannot tell
apart, enums of floats, bounds on a Decimal, pydantic models, and classes with such a field. So one decoder serves a
whole signature, and errors keep their path.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Annotated, Any, Union, cast, get_origin

import msgspec

from accord.locked_cache import building
from accord.schema import pydantic_types
from accord.schema.conversion_cost import Outcome, check_hashes, converted_parts
from accord.schema.hints import (
    ArrayNode,
    ConstrainedNode,
    EnumNode,
    MapNode,
    Node,
    PathNode,
    PlainNode,
    PydanticNode,
    RecordNode,
    TupleNode,
    UnionNode,
)

_LITERALS = {str, int, type(None)}
_ORDER = {"gt", "ge", "lt", "le", "multiple_of"}
_LENGTH = {"min_length", "max_length"}
_SETS = (set, frozenset)
_UNPREDICTABLE = (
    str, bytes, float, bool, type(None), None, datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
)  # fmt: skip
"""Types with random hashes (texts), or of which only few values can share one hash."""
_KEYS_AT_ONCE = 32
_MAX_REASONS = 300
"""Length of the joined reasons of all arms of a union."""


class _Anything(type):
    """msgspec checks whether `dec_hook` returned an instance of the type; this metaclass accepts any value."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class Converted(metaclass=_Anything):
    """Base class of types that are defined by a conversion. `_converted_type` creates subclasses."""

    convert: Callable[[Any], Any]


def dec_hook(type_: Any, value: Any) -> Any:
    """Convert a value to a custom type; pass it to every decoder of a type from `decodable`."""
    if type_ is object:  # for msgspec a custom type if it is inside another one: `list[object]`
        return value
    try:
        return type_.convert(value)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from None  # so that msgspec adds the path to here


def convert(value: Any, type_: Any) -> Any:
    """Convert a JSON value to a type. Raises `msgspec.ValidationError`."""
    return msgspec.convert(value, type_, dec_hook=dec_hook, str_keys=True)


def make_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type from `decodable`; no other thread uses the type meanwhile."""
    with building:
        return msgspec.json.Decoder(type_, dec_hook=dec_hook)


def decodable(node: Node) -> Any:
    """Return the type that msgspec decodes for a node."""
    return Decodables().of(node)


def _crashes_msgspec(arms: Iterable[Node]) -> bool:
    """Return whether the arms of a union make msgspec 0.22 read and free memory that is not its own: a tuple of fixed
    length beside a type with bounds.
    """
    kinds = {type(each) for each in _parts_of_union(arms)}
    return TupleNode in kinds and ConstrainedNode in kinds


def _parts_of_union(arms: Iterable[Node]) -> Iterator[Node]:
    for arm in arms:
        yield arm
        if isinstance(arm, UnionNode):
            yield from _parts_of_union(arm.arms)
        elif isinstance(arm, ConstrainedNode):
            yield from _parts_of_union((arm.node,))


def _loses_defaults(hint: Any) -> bool:
    """Return whether msgspec omits defaults from the `__dict__` of decoded objects, and so from their encoding."""
    cls = get_origin(hint) or hint
    fields = getattr(cls, "__dataclass_fields__", {})
    return "__slots__" not in vars(cls) and any(hasattr(cls, name) for name in fields)


class Decodables:
    """The types of nodes; caches those of records, which may refer to themselves."""

    def __init__(self) -> None:
        self._native: dict[int, bool] = {}
        self._struct_converters: dict[int, type[Converted]] = {}

    def of(self, node: Node) -> Any:
        if isinstance(node, PlainNode) and node.hint is not msgspec.Raw:
            return node.hint
        return node.hint if self.native(node) else _MAKERS[type(node)](self, node)

    def native(self, node: Node) -> bool:
        """Return whether msgspec decodes the hint itself, with the same meaning."""
        match node:
            case PlainNode(hint=hint):
                return hint is not msgspec.Raw
            case ArrayNode(kind=kind, item=item):
                if kind in _SETS and _has_predictable_hash(item):
                    return False
                return self.native(item) and self._decodes(node.hint)
            case UnionNode(arms=arms) if _crashes_msgspec(arms):
                return False
            case TupleNode(items=items) | UnionNode(arms=items):
                return all(map(self.native, items)) and self._decodes(node.hint)
            case MapNode(key=key, value=value):
                return (
                    not _has_predictable_hash(key)
                    and self.native(key)
                    and self.native(value)
                    and self._decodes(node.hint)
                )
            case EnumNode(values=values):
                return {type(value) for value, _ in values} <= _LITERALS and self._decodes(node.hint)
            case RecordNode():
                return self._native_record(node)
            case ConstrainedNode(node=inner, bounds=bounds, hint=hint):
                metadata = getattr(hint, "__metadata__", (None,))
                known = not bounds or all(isinstance(piece, (msgspec.Meta, str)) for piece in metadata)
                return known and self.native(inner) and self._decodes(hint)
        return False

    def _native_record(self, node: RecordNode) -> bool:
        if id(node) not in self._native:
            self._native[id(node)] = True  # during the check of its own fields
            fields_are = all(self.native(field.node) for field in node.fields)
            self._native[id(node)] = fields_are and self._decodes(node.hint) and not _loses_defaults(node.hint)
        return self._native[id(node)]

    def _decodes(self, hint: Any) -> bool:
        try:
            make_decoder(hint)
        except (TypeError, NameError):
            return False
        return True

    def raw(self, node: PlainNode) -> Any:
        return _converted_type(lambda value: msgspec.Raw(msgspec.json.encode(value)))

    def path(self, node: PathNode) -> Any:
        return _converted_type(lambda value: node.hint(msgspec.convert(value, str)))

    def items(self, node: ArrayNode) -> Any:
        item: Any = self.of(node.item)
        if node.kind in _SETS and _has_predictable_hash(node.item):
            return _converted_type(_SetOf(node.kind, item))
        return tuple[item, ...] if node.kind is tuple else node.kind[item]

    def row(self, node: TupleNode) -> Any:
        return tuple[tuple(map(self.of, node.items))]  # type: ignore[misc]

    def table(self, node: MapNode) -> Any:
        key: Any = self.of(node.key)
        value: Any = self.of(node.value)
        return _converted_type(_DictOf(key, value)) if _has_predictable_hash(node.key) else dict[key, value]

    def choice(self, node: UnionNode) -> Any:
        arms = tuple(map(self.of, node.arms))
        if _crashes_msgspec(node.arms):
            return _converted_type(_FirstOf(arms))
        union: Any = Union.__getitem__(arms)
        return union if self._decodes(union) else _converted_type(_FirstOf(arms))

    def values(self, node: EnumNode) -> Any:
        return _converted_type(_OneOf(node.values))

    def foreign(self, node: PydanticNode) -> Any:
        return _converted_type(lambda value: pydantic_types.load(node.hint, value))

    def narrowed(self, node: ConstrainedNode) -> Any:
        if isinstance(node.node, UnionNode):
            arms = tuple(_narrow(arm, node.bounds) for arm in node.node.arms)
            return self.choice(UnionNode(node.hint, arms))
        inner = self.of(node.node)
        bounds = {name: value for name, value in node.bounds.items() if name in _bounds_of(node.node)}
        if not bounds:
            return inner
        try:
            narrowed: Any = Annotated[inner, msgspec.Meta(**bounds)]
        except (TypeError, ValueError):
            return _converted_type(_Bounded(inner, bounds))
        return narrowed if self._decodes(narrowed) else _converted_type(_Bounded(inner, bounds))

    def record(self, node: RecordNode) -> Any:
        """Return a type that decodes a struct of the fields, and then calls the class with the values."""
        if id(node) not in self._struct_converters:
            self._struct_converters[id(node)] = _converted_type(_StructConverter(self, node))
        return self._struct_converters[id(node)]


_MAKERS: dict[type[Node], Callable[[Decodables, Any], Any]] = {
    PlainNode: Decodables.raw,
    PathNode: Decodables.path,
    ArrayNode: Decodables.items,
    TupleNode: Decodables.row,
    MapNode: Decodables.table,
    UnionNode: Decodables.choice,
    EnumNode: Decodables.values,
    PydanticNode: Decodables.foreign,
    ConstrainedNode: Decodables.narrowed,
    RecordNode: Decodables.record,
}


def _converted_type(function: Callable[[Any], Any]) -> type[Converted]:
    type_: Any = _Anything("Converted", (Converted,), {"convert": staticmethod(function)})
    return cast(type[Converted], type_)


def _narrow(arm: Node, bounds: Mapping[str, Any]) -> Node:
    fitting = {name: value for name, value in bounds.items() if name in _bounds_of(arm)}
    return ConstrainedNode(None, arm, fitting, {}) if fitting else arm


def _bounds_of(node: Node) -> set[str]:
    """Return the bounds that apply to a node; a bound on a union applies to the arms that support it."""
    match node:
        case PlainNode(hint=hint) if hint in _ORDERED:
            return _ORDER
        case PlainNode(hint=hint) if hint is str:
            return _LENGTH | {"pattern"}
        case PlainNode(hint=hint) if hint is bytes:
            return _LENGTH
        case ArrayNode() | MapNode():
            return _LENGTH
        case ConstrainedNode(node=inner):
            return _bounds_of(inner)
    return set()


_ORDERED = (int, float, decimal.Decimal, datetime.datetime, datetime.date, datetime.time, datetime.timedelta)


def _has_predictable_hash(node: Node) -> bool:
    """Return whether a peer can choose many values of a node that share one hash."""
    match node:
        case PlainNode(hint=hint):
            return hint not in _UNPREDICTABLE
        case EnumNode():
            return False
        case ConstrainedNode(node=inner):
            return _has_predictable_hash(inner)
        case UnionNode(arms=arms):
            return any(map(_has_predictable_hash, arms))
    return True


class _SetOf:
    """Conversion to a set of values whose hashes a peer could choose."""

    def __init__(self, kind: Any, item: Any) -> None:
        self._kind = kind
        self._list: Any = list[item]

    def __call__(self, value: Any) -> Any:
        items = convert(value, self._list)
        check_hashes(items)
        return self._kind(items)


class _DictOf:
    """Conversion to a dict with such keys."""

    def __init__(self, key: Any, value: Any) -> None:
        self._key: Any = dict[key, Any]
        self._values: Any = dict[str, value]

    def __call__(self, value: Any) -> Any:
        values = convert(value, self._values)
        keys = [*self._keys([*values])]
        check_hashes(keys)
        return dict(zip(keys, values.values(), strict=True))

    def _keys(self, names: list[str]) -> Iterator[Any]:
        """Yield the keys, few at a time, so that dicts of them are fast whatever their hashes."""
        for start in range(0, len(names), _KEYS_AT_ONCE):
            some = names[start : start + _KEYS_AT_ONCE]
            keys = [*convert(dict.fromkeys(some), self._key)]
            yield from (
                keys if len(keys) == len(some) else [key for name in some for key in convert({name: 0}, self._key)]
            )


class _FirstOf:
    """Conversion to a union that msgspec cannot tell apart: the first arm that matches."""

    def __init__(self, arms: tuple[Any, ...]) -> None:
        self._arms = arms

    def __call__(self, value: Any) -> Any:
        converted, failure = converted_parts.outcome(self, value, self._first)
        if failure is not None:
            raise ValueError(failure)
        return converted

    def _first(self, value: Any) -> Outcome:
        reasons = []
        for arm in self._arms:
            try:
                return convert(value, arm), None
            except msgspec.ValidationError as exc:
                reasons.append(str(exc))
        return None, _join_reasons(reasons)


def _join_reasons(reasons: list[str]) -> str:
    """Return one sentence if every arm expects another type, else each arm's own reason."""
    wanted = [re.fullmatch(r"Expected `([^`]*)`, got `([^`]*)`", reason) for reason in reasons]
    if all(wanted):
        names = dict.fromkeys(match[1] for match in wanted if match)
        return f"Expected `{' | '.join(names)}`, got `{wanted[0][2]}`"  # type: ignore[index]
    text = "; ".join(dict.fromkeys(reasons))
    return f"Fits none of its types ({text if len(text) <= _MAX_REASONS else text[:_MAX_REASONS] + '...'})"


class _OneOf:
    """Conversion to one of several values that msgspec does not support in a Literal or Enum; `True` is not `1`."""

    def __init__(self, values: tuple[tuple[Any, Any], ...]) -> None:
        self._values = {(isinstance(value, bool), value): meaning for value, meaning in values}

    def __call__(self, value: Any) -> Any:
        try:
            return self._values[isinstance(value, bool), value]
        except (KeyError, TypeError):
            raise ValueError(f"Invalid enum value {value!r}") from None


class _Bounded:
    """Bounds that msgspec does not check: on a Decimal, a date, a value that is itself converted."""

    _FAILS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
        "gt": (">", lambda value, bound: value <= bound),
        "ge": (">=", lambda value, bound: value < bound),
        "lt": ("<", lambda value, bound: value >= bound),
        "le": ("<=", lambda value, bound: value > bound),
        "multiple_of": ("that's a multiple of", lambda value, bound: value % bound != 0),
        "min_length": ("of length >=", lambda value, bound: len(value) < bound),
        "max_length": ("of length <=", lambda value, bound: len(value) > bound),
        "pattern": ("matching regex", lambda value, bound: re.search(bound, value) is None),
    }

    def __init__(self, inner: Any, bounds: Mapping[str, Any]) -> None:
        self._inner = inner
        self._bounds = bounds

    def __call__(self, value: Any) -> Any:
        converted = convert(value, self._inner)
        kind = "array" if isinstance(converted, Sized) and not isinstance(converted, str) else "value"
        for name, bound in self._bounds.items():
            words, fails = self._FAILS[name]
            if fails(converted, bound):
                raise ValueError(f"Expected `{kind}` {words} {bound}")
        return converted


class _StructConverter:
    """Conversion to a class whose fields msgspec cannot decode: to a struct of its fields, then to the class."""

    def __init__(self, decodables: Decodables, node: RecordNode) -> None:
        self._decodables = decodables
        self._node = node
        self._struct: Any = None

    def __call__(self, value: Any) -> Any:
        if self._struct is None:
            self._struct = self._define_struct()
        values = msgspec.structs.astuple(convert(value, self._struct))
        pairs = zip(self._node.fields, values, strict=True)
        return self._node.make(**{field.name: value for field, value in pairs if value is not msgspec.UNSET})

    def _define_struct(self) -> Any:
        fields = self._node.fields
        names = [f"f{index}" for index in range(len(fields))]
        types = map(self._decodables.of, (field.node for field in fields))
        tag_field, tag = self._node.tag or (None, None)
        struct = msgspec.defstruct(
            self._node.name,
            [
                (name, type_) if field.required else (name, type_, msgspec.UNSET)
                for name, type_, field in zip(names, types, fields, strict=True)
            ],
            rename=dict(zip(names, (field.key for field in fields), strict=True)),
            kw_only=not self._node.array,
            array_like=self._node.array,
            forbid_unknown_fields=self._node.closed,
            tag_field=tag_field,
            tag=tag,
        )
        make_decoder(struct)  # builds it
        return struct
