"""The difference of two messages: as lines of their JSON; of two lists, also the changes with their effect."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.probes.message_log import decode_json
from accord.check.surface.changes import surface_changes
from accord.check.surface.schema_changes import Change
from accord.check.surface.surface import LISTS, build_surface
from accord.host.line_difference import difference
from accord.messages.base import JSONObject
from accord.visible_text import indented, truncate, visible

MAX_COMPARED = 2 << 20
"""Bytes of the largest message that is compared; of a longer one, the beginning."""
MAX_LINES = 2_000
"""The maximum number of lines in one answer."""
_LINES = 50_000
_CONTEXT = 3
_CHARACTERS = 1_000

LIST_METHODS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The methods whose results are part of a surface, and the fields with the items."""


class MessageComparison(msgspec.Struct, frozen=True):
    """The difference of two messages."""

    equal: bool
    lines: list[str]
    """Lines with `+`, `-` or a space in front."""
    shortened: bool
    """Whether some of the difference is left out."""
    changes: list[Change]
    """Of two lists of the same kind: what changed, with its effect on clients."""


def compare_messages(left: bytes, right: bytes, method: str = "") -> MessageComparison:
    """Return the difference of two messages; `method` is that of both, or empty."""
    old, new = _lines(left), _lines(right)
    lines = difference(old[:_LINES], new[:_LINES], _CONTEXT)
    is_long = max(len(left), len(right)) > MAX_COMPARED or max(len(old), len(new)) > _LINES
    return MessageComparison(
        equal=left == right or (old == new and not is_long),
        lines=[truncate(visible(line), _CHARACTERS) for line in lines[:MAX_LINES]],
        shortened=is_long or len(lines) > MAX_LINES,
        changes=_list_changes(left, right, method),
    )


def _lines(message: bytes) -> list[str]:
    """Return a message as indented JSON, with its numbers and escapes as they are; anything else as its lines."""
    text = indented(message, 8 * MAX_COMPARED) if len(message) <= MAX_COMPARED else None
    return (message[:MAX_COMPARED].decode("utf-8", "backslashreplace") if text is None else text).splitlines()


def _list_changes(left: bytes, right: bytes, method: str) -> list[Change]:
    kind = LIST_METHODS.get(method)
    if kind is None or max(len(left), len(right)) > MAX_COMPARED:
        return []
    surfaces = [build_surface("", None, None, {kind: listed_items(decode_json(each), kind)}) for each in (left, right)]
    return changes_of(*surfaces)


def changes_of(old: JSONObject, new: JSONObject) -> list[Change]:
    """Return the changes of a surface; none if one of them is invalid."""
    try:
        return list(surface_changes(old, new))[:MAX_LINES]
    except ValueError:
        return []


def listed_items(message: Any, kind: str) -> list[JSONObject]:
    """Return the items of the response to a list request that have a name."""
    result = message.get("result") if isinstance(message, dict) else None
    items = result.get(kind) if isinstance(result, dict) else None
    key = LISTS[kind].key
    return [
        item
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, dict) and isinstance(item.get(key), str)
    ]
