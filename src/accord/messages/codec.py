"""Encoding and decoding of typed values, for one revision.

Values have the newest types. A message to an older peer passes through the view of its revision, which omits what
that revision does not have; where the view is the type itself, no second conversion takes place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from accord.errors import InvalidParams
from accord.locked_cache import locked_cache, safe_convert
from accord.messages.bounds import DECODED_NODES, has_more_nodes
from accord.messages.duplicate_members import find_duplicate
from accord.messages.meta import SERVER_INFO
from accord.messages.revision import Rules
from accord.messages.views import removed_fields, view

T = TypeVar("T")

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode


@locked_cache
def decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type, created on first use: that takes about 50 µs."""
    return msgspec.json.Decoder(type_)


def narrow(value: Any, revision: str) -> Any:
    """Return `value` in the shape of `revision`: the value itself, or one of the view's type."""
    if not isinstance(value, msgspec.Struct):
        return value
    known = view(type(value), revision)
    return value if known is type(value) else decoder(known).decode(encode(value))


def encode_params(params: Any, revision: str) -> bytes:
    """Return the params of a request in the shape of `revision`. Encoded members stay as they are, unless the revision
    has another shape for what is set."""
    if isinstance(params, msgspec.Struct):
        removed = removed_fields(type(params), revision)
        if removed is None:
            return encode(narrow(params, revision))
        for name, default in removed:
            if getattr(params, name) is not default:
                return encode(narrow(params, revision))
    return encode(params)


def decode_params(type_: type[T], params: Any) -> T:
    """Return the typed params of a request or notification. Raise `InvalidParams` with the JSON path of an invalid
    value, or with the name of a duplicate member."""
    if params is not msgspec.UNSET:
        check_duplicate_members(bytes(params), "params")
    return decode_result(type_, params)


def check_duplicate_members(text: bytes, what: str) -> None:
    """Raise `InvalidParams` if an object in this JSON has two members of one name, or is nested too deep to check."""
    try:
        name = find_duplicate(text)
    except RecursionError:
        raise InvalidParams(f"{what} are nested too deep") from None
    if name is not None:
        raise InvalidParams(f"{what} have the member {name!r:.100} twice")


def decode_result(type_: type[T], params: Any) -> T:
    """Return a response of the peer as `type_`; of duplicate members the last one counts. Raise `InvalidParams`."""
    try:
        decoded: T = decoder(cast(Any, type_)).decode(b"{}" if params is msgspec.UNSET else params)
    except RecursionError:
        raise InvalidParams("params are nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidParams(f"params do not fit: {exc}") from exc
    return decoded


def decode_text(text: str | bytes) -> Any:
    """Return JSON that a peer sent inside of a text, which is not counted with the structure of its message.

    Raises `msgspec.DecodeError`, also for too much structure, `UnicodeError`, and `RecursionError`.
    """
    data = text.encode() if isinstance(text, str) else text
    if has_more_nodes(data, DECODED_NODES):
        raise msgspec.DecodeError("JSON in a text has too many values, or too many numbers with a large exponent")
    return msgspec.json.decode(data)


def copy(value: T) -> T:
    """Return a copy of a part of a message that shares nothing with it."""
    copied: T = decoder(type(value)).decode(encode(value))
    return copied


def raw(value: Any) -> Raw:
    """Return a value encoded once, to be sent many times."""
    return Raw(encode(value))


class FinishedResult(msgspec.Struct):
    """A result that already has the shape of its revision, so that `finish_result` returns it unchanged."""


FINISHED = (msgspec.Raw, FinishedResult)


def finish_result(result: Any, rules: Rules, info: Raw) -> Any:
    """Return a result in the shape of its revision: with `resultType` and `serverInfo`, or narrowed to an older shape.

    A result of a type in `FINISHED` stays as it is. "The result MUST include a resultType field" (2026-07-28, basic,
    Result Responses); cache hints default to "do not keep".
    """
    if isinstance(result, FINISHED):
        return result
    return stamp_result(result, info) if rules.result_type else narrow(result, rules.revision)


def stamp_result(result: Any, info: Raw) -> Any:
    """Return `result` with `resultType`, `serverInfo` and, if it is cacheable, cache hints."""
    if isinstance(result, dict):
        return {"resultType": "complete", **result}
    if getattr(result, "result_type", "none") is not None:  # already set, or a value without such a field
        return result
    changes: dict[str, Any] = {"result_type": "complete", "meta": {**(result.meta or {}), SERVER_INFO: info}}
    if getattr(result, "ttl_ms", 0) is None:
        changes["ttl_ms"] = 0
    if getattr(result, "cache_scope", "") is None:
        changes["cache_scope"] = "private"
    return msgspec.structs.replace(result, **changes)


def join_objects(first: bytes, second: bytes) -> bytes:
    """Join two JSON objects; where both have a key, the second one counts."""
    if first == b"{}":
        return second
    return first if second == b"{}" else first[:-1] + b"," + second[1:]


def with_meta(params: bytes, meta: bytes) -> bytes:
    """Return encoded params with `_meta`; they must not have one yet."""
    return join_objects(b'{"_meta":%b}' % meta, params)


def convert(type_: type[T], value: Any) -> T | None:
    """Return a value that was decoded without a type as `type_`, or None if it does not match."""
    try:
        return cast(T, safe_convert(value, type_))
    except msgspec.ValidationError:
        return None
