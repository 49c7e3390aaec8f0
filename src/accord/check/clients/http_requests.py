"""The HTTP requests of a client: their messages, and their sessions."""

from __future__ import annotations

from accord.check.clients.http_listener import ClientExchange
from accord.check.clients.run import PATH, ClientRun
from accord.check.clients.scripted_server import ScriptedServer
from accord.check.probes.message_log import decode_json, message_objects
from accord.messages.base import JSONObject
from accord.messages.meta import PROTOCOL_VERSION


def messages_in(exchange: ClientExchange) -> list[JSONObject]:
    """Return the messages in a request."""
    return [*message_objects(decode_json(exchange.body))]


def requests_in(exchange: ClientExchange) -> list[JSONObject]:
    """Return the JSON-RPC requests in it."""
    return [each for each in messages_in(exchange) if "method" in each and "id" in each]


def describe_exchange(exchange: ClientExchange) -> str:
    """Return the method of its message, or its HTTP method."""
    methods = [str(each.get("method", "an answer")) for each in messages_in(exchange)]
    return methods[0] if methods else exchange.verb


def initialize_posts(run: ClientRun) -> list[ClientExchange]:
    """Return the HTTP requests with initialize."""
    return [each for each in run.posts() if any(one.get("method") == "initialize" for one in messages_in(each))]


def in_session(run: ClientRun) -> list[ClientExchange]:
    """Yield the requests to the endpoint after the handshake, without further handshakes and attempts in newer
    revisions.
    """
    opened = run.opened_at()
    if run.negotiated_revision != run.revision:  # there is no revision that the headers could name
        return []
    return [
        each
        for each in run.exchanges
        if each.at > opened
        and each.path == PATH
        and not any(one.get("method") == "initialize" or _has_revision(one) for one in messages_in(each))
    ]


def is_first_use(stand: ScriptedServer, exchange: ClientExchange) -> bool:
    """Return whether it is the first request of the run for a feature of the server."""
    used = any(each.get("method") in _USES for each in requests_in(exchange))
    return used and stand.is_first_time("use")


_USES = frozenset(("tools/list", "tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get"))


def _has_revision(body: JSONObject) -> bool:
    params = body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta
