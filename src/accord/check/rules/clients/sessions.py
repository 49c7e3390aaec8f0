"""Sessions over HTTP: their id goes with every request and nowhere else, and an end is followed by a new beginning."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.carried import in_session, is_first_use, openings, what
from accord.check.clients.endpoint import Endpoint
from accord.check.clients.run import Run
from accord.check.clients.scene import Scene
from accord.check.clients.web import Exchange, Reply
from accord.check.rule import HTTP, Broken, NotObserved, Rule

_SINCE = "2026-07-28"

SESSION = Rule(
    "client-http/session-id",
    "must",
    "The session id that came with the answer to initialize goes with every request that follows.",
    at="basic/transports#session-management",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)

ENDED = Rule(
    "client-http/session-ended",
    "must",
    "A client whose session has ended (404) opens another by initialize, without a session id.",
    at="basic/transports#session-management",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="404 is an error like any other, or the old id goes with the new initialize.",
)

DELETED = Rule(
    "client-http/session-delete",
    "should",
    "A client that does not need its session any more ends it with DELETE.",
    at="basic/transports#session-management",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="The client just goes away.",
)

REDIRECT = Rule(
    "client-http/redirect",
    "should",
    "A redirect to another origin does not carry the session, or what was to be said in it, away.",
    at="basic/transports#session-management",
    role="client",
    over=HTTP,
    cause="The HTTP library follows redirects by itself, with all headers.",
)


@SESSION.reading("every request after the handshake")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        issued = {each.answered["mcp-session-id"] for each in run.exchanges if "mcp-session-id" in each.answered}
        for each in in_session(run):
            judged += 1
            if each.headers.get("mcp-session-id") not in issued:
                raise Broken(f"{what(each)} came without the session id", evidence=[each.line()])
    return judged


@DELETED.reading("sessions of clients that end by themselves")
def _(runs: Sequence[Run]) -> int:
    (run,) = [run for run in runs if run.usual is run]
    issued = [each.answered["mcp-session-id"] for each in run.exchanges if "mcp-session-id" in each.answered]
    deleted = {each.headers.get("mcp-session-id") for each in run.exchanges if each.verb == "DELETE"}
    if not issued or run.ending != "itself":
        raise NotObserved("the client did not end by itself")
    if not set(issued) <= deleted:
        raise Broken("the session was not ended", evidence=[each.line() for each in run.exchanges[-3:]])
    return len(issued)


LOST = Scene("session-ended", "the server has forgotten the session", until=_SINCE, over=HTTP)


@LOST.over_http
async def _(endpoint: Endpoint, exchange: Exchange, reply: Reply) -> bool:
    if not is_first_use(endpoint.stand, exchange) or not endpoint.forget(exchange):
        return False
    await reply.whole(404)
    return True


@LOST.judges(ENDED, "404 for a request with a session id")
def _(run: Run) -> None:
    run.got_away()
    anew = [each for each in openings(run) if each.at > (run.turned_at or 0)]
    if not anew:
        raise Broken("no new session was opened", evidence=[each.line() for each in run.exchanges[-4:]])
    if "mcp-session-id" in anew[0].headers:
        raise Broken("the new initialize has the old session id", evidence=[anew[0].line()])


AWAY = Scene("redirect", "the server sends requests to another origin", over=HTTP)


@AWAY.over_http
async def _(endpoint: Endpoint, exchange: Exchange, reply: Reply) -> bool:
    if not is_first_use(endpoint.stand, exchange):
        return False
    await reply.whole(307, location=endpoint.stand.trap)
    return True


@AWAY.judges(REDIRECT, "307 to another origin")
def _(run: Run) -> None:
    run.got_away()
    for each in run.strays:
        if "mcp-session-id" in each.headers or "authorization" in each.headers or each.body:
            raise Broken("the request was sent to the other origin as it was", evidence=[each.line()])
