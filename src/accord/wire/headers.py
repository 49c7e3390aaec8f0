"""HTTP headers that repeat parts of a message: names, values, and mirrored arguments of tools.

    encode_value("Hello, 世界")     "=?base64?SGVsbG8sIOS4lueVjA==?="
    mirrored(tool.input_schema)     {"Region": ("region",)}     for "region": {..., "x-mcp-header": "Region"}
    parameter_headers(mirrored, arguments)             {"Mcp-Param-Region": "us-west1"}, sent by a client
    check_parameters(mirrored, headers, arguments)     the check of a server

(2026-07-28, Streamable HTTP: Request Metadata.) Names of received headers are lower-case bytes, as in ASGI.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from accord.errors import HeaderMismatch
from accord.lazy_patterns import lazy_pattern
from accord.messages.revision import PER_REQUEST

PROTOCOL_VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
SESSION_ID = b"mcp-session-id"
LAST_EVENT_ID = b"last-event-id"
PARAM_PREFIX = b"mcp-param-"

PER_REQUEST_REVISIONS: dict[bytes, str] = {revision.encode(): revision for revision in PER_REQUEST}
"""Values of `MCP-Protocol-Version` of requests without a session."""

ANNOTATION = "x-mcp-header"
"""The keyword of a JSON Schema that mirrors an argument in a header."""

Mirrored = Mapping[str, tuple[str, ...]]
"""Names of headers, as in the schema, and for each the path of the argument: keys of `properties`."""

Arguments = Mapping[str, Any] | bytes | Raw
"""The arguments of a call, decoded or as JSON."""

_PREFIX, _SUFFIX = "=?base64?", "?="
_PLAIN = lazy_pattern(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_FIELD = lazy_pattern(rb"[\t -~]*")
_TOKEN = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NUMBER = lazy_pattern(r"-?[0-9]{1,400}(\.[0-9]{1,400})?")
_MAX_SAFE_INTEGER = 2**53 - 1
_EXCERPT_LENGTH = 100
"""Number of characters of a name in an error."""
_MAX_PATH_NAMES = 10_000
"""Limit of the names in all paths of one tool."""
_TYPES = ("string", "integer", "boolean")

_Place: TypeAlias = "tuple[_Place, str] | tuple[()]"
"""A property with the path to it: all places in a deep schema share their common part."""

_DATA = ("const", "default", "enum", "examples")
_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties")


# --- values ----------------------------------------------------------------------------------------------------


def encode_value(text: str) -> str:
    """Return a value as a header can carry it: plain if that is safe and unambiguous, else in Base64. Raise
    `ValueError` only for a lone surrogate."""
    if _PLAIN.fullmatch(text) and not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    return f"{_PREFIX}{binascii.b2a_base64(text.encode(), newline=False).decode()}{_SUFFIX}"


def decode_value(raw: bytes) -> str:
    """Return the text of a header; a value without the full Base64 wrapper is the text itself.

    Raises `ValueError` for characters that no header may have, and for a wrapper without Base64 of UTF-8.
    """
    if not _FIELD.fullmatch(raw):
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
        raise ValueError("its Base64 does not encode UTF-8") from exc
    if binascii.b2a_base64(data, newline=False).decode() != code:
        raise ValueError("it is not Base64 as it is written: its last bits must be 0")
    return text


def format_value(value: str | int | float | bool) -> str:
    """Return an argument as text. Raise `ValueError` for a number that not every receiver can represent."""
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
    """Return the arguments that a tool mirrors in headers. Raise `ValueError` that names an invalid declaration.

    "MUST only be applied to properties that are statically reachable from the schema root".
    """
    mirrored_arguments: dict[str, tuple[str, ...]] = {}
    used: dict[str, str] = {}
    size = 0
    for place, schema in _subschemas(input_schema):
        if ANNOTATION not in schema:
            continue
        if not place:
            raise ValueError(f"{ANNOTATION} is only allowed on a property that is reached by `properties` alone")
        path = _path(place)
        size += len(path)
        if size > _MAX_PATH_NAMES:
            raise ValueError(f"the paths of all {ANNOTATION} have more than {_MAX_PATH_NAMES:,} names together")
        where = ".".join(name[:_EXCERPT_LENGTH] for name in path)[:_EXCERPT_LENGTH]
        name = _check_annotation(where, schema)
        if name.lower() in used:
            raise ValueError(f"{where!r} and {used[name.lower()]!r} have the same {ANNOTATION} {name!r}")
        used[name.lower()] = where
        mirrored_arguments[name] = path
    return mirrored_arguments


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
    """Raise `ValueError` unless a header can have this name."""
    if not _TOKEN.fullmatch(name):
        raise ValueError(
            f"{what} is {name[:_EXCERPT_LENGTH]!r}: only letters, digits and !#$%&'*+-.^_`|~ may stand there"
        )


def _path(place: _Place) -> tuple[str, ...]:
    """Return the names of the properties that lead to a place."""
    names: list[str] = []
    while place:
        place, name = place
        names.append(name)
    return tuple(reversed(names))


def _subschemas(root: Any) -> Iterator[tuple[_Place | None, Mapping[str, Any]]]:
    """Yield every schema inside a schema, with the properties that lead to it, or None if anything else does.

    It uses a stack of its own, because a hostile schema may be deeper than Python can recurse.
    """
    stack: list[tuple[_Place | None, Any]] = [((), root)]
    while stack:
        place, schema = stack.pop()
        if isinstance(schema, list):
            stack += ((None, each) for each in reversed(schema))
        elif isinstance(schema, dict):
            yield place, schema
            stack += reversed(list(_children(place, schema)))


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
    """Return the headers for the arguments of a call: none for an absent, null or non-scalar argument.

    Raises `ValueError` for a number that not every receiver can represent.
    """
    return {
        f"Mcp-Param-{name}": encode_value(text) for name, _, text in _texts(mirrored, arguments) if text is not None
    }


def check_parameters(mirrored: Mirrored, headers: Mapping[bytes, bytes], arguments: Arguments) -> None:
    """Compare headers with the arguments of a call. Raises `HeaderMismatch`.

    Only mirrored arguments are checked; other headers are ignored.
    """
    try:
        for name, value, text in _texts(mirrored, arguments):
            raw = headers.get(PARAM_PREFIX + name.lower().encode())
            difference = _difference(raw, value, text)
            if difference:
                raise HeaderMismatch(f"Header mismatch: Mcp-Param-{name} {difference} {'.'.join(mirrored[name])!r}")
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
    """Return whether the numbers are equal: "servers SHOULD compare the header value and the body value
    numerically"."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and _NUMBER.fullmatch(sent) is not None and Decimal(sent) == Decimal(text)


def _texts(mirrored: Mirrored, arguments: Arguments) -> Iterator[tuple[str, Any, str | None]]:
    """Yield for each header its name, the value of the argument, and that value as text, or None if there is none to
    send."""
    values = arguments if isinstance(arguments, Mapping) else _decode_arguments(arguments)
    for name, path in mirrored.items():
        value: Any = values
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        try:
            text = format_value(value) if isinstance(value, str | int | float) else None
        except ValueError as exc:
            raise ValueError(f"the argument {'.'.join(path)!r} cannot stand in a header: {exc}") from exc
        yield name, value, text


def _decode_arguments(arguments: bytes | Raw) -> Any:
    """Return the decoded arguments, or None for invalid JSON, which the decoder of the params reports."""
    try:
        return msgspec.json.decode(arguments or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def basic_auth(user: str, password: str) -> str:
    """Return a name and a password as the value of an `Authorization` header."""
    return "Basic " + binascii.b2a_base64(f"{user}:{password}".encode(), newline=False).decode()
