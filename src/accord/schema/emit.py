"""Nodes written as JSON Schema 2020-12.

A schema is self-contained. A class that is used once is written inline; one that is used twice, or inside itself, goes
to `$defs`. There are no titles: the names of Python classes are not worth their tokens to a model.

The input and the output of a type can differ (a Decimal is received as number or string and sent as string), so there
are two directions: `schema(node)` for received values, `schema(node, output=True)` for sent ones.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from accord.schema import pydantic_types
from accord.schema.hints import (
    ANYTHING,
    MISSING,
    ArrayNode,
    ConstrainedNode,
    EnumNode,
    Field,
    MapNode,
    Node,
    PathNode,
    PlainNode,
    PydanticNode,
    RecordNode,
    TupleNode,
    UnionNode,
)

JSONObject = dict[str, Any]

_DECIMAL = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"

_PLAIN: dict[Any, JSONObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    decimal.Decimal: {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _DECIMAL}]},
    msgspec.Raw: {},
    Any: {},
}
_PLAIN_OUTPUT = _PLAIN | {decimal.Decimal: {"type": "string", "pattern": _DECIMAL}}

_TYPE_NAMES = ((str, "string"), (bool, "boolean"), (int, "integer"), (float, "number"), (type(None), "null"))
_DEFS = "#/$defs/"

_NUMBER = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_KEYWORDS: dict[str, dict[str, str]] = {
    "integer": _NUMBER,
    "number": _NUMBER,
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}


def schema(node: Node, *, output: bool = False) -> JSONObject:
    """Return the JSON Schema of a node."""
    emitter = _Emitter(output)
    return emitter.finish(emitter.write(node))


def object_schema(fields: Iterable[Field], *, rest: Node | None = None) -> JSONObject:
    """Return the schema of named parameters. Others are refused, unless `rest` is their type."""
    emitter = _Emitter(False)
    written = emitter.object(fields)
    written["additionalProperties"] = False if rest is None else rest is ANYTHING or emitter.write(rest)
    return emitter.finish(written)


class _Emitter:
    """Writer of one schema; it records every use of a class until all are known."""

    def __init__(self, output: bool) -> None:
        self._output = output
        self._plain = _PLAIN_OUTPUT if output else _PLAIN
        self._bodies: dict[int, JSONObject] = {}
        self._places: dict[int, list[JSONObject]] = {}
        self._names: dict[int, str] = {}
        self._defs: JSONObject = {}

    def write(self, node: Node) -> JSONObject:
        return _WRITERS[type(node)](self, node)

    def finish(self, root: JSONObject) -> JSONObject:
        """Insert each class: inline if it is used once, else under `$defs`."""
        for key, places in self._places.items():
            if len(places) > 1:
                self._share(key, places)
            else:
                places[0].update(self._bodies[key] | places[0])
        if not self._defs:
            return root
        return {**self._inline_root(root), "$defs": self._defs}

    def _share(self, key: int, places: list[JSONObject]) -> None:
        name = self._names[key]
        while name in self._defs:
            name += "_"
        self._defs[name] = self._bodies[key]
        for place in places:
            place["$ref"] = _DEFS + name

    def _inline_root(self, root: JSONObject) -> JSONObject:
        """Replace a root that is only a reference by its body: `type: object` must be visible at the root."""
        name = root.get("$ref", "").removeprefix(_DEFS)
        return {**self._defs[name], **{k: v for k, v in root.items() if k != "$ref"}} if name in self._defs else root

    def plain(self, node: PlainNode) -> JSONObject:
        return dict(self._plain[node.hint])

    def path(self, node: PathNode) -> JSONObject:
        return {"type": "string", "format": "path"}

    def items(self, node: ArrayNode) -> JSONObject:
        written: JSONObject = {"type": "array"}
        if node.item is not ANYTHING:
            written["items"] = self.write(node.item)
        if node.kind in (set, frozenset):
            written["uniqueItems"] = True
        return written

    def row(self, node: TupleNode) -> JSONObject:
        return _row([self.write(item) for item in node.items], len(node.items))

    def table(self, node: MapNode) -> JSONObject:
        written: JSONObject = {"type": "object"}
        if node.value is not ANYTHING:
            written["additionalProperties"] = self.write(node.value)
        key = self.write(node.key)
        if key.get("type") == "string" and len(key) > 1:
            written["propertyNames"] = key
        return written

    def choice(self, node: UnionNode) -> JSONObject:
        arms: list[JSONObject] = []
        for written in map(self.write, node.arms):
            arms += written["anyOf"] if written.keys() == {"anyOf"} else [written]
        return {"anyOf": arms}

    def values(self, node: EnumNode) -> JSONObject:
        values = [value for value, _ in node.values]
        kinds = {_type_name(value) for value in values}
        written: JSONObject = {"enum": values}
        return {"type": kinds.pop(), **written} if len(kinds) == 1 else written

    def foreign(self, node: PydanticNode) -> JSONObject:
        written, defs = pydantic_types.schema(node.hint, output=self._output)
        self._defs.update(defs)
        return written

    def narrowed(self, node: ConstrainedNode) -> JSONObject:
        written = self.write(node.node)
        for target in written.get("anyOf", (written,)):
            keywords = _KEYWORDS.get(target.get("type", ""), {})
            target.update({keywords[name]: value for name, value in node.bounds.items() if name in keywords})
        written.update(node.notes)
        return written

    def record(self, node: RecordNode) -> JSONObject:
        place: JSONObject = {}
        self._places.setdefault(id(node), []).append(place)
        if id(node) not in self._names:
            self._names[id(node)] = node.name
            self._bodies[id(node)] = self.row_of(node) if node.array else self.object(node.fields, node)
        return place

    def row_of(self, node: RecordNode) -> JSONObject:
        tag = [{"const": node.tag[1]}] if node.tag else []
        required = len(tag) + sum(field.required for field in node.fields)
        return _row(tag + [self.field(field) for field in node.fields], required)

    def object(self, fields: Iterable[Field], record: RecordNode | None = None) -> JSONObject:
        tag = record.tag if record else None
        properties: JSONObject = {tag[0]: {"const": tag[1]}} if tag else {}
        required = [tag[0]] if tag else []
        for field in fields:
            properties[field.key] = self.field(field)
            if field.required:
                required.append(field.key)
        written: JSONObject = {"type": "object", "properties": properties}
        if required:
            written["required"] = required
        if record and record.closed:
            written["additionalProperties"] = False
        return written

    def field(self, field: Field) -> JSONObject:
        written = self.write(field.node)
        if field.default is not MISSING and (default := _encodable(field.default)) is not MISSING:
            written["default"] = default
        return written


_WRITERS: dict[type[Node], Callable[[Any, Any], JSONObject]] = {
    PlainNode: _Emitter.plain,
    PathNode: _Emitter.path,
    ArrayNode: _Emitter.items,
    TupleNode: _Emitter.row,
    MapNode: _Emitter.table,
    UnionNode: _Emitter.choice,
    EnumNode: _Emitter.values,
    PydanticNode: _Emitter.foreign,
    ConstrainedNode: _Emitter.narrowed,
    RecordNode: _Emitter.record,
}


def _row(items: list[JSONObject], required: int) -> JSONObject:
    written: JSONObject = {"type": "array", "prefixItems": items} if items else {"type": "array"}
    return written | {"items": False, "minItems": required, "maxItems": len(items)}


def _type_name(value: Any) -> str:
    return next(name for type_, name in _TYPE_NAMES if isinstance(value, type_))


def _encodable(default: Any) -> Any:
    """Return a default as JSON, or MISSING if it has no JSON form: the schema then only shows that it is optional."""
    if default is None or type(default) in (str, int, bool):
        return default
    try:
        return msgspec.json.decode(msgspec.json.encode(default, enc_hook=pydantic_types.dump))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return MISSING
