"""Texts of a peer, made safe to show: hidden characters are escaped, long texts shortened.

A text may hide instructions from its reader, but not from a model: with invisible characters, those that change the
direction of writing, or control characters, which a terminal executes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec

from accord.lazy_patterns import lazy_pattern

_BLANK = lazy_pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""Invisible characters that Python calls printable: fillers, joiners, variation selectors. They can hide text."""

_JSON_STRING = lazy_pattern(rb'"(?:[^"\\]|\\.)*+"?')
_MAX_GROWTH = 8
"""Limit of the factor by which indentation makes JSON larger."""
_ALWAYS_INDENTED = 64 << 10
"""Bytes that indentation may add beyond that factor."""
_NO_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible, a control character, a direction override, or a lone surrogate."""
    return (not character.isprintable() and character not in "\n\t") or _BLANK.match(character) is not None


def visible(text: str) -> str:
    """Return the text with hidden characters escaped, `\\u200b`. Newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    hidden = {ord(each): escape_characters(each) for each in set(text) if is_hidden(each)}
    return text.translate(hidden) if hidden else text


def runs(text: str) -> list[tuple[bool, str]]:
    """Split the text into runs of hidden and visible characters: whether a run is hidden, and the run."""
    return [(hidden, "".join(run)) for hidden, run in groupby(text, is_hidden)]


def escape_characters(text: str) -> str:
    """Return each character as a Python escape sequence."""
    return "".join(_number(ord(each)) for each in text)


def single_line(text: str) -> str:
    """Return the text on one line, with hidden characters escaped and whitespace collapsed."""
    return visible(" ".join(text.split()))


def shell_line(words: Iterable[str]) -> str:
    """Return words as a line to paste into bash, zsh or ksh. Control characters are escaped: a line editor acts upon
    those in a quoted word too, and could run the rest as a command of its own.
    """
    return " ".join(_shell_word(word) for word in words)


def _shell_word(word: str) -> str:
    if not any(is_hidden(each) or each in "\n\t" for each in word):
        return shlex.quote(word)
    return f"$'{''.join(map(_shell_character, word))}'"


def _shell_character(character: str) -> str:
    if is_hidden(character) or character in "\n\t\\'!":  # in bash, ! is for the history
        return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogatepass"))
    return character


def truncate(text: str, most: int) -> str:
    """Return a text of at most about `most` characters, with the original length if it was longer."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def indented(data: bytes, most: int) -> str | None:
    """Return JSON with line breaks and indentation, and its values unchanged; None if it is not JSON, or if that would
    be longer than about `most` characters: nesting multiplies the size.
    """
    if _indented_size(data, most) > most:
        return None
    try:
        return msgspec.json.format(data, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def readable(data: bytes) -> str:
    """Return JSON with line breaks and indentation, or as it is if its nesting would multiply the size."""
    return indented(data, _MAX_GROWTH * len(data) + _ALWAYS_INDENTED) or data.decode()


def _indented_size(data: bytes, most: int) -> int:
    """Return the size of JSON with indentation, or one beyond `most`."""
    structure = _JSON_STRING.sub(b"", data).translate(None, _NO_STRUCTURE)
    size, depth = len(data), 0
    for byte in structure:
        if byte in b"[{":
            depth += 1
        elif byte in b"]}":
            depth -= 1
        size += 2 * depth + 1
        if size > most:
            break
    return size


def encodable(value: Any) -> Any:
    """Return JSON data with lone surrogates escaped, which UTF-8 cannot encode."""
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
