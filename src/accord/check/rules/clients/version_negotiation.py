"""Version negotiation by a client that supports several revisions."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer, ScriptedError
from accord.check.engine.rule import LINE_TRANSPORTS, JudgedItems, NotApplicable, NotObserved, Violation, client_rule
from accord.errors import UNSUPPORTED_VERSION
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import HANDSHAKE

_SINCE = "2026-07-28"
_RETRIES = 5


@client_rule(
    "client-opening/legacy-fallback",
    "must",
    at="basic/transports/stdio#backward-compatibility",
    over=LINE_TRANSPORTS,
    cause="Only one error code is taken for an older server.",
)
def client_opening_legacy_fallback(run: ClientRun) -> None:
    """A client with older revisions sends initialize after any error of an older server for its first request."""
    if "server/discover" not in run.ordinary_run.methods:
        raise NotObserved("the client does not try a newer revision first")
    run.require_ordinary_behavior()


@client_rule(
    "client-opening/no-older-in-meta",
    "must",
    case="all requests",
    at="basic/versioning",
    since=_SINCE,
    cause="The negotiated revision is written there as well.",
)
def client_opening_no_older_in_meta(runs: Sequence[ClientRun]) -> JudgedItems:
    """A revision with a handshake is not in `_meta`."""
    for run in runs:
        for each in run.requests():
            if PROTOCOL_VERSION in each.meta:
                yield
                if each.meta[PROTOCOL_VERSION] in HANDSHAKE:
                    raise Violation(f"_meta has {each.meta[PROTOCOL_VERSION]}", evidence=[each.entry.line()])


@client_rule(
    "client-opening/probe",
    "should",
    case="the first request",
    at="basic/transports/stdio#backward-compatibility",
    since=_SINCE,
    over=LINE_TRANSPORTS,
    cause="The first request is one that an older server may process.",
)
def client_opening_probe(runs: Sequence[ClientRun]) -> JudgedItems:
    """Over stdio, the first request of a client with older revisions is server/discover."""
    first = [run.requests()[0] for run in runs if run.requests()]
    if not any(each.method == "initialize" for run in runs for each in run.requests()) and not any(
        each.method == "server/discover" for each in first
    ):
        raise NotApplicable("nothing shows that the client supports older revisions")
    for each in first:
        yield
        if each.method != "server/discover":
            raise Violation(f"the first request is {each.method}", evidence=[each.entry.line()])


NO_VERSION_IN_COMMON_SCENARIO = Scenario(
    "no-version-in-common", "the server supports only an unknown revision", since=_SINCE
)


@NO_VERSION_IN_COMMON_SCENARIO.on("initialize", "server/discover", "tools/list", FIRST_REQUEST)
async def answer_no_version_in_common(request: IncomingRequest) -> ScriptedAnswer:
    data = {
        "supported": ["2999-01-01"],
        "requested": request.meta.get(PROTOCOL_VERSION, request.params.get("protocolVersion")),
    }
    raise ScriptedError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


@NO_VERSION_IN_COMMON_SCENARIO.rule(
    "client-opening/no-version-in-common",
    "should",
    case="a server with an unknown revision",
    at="basic/versioning#protocol-version-negotiation",
    since=_SINCE,
    cause="The error is taken for a temporary one.",
)
def client_opening_no_version_in_common(run: ClientRun) -> None:
    """Without a common revision, a client reports an error, and neither continues nor retries forever."""
    run.require_progress()
    methods = [each.method for each in run.messages_after() if each.method == "tools/call"]
    if methods:
        raise Violation("the client continued without a common revision", evidence=run.evidence())
    for method in ("server/discover", "tools/list", "initialize"):
        more = len(run.requests(method)) - len(run.ordinary_run.requests(method))
        if more > _RETRIES:
            raise Violation(f"the client sent {method} {more} times more than usual", evidence=run.evidence())


OTHER_VERSION_SCENARIO = Scenario(
    "other-version", "the first request is refused, with a list of revisions that has the client's", since=_SINCE
)


@OTHER_VERSION_SCENARIO.on("server/discover", FIRST_REQUEST)
async def answer_other_version(request: IncomingRequest) -> ScriptedAnswer:
    if request.conversation.server.is_first_time("other-version"):
        data = {"supported": ["2999-01-01", request.conversation.server.revision], "requested": "1999-01-01"}
        raise ScriptedError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return await request.default_result()


@OTHER_VERSION_SCENARIO.rule(
    "client-opening/other-version",
    "should",
    case="a list with the revision of the client",
    at="basic/versioning#protocol-version-negotiation",
    since=_SINCE,
    cause="The list of supported revisions in the error is not read, or the request is repeated without changes.",
)
def client_opening_other_version(run: ClientRun) -> None:
    """After an error for its revision, a client uses a listed revision that it supports."""
    run.require_progress()
    if run.requests("initialize"):
        raise Violation(
            "the client fell back to a handshake, but the server listed a common revision", evidence=run.evidence()
        )


def _older_server_scenario(code: int, name: str) -> Scenario:
    """Return a scenario with an older server, which returns this error before its handshake."""
    scenario = Scenario(
        f"older-server-{name}",
        f"an older server returns {code} for unknown requests",
        until=_SINCE,
        over=LINE_TRANSPORTS,
    )

    @scenario.on("server/discover")
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        raise ScriptedError(code, "Received request before initialization was complete")

    rule = client_opening_legacy_fallback
    scenario.case(rule, f"an older server that returns {code}")(rule.check)
    return scenario


OLDER_SERVER_INVALID_PARAMS_SCENARIO = _older_server_scenario(-32602, "invalid-params")
OLDER_SERVER_INVALID_REQUEST_SCENARIO = _older_server_scenario(-32600, "invalid-request")
OLDER_SERVER_SERVER_ERROR_SCENARIO = _older_server_scenario(-32000, "server-error")
