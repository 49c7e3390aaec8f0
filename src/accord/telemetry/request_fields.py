"""What a request that comes says of itself: whom or what it is about, and the trace it belongs to. Read with tolerance:
what is wrong with a request is said by whoever serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.session.pending_request import PendingRequest

MAX_FIELD_LENGTH = 8192
"""Characters of a field of the trace context that are read; a longer one is none. Baggage, the longest, has so many."""


class RequestFields(msgspec.Struct):
    """The params of any request."""

    name: Any = None
    uri: Any = None
    arguments: Raw | UnsetType = UNSET
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def carrier(self) -> dict[str, str]:
        """Its trace context, and what else may be one."""
        return trace_context(self.meta or {})


_decoder = msgspec.json.Decoder(RequestFields)
_NOTHING = RequestFields()


def read(exchange: PendingRequest) -> RequestFields:
    """The params of a request, as far as they can be read."""
    if exchange.params is UNSET:
        return _NOTHING
    try:
        return _decoder.decode(exchange.params)
    except (msgspec.MsgspecError, RecursionError):
        return _NOTHING


def text_or_empty(value: Any) -> str:
    """A text, or an empty one for whatever else stands in its place."""
    return value if isinstance(value, str) else ""


def trace_context(fields: Mapping[str, Any]) -> dict[str, str]:
    """What may be a trace context: texts of a reasonable length, under names without a prefix (SEP-414)."""
    return {
        key: value
        for key, value in fields.items()
        if isinstance(value, str) and "/" not in key and len(value) <= MAX_FIELD_LENGTH
    }
