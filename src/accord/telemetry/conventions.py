"""The words of OpenTelemetry's conventions for MCP (semantic-conventions-genai, docs/gen-ai/mcp.md): names of spans,
attributes and metrics, and what counts as an error. Nothing here needs OpenTelemetry.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from accord.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    ProtocolError,
)
from accord.redaction import redact
from accord.telemetry.base import Operation, SessionOver, TransportInfo

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds; "SHOULD be specified with ExplicitBucketBoundaries of" these."""

MAX_RECORDED_LENGTH = 65_536
"""Characters of arguments and results that are recorded; what follows is cut off."""

MAX_NAME_LENGTH = 256
"""Characters of a name or URI of the peer's that are recorded."""

ERROR_TYPE = "error.type"
STATUS_CODE = "rpc.response.status_code"
REQUEST_ID = "jsonrpc.request.id"
REVISION = "mcp.protocol.version"
TOOL, PROMPT = "gen_ai.tool.name", "gen_ai.prompt.name"

_NAMES = {"tools/call": TOOL, "prompts/get": PROMPT}

_CALLER_ERRORS = {PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND}
"""What "SHOULD NOT be considered errors" by the one who serves: the sender could have known."""

Attributes = dict[str, Any]


def span_name(operation: Operation, *, known: bool = True) -> str:
    """`{mcp.method.name} {target}`; a name that is not `known` here is left out: a peer could make up any number."""
    return f"{operation.method} {operation.name[:MAX_NAME_LENGTH]}" if known and operation.name else operation.method


def start_attributes(operation: Operation) -> Attributes:
    """The attributes of a span, as far as they are known at its beginning."""
    found = _common_attributes(operation, operation.name)
    if operation.uri:
        found["mcp.resource.uri"] = operation.uri[:MAX_NAME_LENGTH]
    if operation.id is not None:
        found[REQUEST_ID] = str(operation.id)
    place = operation.place
    if place.session:
        found["mcp.session.id"] = place.session
    if operation.side == "server" and place.address:
        found["client.address"] = place.address
        if place.port is not None:
            found["client.port"] = place.port
    return found


def duration_attributes(operation: Operation) -> Attributes:
    """The attributes of a duration: few values for each, whatever a peer sends."""
    known = operation.began or not isinstance(operation.error, ProtocolError)
    return {**_common_attributes(operation, operation.name if known else ""), **outcome_attributes(operation)}


def session_attributes(over: SessionOver) -> Attributes:
    """The attributes of the duration of a session."""
    found = _transport_attributes(over.place, over.side)
    if over.revision:
        found[REVISION] = over.revision
    if over.error is not None:
        found[ERROR_TYPE] = error_type(over.error)
    return found


def _common_attributes(operation: Operation, name: str) -> Attributes:
    found: Attributes = {"mcp.method.name": operation.method, **_transport_attributes(operation.place, operation.side)}
    if operation.revision:
        found[REVISION] = operation.revision
    if operation.method == "tools/call":
        found["gen_ai.operation.name"] = "execute_tool"
    key = _NAMES.get(operation.method)
    if key is not None and name:
        found[key] = name[:MAX_NAME_LENGTH]
    return found


def _transport_attributes(place: TransportInfo, side: str) -> Attributes:
    found: Attributes = {}
    if place.transport:
        found["network.transport"] = place.transport
    if place.protocol:
        found["network.protocol.name"] = place.protocol
    if place.protocol_version:
        found["network.protocol.version"] = place.protocol_version
    if side == "client" and place.address:
        found["server.address"] = place.address
        if place.port is not None:
            found["server.port"] = place.port
    return found


# --- the end ---------------------------------------------------------------------------------------------------


def outcome_attributes(operation: Operation) -> Attributes:
    """How a request ended: `error.type` "if and only if the operation fails", and the code of a JSON-RPC error."""
    error = operation.error
    if isinstance(error, ProtocolError):
        code = error.code if operation.code is None else operation.code
        excused = operation.side == "server" and code in _CALLER_ERRORS
        return {STATUS_CODE: str(code)} if excused else {STATUS_CODE: str(code), ERROR_TYPE: str(code)}
    if error is not None:
        return {ERROR_TYPE: error_type(error)}
    # "When CallToolResult is returned with isError set to true, this attribute SHOULD be set to `tool_error`."
    return {ERROR_TYPE: "tool_error"} if operation.failed else {}


def error_type(error: BaseException) -> str:
    """An error in one word, of which there are few."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    kind = type(error)
    return kind.__qualname__ if kind.__module__.startswith(("accord.", "builtins")) else _full_name(kind)


def exception_attributes(error: BaseException) -> Attributes:
    """An exception as an event of its span: type, text and traceback, without what looks secret."""
    return {
        "exception.type": _full_name(type(error)).removeprefix("builtins."),
        "exception.message": redact(str(error)),
        "exception.stacktrace": redact("".join(traceback.format_exception(error))),
    }


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# --- what may be secret ----------------------------------------------------------------------------------------


def argument_attributes(operation: Operation) -> Attributes:
    """The arguments of a tool, as JSON, or of a prompt, one by one."""
    if operation.arguments is None:
        return {}
    text = _text(operation.arguments)
    if operation.method == "tools/call":
        return {"gen_ai.tool.call.arguments": text[:MAX_RECORDED_LENGTH]}
    if operation.method != "prompts/get":
        return {}
    values: Mapping[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    return {f"gen_ai.prompt.variable.{name}": str(value)[:MAX_RECORDED_LENGTH] for name, value in values.items()}


def result_attributes(operation: Operation) -> Attributes:
    """The result of a tool, as JSON, "if execution was successful": questions are none, nor is an error."""
    if operation.method != "tools/call" or operation.result is None or operation.asks or operation.failed:
        return {}
    return {"gen_ai.tool.call.result": _text(operation.result)[:MAX_RECORDED_LENGTH]}


def _text(value: Any) -> str:
    return str(value if isinstance(value, Raw) else msgspec.json.encode(value), "utf-8", "replace")
