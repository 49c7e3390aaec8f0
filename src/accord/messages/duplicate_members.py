"""Members of JSON objects: none may occur twice.

Parsers differ in which of two members of one name they take, so a gateway that reads the first would check another
call than the one that is made ("the behavior of software that receives such an object is unpredictable", RFC 8259, 4).
Such JSON is refused. The check counts colons: outside of texts each stands after the name of one member.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_MAX_SEARCHED_BYTES = 64 << 10
"""Up to here the member is looked for by its name."""


def has_duplicates(text: bytes) -> bool:
    """Whether an object in this JSON, however deep, has two members of one name. False for what is no JSON.

    Raises `RecursionError` for JSON that is nested too deep to be looked through.
    """
    colons = text.count(b":")
    if colons < 2:
        return False
    try:
        if text[:1] == b"{" and colons == len(_members(text)):
            return False
        # an escaped colon must not stand for one that is missing
        plain = text.replace(rb"\u003a", rb"\ue03a").replace(rb"\u003A", rb"\ue03a") if rb"\u003" in text else text
        return colons != _encode(_decode(plain)).count(b":")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def find_duplicate(text: bytes) -> str | None:
    """The name of a member that occurs twice in an object of this JSON; None if there is none.

    In a long text the name is not looked for: then it is "...". Raises what `has_duplicates` raises.
    """
    if not has_duplicates(text):
        return None
    if len(text) > _MAX_SEARCHED_BYTES:
        return "..."
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        if (name := first_repeated(name for name, _ in pairs)) is not None:
            found.append(name)

    try:
        json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str)
    except RecursionError:  # it has less room than `has_duplicates`
        return "..."
    return found[0] if found else "..."


def first_repeated(names: Iterable[str]) -> str | None:
    """The first name that has come before; None if there is none."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
