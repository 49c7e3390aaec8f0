"""What others wrote, so that all of it can be seen: characters that hide, steer or reorder stand as their numbers."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""What Python calls printable and nobody sees: fillers, joiners, variation selectors. Text can be smuggled in them."""


def is_hidden(character: str) -> bool:
    """Whether it does not show as what it is: controls, what turns the direction, what has no width, half a pair."""
    return (not character.isprintable() and character not in "\n\t") or _BLANK.match(character) is not None


def visible(text: str) -> str:
    """The text with what hides as its number, `\\u200b`. Newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape_characters(run) if hidden else run for hidden, run in runs(text))


def runs(text: str) -> list[tuple[bool, str]]:
    """The text in pieces: whether a piece is hidden, and the piece."""
    return [(hidden, "".join(run)) for hidden, run in groupby(text, is_hidden)]


def escape_characters(text: str) -> str:
    """Each character as Python writes its number."""
    return "".join(_number(ord(each)) for each in text)


def single_line(text: str) -> str:
    """Visible, with every run of spaces and newlines as one space."""
    return visible(" ".join(text.split()))


def truncate(text: str, most: int) -> str:
    """At most about so many characters, and how many there were."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def encodable(value: Any) -> Any:
    """JSON data whose texts can be stored as UTF-8: half a surrogate pair, which cannot, stands as its number."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {encodable(key): encodable(each) for key, each in value.items()}
        case list() | tuple():
            return [encodable(each) for each in value]
        case _:
            return value


def _number(point: int) -> str:
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
