"""The body of a request: JSON, a form, a form with files, text, or bytes. Bytes come as base64."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterator
from typing import Any

import msgspec

from accord.errors import InvalidArguments
from accord.messages.base import JSONObject
from accord.server.openapi.operation import FORMS, MULTIPART, URLENCODED, APIParameter, RequestBody, is_json
from accord.server.openapi.styles import in_query

_TEXTS = ("xml", "yaml", "csv", "graphql", "javascript")
"""What is text under `application/`."""


def is_written(media: str) -> bool:
    """Whether a model writes a body of this type itself: anything but bytes."""
    kind = media
    return is_json(media) or kind in FORMS or kind.startswith("text/") or kind.endswith(_TEXTS)


def encode(body: RequestBody, value: Any) -> tuple[bytes, str]:
    """The bytes of a body, and its `Content-Type`. Raises `InvalidArguments`."""
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
    """A member of a form as a parameter; one that is an object is JSON, unless its encoding says otherwise."""
    told = body.encoding.get(name)
    told = told if isinstance(told, dict) else {}
    style = told["style"] if isinstance(told.get("style"), str) else "form"
    return APIParameter(
        name=name,
        place="query",
        style=style,
        explode=bool(told.get("explode", style == "form")),
        as_json=isinstance(value, dict) and "style" not in told,
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
    """The parts that one member makes: one for each item of a list."""
    told = body.encoding.get(name)
    kind = told.get("contentType") if isinstance(told, dict) else None
    for one in value if isinstance(value, list) else [value]:
        head = f'Content-Disposition: form-data; name="{_escaped(name)}"'
        if name in body.files:
            kind = kind if isinstance(kind, str) and _is_media_type(kind) else "application/octet-stream"
            yield f'{head}; filename="{_escaped(name)}"\r\nContent-Type: {kind}', _bytes(name, one)
        elif isinstance(one, dict | list):
            yield f"{head}\r\nContent-Type: application/json", msgspec.json.encode(one)
        elif one is not None:
            yield head, _text(one).encode()


def _is_media_type(text: str) -> bool:
    return text.isascii() and text.isprintable() and "," not in text and "*" not in text


def _escaped(name: str) -> str:
    """A name between quotes, as browsers write it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise InvalidArguments(f"{value!r:.100} holds a lone surrogate, which cannot be sent") from exc
    return value


def _bytes(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value if isinstance(value, str) else "!", validate=True)
    except (binascii.Error, ValueError) as exc:
        raise InvalidArguments(f"{name!r} holds bytes: give them as base64") from exc
