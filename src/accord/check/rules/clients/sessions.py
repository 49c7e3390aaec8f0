"""Sessions over HTTP: their id goes with every request and nowhere else, and an end is followed by a new beginning."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.http_listener import ClientExchange, ScriptedResponse
from accord.check.clients.http_requests import describe_exchange, in_session, initialize_posts, is_first_use
from accord.check.clients.http_server import ScriptedHTTPServer
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.rule import HTTP, NotObserved, Rule, Violation

_SINCE = "2026-07-28"

SESSION_ID = Rule(
    "client-http/session-id",
    "must",
    "The session id that came with the answer to initialize goes with every request that follows.",
    at="basic/transports#session-management",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)

SESSION_ENDED = Rule(
    "client-http/session-ended",
    "must",
    "A client whose session has ended (404) opens another by initialize, without a session id.",
    at="basic/transports#session-management",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="404 is an error like any other, or the old id goes with the new initialize.",
)

SESSION_DELETE = Rule(
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


@SESSION_ID.reading("every request after the handshake")
def read_session_id(runs: Sequence[ClientRun]) -> int:
    judged = 0
    for run in runs:
        issued = {
            each.response_headers["mcp-session-id"]
            for each in run.exchanges
            if "mcp-session-id" in each.response_headers
        }
        for each in in_session(run):
            judged += 1
            if each.headers.get("mcp-session-id") not in issued:
                raise Violation(f"{describe_exchange(each)} came without the session id", evidence=[each.line()])
    return judged


@SESSION_DELETE.reading("sessions of clients that end by themselves")
def read_session_delete(runs: Sequence[ClientRun]) -> int:
    (run,) = [run for run in runs if run.ordinary_run is run]
    issued = [
        each.response_headers["mcp-session-id"] for each in run.exchanges if "mcp-session-id" in each.response_headers
    ]
    deleted = {each.headers.get("mcp-session-id") for each in run.exchanges if each.verb == "DELETE"}
    if not issued or run.ending != "itself":
        raise NotObserved("the client did not end by itself")
    if not set(issued) <= deleted:
        raise Violation("the session was not ended", evidence=[each.line() for each in run.exchanges[-3:]])
    return len(issued)


SESSION_ENDED_SCENARIO = Scenario("session-ended", "the server has forgotten the session", until=_SINCE, over=HTTP)


@SESSION_ENDED_SCENARIO.on_http
async def serve_session_ended(endpoint: ScriptedHTTPServer, exchange: ClientExchange, reply: ScriptedResponse) -> bool:
    if not is_first_use(endpoint.server, exchange) or not endpoint.end_session(exchange):
        return False
    await reply.send(404)
    return True


@SESSION_ENDED_SCENARIO.case(SESSION_ENDED, "404 for a request with a session id")
def check_session_ended(run: ClientRun) -> None:
    run.require_progress()
    anew = [each for each in initialize_posts(run) if each.at > (run.intervened_at or 0)]
    if not anew:
        raise Violation("no new session was opened", evidence=[each.line() for each in run.exchanges[-4:]])
    if "mcp-session-id" in anew[0].headers:
        raise Violation("the new initialize has the old session id", evidence=[anew[0].line()])


REDIRECT_SCENARIO = Scenario("redirect", "the server sends requests to another origin", over=HTTP)


@REDIRECT_SCENARIO.on_http
async def serve_redirect(endpoint: ScriptedHTTPServer, exchange: ClientExchange, reply: ScriptedResponse) -> bool:
    if not is_first_use(endpoint.server, exchange):
        return False
    await reply.send(307, location=endpoint.server.trap_url)
    return True


@REDIRECT_SCENARIO.case(REDIRECT, "307 to another origin")
def check_redirect(run: ClientRun) -> None:
    run.require_progress()
    for each in run.stray_requests:
        if "mcp-session-id" in each.headers or "authorization" in each.headers or each.body:
            raise Violation("the request was sent to the other origin as it was", evidence=[each.line()])
