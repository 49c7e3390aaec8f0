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
from accord.check.engine.rule import HTTP, CaseVariant, JudgedItems, NotObserved, Violation, rule
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import REVISIONS

_SINCE = "2026-07-28"
_SENDING = ("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages")


@rule(
    "client-http/accept",
    "must",
    case="every POST",
    role="client",
    at=_SENDING,
    over=HTTP,
    cause="Accept is left to the HTTP library, or names only one of them.",
)
def client_http_accept(runs: Sequence[ClientRun]) -> JudgedItems:
    """A POST accepts both application/json and text/event-stream."""
    for run in runs:
        for each in run.posts():
            yield
            accepted = _media_types(each.headers.get("accept", ""))
            if not {"application/json", "text/event-stream"} <= accepted:
                raise Violation(f"a POST accepts {', '.join(sorted(accepted)) or 'nothing'}", evidence=[each.line()])


@rule(
    "client-http/content-type",
    "should",
    case="every POST",
    role="client",
    at=_SENDING,
    over=HTTP,
    cause="The body is sent as text, or as a form.",
)
def client_http_content_type(runs: Sequence[ClientRun]) -> JudgedItems:
    """A POST says that its body is application/json."""
    for run in runs:
        for each in run.posts():
            yield
            if "application/json" not in _media_types(each.headers.get("content-type", "")):
                raise Violation(f"a POST has the type {each.headers.get('content-type')!r}", evidence=[each.line()])


@rule(
    "client-http/one-endpoint",
    "must",
    case="every request",
    role="client",
    at=_SENDING,
    over=HTTP,
    cause="Messages go to a path that is made up, or by another verb.",
)
def client_http_one_endpoint(runs: Sequence[ClientRun]) -> JudgedItems:
    """Every message is a POST of its own, to the MCP endpoint."""
    for run in runs:
        for each in run.exchanges:
            if any("jsonrpc" in one for one in messages_in(each)):
                yield
                if each.verb != "POST" or each.path != PATH:
                    raise Violation(f"a message came by {each.verb} {each.path}", evidence=[each.line()])


@rule(
    "client-http/get-accept",
    "must",
    case="every GET",
    role="client",
    at="basic/transports#listening-for-messages-from-the-server",
    until=_SINCE,
    over=HTTP,
    cause="The GET has the headers of any other request.",
)
def client_http_get_accept(runs: Sequence[ClientRun]) -> JudgedItems:
    """A GET accepts text/event-stream."""
    for run in runs:
        for each in run.exchanges:
            if each.verb == "GET" and each.path == PATH:
                yield
                if "text/event-stream" not in _media_types(each.headers.get("accept", "")):
                    raise Violation(f"a GET accepts {each.headers.get('accept')!r}", evidence=[each.line()])


@rule(
    "client-http/protocol-version",
    "must",
    variants=[CaseVariant("every request after the handshake", until=_SINCE)],
    role="client",
    at=("basic/transports#protocol-version-header", "basic/transports/streamable-http#protocol-version-header"),
    since="2025-06-18",
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)
def client_http_protocol_version(runs: Sequence[ClientRun]) -> JudgedItems:
    """MCP-Protocol-Version goes with every request after the handshake; where there is none, with every request."""
    for run in runs:
        for each in in_session(run):
            yield
            version = each.headers.get("mcp-protocol-version")
            if version not in REVISIONS:
                text = f"{describe_exchange(each)} has the MCP-Protocol-Version {version!r}"
                raise Violation(text, evidence=[each.line()])


@client_http_protocol_version.case("every request", since=_SINCE)
def client_http_protocol_version_protocol_version_request(runs: Sequence[ClientRun]) -> JudgedItems:
    for run in runs:
        for each in run.posts():
            for body in requests_in(each):
                yield
                meta = (body.get("params") or {}).get("_meta") or {}
                if each.headers.get("mcp-protocol-version") != meta.get(PROTOCOL_VERSION):
                    entry = each.headers.get("mcp-protocol-version")
                    text = f"MCP-Protocol-Version is {entry!r}, _meta says {meta.get(PROTOCOL_VERSION)!r}"
                    raise Violation(text, evidence=[each.line(), f"← {each.body.decode(errors='replace')}"])


@rule(
    "client-http/agreed-version",
    "should",
    case="every request after the handshake",
    role="client",
    at="basic/transports#protocol-version-header",
    since="2025-06-18",
    until=_SINCE,
    over=HTTP,
    cause="It is the revision that was asked for.",
)
def client_http_agreed_version(runs: Sequence[ClientRun]) -> JudgedItems:
    """MCP-Protocol-Version is the revision that was agreed in the handshake."""
    for run in runs:
        for each in in_session(run):
            if "mcp-protocol-version" in each.headers:
                yield
                if each.headers["mcp-protocol-version"] != run.revision:
                    text = f"{run.revision} was agreed, the header says {each.headers['mcp-protocol-version']!r}"
                    raise Violation(text, evidence=[each.line()])


