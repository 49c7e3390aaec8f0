"""JSON-RPC 2.0 around every message: what comes in, what goes out, and reading without trust.

`params`, `result` and `error` stay raw bytes until the method is known. An id keeps its JSON type: 7 is not "7".
What cannot be read is raised as `Malformed`, which knows the error to answer with and whether there is one to answer
to: an answer, or a notification, is never answered, however broken it is.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.errors import InvalidRequest, ParseError, ProtocolError

RequestId = int | str


class Incoming(msgspec.Struct):
    """Any one message, unvalidated beyond its envelope."""

    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Notification(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """A notification as it goes out."""

    method: str
    params: Any = None


class Response(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    """A result as it goes out."""

    id: RequestId
    result: Any


class ErrorObject(msgspec.Struct, omit_defaults=True):
    """The `error` of an error response. `code` is an integer; `data` is any JSON value."""

    code: int
    message: str
    data: Any = UNSET


class ErrorResponse(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """An error as it goes out; `id` is None (null) or UNSET (absent) where it could not be read."""

    id: RequestId | UnsetType | None
    error: ErrorObject


class Malformed(Exception):
    """Bytes that are no message.

    `error` is what to tell the sender, `id` the id to tell it with, if any. `answerable` is False for what must not
    be answered. `unnamed` is True where no method is named: it may be meant as an answer to `id`.
    """

    def __init__(self, error: ProtocolError, id: Any = None, *, answerable: bool = True, unnamed: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.id: RequestId | None = id if type(id) in (int, str) else None
        self.answerable = answerable
        self.unnamed = unnamed


_decode = msgspec.json.Decoder(Incoming).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


def read(message: bytes | Raw) -> Incoming:
    """One message out of its bytes. Raises `Malformed`."""
    try:
        incoming = _decode(message)
        # msgspec does not look into strings that it skips: raw params may hold bytes that are no UTF-8
        if type(message) is bytes and not message.isascii():
            message.decode()
    except msgspec.ValidationError as exc:
        raise _diagnose(message, str(exc)) from exc
    except RecursionError:
        raise Malformed(ParseError("not readable: nested too deep")) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise Malformed(ParseError(f"not JSON: {exc}")) from exc
    if incoming.method is UNSET:
        if incoming.result is UNSET and incoming.error is UNSET:
            raise Malformed(InvalidRequest("neither method, nor result, nor error"), incoming.id, unnamed=True)
    elif incoming.id is None:
        raise Malformed(InvalidRequest("the id of a request must not be null"))
    return incoming


def items(message: bytes) -> list[Raw] | None:
    """The items of a message that is an array, else None. Their bytes are checked to be UTF-8."""
    try:
        found = _decode_items(message)
        if not message.isascii():
            message.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def is_array(message: bytes) -> bool:
    """Whether the first thing in a message is `[`."""
    return message.lstrip(b" \t\r\n")[:1] == b"["


def _diagnose(message: bytes | Raw, reason: str) -> Malformed:
    """What is wrong with JSON that is no message; nothing here is on the way of a good one."""
    try:
        value = _decode_any(message)
    except RecursionError:
        return Malformed(ParseError("not readable: nested too deep"))
    except msgspec.ValidationError:
        return Malformed(InvalidRequest("not a JSON object"))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        return Malformed(ParseError(f"not JSON: {exc}"))
    method = value.get("method")
    silent = method is None and ("result" in value or "error" in value)
    silent = silent or ("id" not in value and isinstance(method, str) and method.startswith("notifications/"))
    error = InvalidRequest(f"not a JSON-RPC 2.0 message: {reason}")
    return Malformed(error, value.get("id"), answerable=not silent, unnamed=method is None)
