"""Changes of a few values in a JSON text, with all other characters as they are.

before = decode(text)
after = ...                              # the same objects and arrays where nothing changes
splice(text, before, after)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any


class _RepeatedKey(str):
    """A key that its object has more than once, as an entry of its own in the dict."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or NotImplemented  # a plain text compares itself with this one


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        members[_RepeatedKey(key) if key in members else key] = value
    return members


def _number(text: str) -> int:
    return 0


_json = json.JSONDecoder(object_pairs_hook=_members, parse_int=_number, parse_float=_number)
_spaces = re.compile(r"[ \t\n\r]*")


def decode(text: str) -> Any:
    """Return the value of a JSON text; numbers as 0, and each of several equal keys of an object as one of the dict.

    Raises `ValueError`, `RecursionError`.
    """
    return _json.decode(text)


def splice(text: str, before: Any, after: Any) -> str:
    """Return a JSON text with the differences between the value `decode` returned and `after`.

    `after` has the same object wherever nothing changes. An object that has fewer keys than before is replaced by the
    text "[...]".
    """
    changes: list[tuple[int, int, str]] = []
    _find_changes(text, _skip_space(text, 0), before, after, changes)
    parts: list[str] = []
    end = 0
    for start, stop, new in changes:
        parts += text[end:start], new
        end = stop
    return "".join([*parts, text[end:]])


def _find_changes(text: str, start: int, before: Any, after: Any, changes: list[tuple[int, int, str]]) -> int:
    """Append the spans that change, with their new text; return the end of the value that begins at `start`."""
    is_same_kind = isinstance(before, dict | list) and type(after) is type(before)
    if after is before or not is_same_kind or len(after) != len(before):
        end = _json.raw_decode(text, start)[1]
        if after is not before:
            changes.append((start, end, _encode("[...]" if is_same_kind else after)))
        return end
    place = _skip_space(text, start + 1)
    for old_key, new_key, old, new in _pairs(before, after):
        if old_key is not None:
            end = _json.raw_decode(text, place)[1]
            if new_key is not old_key:
                changes.append((place, end, _encode(new_key)))
            place = _skip_space(text, _skip_space(text, end) + 1)  # after the colon
        place = _skip_space(text, _find_changes(text, place, old, new, changes))
        if text[place] == ",":
            place = _skip_space(text, place + 1)
    return place + 1  # after the closing bracket


def _pairs(before: Any, after: Any) -> Iterator[tuple[str | None, str | None, Any, Any]]:
    """Yield the key and the value of each member, before and after; the key of an item of an array is None."""
    if isinstance(before, dict):
        for (old_key, old), (new_key, new) in zip(before.items(), after.items(), strict=True):
            yield old_key, new_key, old, new
    else:
        for old, new in zip(before, after, strict=True):
            yield None, None, old, new


def _skip_space(text: str, place: int) -> int:
    spaces = _spaces.match(text, place)
    assert spaces is not None, "it matches nothing, too"
    return spaces.end()


def _encode(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value)
    return text
