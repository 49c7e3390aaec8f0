"""What of a message stands in HTTP headers too: their names, their values, and the arguments of tools among them.

    encode_value("Hello, 世界")     "=?base64?SGVsbG8sIOS4lueVjA==?="
    mirrored(tool.input_schema)     {"Region": ("region",)}     for "region": {..., "x-mcp-header": "Region"}
    parameters(found, arguments)    {"Mcp-Param-Region": "us-west1"}, what a client sends
    check_parameters(found, headers, arguments)     what a server wants to have been sent

(2026-07-28, Streamable HTTP: Request Metadata.) Names that are received are lower-case bytes, as in ASGI.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from accord.errors import HeaderMismatch

PROTOCOL_VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
SESSION_ID = b"mcp-session-id"
LAST_EVENT_ID = b"last-event-id"
PARAM_PREFIX = b"mcp-param-"

ANNOTATION = "x-mcp-header"
"""The keyword of a JSON Schema that has an argument stand in a header."""

Mirrored = Mapping[str, tuple[str, ...]]
"""Names of headers, as the schema has them, and for each the path of the argument: keys of `properties`."""

Arguments = Mapping[str, Any] | bytes | Raw
"""The arguments of a call: as they are, or as JSON."""

_PREFIX, _SUFFIX = "=?base64?", "?="
_PLAIN = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?").fullmatch
_FIELD = re.compile(rb"[\t -~]*").fullmatch
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?").fullmatch
_MAX_SAFE_INTEGER = 2**53 - 1
_EXCERPT_LENGTH = 100
"""Characters of a name that errors show."""
_MAX_PATH_NAMES = 10_000
"""Names in all paths of one tool."""
_TYPES = ("string", "integer", "boolean")

_Place: TypeAlias = "tuple[_Place, str] | tuple[()]"
"""The property of a property: all places in a deep schema share what they have in common."""

_DATA = ("const", "default", "enum", "examples")
_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties")


# --- values ----------------------------------------------------------------------------------------------------


def encode_value(text: str) -> str:
    """A value as a header can carry it: plain where that is safe and unmistakable, else in Base64. Never raises but
    `ValueError`, for a lone surrogate.
    """
    if _PLAIN(text) and not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    return f"{_PREFIX}{binascii.b2a_base64(text.encode(), newline=False).decode()}{_SUFFIX}"


def decode_value(raw: bytes) -> str:
    """The text that a header stands for; a value that is not wrapped in full is the text itself.

    Raises `ValueError` for characters that no header may have, and for what is wrapped but no Base64 of UTF-8.
    """
    if not _FIELD(raw):
        raise ValueError("it has characters that are not allowed in a header")
    text = raw.decode("ascii").strip(" \t")
    if not (text.startswith(_PREFIX) and text.endswith(_SUFFIX) and len(text) >= len(_PREFIX + _SUFFIX)):
        return text
    return _decode_base64(text[len(_PREFIX) : -len(_SUFFIX)])


def _decode_base64(code: str) -> str:
    try:
        data = binascii.a2b_base64(code, strict_mode=True)
        text = data.decode()
    except binascii.Error as exc:
        raise ValueError(f"it is not Base64: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise ValueError("its Base64 is not that of UTF-8") from exc
    if binascii.b2a_base64(data, newline=False).decode() != code:
        raise ValueError("it is not Base64 as it is written: its last bits must be 0")
    return text


def format_value(value: str | int | float | bool) -> str:
    """An argument as text. Raises `ValueError` for a number that not every receiver can hold."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    # "Integer values MUST be within the safe range for JavaScript"
    if not -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER:
        raise ValueError("it is not within -9007199254740991 and 9007199254740991")
    return str(int(value)) if value == int(value) else repr(value)


# --- schemas ---------------------------------------------------------------------------------------------------


def mirrored(input_schema: Any) -> dict[str, tuple[str, ...]]:
    """The arguments that a tool wants in headers too. Raises `ValueError` that says which declaration is wrong.

    "MUST only be applied to properties that are statically reachable from the schema root".
    """
    found: dict[str, tuple[str, ...]] = {}
    taken: dict[str, str] = {}
    size = 0
    for place, schema in _subschemas(input_schema):
        if ANNOTATION not in schema:
            continue
        if not place:
            raise ValueError(
                f"{ANNOTATION} stands where it may not: only a property has one, reached by `properties` alone"
            )
        path = _path(place)
        size += len(path)
        if size > _MAX_PATH_NAMES:
            raise ValueError(f"the paths of all {ANNOTATION} have more than {_MAX_PATH_NAMES:,} names together")
        where = ".".join(path)[:_EXCERPT_LENGTH]
        name = _check_annotation(where, schema)
        if name.lower() in taken:
            raise ValueError(f"{where!r} and {taken[name.lower()]!r} have the same {ANNOTATION} {name!r}")
        taken[name.lower()] = where
        found[name] = path
    return found


