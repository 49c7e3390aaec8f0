"""The members that the index takes from a line of a session file; the rest is skipped by the decoder.

    decode_line(b'{"kind":"message",...}')  ->  IndexedLine

A message that has other types than JSON-RPC, such as a batch, is read value by value.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from accord.wire.session_file import VERSION, SessionFileError, SessionHeader

_REVISION = "io.modelcontextprotocol/protocolVersion"
_CONTENT = (b'"message":', b'"text":', b'"base64":')


class IndexedMeta(msgspec.Struct):
    """The members of `_meta`."""

    revision: Any = field(default=None, name=_REVISION)


class IndexedReference(msgspec.Struct):
    """The prompt or resource template whose argument is completed."""

    name: Any = None
    uri: Any = None


class IndexedParams(msgspec.Struct):
    """The members of params that name something, and those that continue a call."""

    name: Any = None
    uri: Any = None
    ref: IndexedReference | None = None
    task: Any = field(default=None, name="taskId")
    level: Any = None
    state: Any = field(default=None, name="requestState")
    responses: Raw | UnsetType = field(default=UNSET, name="inputResponses")
    meta: IndexedMeta | None = field(default=None, name="_meta")


class IndexedResult(msgspec.Struct):
    """The members of a result that say what became of the request."""

    is_error: Any = field(default=None, name="isError")
    type: Any = field(default=None, name="resultType")
    state: Any = field(default=None, name="requestState")
    revision: Any = field(default=None, name="protocolVersion")


class IndexedError(msgspec.Struct):
    """The code of an error."""

    code: Any = None


class IndexedMessage(msgspec.Struct):
    """One message; `result` and `error` are unset if it has none."""

    id: Any = UNSET
    method: str | None = None
    params: IndexedParams | None = None
    result: IndexedResult | UnsetType = UNSET
    error: IndexedError | UnsetType = UNSET


class IndexedLine(msgspec.Struct):
    """One line of a session file."""

    kind: str
    at: float = 0.0
    connection: int = 0
    direction: str = ""
    request: int | str | None = None
    exchange: int = 0
    method: str = ""
    url: str = ""
    name: str = ""
    status: int = 0
    size: int = 0
    message: IndexedMessage | UnsetType = UNSET


class _RawLine(IndexedLine):
    message: Raw | UnsetType = UNSET  # type: ignore[assignment]


_decode = msgspec.json.Decoder(IndexedLine).decode
_decode_raw = msgspec.json.Decoder(_RawLine).decode
_decode_header = msgspec.json.Decoder(SessionHeader).decode


def decode_line(line: bytes) -> IndexedLine:
    """Return what the index takes from a line. Raises `SessionFileError`."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        raw = _decode_raw(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SessionFileError(str(exc)) from None
    message: IndexedMessage | UnsetType = UNSET
    if not isinstance(raw.message, UnsetType):
        try:
            message = _any_message(raw.message)
        except (ValueError, RecursionError):
            message = IndexedMessage()
    fields = {name: getattr(raw, name) for name in IndexedLine.__struct_fields__ if name != "message"}
    return IndexedLine(**fields, message=message)


def decode_header(line: bytes) -> SessionHeader:
    """Return the header of a session file. Raises `SessionFileError`, also for another version of the format."""
    try:
        header = _decode_header(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SessionFileError(str(exc)) from None
    if header.version != VERSION:
        raise SessionFileError(f"version {header.version} of the format; this program reads version {VERSION}")
    return header


def _any_message(raw: Raw) -> IndexedMessage:
    """Return what is known of a message whose members have unexpected types, or numbers that msgspec cannot decode.

    Raises `ValueError`, `RecursionError`.
    """
    value = json.loads(bytes(raw), parse_float=str)
    if not isinstance(value, dict):
        return IndexedMessage()
    message = IndexedMessage(id=value.get("id", UNSET))
    if isinstance(value.get("method"), str):
        message.method = value["method"]
    if "result" in value:
        message.result = IndexedResult()
    if "error" in value:
        message.error = IndexedError()
    return message


def content_size(line: bytes) -> int:
    """Return the size of the message in a line, in bytes; about, if it is no JSON."""
    for name in _CONTENT:
        start = line.find(name)
        if start >= 0:
            return max(0, len(line) - start - len(name) - 2)
    return 0
