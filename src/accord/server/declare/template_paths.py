"""Which values of a URI template must not become file paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from accord.lazy_patterns import lazy_pattern
from accord.messages.bounds import normalize
from accord.server.declare.template_syntax import Expression, expand

_DRIVE = lazy_pattern(r"[A-Za-z]:")
_ROUNDS = 3
"""The number of times escapes are decoded in the text of several values."""


def unsafe_reason(value: Any) -> str | None:
    """Return what makes the value of one variable unsafe, as a predicate; None for a safe one."""
    if isinstance(value, str):
        once = unquote(value)
        return _unsafe_path(value) or (None if once == value else _unsafe_path(once) or _unsafe_path(unquote(once)))
    if isinstance(value, Mapping):
        return next(filter(None, map(unsafe_reason, (*value, *value.values()))), None)
    if len(value) > 1 and not value[0]:
        return "is an absolute path"
    return next(filter(None, map(unsafe_reason, value)), None)


def _unsafe_path(path: str) -> str | None:
    if "\0" in path:
        return "has a NUL"
    if path.startswith(("/", "\\")):
        return "is an absolute path"
    if _DRIVE.match(path):
        return "begins with the letter of a drive"
    if any(map(_is_parent, _segments(path))):
        return "has a segment '..'"
    return None


def joins(parts: Sequence[str | Expression]) -> bool:
    """Return whether a segment consists of more than one variable."""
    text = "".join(part if isinstance(part, str) else f"{part.operator.first}\0" for part in parts)
    return any("\0" in segment and segment != "\0" for segment in text.split("/"))


def has_parent_segment(parts: Sequence[str | Expression], values: Mapping[str, Any]) -> bool:
    """Return whether literals and values together form a segment `..` that none of them has alone: `{name}.{ext}`
    does with an empty name and `./x`.
    """
    whole = "".join(part if isinstance(part, str) else _marked(part, values) for part in parts)
    for _ in range(_ROUNDS):
        whole = unquote(whole)
        if any("\0" in part and _is_parent(part.replace("\0", "")) for part in _segments(whole)):
            return True
    return False


def _marked(expression: Expression, values: Mapping[str, Any]) -> str:
    """Return the expansion between two NUL, which no value has; an empty string for a query or fragment."""
    return "" if expression.operator.first in tuple("?&#;") else f"\0{expand(expression, values)}\0"


def is_absolute(parts: Sequence[str | Expression], values: Mapping[str, Any]) -> bool:
    """Return whether variables and the slashes after them form an absolute path: `{folder}/{name}` does with an
    empty folder. In `file://{host}/{+path}` the host may be empty (RFC 8089, 2).
    """
    before = ""
    for at, part in enumerate(parts):
        if isinstance(part, str):
            before = part
            continue
        given = [values[variable.name] for variable in part.variables if variable.name in values]
        behind = _begins_with_slash(parts[at + 1 : at + 2], values)
        is_empty = not expand(part, values)
        if part.operator.first == "/":
            if "" in given[: None if behind else -1]:
                return True
        elif behind and is_empty and _begins_a_path(before):
            return True
        before = before if is_empty else ""
    return False


def _begins_with_slash(rest: Sequence[str | Expression], values: Mapping[str, Any]) -> bool:
    """Return whether the next part begins with a slash."""
    return any((part if isinstance(part, str) else expand(part, values)).startswith("/") for part in rest)


def _begins_a_path(before: str) -> bool:
    """Return whether a segment, rather than the host of a file, follows a literal."""
    return before.endswith(("/", ":")) and before.lower() != "file://"


def _segments(path: str) -> list[str]:
    """Return the segments of a path, after normalizing characters that look like dots and slashes."""
    return normalize("NFKC", path).replace("\\", "/").split("/")


def _is_parent(segment: str) -> bool:
    """Return whether a segment is `..`, also with blanks around it."""
    return segment.strip(" ") == ".."
