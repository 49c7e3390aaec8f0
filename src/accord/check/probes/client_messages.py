"""The messages of a correct client: requests of each revision, and responses to requests from a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from accord.check.engine.report import TransportName
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from accord.messages.revision import RULES, Rules, is_in_revision
from accord.wire.headers import encode_value, mirrored, parameter_headers
from accord.wire.request_headers import NAME_FIELDS

INFO: JSONObject = {"name": "accord-check", "version": "1.0.0"}

LIST_METHODS = {"tools": "tools/list", "resources": "resources/list", "prompts": "prompts/list"}
"""The list method of each capability."""

_TEXT = {"type": "text", "text": "A good answer."}
_LONGEST = 100_000
"""Maximum number of characters of a string in a form."""

DEFAULT_RESULTS: dict[str, Any] = {
    "ping": {},
    "roots/list": {"roots": [{"uri": "file:///accord/check", "name": "check"}]},
    "sampling/createMessage": {
        "role": "assistant",
        "content": _TEXT,
        "model": "accord-check",
        "stopReason": "endTurn",
    },
    "elicitation/create": lambda request: elicitation_result(request.get("params")),
}
"""The result for each method that a server can request."""


def all_capabilities(revision: str) -> JSONObject:
    """Return all capabilities that a client of this revision can declare, except tasks."""
    rules = RULES[revision]
    declared: JSONObject = {
        "roots": {"listChanged": True} if rules.handshake else {},
        "sampling": {"tools": {}, "context": {}} if rules.sampling_tools else {},
    }
    if is_in_revision(revision, "2025-06-18", None):
        declared["elicitation"] = {"form": {}, "url": {}} if rules.elicitation_urls else {}
    return declared


class MessageContext(Protocol):
    """The session that a message belongs to."""

    revision: str
    rules: Rules
    transport: TransportName
    client_capabilities: JSONObject
    schemas: dict[str, JSONObject]


def request_body(probe: MessageContext, method: str, params: JSONObject | None, meta: JSONObject | None) -> JSONObject:
    """Return method and params, with the `_meta` of the revision."""
    body = dict(params or {})
    own = body.get("_meta")
    known = _meta(probe) if not probe.rules.handshake and not method.startswith("notifications/") else {}
    whole = {**known, **(own if isinstance(own, dict) else {}), **(meta or {})}
    if whole:
        body["_meta"] = whole
    return {"method": method, "params": body} if body or params is not None else {"method": method}


def _meta(probe: MessageContext) -> JSONObject:
    return {PROTOCOL_VERSION: probe.revision, CLIENT_INFO: INFO, CLIENT_CAPABILITIES: probe.client_capabilities}


def http_headers(probe: MessageContext, message: Any) -> Mapping[str, str | None]:
    """Return the headers of a POST with this message."""
    if probe.transport != "http":
        return {}
    method = message.get("method") if isinstance(message, dict) else None
    headers: dict[str, str | None] = {}
    if not probe.rules.handshake or (method != "initialize" and is_in_revision(probe.revision, "2025-06-18", None)):
        headers["MCP-Protocol-Version"] = probe.revision
    if not probe.rules.handshake and isinstance(method, str):
        headers["Mcp-Method"] = method
        headers |= _name_headers(probe, method, message.get("params"))
    return headers


def _name_headers(probe: MessageContext, method: str, params: Any) -> dict[str, str | None]:
    if not isinstance(params, dict) or method not in NAME_FIELDS:
        return {}
    subject = params.get(NAME_FIELDS[method])
    if not isinstance(subject, str):
        return {}
    arguments = params.get("arguments")
    schema = probe.schemas.get(subject) if method == "tools/call" else None
    more = parameter_headers(_mirrored_parameters(schema), arguments) if schema and isinstance(arguments, dict) else {}
    return {"Mcp-Name": encode_value(subject), **more}


def _mirrored_parameters(schema: JSONObject) -> Mapping[str, tuple[str, ...]]:
    try:
        return mirrored(schema)
    except ValueError:  # declared wrongly: then no client calls the tool
        return {}


def elicitation_result(params: Any) -> JSONObject:
    """Return a valid response to an elicitation: a form that matches its schema, or the consent to open a URL."""
    if not isinstance(params, dict) or params.get("mode") == "url":
        return {"action": "accept"}
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    fields = properties if isinstance(properties, dict) else {}
    return {"action": "accept", "content": {name: _field(field) for name, field in fields.items()}}


def _field(field: Any) -> Any:
    """Return the default, the first choice, or a value of the type."""
    schema = field if isinstance(field, dict) else {}
    if "default" in schema:
        return schema["default"]
    if schema.get("type") == "array":
        items = schema.get("items")
        return [_choice(items if isinstance(items, dict) else {})] if schema.get("minItems") else []
    return _choice(schema)


def _choice(schema: JSONObject) -> Any:
    """Return the first value that the schema lists; a server may write anything there."""
    for key in ("enum", "oneOf", "anyOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            first = choices[0]
            return first if key == "enum" else first.get("const") if isinstance(first, dict) else None
    if schema.get("type") in ("integer", "number"):
        return schema.get("minimum", 1)
    if schema.get("type") == "boolean":
        return True
    return {"email": "a@example.com", "uri": "https://example.com/", "date": "2026-01-01"}.get(
        str(schema.get("format")), "text".ljust(_length(schema.get("minLength")), "x")
    )


def _length(wanted: Any) -> int:
    """Return a string of the required length, within a limit."""
    return min(wanted, _LONGEST) if isinstance(wanted, int) else 0


def initialize_params(revision: str, capabilities: JSONObject) -> JSONObject:
    """Return the params of `initialize`."""
    return {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": INFO}
