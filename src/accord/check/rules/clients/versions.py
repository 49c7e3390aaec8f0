"""How a client finds the revision that it shares with a server, where it speaks more than one."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run
from accord.check.clients.scene import FIRST, Answer, Refuse, Scene
from accord.check.rule import LINES, Broken, NotApplicable, NotObserved, Rule
from accord.errors import UNSUPPORTED_VERSION
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import HANDSHAKE

_SINCE = "2026-07-28"
_RETRIES = 5

OLDER = Rule(
    "client-opening/no-older-in-meta",
    "must",
    "A revision that is opened by a handshake does not stand in _meta.",
    at="basic/versioning",
    role="client",
    since=_SINCE,
    cause="The revision of the handshake is written there as well.",
)

IN_COMMON = Rule(
    "client-opening/other-version",
    "should",
    "Refused for its revision, a client tries one that the server lists and it speaks.",
    at="basic/versioning#protocol-version-negotiation",
    role="client",
    since=_SINCE,
    cause="The list of supported revisions in the error is not read, or the request is repeated as it was.",
)

NONE = Rule(
    "client-opening/no-version-in-common",
    "should",
    "Without a revision in common a client tells so, and neither goes on nor tries for ever.",
    at="basic/versioning#protocol-version-negotiation",
    role="client",
    since=_SINCE,
    cause="The error is taken for one that passes.",
)

PROBE = Rule(
    "client-opening/probe",
    "should",
    "Over stdio, a client that speaks older revisions too asks with server/discover before anything else.",
    at="basic/transports/stdio#backward-compatibility",
    role="client",
    since=_SINCE,
    over=LINES,
    cause="The first request is one that an older server might take for its own.",
)

FALLBACK = Rule(
    "client-opening/legacy-fallback",
    "must",
    "A client that speaks older revisions too opens them after whatever error an older server gives to its first try.",
    at="basic/transports/stdio#backward-compatibility",
    role="client",
    over=LINES,
    cause="Only one error code is taken as the sign of an older server.",
)


@OLDER.reading("every request")
def _(runs: Sequence[Run]) -> int:
    requests = [each for run in runs for each in run.requests() if PROTOCOL_VERSION in each.meta]
    for each in requests:
        if each.meta[PROTOCOL_VERSION] in HANDSHAKE:
            raise Broken(f"_meta says {each.meta[PROTOCOL_VERSION]}", evidence=[each.said.line()])
    return len(requests)


@PROBE.reading("the first request")
def _(runs: Sequence[Run]) -> int:
    first = [run.requests()[0] for run in runs if run.requests()]
    if not any(each.method == "initialize" for run in runs for each in run.requests()) and not any(
        each.method == "server/discover" for each in first
    ):
        raise NotApplicable("nothing shows that the client speaks older revisions")
    for each in first:
        if each.method != "server/discover":
            raise Broken(f"the first request is {each.method}", evidence=[each.said.line()])
    return len(first)


NONE_IN_COMMON = Scene("no-version-in-common", "the server speaks only a revision that nobody has", since=_SINCE)


@NONE_IN_COMMON.on("initialize", "server/discover", "tools/list", FIRST)
async def _(ask: Ask) -> Answer:
    data = {"supported": ["2999-01-01"], "requested": ask.meta.get(PROTOCOL_VERSION, ask.params.get("protocolVersion"))}
    raise Refuse(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


@NONE_IN_COMMON.judges(NONE, "a server of a revision that nobody has")
def _(run: Run) -> None:
    run.got_away()
    methods = [each.method for each in run.after() if each.method == "tools/call"]
    if methods:
        raise Broken("the client went on without a revision in common", evidence=run.evidence())
    for method in ("server/discover", "tools/list", "initialize"):
        more = len(run.requests(method)) - len(run.usual.requests(method))
        if more > _RETRIES:
            raise Broken(f"{method} was sent {more} times more than usual", evidence=run.evidence())


LATER = Scene(
    "other-version", "the first try is refused, with a list of revisions that holds the client's", since=_SINCE
)


@LATER.on("server/discover", FIRST)
async def _(ask: Ask) -> Answer:
    if ask.conversation.stand.once("other-version"):
        data = {"supported": ["2999-01-01", ask.conversation.stand.revision], "requested": "1999-01-01"}
        raise Refuse(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return await ask.usual()


@LATER.judges(IN_COMMON, "a list with the client's own revision in it")
def _(run: Run) -> None:
    run.got_away()
    if run.requests("initialize"):
        raise Broken(
            "the client fell back to a handshake, although a revision in common was listed", evidence=run.evidence()
        )


def _legacy(code: int, name: str) -> Scene:
    """An older server, which answers with this code whatever comes before its handshake."""
    scene = Scene(
        f"older-server-{name}", f"an older server answers {code} to what it does not know", until=_SINCE, over=LINES
    )

    @scene.on("server/discover")
    async def _(ask: Ask) -> Answer:
        raise Refuse(code, "Received request before initialization was complete")

    @scene.judges(FALLBACK, f"an older server that answers {code}")
    def _(run: Run) -> None:
        if "server/discover" not in run.usual.methods:
            raise NotObserved("the client does not try a newer revision first")
        run.as_usual()

    return scene


INVALID_PARAMS = _legacy(-32602, "invalid-params")
INVALID_REQUEST = _legacy(-32600, "invalid-request")
SERVER_ERROR = _legacy(-32000, "server-error")
