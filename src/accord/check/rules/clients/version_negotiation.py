"""How a client finds the revision that it shares with a server, where it speaks more than one."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer, ScriptedError
from accord.check.engine.rule import LINE_TRANSPORTS, JudgedItems, NotApplicable, NotObserved, Violation, rule
from accord.errors import UNSUPPORTED_VERSION
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import HANDSHAKE

_SINCE = "2026-07-28"
_RETRIES = 5


@rule(
    "client-opening/legacy-fallback",
    "must",
    role="client",
    at="basic/transports/stdio#backward-compatibility",
    over=LINE_TRANSPORTS,
    cause="Only one error code is taken as the sign of an older server.",
)
def client_opening_legacy_fallback(run: ClientRun) -> None:
    """A client that speaks older revisions too opens them after whatever error an older server gives to its
    first try.
    """
    if "server/discover" not in run.ordinary_run.methods:
        raise NotObserved("the client does not try a newer revision first")
    run.require_ordinary_behavior()


@rule(
    "client-opening/no-older-in-meta",
    "must",
    case="every request",
    role="client",
    at="basic/versioning",
    since=_SINCE,
    cause="The revision of the handshake is written there as well.",
)
def client_opening_no_older_in_meta(runs: Sequence[ClientRun]) -> JudgedItems:
    """A revision that is opened by a handshake does not stand in _meta."""
    for run in runs:
        for each in run.requests():
            if PROTOCOL_VERSION in each.meta:
                yield
                if each.meta[PROTOCOL_VERSION] in HANDSHAKE:
                    raise Violation(f"_meta says {each.meta[PROTOCOL_VERSION]}", evidence=[each.entry.line()])


@rule(
    "client-opening/probe",
    "should",
    case="the first request",
    role="client",
    at="basic/transports/stdio#backward-compatibility",
    since=_SINCE,
    over=LINE_TRANSPORTS,
    cause="The first request is one that an older server might take for its own.",
)
def client_opening_probe(runs: Sequence[ClientRun]) -> JudgedItems:
    """Over stdio, a client that speaks older revisions too asks with server/discover before anything else."""
    first = [run.requests()[0] for run in runs if run.requests()]
    if not any(each.method == "initialize" for run in runs for each in run.requests()) and not any(
        each.method == "server/discover" for each in first
    ):
        raise NotApplicable("nothing shows that the client speaks older revisions")
    for each in first:
        yield
        if each.method != "server/discover":
            raise Violation(f"the first request is {each.method}", evidence=[each.entry.line()])


NO_VERSION_IN_COMMON_SCENARIO = Scenario(
    "no-version-in-common", "the server speaks only a revision that nobody has", since=_SINCE
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
    case="a server of a revision that nobody has",
    at="basic/versioning#protocol-version-negotiation",
    since=_SINCE,
    cause="The error is taken for one that passes.",
)
def client_opening_no_version_in_common(run: ClientRun) -> None:
    """Without a revision in common a client tells so, and neither goes on nor tries for ever."""
    run.require_progress()
    methods = [each.method for each in run.messages_after() if each.method == "tools/call"]
    if methods:
        raise Violation("the client went on without a revision in common", evidence=run.evidence())
    for method in ("server/discover", "tools/list", "initialize"):
        more = len(run.requests(method)) - len(run.ordinary_run.requests(method))
        if more > _RETRIES:
            raise Violation(f"{method} was sent {more} times more than usual", evidence=run.evidence())


OTHER_VERSION_SCENARIO = Scenario(
    "other-version", "the first try is refused, with a list of revisions that holds the client's", since=_SINCE
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
    case="a list with the client's own revision in it",
    at="basic/versioning#protocol-version-negotiation",
    since=_SINCE,
    cause="The list of supported revisions in the error is not read, or the request is repeated as it was.",
)
def client_opening_other_version(run: ClientRun) -> None:
    """Refused for its revision, a client tries one that the server lists and it speaks."""
    run.require_progress()
    if run.requests("initialize"):
        raise Violation(
            "the client fell back to a handshake, although a revision in common was listed", evidence=run.evidence()
        )


def _older_server_scenario(code: int, name: str) -> Scenario:
    """An older server, which answers with this code whatever comes before its handshake."""
    scenario = Scenario(
        f"older-server-{name}",
        f"an older server answers {code} to what it does not know",
        until=_SINCE,
        over=LINE_TRANSPORTS,
    )

    @scenario.on("server/discover")
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        raise ScriptedError(code, "Received request before initialization was complete")

    rule = client_opening_legacy_fallback
    scenario.case(rule, f"an older server that answers {code}")(rule.check)
    return scenario


OLDER_SERVER_INVALID_PARAMS_SCENARIO = _older_server_scenario(-32602, "invalid-params")
OLDER_SERVER_INVALID_REQUEST_SCENARIO = _older_server_scenario(-32600, "invalid-request")
OLDER_SERVER_SERVER_ERROR_SCENARIO = _older_server_scenario(-32000, "server-error")
