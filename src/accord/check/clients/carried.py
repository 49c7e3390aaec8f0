"""What HTTP requests of a client carry: their messages, whether they belong to a session, and whether they use it."""

from __future__ import annotations

from accord.check.clients.run import PATH, Run
from accord.check.clients.stand import Stand
from accord.check.clients.web import Exchange
from accord.check.record import decoded, objects
from accord.messages.base import JSONObject
from accord.messages.meta import PROTOCOL_VERSION


def bodies(exchange: Exchange) -> list[JSONObject]:
    """The messages in it."""
    return [*objects(decoded(exchange.body))]


def requests_in(exchange: Exchange) -> list[JSONObject]:
    """The requests in it."""
    return [each for each in bodies(exchange) if "method" in each and "id" in each]


def what(exchange: Exchange) -> str:
    """What to call it: the method of its message, or its verb."""
    methods = [str(each.get("method", "an answer")) for each in bodies(exchange)]
    return methods[0] if methods else exchange.verb


def openings(run: Run) -> list[Exchange]:
    """Those that carry initialize."""
    return [each for each in run.posts() if any(one.get("method") == "initialize" for one in bodies(each))]


def in_session(run: Run) -> list[Exchange]:
    """What came to the endpoint after the handshake, but another handshake, and tries of a newer revision."""
    opened = run.opened_at()
    if run.agreed != run.revision:  # there is no revision that the headers could name
        return []
    return [
        each
        for each in run.exchanges
        if each.at > opened
        and each.path == PATH
        and not any(one.get("method") == "initialize" or _has_revision(one) for one in bodies(each))
    ]


def is_first_use(stand: Stand, exchange: Exchange) -> bool:
    """Whether it is the first request of the run for what a server has."""
    used = any(each.get("method") in _USES for each in requests_in(exchange))
    return used and stand.once("use")


_USES = frozenset(("tools/list", "tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get"))


def _has_revision(body: JSONObject) -> bool:
    params = body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta
