"""Typed values to bytes and back, for one revision.

Everything is held in the newest types. What goes to an older peer passes through the view of its revision, which
leaves out what that revision does not have; where the view is the type itself, nothing is done twice.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from accord.errors import InvalidParams
from accord.messages.views import view

T = TypeVar("T")

encode = msgspec.json.Encoder().encode


@cache
def decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type, made when it is first needed."""
    return msgspec.json.Decoder(type_)


def narrow(value: Any, revision: str) -> Any:
    """`value` as `revision` knows it: the value itself, or one of the view's type."""
    known = view(type(value), revision)
    return value if known is type(value) else decoder(known).decode(encode(value))


def decode_params(type_: type[T], params: Any) -> T:
    """Typed params of a request or notification. Raises `InvalidParams` with the JSON path of what does not fit."""
    try:
        return decoder(type_).decode(b"{}" if params is msgspec.UNSET else params)
    except RecursionError:
        raise InvalidParams("params are nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidParams(f"params do not fit: {exc}") from exc


def raw(value: Any) -> Raw:
    """A value encoded once, to be sent many times."""
    return Raw(encode(value))
