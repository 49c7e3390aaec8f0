"""The names of OpenTelemetry's conventions for MCP (semantic-conventions-genai, docs/gen-ai/mcp.md) for spans,
attributes and metrics, and their error types. This module does not need OpenTelemetry.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw

from accord.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    RATE_LIMITED,
    RESOURCE_NOT_FOUND,
    SAMPLING_DECLINED,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
    ProtocolError,
)
from accord.redaction import redact_beginning
from accord.telemetry.base import Operation, SessionOver, TransportInfo

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds; "SHOULD be specified with ExplicitBucketBoundaries of" these."""

MAX_RECORDED_LENGTH = 65_536
"""The maximum length of the recorded arguments, and of the result, in characters; the rest is cut off."""

MAX_NAME_LENGTH = 256
"""The maximum length of a recorded name or URI from the peer in characters."""

MAX_VARIABLES = 64
"""The maximum number of recorded arguments of a prompt; the rest is left out."""

MAX_ERROR_LENGTH = 4_096
"""The maximum length of a recorded error message in characters; the rest is cut off."""

MAX_STACKTRACE_LENGTH = 16_384
"""The maximum length of a recorded traceback in characters; the rest is cut off."""

MAX_CODES = 100
"""The maximum number of JSON-RPC codes in metrics besides those of `STANDARD_CODES`; further ones are `OTHER`."""

OTHER = "_OTHER"
"""The conventions' value of an attribute with too many values."""

ERROR_TYPE = "error.type"
STATUS_CODE = "rpc.response.status_code"
REQUEST_ID = "jsonrpc.request.id"
REVISION = "mcp.protocol.version"
TOOL, PROMPT = "gen_ai.tool.name", "gen_ai.prompt.name"

_NAMES = {"tools/call": TOOL, "prompts/get": PROMPT}

STANDARD_CODES: frozenset[str] = frozenset(
    str(code)
    for code in (
        PARSE_ERROR,
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        INVALID_PARAMS,
        INTERNAL_ERROR,
        RESOURCE_NOT_FOUND,
        HEADER_MISMATCH,
        MISSING_CLIENT_CAPABILITY,
        UNSUPPORTED_VERSION,
        URL_ELICITATION_REQUIRED,
        SAMPLING_DECLINED,
        RATE_LIMITED,
    )
)
"""The codes of the specification and of accord."""

_CALLER_ERRORS = {PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND}
"""Codes that "SHOULD NOT be considered errors" on the server, because the sender caused them."""

Attributes = dict[str, Any]


def span_name(operation: Operation, *, known: bool = True) -> str:
    """Return `{mcp.method.name} {target}`, without an unknown name, because a peer could invent any number of them."""
    return f"{operation.method} {operation.name[:MAX_NAME_LENGTH]}" if known and operation.name else operation.method


def start_attributes(operation: Operation) -> Attributes:
    """Return the attributes of a span that are known at its beginning."""
    attributes = _common_attributes(operation, operation.name)
    if operation.uri:
        attributes["mcp.resource.uri"] = redacted(operation.uri, MAX_NAME_LENGTH)
    if operation.id is not None:
        attributes[REQUEST_ID] = str(operation.id)
    peer = operation.place
    if peer.session:
        attributes["mcp.session.id"] = peer.session
    if operation.side == "server" and peer.address:
        attributes["client.address"] = peer.address
        if peer.port is not None:
            attributes["client.port"] = peer.port
    return attributes


def duration_attributes(operation: Operation) -> Attributes:
    """Return the attributes of a duration, with few distinct values each, whatever a peer sends, except codes."""
    name = operation.name if is_name_known(operation) else ""
    return {**_common_attributes(operation, name), **outcome_attributes(operation)}


def is_name_known(operation: Operation) -> bool:
    """Return whether this side knows the name, which a peer may invent: the handler began, or there was no error."""
    return operation.began or operation.error is None


def session_attributes(session: SessionOver) -> Attributes:
    """Return the attributes of a session's duration."""
    attributes = _transport_attributes(session.place, session.side)
    if session.revision:
        attributes[REVISION] = session.revision
    if session.error is not None:
        attributes[ERROR_TYPE] = error_type(session.error)
    return attributes


