"""Streamable HTTP of a client: methods, headers, sessions and redirects."""

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
from accord.check.engine.rule import HTTP, CaseVariant, JudgedItems, NotObserved, Violation, client_rule
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import REVISIONS

_SINCE = "2026-07-28"
_SENDING = ("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages")


@client_rule(
    "client-http/accept",
    "must",
    case="all POST requests",
    at=_SENDING,
    over=HTTP,
    cause="Accept is left to the HTTP library, or has only one of the two types.",
)
def client_http_accept(runs: Sequence[ClientRun]) -> JudgedItems:
    """The Accept header of a POST has application/json and text/event-stream."""
    for run in runs:
        for each in run.posts():
            yield
            accepted = _media_types(each.headers.get("accept", ""))
            if not {"application/json", "text/event-stream"} <= accepted:
                raise Violation(f"a POST accepts {', '.join(sorted(accepted)) or 'nothing'}", evidence=[each.line()])


@client_rule(
    "client-http/content-type",
    "should",
    case="all POST requests",
    at=_SENDING,
    over=HTTP,
    cause="The body is sent as text, or as a form.",
)
def client_http_content_type(runs: Sequence[ClientRun]) -> JudgedItems:
    """The content type of a POST is application/json."""
    for run in runs:
        for each in run.posts():
            yield
            if "application/json" not in _media_types(each.headers.get("content-type", "")):
                raise Violation(
                    f"the content type of a POST is {each.headers.get('content-type')!r}", evidence=[each.line()]
                )


@client_rule(
    "client-http/one-endpoint",
    "must",
    case="all requests",
    at=_SENDING,
    over=HTTP,
    cause="Messages are sent to another path, or by another method.",
)
def client_http_one_endpoint(runs: Sequence[ClientRun]) -> JudgedItems:
    """Each message is one POST to the MCP endpoint."""
    for run in runs:
        for each in run.exchanges:
            if any("jsonrpc" in one for one in messages_in(each)):
                yield
                if each.verb != "POST" or each.path != PATH:
                    raise Violation(f"a message was sent by {each.verb} {each.path}", evidence=[each.line()])


@client_rule(
    "client-http/get-accept",
    "must",
    case="all GET requests",
    at="basic/transports#listening-for-messages-from-the-server",
    until=_SINCE,
    over=HTTP,
    cause="The GET has the headers of other requests.",
)
def client_http_get_accept(runs: Sequence[ClientRun]) -> JudgedItems:
    """The Accept header of a GET has text/event-stream."""
    for run in runs:
        for each in run.exchanges:
            if each.verb == "GET" and each.path == PATH:
                yield
                if "text/event-stream" not in _media_types(each.headers.get("accept", "")):
                    raise Violation(f"a GET accepts {each.headers.get('accept')!r}", evidence=[each.line()])


@client_rule(
    "client-http/protocol-version",
    "must",
    variants=[CaseVariant("all requests after the handshake", until=_SINCE)],
    at=("basic/transports#protocol-version-header", "basic/transports/streamable-http#protocol-version-header"),
    since="2025-06-18",
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)
def client_http_protocol_version(runs: Sequence[ClientRun]) -> JudgedItems:
    """All requests have MCP-Protocol-Version, except those of a handshake."""
    for run in runs:
        for each in in_session(run):
            yield
            version = each.headers.get("mcp-protocol-version")
            if version not in REVISIONS:
                text = f"{describe_exchange(each)} has the MCP-Protocol-Version {version!r}"
                raise Violation(text, evidence=[each.line()])


@client_http_protocol_version.case("all requests", since=_SINCE)
def client_http_protocol_version_in_meta(runs: Sequence[ClientRun]) -> JudgedItems:
    for run in runs:
        for each in run.posts():
            for body in requests_in(each):
                yield
                meta = (body.get("params") or {}).get("_meta") or {}
                if each.headers.get("mcp-protocol-version") != meta.get(PROTOCOL_VERSION):
                    entry = each.headers.get("mcp-protocol-version")
                    text = f"MCP-Protocol-Version is {entry!r}, but _meta has {meta.get(PROTOCOL_VERSION)!r}"
                    raise Violation(text, evidence=[each.line(), f"← {each.body.decode(errors='replace')}"])


