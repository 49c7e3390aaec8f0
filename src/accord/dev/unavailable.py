"""The answers of the relay itself: while no version of the program runs, and for calls that a reload has ended.

A host that connects while the program is broken gets a connection with empty lists, and calls that fail with the
reason, so that the next good version reaches it without a restart of the host.
"""

from __future__ import annotations

from accord import __version__
from accord.dev.exchange import Exchange
from accord.dev.rewriting import LIST_METHODS, error_response, members, notification, response
from accord.errors import INTERNAL_ERROR
from accord.messages.base import JSONObject
from accord.messages.meta import SERVER_INFO, SUBSCRIPTION_ID
from accord.messages.revision import HANDSHAKE, PER_REQUEST

_LISTS: JSONObject = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
_CAPABILITIES: JSONObject = {
    **_LISTS,
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
    "completions": {},
}
_EMPTY = ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")


def expired_reason() -> str:
    """Return why a call failed whose process has used up its grace."""
    return "reloaded: the process of the earlier version was ended during this call; whether it took effect is unknown"


def ended_reason(reason: str) -> str:
    """Return why a call failed whose process has ended."""
    return f"the program ended during this call; whether it took effect is unknown: {reason}"


def failed_call(exchange: Exchange, reason: str) -> bytes:
    """Return the failure of a request: an error result of a tool, which the model sees, or a JSON-RPC error."""
    if exchange.method == "tools/call":
        return response(
            exchange.id, typed_result(exchange, {"content": [{"type": "text", "text": reason}], "isError": True})
        )
    return error_response(exchange.id, INTERNAL_ERROR, reason)


def answer_without_process(exchange: Exchange, reason: str, name: str) -> bytes:
    """Return the answer to a request while no process runs."""
    own = {"name": name, "version": __version__}
    if exchange.method == "initialize":
        wanted = members(exchange.params).get("protocolVersion")
        revision = wanted if wanted in HANDSHAKE else HANDSHAKE[-1]
        return response(exchange.id, {"protocolVersion": revision, "capabilities": _CAPABILITIES, "serverInfo": own})
    if exchange.method == "server/discover":
        found = {"supportedVersions": [*PER_REQUEST], "capabilities": _CAPABILITIES, "_meta": {SERVER_INFO: own}}
        return response(exchange.id, typed_result(exchange, found, cacheable=True))
    if exchange.method in LIST_METHODS:
        return response(exchange.id, typed_result(exchange, {LIST_METHODS[exchange.method]: []}, cacheable=True))
    if exchange.method in _EMPTY:
        return response(exchange.id, typed_result(exchange, {}))
    return failed_call(exchange, reason)


def acknowledgement(exchange: Exchange, granted: JSONObject) -> bytes:
    """Return the acknowledgement of a subscription."""
    params = {"_meta": {SUBSCRIPTION_ID: exchange.id}, "notifications": granted}
    return notification("notifications/subscriptions/acknowledged", params)


def typed_result(exchange: Exchange, result: JSONObject, *, cacheable: bool = False) -> JSONObject:
    """Return a result in the form of the request's revision."""
    if not exchange.per_request:
        return result
    hints = {"ttlMs": 0, "cacheScope": "private"} if cacheable else {}
    return {**result, "resultType": "complete", **hints}
