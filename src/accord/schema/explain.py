"""What msgspec says about a value, in the words of JSON and with the value itself.

Expected `int`, got `str` - at `$.days`
argument "trip.days": expected integer, got string "three"
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from accord.schema.hints import Choice, Items, Narrowed, Node, Record, Row, Table, Values

_WORDS = {
    "int": "integer", "float": "number", "str": "string", "bool": "boolean", "bytes": "base64 string",
    "datetime": "date-time string", "date": "date string", "time": "time string",
    "timedelta": "duration string", "uuid": "UUID string", "decimal": "decimal number",
}  # fmt: skip
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_EXCERPT = 60

Path = list[str | int | None]


def argument(name: str, node: Node, value: Any, said: str) -> str:
    """One line about one argument; `said` is the text of msgspec's ValidationError."""
    return f'argument "{shortened(name)}{{}}": {{}}'.format(*failure(node, value, said))


def failure(node: Node, value: Any, said: str) -> tuple[str, str]:
    """Where in the value it fails, as `.key[0]`, and why."""
    reason, *places = said.split(" - at `")
    in_key = bool(places) and places[0].startswith("key`")
    # A converted type inside another gives one path each, the innermost first.
    where = "".join(place.rpartition("$")[2].rstrip("`") for place in reversed(places))
    path: Path = [match[1] or (int(match[2]) if match[2] else None) for match in _STEP.finditer(where)]
    found = _value_at(value, path)
    return where, _in_a_key(reason) if in_key else _sentence(reason, _node_at(node, path), found)


def _sentence(reason: str, node: Node | None, found: Any) -> str:
    if reason.startswith("Invalid enum value") and isinstance(node, Values):
        allowed = ", ".join(excerpt(value, typed=False) for value, _ in node.values)
        return f"expected one of {allowed}" + _got(found)
    if reason.startswith("Object missing required field"):
        return reason.replace("Object missing required field", "missing").replace("`", '"')
    if reason.startswith("Object contains unknown field"):
        return reason.replace("Object contains unknown field", "unknown").replace("`", '"')
    expected, got, kind = _in_words(reason).partition(", got ")
    return expected + (_got(found) or got + kind)


def _in_a_key(reason: str) -> str:
    return "a key: " + _in_words(reason)


def _in_words(reason: str) -> str:
    text = re.sub(r"`([^`]*)`", lambda match: " or ".join(_WORDS.get(w, w) for w in match[1].split(" | ")), reason)
    return text[:1].lower() + text[1:]


def _got(found: Any) -> str:
    return "" if found is _NOWHERE else f", got {excerpt(found)}"


def excerpt(value: Any, *, typed: bool = True) -> str:
    """The type of a JSON value and the start of it."""
    kind = next((word for type_, word in _KINDS if isinstance(value, type_)), "value")
    try:
        text = "" if value is None else shortened(msgspec.json.encode(value).decode())
    except (RecursionError, TypeError, ValueError, OverflowError):
        text = "..."
    return f"{kind} {text}".strip() if typed or not text else text


def shortened(text: str) -> str:
    """Text short enough to be quoted in a message."""
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "..."


_KINDS: tuple[tuple[type, str], ...] = (
    (str, "string"), (bool, "boolean"), (int, "integer"), (float, "number"),
    (list, "array"), (dict, "object"), (type(None), "null"),
)  # fmt: skip
_NOWHERE: Any = object()


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return _NOWHERE
    return value


def _node_at(node: Node | None, path: Path) -> Node | None:
    for step in path:
        node = None if node is None else _inside(node, step)
    while isinstance(node, Narrowed):
        node = node.node
    return next((arm for arm in node.arms if isinstance(arm, Values)), None) if isinstance(node, Choice) else node


def _inside(node: Node, step: str | int | None) -> Node | None:
    match node:
        case Narrowed(node=inner):
            return _inside(inner, step)
        case Items(item=inner) | Table(value=inner):
            return inner
        case Row(items=items) if isinstance(step, int) and step < len(items):
            return items[step]
        case Record(fields=fields):
            return next((field.node for field in fields if field.key == step), None)
        case Choice(arms=arms):
            return next((found for arm in arms if (found := _inside(arm, step))), None)
    return None