@client_rule(
    "client-http/agreed-version",
    "should",
    case="all requests after the handshake",
    at="basic/transports#protocol-version-header",
    since="2025-06-18",
    until=_SINCE,
    over=HTTP,
    cause="The requested revision is used instead of the negotiated one.",
)
def client_http_agreed_version(runs: Sequence[ClientRun]) -> JudgedItems:
    """MCP-Protocol-Version is the negotiated revision."""
    for run in runs:
        for each in in_session(run):
            if "mcp-protocol-version" in each.headers:
                yield
                if each.headers["mcp-protocol-version"] != run.revision:
                    text = (
                        f"the negotiated revision is {run.revision}, but the header has "
                        f"{each.headers['mcp-protocol-version']!r}"
                    )
                    raise Violation(text, evidence=[each.line()])


NO_GET_SCENARIO = Scenario("no-get", "a server without a separate stream", until=_SINCE, over=HTTP)


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
    cause="405 is treated as an error of the connection.",
)
def client_http_no_get(run: ClientRun) -> None:
    """A client uses a server without a separate stream (405) like others."""
    run.require_ordinary_behavior()


def _media_types(header: str) -> set[str]:
    """Return the media types of a header, without parameters."""
    return {part.partition(";")[0].strip().lower() for part in header.split(",")} - {""}


@client_rule(
    "client-http/session-id",
    "must",
    case="all requests after the handshake",
    at="basic/transports#session-management",
    until=_SINCE,
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)
def client_http_session_id(runs: Sequence[ClientRun]) -> JudgedItems:
    """All requests after initialize have its session id."""
    for run in runs:
        issued = {
            each.response_headers["mcp-session-id"]
            for each in run.exchanges
            if "mcp-session-id" in each.response_headers
        }
        for each in in_session(run):
            yield
            if each.headers.get("mcp-session-id") not in issued:
                raise Violation(f"{describe_exchange(each)} has no session id", evidence=[each.line()])


@client_rule(
    "client-http/session-delete",
    "should",
    case="sessions of clients that exit on their own",
    at="basic/transports#session-management",
    until=_SINCE,
    over=HTTP,
    cause="The client closes its connections only.",
)
def client_http_session_delete(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client ends its session with DELETE."""
    (run,) = [run for run in runs if run.ordinary_run is run]
    issued = [
        each.response_headers["mcp-session-id"] for each in run.exchanges if "mcp-session-id" in each.response_headers
    ]
    deleted = {each.headers.get("mcp-session-id") for each in run.exchanges if each.verb == "DELETE"}
    if not issued or run.ending != "itself":
        raise NotObserved("the client did not exit on its own")
    if not set(issued) <= deleted:
        raise Violation("the client did not end the session", evidence=[each.line() for each in run.exchanges[-3:]])
    yield from issued


SESSION_ENDED_SCENARIO = Scenario("session-ended", "an expired session", until=_SINCE, over=HTTP)


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
    cause="404 is treated like other errors, or the new initialize has the old id.",
)
def client_http_session_ended(run: ClientRun) -> None:
    """After the end of its session (404), a client sends initialize without a session id."""
    run.require_progress()
    anew = [each for each in initialize_posts(run) if each.at > (run.intervened_at or 0)]
    if not anew:
        raise Violation("the client did not start a new session", evidence=[each.line() for each in run.exchanges[-4:]])
    if "mcp-session-id" in anew[0].headers:
        raise Violation("the new initialize has the old session id", evidence=[anew[0].line()])


REDIRECT_SCENARIO = Scenario("redirect", "a redirect to another origin", over=HTTP)


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
    cause="The HTTP library follows redirects, with all headers.",
)
def client_http_redirect(run: ClientRun) -> None:
    """A client does not send its session id or messages to another origin after a redirect."""
    run.require_progress()
    for each in run.stray_requests:
        if "mcp-session-id" in each.headers or "authorization" in each.headers or each.body:
            raise Violation("the client sent the request to the other origin", evidence=[each.line()])
