"""`_meta`, and the base types of params and results that carry it (basic, `_meta`).

In a message `_meta` stays a plain dict, so that unknown keys pass through unchanged. `RequestMeta` and the similar
types name the known keys: decode a `_meta` (or convert one) with them to read those.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from msgspec import field

from accord.errors import LocalProtocolError
from accord.lazy_patterns import lazy_pattern
from accord.messages.base import (
    LoggingLevel,
    Meta,
    Model,
    ProgressToken,
    RequestId,
    bounded,
    open_ended,
    required,
    seen_as,
    since,
)
from accord.messages.bounds import Answers, Cursor, Name, State
from accord.messages.capabilities import ClientCapabilities
from accord.messages.identity import Implementation

PROGRESS_TOKEN = "progressToken"
PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
RELATED_TASK = "io.modelcontextprotocol/related-task"
TRACE = ("traceparent", "tracestate", "baggage")
"""The trace context (W3C), under names without a prefix; over HTTP it is in headers as well."""

KNOWN_KEYS = frozenset(
    {
        PROTOCOL_VERSION,
        CLIENT_INFO,
        CLIENT_CAPABILITIES,
        LOG_LEVEL,
        SERVER_INFO,
        SUBSCRIPTION_ID,
        RELATED_TASK,
    }
)
"""Keys under a reserved prefix that the specification itself defines."""

_RESERVED_LABELS = {"modelcontextprotocol", "mcp"}
_LABEL = lazy_pattern(r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_NAME = lazy_pattern(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")


@open_ended
class RequestMeta(Model):
    """The known keys of a request's `_meta`."""

    progress_token: ProgressToken | None = None
    protocol_version: Annotated[Name | None, since("2026-07-28"), required()] = field(
        default=None, name=PROTOCOL_VERSION
    )
    client_info: Annotated[Implementation | None, since("2026-07-28")] = field(default=None, name=CLIENT_INFO)
    client_capabilities: Annotated[ClientCapabilities | None, since("2026-07-28"), required()] = field(
        default=None, name=CLIENT_CAPABILITIES
    )
    log_level: Annotated[LoggingLevel | None, since("2026-07-28")] = field(default=None, name=LOG_LEVEL)
    traceparent: Annotated[State | None, since("2026-07-28")] = None
    tracestate: Annotated[State | None, since("2026-07-28")] = None
    baggage: Annotated[State | None, since("2026-07-28")] = None


@open_ended
class NotificationMeta(Model):
    """The known keys of a notification's `_meta`."""

    subscription_id: Annotated[RequestId | None, since("2026-07-28")] = field(default=None, name=SUBSCRIPTION_ID)


@open_ended
class ResultMeta(Model):
    """The known keys of a result's `_meta`."""

    server_info: Annotated[Implementation | None, since("2026-07-28")] = field(default=None, name=SERVER_INFO)


class Params(Model):
    """Base class of the params of requests."""

    meta: Annotated[Meta | None, required(since="2026-07-28"), seen_as(RequestMeta)] = field(default=None, name="_meta")


class NotificationParams(Model):
    """Base class of the params of notifications."""

    meta: Annotated[Meta | None, seen_as(NotificationMeta)] = field(default=None, name="_meta")


class Result(Model):
    """Base class of results. Decode with it to read `result_type` before choosing the exact type."""

    meta: Annotated[Meta | None, seen_as(ResultMeta)] = field(default=None, name="_meta")
    result_type: Annotated[Name | None, since("2026-07-28"), required()] = None


class CacheableResult(Result):
    """A result that says how long it may be cached, in milliseconds, and by whom (server, Caching)."""

    ttl_ms: Annotated[int | None, since("2026-07-28"), required(), bounded(ge=0)] = None
    cache_scope: Annotated[Literal["public", "private"] | None, since("2026-07-28"), required()] = None


class ListResult(CacheableResult):
    """A page of a list (server, Pagination); the last page has no `next_cursor`."""

    next_cursor: Cursor | None = None


@open_ended
class EmptyParams(Params):
    """Params of requests without parameters, such as `ping`."""


@open_ended
class EmptyNotificationParams(NotificationParams):
    """Params of notifications without parameters, such as `notifications/initialized`."""


@open_ended
class EmptyResult(Result):
    """A result without content."""


class PaginatedParams(Params):
    """Params of the list methods: the cursor from the previous page."""

    cursor: Cursor | None = None


class InputResponseParams(Params):
    """Params of requests that may be answered with `input_required`, and be retried with the answers."""

    input_responses: Annotated[Answers | None, since("2026-07-28")] = None
    request_state: Annotated[State | None, since("2026-07-28")] = None


def check_meta_key(key: str, known: Collection[str] = KNOWN_KEYS) -> None:
    """Raise `LocalProtocolError` unless `key` may be sent: an optional prefix of labels, and a name.

    "Any prefix where the second label is `modelcontextprotocol` or `mcp` is reserved for MCP use": keys with such a
    prefix must be in `known`.
    """
    prefix, slash, name = key.rpartition("/")
    labels = prefix.split(".") if slash else []
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise LocalProtocolError(
            f"_meta key {key!r}: the prefix before '/' must be labels joined by dots, like "
            "'com.example/', each beginning with a letter and ending with a letter or digit, with letters, "
            "digits and hyphens between"
        )
    if not _NAME.fullmatch(name):
        raise LocalProtocolError(
            f"_meta key {key!r}: the name must begin and end with a letter or digit, "
            "with letters, digits, '-', '_' and '.' between"
        )
    if len(labels) > 1 and labels[1] in _RESERVED_LABELS and key not in known:
        raise LocalProtocolError(
            f"_meta key {key!r}: the prefix '{prefix}/' is reserved for MCP; use a domain of your own"
        )


def check_meta(meta: Meta, known: Collection[str] = KNOWN_KEYS) -> None:
    """Raise `LocalProtocolError` unless each key of `meta` may be sent."""
    for key in meta:
        check_meta_key(key, known)
