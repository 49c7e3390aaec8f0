"""Errors of msgspec, translated to terms of JSON, with the value itself.

Expected `int`, got `str` - at `$.days`
argument "trip.days": expected integer, got string "three"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from accord.lazy_patterns import lazy_pattern
from accord.schema.convert import Decodables, convert
from accord.schema.hints import ArrayNode, ConstrainedNode, EnumNode, MapNode, Node, RecordNode, TupleNode, UnionNode

_WORDS = {
    "int": "integer", "float": "number", "str": "string", "bool": "boolean", "bytes": "base64 string",
    "datetime": "date-time string", "date": "date string", "time": "time string",
    "timedelta": "duration string", "uuid": "UUID string", "decimal": "decimal number",
}  # fmt: skip
_STEP = lazy_pattern(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_EXCERPT = 60
_SENTENCE = 300
"""Length of one reason."""
_LEVELS = 8
"""Number of levels in which all failures are searched; below, only the first is reported."""
_SEARCHED_BYTES = 64 << 10

Path = list[str | int | None]


def argument(name: str, node: Node, value: Any, message: str, most: int) -> Iterator[str]:
    """Yield a line for each failure in an argument, at most `most`; `message` is that of its conversion."""
    for where, reason in islice(failures(node, value, message), most):
        yield f'argument "{shorten(name)}{where}": {reason}'


def failures(node: Node, value: Any, message: str) -> Iterator[tuple[str, str]]:
    """Yield the place of each failure in a value, as `.key[0]`, and its reason; of a large value only the first."""
    return _FailureSearch().search(node, value, message, "", _LEVELS if size(value) <= _SEARCHED_BYTES else 0)


class _FailureSearch:
    """A search that converts the parts of a value one by one, because msgspec stops at the first failure."""

    def __init__(self) -> None:
        self._decodables = Decodables()
        self._types: dict[int, Any] = {}

    def search(self, node: Node, value: Any, message: str, where: str, levels: int) -> Iterator[tuple[str, str]]:
        has_failures = False
        for step, inner, part in _parts(node, value) if levels else ():
            reason = self._failure(inner, part)
            for each in () if reason is None else self.search(inner, part, reason, where + step, levels - 1):
                has_failures = True
                yield each
        for reason in _wrong_keys(node, value):
            has_failures = True
            yield where, reason
        if not has_failures:
            place, reason = failure(node, value, message)
            yield where + place, reason

    def _failure(self, node: Node, value: Any) -> str | None:
        """Return the message of the failed conversion of a value, or None if it succeeds."""
        if id(node) not in self._types:
            self._types[id(node)] = self._decodables.of(node)
        try:
            convert(value, self._types[id(node)])
        except msgspec.ValidationError as exc:
            return str(exc)
        return None


def _parts(node: Node, value: Any) -> Iterator[tuple[str, Node, Any]]:
    """Yield the parts of a value, with the step to each and its node."""
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
    """Return the node without its bounds; for a union, the only arm that the value may be meant for, or None."""
    if isinstance(node, ConstrainedNode):
        return _shape(node.node, value)
    if not isinstance(node, UnionNode):
        return node
    kinds = (RecordNode, MapNode) if isinstance(value, dict) else (ArrayNode, TupleNode)
    arms = [arm for each in node.arms if isinstance(arm := _shape(each, value), kinds)]
    if len(arms) > 1 and isinstance(value, dict):
        arms = [arm for arm in arms if isinstance(arm, RecordNode) and arm.tag and value.get(arm.tag[0]) == arm.tag[1]]
    return arms[0] if len(arms) == 1 else None


def failure(node: Node, value: Any, message: str) -> tuple[str, str]:
    """Return the place of the failure in the value, as `.key[0]`, and its reason."""
    reason, *places = message.split(" - at `")
    in_key = bool(places) and places[0].startswith("key`")
    # A converted type inside another one gives one path each, the innermost first.
    where = "".join(place.rpartition("$")[2].rstrip("`") for place in reversed(places))
    path: Path = [match[1] or (int(match[2]) if match[2] else None) for match in _STEP.finditer(where)]
    part = _value_at(value, path)
    text = _in_a_key(reason) if in_key else _sentence(reason, _node_at(node, path), part)
    return where[:_SENTENCE], text if len(text) <= _SENTENCE else f"{text[:_SENTENCE]}..."


def _sentence(reason: str, node: Node | None, part: Any) -> str:
    if reason.startswith("Invalid enum value") and isinstance(node, EnumNode):
        allowed = ", ".join(excerpt(value, typed=False) for value, _ in node.values)
        return f"expected one of {allowed}" + _got_text(part)
    if reason.startswith("Object missing required field"):
        return reason.replace("Object missing required field", "missing").replace("`", '"')
    if reason.startswith("Object contains unknown field"):
        return reason.replace("Object contains unknown field", "unknown").replace("`", '"')
    expected, got, kind = _in_json_terms(reason).partition(", got ")
    return expected + (_got_text(part) or got + kind)


def _in_a_key(reason: str) -> str:
    return "a key: " + _in_json_terms(reason)


def _in_json_terms(reason: str) -> str:
    text = re.sub(r"`([^`]*)`", lambda match: " or ".join(_WORDS.get(w, w) for w in match[1].split(" | ")), reason)
    return text[:1].lower() + text[1:]


def _got_text(part: Any) -> str:
    return "" if part is _NOT_FOUND else f", got {excerpt(part)}"


def excerpt(value: Any, *, typed: bool = True) -> str:
    """Return the type of a JSON value and its beginning."""
    kind = next((word for type_, word in _KINDS if isinstance(value, type_)), "value")
    text = "" if value is None else shorten(_json(value))
    return f"{kind} {text}".strip() if typed or not text else text


def size(value: Any) -> int:
    """Return the length of a JSON value as JSON; texts count without escapes."""
    if isinstance(value, str):
        return len(value)
    return len(_json(value)) if isinstance(value, (list, dict)) else 0


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (RecursionError, TypeError, ValueError, OverflowError):
        return "..."


def shorten(text: str) -> str:
    """Return a text short enough for a message."""
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
