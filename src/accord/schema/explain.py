"""What msgspec says about a value, in the words of JSON and with the value itself.

Expected `int`, got `str` - at `$.days`
argument "trip.days": expected integer, got string "three"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from accord.schema.convert import Decodables, convert
from accord.schema.hints import ArrayNode, ConstrainedNode, EnumNode, MapNode, Node, RecordNode, TupleNode, UnionNode

_WORDS = {
    "int": "integer", "float": "number", "str": "string", "bool": "boolean", "bytes": "base64 string",
    "datetime": "date-time string", "date": "date string", "time": "time string",
    "timedelta": "duration string", "uuid": "UUID string", "decimal": "decimal number",
}  # fmt: skip
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_EXCERPT = 60
_SENTENCE = 300
"""Characters of one reason."""
_LEVELS = 8
"""Nesting in which all that is wrong is looked for; below, the first."""
_SEARCHED_BYTES = 64 << 10

Path = list[str | int | None]


def argument(name: str, node: Node, value: Any, most: int) -> Iterator[str]:
    """A line for each thing that is wrong in an argument, at most so many."""
    for where, why in islice(failures(node, value), most):
        yield f'argument "{shorten(name)}{where}": {why}'


def failures(node: Node, value: Any) -> Iterator[tuple[str, str]]:
    """Each place in a value that does not fit, as `.key[0]`, and why; of a large value the first only."""
    return _FailureSearch().search(node, value, "", _LEVELS if size(value) <= _SEARCHED_BYTES else 0)


class _FailureSearch:
    """Converts the parts of a value one by one, since msgspec stops at the first that does not fit."""

    def __init__(self) -> None:
        self._decodables = Decodables()
        self._types: dict[int, Any] = {}

    def search(self, node: Node, value: Any, where: str, levels: int) -> Iterator[tuple[str, str]]:
        if id(node) not in self._types:
            self._types[id(node)] = self._decodables.of(node)
        try:
            convert(value, self._types[id(node)])
            return
        except msgspec.ValidationError as exc:
            said = str(exc)
        found = False
        for step, inner, part in _parts(node, value) if levels else ():
            for each in self.search(inner, part, where + step, levels - 1):
                found = True
                yield each
        for why in _wrong_keys(node, value):
            found = True
            yield where, why
        if not found:
            place, why = failure(node, value, said)
            yield where + place, why


def _parts(node: Node, value: Any) -> Iterator[tuple[str, Node, Any]]:
    """What a value holds, with the step to it and its node."""
    match _shape(node, value), value:
        case ArrayNode(item=inner), list():
            yield from ((f"[{at}]", inner, item) for at, item in enumerate(value))
        case TupleNode(items=items), list():
            yield from ((f"[{at}]", *pair) for at, pair in enumerate(zip(items, value, strict=False)))
        case MapNode(value=inner), dict():
            yield from ((f".{shorten(key)}", inner, item) for key, item in value.items())
        case RecordNode(fields=fields), dict():
            yield from ((f".{field.key}", field.node, value[field.key]) for field in fields if field.key in value)


def _wrong_keys(node: Node, value: Any) -> Iterator[str]:
    shape = _shape(node, value)
    if not isinstance(shape, RecordNode) or not isinstance(value, dict):
        return
    for field in shape.fields:
        if field.required and field.key not in value:
            yield f'missing "{field.key}"'
    if shape.closed:
        known = {field.key for field in shape.fields} | {shape.tag[0] if shape.tag else ""}
        yield from (f'unknown "{shorten(key)}"' for key in value if key not in known)


def _shape(node: Node, value: Any) -> Node | None:
    """The node without its bounds; of a union, the only arm that such a value may be meant for."""
    if isinstance(node, ConstrainedNode):
        return _shape(node.node, value)
    if not isinstance(node, UnionNode):
        return node
    kinds = (RecordNode, MapNode) if isinstance(value, dict) else (ArrayNode, TupleNode)
    arms = [arm for each in node.arms if isinstance(arm := _shape(each, value), kinds)]
    if len(arms) > 1 and isinstance(value, dict):
        arms = [arm for arm in arms if isinstance(arm, RecordNode) and arm.tag and value.get(arm.tag[0]) == arm.tag[1]]
    return arms[0] if len(arms) == 1 else None


def failure(node: Node, value: Any, said: str) -> tuple[str, str]:
    """Where in the value it fails, as `.key[0]`, and why."""
    reason, *places = said.split(" - at `")
    in_key = bool(places) and places[0].startswith("key`")
    # A converted type inside another gives one path each, the innermost first.
    where = "".join(place.rpartition("$")[2].rstrip("`") for place in reversed(places))
    path: Path = [match[1] or (int(match[2]) if match[2] else None) for match in _STEP.finditer(where)]
    found = _value_at(value, path)
    why = _in_a_key(reason) if in_key else _sentence(reason, _node_at(node, path), found)
    return where[:_SENTENCE], why if len(why) <= _SENTENCE else f"{why[:_SENTENCE]}..."


def _sentence(reason: str, node: Node | None, found: Any) -> str:
    if reason.startswith("Invalid enum value") and isinstance(node, EnumNode):
        allowed = ", ".join(excerpt(value, typed=False) for value, _ in node.values)
        return f"expected one of {allowed}" + _got_text(found)
    if reason.startswith("Object missing required field"):
        return reason.replace("Object missing required field", "missing").replace("`", '"')
    if reason.startswith("Object contains unknown field"):
        return reason.replace("Object contains unknown field", "unknown").replace("`", '"')
    expected, got, kind = _in_json_terms(reason).partition(", got ")
    return expected + (_got_text(found) or got + kind)


def _in_a_key(reason: str) -> str:
    return "a key: " + _in_json_terms(reason)


def _in_json_terms(reason: str) -> str:
    text = re.sub(r"`([^`]*)`", lambda match: " or ".join(_WORDS.get(w, w) for w in match[1].split(" | ")), reason)
    return text[:1].lower() + text[1:]


def _got_text(found: Any) -> str:
    return "" if found is _NOT_FOUND else f", got {excerpt(found)}"


def excerpt(value: Any, *, typed: bool = True) -> str:
    """The type of a JSON value and the start of it."""
    kind = next((word for type_, word in _KINDS if isinstance(value, type_)), "value")
    text = "" if value is None else shorten(_json(value))
    return f"{kind} {text}".strip() if typed or not text else text


def size(value: Any) -> int:
    """How long a JSON value is as JSON; texts without their escapes."""
    if isinstance(value, str):
        return len(value)
    return len(_json(value)) if isinstance(value, (list, dict)) else 0


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (RecursionError, TypeError, ValueError, OverflowError):
        return "..."


def shorten(text: str) -> str:
    """Text short enough to be quoted in a message."""
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "..."


_KINDS: tuple[tuple[type, str], ...] = (
    (str, "string"), (bool, "boolean"), (int, "integer"), (float, "number"),
    (list, "array"), (dict, "object"), (type(None), "null"),
)  # fmt: skip
_NOT_FOUND: Any = object()


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return _NOT_FOUND
    return value


def _node_at(node: Node | None, path: Path) -> Node | None:
    for step in path:
        node = None if node is None else _inside(node, step)
    while isinstance(node, ConstrainedNode):
        node = node.node
    return next((arm for arm in node.arms if isinstance(arm, EnumNode)), None) if isinstance(node, UnionNode) else node


def _inside(node: Node, step: str | int | None) -> Node | None:
    match node:
        case ConstrainedNode(node=inner):
            return _inside(inner, step)
        case ArrayNode(item=inner) | MapNode(value=inner):
            return inner
        case TupleNode(items=items) if isinstance(step, int) and step < len(items):
            return items[step]
        case RecordNode(fields=fields):
            return next((field.node for field in fields if field.key == step), None)
        case UnionNode(arms=arms):
            return next((found for arm in arms if (found := _inside(arm, step))), None)
    return None
