"""Encoding of request bodies and parameters.

A body is JSON, a form, a form with files, text, or bytes given as base64. Parameters are written in a URL, a header or
a cookie by their style (OpenAPI, Style Values):

    in_path(Parameter(name="id", place="path", style="matrix"), 5)         # ;id=5
    in_query(Parameter(name="tag", place="query", style="form"), ["a"])    # ["tag=a"]

Values are percent-encoded, except letters, digits and `-._~`. Only this module writes delimiters.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from accord.errors import InvalidArguments
from accord.messages.base import JSONObject
from accord.server.openapi.operation import FORMS, MULTIPART, URLENCODED, APIParameter, RequestBody, is_json

_RESERVED = ":/?@!$'()*,;"
"""Characters without a special meaning in a query, unencoded with `allowReserved`."""
_COOKIE = "!#$&'()*+-./:<=>?@[]^_`{|}~"
"""Characters allowed in the value of a cookie (RFC 6265, cookie-octet)."""
_DELIMITERS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}


def in_path(parameter: APIParameter, value: Any) -> str:
    """Return the text of a value in the path. Raises `InvalidArguments` for a value that cannot be encoded."""
    pieces = _pieces(parameter, value, parameter.explode)
    if parameter.style == "label":
        return "".join(f".{piece}" for piece in pieces) if parameter.explode else f".{','.join(pieces)}"
    if parameter.style == "matrix":
        return _matrix(parameter, value, pieces)
    return ",".join(pieces)


def _matrix(parameter: APIParameter, value: Any, pieces: list[str]) -> str:
    name = _quote(parameter, parameter.name)
    if parameter.explode and isinstance(value, dict):
        return "".join(f";{piece}" for piece in pieces)
    if parameter.explode:
        return "".join(f";{name}={piece}" for piece in pieces)
    return f";{name}={','.join(pieces)}"


def in_query(parameter: APIParameter, value: Any) -> list[str]:
    """Return the query parameters of a value: none, one or several of `name=value`."""
    if value is None:
        return []
    name = _quote(parameter, parameter.name)
    if parameter.as_json or not isinstance(value, dict | list):
        return [f"{name}={piece}" for piece in _pieces(parameter, value, False)]
    if parameter.style == "deepObject":
        return [f"{name}{key}={_quote(parameter, text)}" for key, text in _deep(value)]
    pieces = _pieces(parameter, value, parameter.explode)
    if not pieces:
        return []
    if parameter.explode:
        return pieces if isinstance(value, dict) else [f"{name}={piece}" for piece in pieces]
    return [f"{name}={_DELIMITERS.get(parameter.style, ',').join(pieces)}"]


def in_cookie(parameter: APIParameter, value: Any) -> list[str]:
    """Return the pairs of a value in the `Cookie` header."""
    return in_query(parameter, value)


def in_header(parameter: APIParameter, value: Any) -> str:
    """Return the text of a value in a header, unencoded. The caller checks that it can be sent."""
    if parameter.as_json or not isinstance(value, dict | list):
        return _text(value, parameter.as_json)
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    glue = "=" if parameter.explode else ","
    return ",".join(f"{key}{glue}{_text(item)}" for key, item in value.items())


def _pieces(parameter: APIParameter, value: Any, explode: bool) -> list[str]:
    """Return the encoded parts of a value: one, those of a list, or the keys and values of an object."""
    if parameter.as_json or not isinstance(value, dict | list):
        return [_quote(parameter, _text(value, parameter.as_json))]
    if isinstance(value, list):
        return [_quote(parameter, _text(item)) for item in value if item is not None]
    pairs = [(_quote(parameter, key), _quote(parameter, _text(item))) for key, item in value.items()]
    return [f"{key}={item}" for key, item in pairs] if explode else [part for pair in pairs for part in pair]


def _deep(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the encoded keys (`[a][b]`) and text of each leaf; the items of a list share one key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _deep(inner, f"{key}%5B{quote(_sendable(name), safe='')}%5D")
    elif isinstance(value, list):
        for item in value:
            yield from _deep(item, key)
    elif value is not None:
        yield key, _text(value)


def _text(value: Any, as_json: bool = False) -> str:
    """Return a value as text: a string as it is, anything else as JSON."""
    if isinstance(value, str) and not as_json:
        return _sendable(value)
    return msgspec.json.encode(value).decode()


def _quote(parameter: APIParameter, text: str) -> str:
    safe = {"cookie": _COOKIE, "query": _RESERVED if parameter.reserved else ""}.get(parameter.place, "")
    return quote(_sendable(text), safe=safe)


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidArguments(f"{text!r:.100} contains a lone surrogate, which cannot be encoded") from exc
    return text


_TEXTS = ("xml", "yaml", "csv", "graphql", "javascript")
"""Suffixes of media types under `application/` that are text."""


def is_written(media: str) -> bool:
    """Return whether a model writes a body of this media type directly: any text, but not bytes."""
    kind = media
    return is_json(media) or kind in FORMS or kind.startswith("text/") or kind.endswith(_TEXTS)


def encode(body: RequestBody, value: Any) -> tuple[bytes, str]:
    """Return the bytes of a body, and its `Content-Type`. Raises `InvalidArguments`."""
    if is_json(body.media):
        return msgspec.json.encode(value), body.media
    if isinstance(value, dict) and body.media == URLENCODED:
        return "&".join(_pairs(body, value)).encode(), URLENCODED
    if isinstance(value, dict) and body.media == MULTIPART:
        return _multipart(body, value)
    if is_written(body.media):
        return _text(value).encode(), body.media
    return _bytes("body", value), body.media if "*" not in body.media else "application/octet-stream"


def _pairs(body: RequestBody, form: JSONObject) -> Iterator[str]:
    for name, value in form.items():
        yield from in_query(_member(body, name, value), value)


def _member(body: RequestBody, name: str, value: Any) -> APIParameter:
    """Return a member of a form as a parameter; an object is JSON unless its encoding has a style."""
    encoding = body.encoding.get(name)
    encoding = encoding if isinstance(encoding, dict) else {}
    style = encoding["style"] if isinstance(encoding.get("style"), str) else "form"
    return APIParameter(
        name=name,
        place="query",
        style=style,
        explode=bool(encoding.get("explode", style == "form")),
        as_json=isinstance(value, dict) and "style" not in encoding,
    )


def _multipart(body: RequestBody, form: JSONObject) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts = [
        f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n"
        for name, value in form.items()
        for head, content in _parts(body, name, value)
    ]
    return b"".join([*parts, f"--{boundary}--\r\n".encode()]), f"{MULTIPART}; boundary={boundary}"


def _parts(body: RequestBody, name: str, value: Any) -> Iterator[tuple[str, bytes]]:
    """Yield the header and content of a member's parts: one for each item of a list."""
    encoding = body.encoding.get(name)
    kind = encoding.get("contentType") if isinstance(encoding, dict) else None
    for item in value if isinstance(value, list) else [value]:
        head = f'Content-Disposition: form-data; name="{_escape(name)}"'
        if name in body.files:
            kind = kind if isinstance(kind, str) and _is_media_type(kind) else "application/octet-stream"
            yield f'{head}; filename="{_escape(name)}"\r\nContent-Type: {kind}', _bytes(name, item)
        elif isinstance(item, dict | list):
            yield f"{head}\r\nContent-Type: application/json", msgspec.json.encode(item)
        elif item is not None:
            yield head, _text(item).encode()


def _is_media_type(text: str) -> bool:
    return text.isascii() and text.isprintable() and "," not in text and "*" not in text


def _escape(name: str) -> str:
    """Return a name for a quoted string, escaped as browsers do."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _bytes(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value if isinstance(value, str) else "!", validate=True)
    except (binascii.Error, ValueError) as exc:
        raise InvalidArguments(f"{name!r} must be base64") from exc
