"""The few places where a relayed message changes; the bytes of params and results stay as they are otherwise.

- Requests of a process to the host get an id that is unique among all processes, and a progress token likewise.
- Lists may not be cached (`ttlMs: 0`), and list changes are declared, because the relay announces them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from accord.dev import search as search_tools
from accord.messages.base import JSONObject, RequestId
from accord.messages.codec import encode
from accord.messages.envelope import Incoming
from accord.messages.meta import PROGRESS_TOKEN

LIST_KINDS = ("tools", "prompts", "resources")
"""The capabilities with a list whose change can be announced."""

LIST_METHODS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The methods of the lists, with the member of the result that has the items."""

_CACHEABLE = {*LIST_METHODS, "server/discover", "resources/read"}
_decode = msgspec.json.Decoder().decode
_decode_raw_members = msgspec.json.Decoder(dict[str, Raw]).decode


def members(raw: Raw | bytes | Any) -> JSONObject:
    """Return the object in a message, in params or a result; an empty one if they are absent or no object."""
    try:
        value = {} if raw is UNSET else _decode(raw)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def response(id: RequestId, result: object) -> bytes:
    """Return a result."""
    return encode({"jsonrpc": "2.0", "id": id, "result": result})


def error_response(id: RequestId, code: int, message: str) -> bytes:
    """Return an error."""
    return encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


def request(id: RequestId, method: str, params: object = None) -> bytes:
    """Return a request; `params` may be raw."""
    return encode({"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})})


def notification(method: str, params: object = None) -> bytes:
    """Return a notification."""
    return encode({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})


def with_id(message: Incoming, id: RequestId, params: object = UNSET) -> bytes:
    """Return a request or a response with another id; `params` replaces the params, if given."""
    fields: dict[str, object] = {"jsonrpc": "2.0", "id": id}
    for name in ("method", "params", "result", "error"):
        value = getattr(message, name)
        if value is not UNSET:
            fields[name] = params if name == "params" and params is not UNSET else value
    return encode(fields)


def progress_token_of(params: Raw | Any) -> RequestId | None:
    """Return the progress token in the `_meta` of params."""
    meta = members(params).get("_meta")
    token = meta.get(PROGRESS_TOKEN) if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) else None


def with_progress_token(params: Raw, token: RequestId) -> JSONObject:
    """Return params with another progress token."""
    value = members(params)
    return {**value, "_meta": {**value.get("_meta", {}), PROGRESS_TOKEN: token}}


def edit_result(message: bytes, edit: Any) -> bytes:
    """Return a response whose result is replaced by what `edit` returns for it; errors stay as they are."""
    raw = _decode_raw_members(message)
    result = members(raw["result"]) if "result" in raw else None
    if result is None:
        return message
    return encode({**raw, "result": edit(result)})


def result_for_host(method: str, message: bytes, *, search: bool) -> bytes:
    """Return a response of a process as the host receives it; with `search`, a list has the tools for searching."""
    if method == "server/discover":
        message = edit_result(message, declaring_list_changes)
    if search and method == "tools/list":
        message = edit_result(message, search_tools.with_search_tools)
    if b'"ttlMs"' in message and method in _CACHEABLE:
        message = edit_result(message, _never_cached)
    return message


def _never_cached(result: JSONObject) -> JSONObject:
    return {**result, "ttlMs": 0}


def declaring_list_changes(result: JSONObject) -> JSONObject:
    """Return the result of `initialize` or `server/discover` with `listChanged` for each list that is offered."""
    capabilities = result.get("capabilities")
    if not isinstance(capabilities, dict):
        return result
    changed = {
        kind: {**declared, "listChanged": True}
        for kind in LIST_KINDS
        if isinstance(declared := capabilities.get(kind), dict)
    }
    return {**result, "capabilities": {**capabilities, **changed}}
