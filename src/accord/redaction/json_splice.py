"""Changes of a few values in a JSON text, with all other characters as they are.

before = decode(text)
after = ...                              # the same objects and arrays where nothing changes
splice(text, before, after)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from accord.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    from json import JSONDecoder


class _RepeatedKey(str):
    """A key that its object has more than once, as an entry of its own in the dict."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or NotImplemented  # a plain text compares itself with this one


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = dict(pairs)
    if len(members) == len(pairs):
        return members
    members = {}
    for key, value in pairs:
        members[_RepeatedKey(key) if key in members else key] = value
    return members


def _number(text: str) -> int:
    return 0


@cache
def _json() -> JSONDecoder:
    from json import JSONDecoder  # takes longer to import than the rest of this package

    return JSONDecoder(object_pairs_hook=_members, parse_int=_number, parse_float=_number)


_spaces = lazy_pattern(r"[ \t\n\r]*")
_start = lazy_pattern(r"\s{0,64}[\[{]")
_start_inside = lazy_pattern(r"""[\[{](?=\s{0,64}["\[{])""")
_tokens = lazy_pattern(r""""(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+(?P<end>"?)|[\[{}\],]""", re.DOTALL)
_OBJECT_END = ',"kty":"","name":"secret"}'
"""The end of an object that was cut: what would make its values secret may have followed."""


def decode(text: str) -> Any:
    """Return the value of a JSON text; numbers as 0, and each of several equal keys of an object as one of the dict.

    Raises `ValueError`, `RecursionError`.
    """
    return _json().decode(text)


class JSONPart(msgspec.Struct, frozen=True):
    """JSON inside a text."""

    start: int
    end: int
    text: str
    """The part of the text, completed if it was cut."""
    value: Any
    """The decoded text, see `decode`."""
    completion: list[str]
    """The ends that were appended to JSON that was cut, the first last."""

    def is_all_of(self, text: str) -> bool:
        """Return whether a text has nothing else, and was not cut."""
        return not (self.completion or text[: self.start].strip() or text[self.end :].strip())

    def spliced(self, after: Any) -> str:
        """Return the part of the text with the differences between its value and `after`, see `splice`."""
        text = splice(self.text, self.value, after)
        for end in self.completion:
            text = text.removesuffix(end)
        return text


def find(text: str, *, is_searched: bool) -> list[JSONPart]:
    """Return the JSON at the start of a text; if it is searched, all JSON up to the first that is invalid, where the
    last may be cut.
    """
    parts: list[JSONPart] = []
    start = _start.match(text) or (_start_inside.search(text) if is_searched else None)
    with suppress(ValueError, RecursionError):
        while start is not None:
            parts.append(_part(text, start.end() - 1, may_be_cut=is_searched))
            start = _start_inside.search(text, parts[-1].end) if is_searched else None
    return parts


def _part(text: str, start: int, *, may_be_cut: bool) -> JSONPart:
    """Return the JSON that begins at a position of a text. Raises `ValueError`, `RecursionError`."""
    with suppress(ValueError):
        value, end = _json().raw_decode(text, start)
        return JSONPart(start, end, text[start:end], value, [])
    for beginning, completion in _completions(text[start:]) if may_be_cut else ():
        with suppress(ValueError):
            completed = beginning + "".join(reversed(completion))
            return JSONPart(start, len(text), completed, decode(completed), completion)
    raise ValueError("no JSON")


def _completions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the beginnings of JSON that was cut, up to the end of a string and without the last member, with what may
    complete each.
    """
    ends: list[str] = []
    last, in_string = 0, False
    for token in _tokens.finditer(text):
        first = token[0][0]
        if first in "[{":
            ends.append("]" if first == "[" else _OBJECT_END)
        elif first in "]}":
            del ends[-1:]
        if first in "[{,":
            last = token.end() - (first == ",")
        if in_string := first == '"' and not token["end"]:
            text = text[: token.end()]
            break
    yield text, [*ends, '"'] if in_string else ends
    if ends and text[:last].endswith("{"):
        ends[-1] = "}"
    yield text[:last], ends


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
        end = _json().raw_decode(text, start)[1]
        if after is not before:
            changes.append((start, end, _encode("[...]" if is_same_kind else after)))
        return end
    place = _skip_space(text, start + 1)
    for old_key, new_key, old, new in _pairs(before, after):
        if old_key is not None:
            end = _json().raw_decode(text, place)[1]
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
    import json

    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value)
    return text
