"""Streamable HTTP as a client speaks it: the verbs, and the headers that every request has.

Sessions over HTTP: their id goes with every request and nowhere else, and an end is followed by a new beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.http_listener import ClientExchange, ScriptedResponse
from accord.check.clients.http_requests import (
    describe_exchange,
    in_session,
    initialize_posts,
    is_first_use,
    messages_in,
    requests_in,
)
from accord.check.clients.http_server import ScriptedHTTPServer
from accord.check.clients.run import PATH, ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.engine.rule import HTTP, NotObserved, Rule, Violation
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import REVISIONS

_SINCE = "2026-07-28"
_SENDING = ("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages")

ACCEPT = Rule(
    "client-http/accept",
    "must",
    "A POST accepts both application/json and text/event-stream.",
    at=_SENDING,
    role="client",
    over=HTTP,
    cause="Accept is left to the HTTP library, or names only one of them.",
)

CONTENT_TYPE = Rule(
    "client-http/content-type",
    "should",
    "A POST says that its body is application/json.",
    at=_SENDING,
    role="client",
    over=HTTP,
    cause="The body is sent as text, or as a form.",
)

ONE_ENDPOINT = Rule(
    "client-http/one-endpoint",
    "must",
    "Every message is a POST of its own, to the MCP endpoint.",
    at=_SENDING,
    role="client",
    over=HTTP,
    cause="Messages go to a path that is made up, or by another verb.",
)

GET_ACCEPT = Rule(
    "client-http/get-accept",
    "must",
    "A GET accepts text/event-stream.",
    at="basic/transports#listening-for-messages-from-the-server",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="The GET has the headers of any other request.",
)

PROTOCOL_VERSION_RULE = Rule(
    "client-http/protocol-version",
    "must",
    "MCP-Protocol-Version goes with every request after the handshake; where there is none, with every request.",
    at=("basic/transports#protocol-version-header", "basic/transports/streamable-http#protocol-version-header"),
    role="client",
    since="2025-06-18",
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)

AGREED_VERSION = Rule(
    "client-http/agreed-version",
    "should",
    "MCP-Protocol-Version is the revision that was agreed in the handshake.",
    at="basic/transports#protocol-version-header",
    role="client",
    since="2025-06-18",
    until=_SINCE,
    over=HTTP,
    cause="It is the revision that was asked for.",
)

NO_GET = Rule(
    "client-http/no-get",
    "must",
    "A server without a stream of its own (405) is used like any other.",
    at="basic/transports#listening-for-messages-from-the-server",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="405 is an error that ends the connection.",
)


@ACCEPT.reading("every POST")
def read_accept(runs: Sequence[ClientRun]) -> int:
    posts = [each for run in runs for each in run.posts()]
    for each in posts:
        accepted = _media_types(each.headers.get("accept", ""))
        if not {"application/json", "text/event-stream"} <= accepted:
            raise Violation(f"a POST accepts {', '.join(sorted(accepted)) or 'nothing'}", evidence=[each.line()])
    return len(posts)


@CONTENT_TYPE.reading("every POST")
def read_content_type(runs: Sequence[ClientRun]) -> int:
    posts = [each for run in runs for each in run.posts()]
    for each in posts:
        if "application/json" not in _media_types(each.headers.get("content-type", "")):
            raise Violation(f"a POST has the type {each.headers.get('content-type')!r}", evidence=[each.line()])
    return len(posts)


@ONE_ENDPOINT.reading("every request")
def read_one_endpoint(runs: Sequence[ClientRun]) -> int:
    carrying = [each for run in runs for each in run.exchanges if any("jsonrpc" in one for one in messages_in(each))]
    for each in carrying:
        if each.verb != "POST" or each.path != PATH:
            raise Violation(f"a message came by {each.verb} {each.path}", evidence=[each.line()])
    return len(carrying)


@GET_ACCEPT.reading("every GET")
def read_get_accept(runs: Sequence[ClientRun]) -> int:
    gets = [each for run in runs for each in run.exchanges if each.verb == "GET" and each.path == PATH]
    for each in gets:
        if "text/event-stream" not in _media_types(each.headers.get("accept", "")):
            raise Violation(f"a GET accepts {each.headers.get('accept')!r}", evidence=[each.line()])
    return len(gets)


@PROTOCOL_VERSION_RULE.reading("every request after the handshake", until=_SINCE)
def read_protocol_version_request_handshake(runs: Sequence[ClientRun]) -> int:
    later = [each for run in runs for each in in_session(run)]
    for each in later:
        if each.headers.get("mcp-protocol-version") not in REVISIONS:
            text = (
                f"{describe_exchange(each)} has the MCP-Protocol-Version {each.headers.get('mcp-protocol-version')!r}"
            )
            raise Violation(text, evidence=[each.line()])
    return len(later)


@PROTOCOL_VERSION_RULE.reading("every request", since=_SINCE)
def read_protocol_version_request(runs: Sequence[ClientRun]) -> int:
    judged = 0
    for run in runs:
        for each in run.posts():
            for body in requests_in(each):
                judged += 1
                meta = (body.get("params") or {}).get("_meta") or {}
                if each.headers.get("mcp-protocol-version") != meta.get(PROTOCOL_VERSION):
                    said = each.headers.get("mcp-protocol-version")
                    text = f"MCP-Protocol-Version is {said!r}, _meta says {meta.get(PROTOCOL_VERSION)!r}"
                    raise Violation(text, evidence=[each.line(), f"← {each.body.decode(errors='replace')}"])
    return judged


@AGREED_VERSION.reading("every request after the handshake")
def read_agreed_version(runs: Sequence[ClientRun]) -> int:
    later = [(run, each) for run in runs for each in in_session(run) if "mcp-protocol-version" in each.headers]
    for run, each in later:
        if each.headers["mcp-protocol-version"] != run.revision:
            text = f"{run.revision} was agreed, the header says {each.headers['mcp-protocol-version']!r}"
            raise Violation(text, evidence=[each.line()])
    return len(later)


NO_GET_SCENARIO = Scenario("no-get", "a server without a stream of its own", until=_SINCE, over=HTTP)


@NO_GET_SCENARIO.on_http
async def serve_no_get(endpoint: ScriptedHTTPServer, exchange: ClientExchange, reply: ScriptedResponse) -> bool:
    if exchange.verb != "GET":
        return False
    await reply.send(405, allow="POST, DELETE")
    return True


@NO_GET_SCENARIO.case(NO_GET, "405 for a GET")
def check_no_get(run: ClientRun) -> None:
    run.require_ordinary_behavior()


def _media_types(header: str) -> set[str]:
    """The types that a header names, without parameters."""
    return {part.partition(";")[0].strip().lower() for part in header.split(",")} - {""}


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
