"""Detection of JSON objects with two members of one name.

Parsers differ in which of two members of one name they take, so a gateway that reads the first would check another
call than the server makes ("the behavior of software that receives such an object is unpredictable", RFC 8259, 4).
Such JSON is refused. The check counts colons: outside of texts, each follows the name of one member.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_MAX_SEARCHED_BYTES = 64 << 10
"""Up to this size, the name of the duplicate member is searched for."""


def has_duplicates(text: bytes) -> bool:
    """Return whether an object in this JSON, at any depth, has two members of one name; False for invalid JSON.

    Raises `RecursionError` for JSON that is nested too deep to check.
    """
    colons = text.count(b":")
    if colons < 2:
        return False
    try:
        if text[:1] == b"{" and colons == len(_members(text)):
            return False
        # an escaped colon must not replace a missing one
        plain = text.replace(rb"\u003a", rb"\ue03a").replace(rb"\u003A", rb"\ue03a") if rb"\u003" in text else text
        return colons != _encode(_decode(plain)).count(b":")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def find_duplicate(text: bytes) -> str | None:
    """Return the name of a duplicate member in an object of this JSON, or None.

    In a long text the name is not searched for: then it is "...". Raises the errors of `has_duplicates`.
    """
    if not has_duplicates(text):
        return None
    if len(text) > _MAX_SEARCHED_BYTES:
        return "..."
    import json  # takes longer to import than the rest of this module

    duplicates: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> None:
        if (name := first_repeated(name for name, _ in pairs)) is not None:
            duplicates.append(name)

    try:
        json.loads(text, object_pairs_hook=collect, parse_int=str, parse_float=str)
    except RecursionError:  # this parser allows less depth than `has_duplicates`
        return "..."
    return duplicates[0] if duplicates else "..."


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs a second time, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