NO_GET_SCENARIO = Scenario("no-get", "a server without a stream of its own", until=_SINCE, over=HTTP)


@NO_GET_SCENARIO.on_http
async def serve_no_get(endpoint: ScriptedHTTPServer, exchange: ClientExchange, response: ScriptedResponse) -> bool:
    if exchange.verb != "GET":
        return False
    await response.send(405, allow="POST, DELETE")
    return True


@NO_GET_SCENARIO.rule(
    "client-http/no-get",
    "must",
    case="405 for a GET",
    at="basic/transports#listening-for-messages-from-the-server",
    until=_SINCE,
    over=HTTP,
    cause="405 is an error that ends the connection.",
)
def client_http_no_get(run: ClientRun) -> None:
    """A server without a stream of its own (405) is used like any other."""
    run.require_ordinary_behavior()


def _media_types(header: str) -> set[str]:
    """The types that a header names, without parameters."""
    return {part.partition(";")[0].strip().lower() for part in header.split(",")} - {""}


@rule(
    "client-http/session-id",
    "must",
    case="every request after the handshake",
    role="client",
    at="basic/transports#session-management",
    until=_SINCE,
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)
def client_http_session_id(runs: Sequence[ClientRun]) -> JudgedItems:
    """The session id that came with the answer to initialize goes with every request that follows."""
    for run in runs:
        issued = {
            each.response_headers["mcp-session-id"]
            for each in run.exchanges
            if "mcp-session-id" in each.response_headers
        }
        for each in in_session(run):
            yield
            if each.headers.get("mcp-session-id") not in issued:
                raise Violation(f"{describe_exchange(each)} came without the session id", evidence=[each.line()])


@rule(
    "client-http/session-delete",
    "should",
    case="sessions of clients that end by themselves",
    role="client",
    at="basic/transports#session-management",
    until=_SINCE,
    over=HTTP,
    cause="The client just goes away.",
)
def client_http_session_delete(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client that does not need its session any more ends it with DELETE."""
    (run,) = [run for run in runs if run.ordinary_run is run]
    issued = [
        each.response_headers["mcp-session-id"] for each in run.exchanges if "mcp-session-id" in each.response_headers
    ]
    deleted = {each.headers.get("mcp-session-id") for each in run.exchanges if each.verb == "DELETE"}
    if not issued or run.ending != "itself":
        raise NotObserved("the client did not end by itself")
    if not set(issued) <= deleted:
        raise Violation("the session was not ended", evidence=[each.line() for each in run.exchanges[-3:]])
    yield from issued


SESSION_ENDED_SCENARIO = Scenario("session-ended", "the server has forgotten the session", until=_SINCE, over=HTTP)


@SESSION_ENDED_SCENARIO.on_http
async def serve_session_ended(
    endpoint: ScriptedHTTPServer, exchange: ClientExchange, response: ScriptedResponse
) -> bool:
    if not is_first_use(endpoint.server, exchange) or not endpoint.end_session(exchange):
        return False
    await response.send(404)
    return True


@SESSION_ENDED_SCENARIO.rule(
    "client-http/session-ended",
    "must",
    case="404 for a request with a session id",
    at="basic/transports#session-management",
    until=_SINCE,
    over=HTTP,
    cause="404 is an error like any other, or the old id goes with the new initialize.",
)
def client_http_session_ended(run: ClientRun) -> None:
    """A client whose session has ended (404) opens another by initialize, without a session id."""
    run.require_progress()
    anew = [each for each in initialize_posts(run) if each.at > (run.intervened_at or 0)]
    if not anew:
        raise Violation("no new session was opened", evidence=[each.line() for each in run.exchanges[-4:]])
    if "mcp-session-id" in anew[0].headers:
        raise Violation("the new initialize has the old session id", evidence=[anew[0].line()])


REDIRECT_SCENARIO = Scenario("redirect", "the server sends requests to another origin", over=HTTP)


@REDIRECT_SCENARIO.on_http
async def serve_redirect(endpoint: ScriptedHTTPServer, exchange: ClientExchange, response: ScriptedResponse) -> bool:
    if not is_first_use(endpoint.server, exchange):
        return False
    await response.send(307, location=endpoint.server.trap_url)
    return True


@REDIRECT_SCENARIO.rule(
    "client-http/redirect",
    "should",
    case="307 to another origin",
    at="basic/transports#session-management",
    over=HTTP,
    cause="The HTTP library follows redirects by itself, with all headers.",
)
def client_http_redirect(run: ClientRun) -> None:
    """A redirect to another origin does not carry the session, or what was to be said in it, away."""
    run.require_progress()
    for each in run.stray_requests:
        if "mcp-session-id" in each.headers or "authorization" in each.headers or each.body:
            raise Violation("the request was sent to the other origin as it was", evidence=[each.line()])
