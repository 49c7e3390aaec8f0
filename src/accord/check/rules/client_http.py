"""Streamable HTTP as a client speaks it: the verbs, the headers, and the session."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.endpoint import Endpoint
from accord.check.clients.run import PATH, Run
from accord.check.clients.scene import Scene
from accord.check.clients.web import Exchange, Reply
from accord.check.record import decoded, objects
from accord.check.rule import HTTP, Broken, NotObserved, Rule
from accord.messages.base import JSONObject
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

CONTENT = Rule(
    "client-http/content-type",
    "should",
    "A POST says that its body is application/json.",
    at=_SENDING,
    role="client",
    over=HTTP,
    cause="The body is sent as text, or as a form.",
)

POST = Rule(
    "client-http/one-endpoint",
    "must",
    "Every message is a POST of its own, to the MCP endpoint.",
    at=_SENDING,
    role="client",
    over=HTTP,
    cause="Messages go to a path that is made up, or by another verb.",
)

GET = Rule(
    "client-http/get-accept",
    "must",
    "A GET accepts text/event-stream.",
    at="basic/transports#listening-for-messages-from-the-server",
    role="client",
    until=_SINCE,
    over=HTTP,
    cause="The GET has the headers of any other request.",
)

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

VERSION = Rule(
    "client-http/protocol-version",
    "must",
    "MCP-Protocol-Version goes with every request after the handshake; where there is none, with every request.",
    at=("basic/transports#protocol-version-header", "basic/transports/streamable-http#protocol-version-header"),
    role="client",
    since="2025-06-18",
    over=HTTP,
    cause="The header is sent with POST only, or not at all.",
)

AGREED = Rule(
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

REDIRECT = Rule(
    "client-http/redirect",
    "should",
    "A redirect to another origin does not carry the session, or what was to be said in it, away.",
    at="basic/transports#session-management",
    role="client",
    over=HTTP,
    cause="The HTTP library follows redirects by itself, with all headers.",
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
def _(runs: Sequence[Run]) -> int:
    posts = [each for run in runs for each in run.posts()]
    for each in posts:
        accepted = _media(each.headers.get("accept", ""))
        if not {"application/json", "text/event-stream"} <= accepted:
            raise Broken(f"a POST accepts {', '.join(sorted(accepted)) or 'nothing'}", evidence=[each.line()])
    return len(posts)


@CONTENT.reading("every POST")
def _(runs: Sequence[Run]) -> int:
    posts = [each for run in runs for each in run.posts()]
    for each in posts:
        if "application/json" not in _media(each.headers.get("content-type", "")):
            raise Broken(f"a POST has the type {each.headers.get('content-type')!r}", evidence=[each.line()])
    return len(posts)


@POST.reading("every request")
def _(runs: Sequence[Run]) -> int:
    carrying = [each for run in runs for each in run.exchanges if any("jsonrpc" in one for one in _bodies(each))]
    for each in carrying:
        if each.verb != "POST" or each.path != PATH:
            raise Broken(f"a message came by {each.verb} {each.path}", evidence=[each.line()])
    return len(carrying)


@GET.reading("every GET")
def _(runs: Sequence[Run]) -> int:
    gets = [each for run in runs for each in run.exchanges if each.verb == "GET" and each.path == PATH]
    for each in gets:
        if "text/event-stream" not in _media(each.headers.get("accept", "")):
            raise Broken(f"a GET accepts {each.headers.get('accept')!r}", evidence=[each.line()])
    return len(gets)


@SESSION.reading("every request after the handshake")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        issued = {each.answered["mcp-session-id"] for each in run.exchanges if "mcp-session-id" in each.answered}
        for each in _later(run):
            judged += 1
            if each.headers.get("mcp-session-id") not in issued:
                raise Broken(f"{_what(each)} came without the session id", evidence=[each.line()])
    return judged


@VERSION.reading("every request after the handshake", until=_SINCE)
def _(runs: Sequence[Run]) -> int:
    later = [each for run in runs for each in _later(run)]
    for each in later:
        if each.headers.get("mcp-protocol-version") not in REVISIONS:
            text = f"{_what(each)} has the MCP-Protocol-Version {each.headers.get('mcp-protocol-version')!r}"
            raise Broken(text, evidence=[each.line()])
    return len(later)


@VERSION.reading("every request", since=_SINCE)
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        for each in run.posts():
            for body in _requests(each):
                judged += 1
                meta = (body.get("params") or {}).get("_meta") or {}
                if each.headers.get("mcp-protocol-version") != meta.get(PROTOCOL_VERSION):
                    said = each.headers.get("mcp-protocol-version")
                    text = f"MCP-Protocol-Version is {said!r}, _meta says {meta.get(PROTOCOL_VERSION)!r}"
                    raise Broken(text, evidence=[each.line(), f"← {each.body.decode(errors='replace')}"])
    return judged


@AGREED.reading("every request after the handshake")
def _(runs: Sequence[Run]) -> int:
    later = [(run, each) for run in runs for each in _later(run) if "mcp-protocol-version" in each.headers]
    for run, each in later:
        if each.headers["mcp-protocol-version"] != run.revision:
            text = f"{run.revision} was agreed, the header says {each.headers['mcp-protocol-version']!r}"
            raise Broken(text, evidence=[each.line()])
    return len(later)


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


# --- a session that ends -----------------------------------------------------------------------------------------

LOST = Scene("session-ended", "the server has forgotten the session", until=_SINCE, over=HTTP)


@LOST.over_http
async def _(endpoint: Endpoint, exchange: Exchange, reply: Reply) -> bool:
    if not _is_first_use(endpoint, exchange) or not endpoint.forget(exchange):
        return False
    await reply.whole(404)
    return True


@LOST.judges(ENDED, "404 for a request with a session id")
def _(run: Run) -> None:
    run.got_away()
    anew = [each for each in _openings(run) if each.at > (run.turned_at or 0)]
    if not anew:
        raise Broken("no new session was opened", evidence=[each.line() for each in run.exchanges[-4:]])
    if "mcp-session-id" in anew[0].headers:
        raise Broken("the new initialize has the old session id", evidence=[anew[0].line()])


AWAY = Scene("redirect", "the server sends requests to another origin", over=HTTP)


@AWAY.over_http
async def _(endpoint: Endpoint, exchange: Exchange, reply: Reply) -> bool:
    if not _is_first_use(endpoint, exchange):
        return False
    await reply.whole(307, location=endpoint.stand.trap)
    return True


@AWAY.judges(REDIRECT, "307 to another origin")
def _(run: Run) -> None:
    run.got_away()
    for each in run.strays:
        if "mcp-session-id" in each.headers or "authorization" in each.headers or each.body:
            raise Broken("the request was sent to the other origin as it was", evidence=[each.line()])


DEAF = Scene("no-get", "a server without a stream of its own", until=_SINCE, over=HTTP)


@DEAF.over_http
async def _(endpoint: Endpoint, exchange: Exchange, reply: Reply) -> bool:
    if exchange.verb != "GET":
        return False
    await reply.whole(405, allow="POST, DELETE")
    return True


@DEAF.judges(NO_GET, "405 for a GET")
def _(run: Run) -> None:
    run.as_usual()


def _is_first_use(endpoint: Endpoint, exchange: Exchange) -> bool:
    """Whether it is the first request for what a server has."""
    used = any(each.get("method") in _USES for each in _requests(exchange))
    return used and endpoint.stand.once("use")


_USES = frozenset(("tools/list", "tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get"))


def _later(run: Run) -> list[Exchange]:
    """What came to the endpoint after the handshake, but another handshake, and tries of a newer revision."""
    opened = run.opened_at()
    if run.agreed != run.revision:  # there is no revision that the headers could name
        return []
    return [
        each
        for each in run.exchanges
        if each.at > opened
        and each.path == PATH
        and not any(one.get("method") == "initialize" or _has_revision(one) for one in _bodies(each))
    ]


def _openings(run: Run) -> list[Exchange]:
    return [each for each in run.posts() if any(one.get("method") == "initialize" for one in _bodies(each))]


def _has_revision(body: JSONObject) -> bool:
    params = body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta


def _bodies(exchange: Exchange) -> list[JSONObject]:
    return [*objects(decoded(exchange.body))]


def _requests(exchange: Exchange) -> list[JSONObject]:
    return [each for each in _bodies(exchange) if "method" in each and "id" in each]


def _what(exchange: Exchange) -> str:
    methods = [str(each.get("method", "an answer")) for each in _bodies(exchange)]
    return methods[0] if methods else exchange.verb


def _media(header: str) -> set[str]:
    """The types that a header names, without parameters."""
    return {part.partition(";")[0].strip().lower() for part in header.split(",")} - {""}