def _common_attributes(operation: Operation, name: str) -> Attributes:
    attributes: Attributes = {
        "mcp.method.name": operation.method,
        **_transport_attributes(operation.place, operation.side),
    }
    if operation.revision:
        attributes[REVISION] = operation.revision
    if operation.method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    key = _NAMES.get(operation.method)
    if key is not None and name:
        attributes[key] = name[:MAX_NAME_LENGTH]
    return attributes


def _transport_attributes(peer: TransportInfo, side: str) -> Attributes:
    attributes: Attributes = {}
    if peer.transport:
        attributes["network.transport"] = peer.transport
    if peer.protocol:
        attributes["network.protocol.name"] = peer.protocol
    if peer.protocol_version:
        attributes["network.protocol.version"] = peer.protocol_version
    if side == "client" and peer.address:
        attributes["server.address"] = peer.address
        if peer.port is not None:
            attributes["server.port"] = peer.port
    return attributes


# --- outcome ---------------------------------------------------------------------------------------------------


def outcome_attributes(operation: Operation) -> Attributes:
    """Return how a request ended: `error.type` "if and only if the operation fails", and the JSON-RPC code."""
    error = operation.error
    if isinstance(error, ProtocolError):
        code = error.code if operation.code is None else operation.code
        caused_by_client = operation.side == "server" and code in _CALLER_ERRORS
        return {STATUS_CODE: str(code)} if caused_by_client else {STATUS_CODE: str(code), ERROR_TYPE: str(code)}
    if error is not None:
        return {ERROR_TYPE: error_type(error)}
    # "When CallToolResult is returned with isError set to true, this attribute SHOULD be set to `tool_error`."
    return {ERROR_TYPE: "tool_error"} if operation.failed else {}


def error_type(error: BaseException) -> str:
    """Return the type of an error, with few distinct values."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    kind = type(error)
    return kind.__qualname__ if kind.__module__.startswith(("accord.", "builtins")) else _full_name(kind)


def exception_attributes(error: BaseException) -> Attributes:
    """Return an exception as a span event: type, message and traceback, shortened, with secrets redacted."""
    return {
        "exception.type": _full_name(type(error)).removeprefix("builtins."),
        "exception.message": redacted(_message(error), MAX_ERROR_LENGTH),
        "exception.stacktrace": redacted("".join(traceback.format_exception(error)), MAX_STACKTRACE_LENGTH),
    }


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a handler may raise anything, in `__str__` too
        return ""


def redacted(text: str, length: int) -> str:
    """Return the first `length` characters of a text, with secrets redacted, also one that extends beyond them."""
    return redact_beginning(text, 2 * length)[:length]


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# --- attributes that may contain secrets -----------------------------------------------------------------------


def argument_attributes(operation: Operation) -> Attributes:
    """Return the arguments of a tool as JSON, or of a prompt one by one."""
    if operation.arguments is None:
        return {}
    text = _text(operation.arguments)
    if operation.method == "tools/call":
        return {"gen_ai.tool.call.arguments": text[:MAX_RECORDED_LENGTH]}
    if operation.method != "prompts/get":
        return {}
    values: Mapping[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    attributes: Attributes = {}
    room = MAX_RECORDED_LENGTH
    for name, value in islice(values.items(), MAX_VARIABLES):
        shown = str(value)[:room]
        attributes[f"gen_ai.prompt.variable.{name[:MAX_NAME_LENGTH]}"] = shown
        room -= len(shown)
    return attributes


def result_attributes(operation: Operation) -> Attributes:
    """Return the result of a tool as JSON, "if execution was successful": not for an input request or an error."""
    if operation.method != "tools/call" or operation.result is None or operation.asks or operation.failed:
        return {}
    return {"gen_ai.tool.call.result": _text(operation.result)[:MAX_RECORDED_LENGTH]}


def _text(value: Any) -> str:
    return str(value if isinstance(value, Raw) else msgspec.json.encode(value), "utf-8", "replace")