def _check_annotation(where: str, schema: Mapping[str, Any]) -> str:
    name, type_ = schema[ANNOTATION], schema.get("type")
    if not isinstance(name, str):
        raise ValueError(f"the {ANNOTATION} of {where!r} is no text")
    check_name(name, f"the {ANNOTATION} of {where!r}")
    if type_ not in _TYPES:
        raise ValueError(
            f"{where!r} has an {ANNOTATION}: then its type is string, integer or boolean alone, "
            "and if it may be left out, its default is not null"
        )
    return name


def check_name(name: str, what: str = "the name of a header") -> None:
    """Whether a header can have this name. Raises `ValueError`."""
    if not _TOKEN(name):
        raise ValueError(
            f"{what} is {name[:_EXCERPT_LENGTH]!r}: only letters, digits and !#$%&'*+-.^_`|~ may stand there"
        )


def _path(place: _Place) -> tuple[str, ...]:
    """Return the properties that lead to a place."""
    names: list[str] = []
    while place:
        place, name = place
        names.append(name)
    return tuple(reversed(names))


def _subschemas(root: Any) -> Iterator[tuple[_Place | None, Mapping[str, Any]]]:
    """Every schema in a schema, with the properties that lead to it; None where something else does.

    With a list of its own: a hostile schema may be deeper than Python can recurse.
    """
    waiting: list[tuple[_Place | None, Any]] = [((), root)]
    while waiting:
        place, schema = waiting.pop()
        if isinstance(schema, list):
            waiting += ((None, each) for each in reversed(schema))
        elif isinstance(schema, dict):
            yield place, schema
            waiting += reversed(list(_children(place, schema)))


def _children(place: _Place | None, schema: Mapping[str, Any]) -> Iterator[tuple[_Place | None, Any]]:
    for keyword, value in schema.items():
        if keyword == "properties" and isinstance(value, dict):
            yield from ((None if place is None else (place, name), each) for name, each in value.items())
        elif keyword in _MAPS and isinstance(value, dict):
            yield from ((None, each) for each in value.values())
        elif keyword not in _DATA and isinstance(value, dict | list):
            yield None, value


# --- arguments -------------------------------------------------------------------------------------------------


def parameter_headers(mirrored: Mirrored, arguments: Arguments) -> dict[str, str]:
    """The headers for the arguments of a call: none for what is absent, null or not simple.

    Raises `ValueError` for a number that not every receiver can hold.
    """
    return {
        f"Mcp-Param-{name}": encode_value(text) for name, _, text in _texts(mirrored, arguments) if text is not None
    }


def check_parameters(mirrored: Mirrored, headers: Mapping[bytes, bytes], arguments: Arguments) -> None:
    """Compare headers with the arguments of a call. Raises `HeaderMismatch`.

    Only what is mirrored is looked at: a header that nobody declared means nothing.
    """
    try:
        for name, value, text in _texts(mirrored, arguments):
            raw = headers.get(PARAM_PREFIX + name.lower().encode())
            why = _difference(raw, value, text)
            if why:
                raise HeaderMismatch(f"Header mismatch: Mcp-Param-{name} {why} {'.'.join(mirrored[name])!r}")
    except ValueError as exc:
        raise HeaderMismatch(f"Header mismatch: {exc}") from exc


def _difference(raw: bytes | None, value: Any, text: str | None) -> str | None:
    if text is None:
        return None if raw is None else "was sent, but the body has no such value for"
    if raw is None:
        return "is missing, but the body has a value for"
    try:
        sent = decode_value(raw)
    except ValueError as exc:
        return f"cannot be read ({exc}), and the body has a value for"
    return None if sent == text or _is_number(sent, value, text) else "is not what the body has for"


def _is_number(sent: str, value: Any, text: str) -> bool:
    """Whether it is the same number: "servers SHOULD compare the header value and the body value numerically"."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and _NUMBER(sent) is not None and Decimal(sent) == Decimal(text)


def _texts(mirrored: Mirrored, arguments: Arguments) -> Iterator[tuple[str, Any, str | None]]:
    """For each header: its name, the value of the argument, and that as text, or None where there is none to send."""
    given = arguments if isinstance(arguments, Mapping) else _decode_arguments(arguments)
    for name, path in mirrored.items():
        value: Any = given
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        try:
            text = format_value(value) if isinstance(value, str | int | float) else None
        except ValueError as exc:
            raise ValueError(f"the argument {'.'.join(path)!r} cannot stand in a header: {exc}") from exc
        yield name, value, text


def _decode_arguments(arguments: bytes | Raw) -> Any:
    """What is no JSON has no values; whoever takes the arguments will say so."""
    try:
        return msgspec.json.decode(arguments or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
