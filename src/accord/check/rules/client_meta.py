"""From 2026-07-28 on: what each request of a client says of itself, and how a client finds the revision it shares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run
from accord.check.clients.scene import FIRST, Answer, Refuse, Scene
from accord.check.rule import LINES, Broken, NotApplicable, NotObserved, Rule
from accord.errors import UNSUPPORTED_VERSION
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from accord.messages.revision import HANDSHAKE

_SINCE = "2026-07-28"
_NAME = re.compile(
    r"([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?"
)
_TRACE = frozenset(("traceparent", "tracestate", "baggage"))
_RETRIES = 5

REQUIRED = Rule(
    "client-meta/required",
    "must",
    "Every request carries the revision and the capabilities of the client in _meta.",
    at="basic#meta",
    role="client",
    since=_SINCE,
    cause="Only the first request says them, as if there were a handshake.",
)

INFO = Rule(
    "client-meta/client-info",
    "should",
    "Every request says in _meta who the client is.",
    at="basic#meta",
    role="client",
    since=_SINCE,
    cause="clientInfo is left out.",
)

ANSWERS = Rule(
    "client-meta/no-responses",
    "must",
    "A client sends no answers: it is asked in results, and answers by asking again.",
    at=("basic/transports/stdio#sending-messages", "basic/transports/streamable-http#sending-messages"),
    role="client",
    since=_SINCE,
    cause="Requests of a server are answered as in older revisions.",
)

NAMES = Rule(
    "client-meta/names",
    "must",
    "The keys in _meta are well formed: a prefix of labels, a slash, and a name.",
    at="basic#meta",
    role="client",
    since="2025-06-18",
    cause="A key has spaces, or begins or ends with a sign.",
)

OLDER = Rule(
    "client-meta/no-older-revision",
    "must",
    "A revision that is opened by a handshake does not stand in _meta.",
    at="basic/versioning",
    role="client",
    since=_SINCE,
    cause="The revision of the handshake is written there as well.",
)

ABSENT = Rule(
    "client-meta/result-type",
    "must",
    "A result without resultType is a complete one.",
    at="basic#resulttype",
    role="client",
    since=_SINCE,
    cause="resultType is required when results are read.",
)

UNKNOWN_TYPE = Rule(
    "client-meta/unknown-result-type",
    "must",
    "A result of an unknown type is an error for whoever asked: the client neither hangs nor asks again for ever.",
    at="basic#resulttype",
    role="client",
    since=_SINCE,
    cause="An unknown resultType is taken as a request for input, or leaves the call without an end.",
)

IN_COMMON = Rule(
    "client-meta/other-version",
    "should",
    "Refused for its revision, a client tries one that the server lists and it speaks, or tells that there is none.",
    at="basic/versioning#protocol-version-negotiation",
    role="client",
    since=_SINCE,
    cause="The list of supported revisions in the error is not read, or the request is repeated as it was.",
)

PROBE = Rule(
    "client-meta/probe",
    "should",
    "Over stdio, a client that speaks older revisions too asks with server/discover before anything else.",
    at="basic/transports/stdio#backward-compatibility",
    role="client",
    since=_SINCE,
    over=LINES,
    cause="The first request is one that an older server might take for its own.",
)

FALLBACK = Rule(
    "client-meta/fallback",
    "must",
    "A client that speaks older revisions too opens them after whatever error an older server gives to its first try.",
    at="basic/transports/stdio#backward-compatibility",
    role="client",
    until="2026-07-28",
    over=LINES,
    cause="Only one error code is taken as the sign of an older server.",
)


@REQUIRED.reading("every request")
def _(runs: Sequence[Run]) -> int:
    requests = [each for run in runs for each in run.requests() if each.method != "initialize"]
    for each in requests:
        if not isinstance(each.meta.get(PROTOCOL_VERSION), str):
            raise Broken(f"{each.method} has no {PROTOCOL_VERSION} in _meta", evidence=[each.said.line()])
        if not isinstance(each.meta.get(CLIENT_CAPABILITIES), dict):
            raise Broken(f"{each.method} has no {CLIENT_CAPABILITIES} in _meta", evidence=[each.said.line()])
    return len(requests)


@INFO.reading("every request")
def _(runs: Sequence[Run]) -> int:
    requests = [each for run in runs for each in run.requests() if each.method != "initialize"]
    for each in requests:
        if not isinstance(each.meta.get(CLIENT_INFO), dict):
            raise Broken(f"{each.method} has no {CLIENT_INFO} in _meta", evidence=[each.said.line()])
    return len(requests)


@ANSWERS.reading("every message")
def _(runs: Sequence[Run]) -> int:
    for run in runs:
        for answer in run.answers():
            raise Broken("the client sent an answer", evidence=run.evidence(answer.said))
    return sum(len(run.requests()) for run in runs)


@NAMES.reading("every _meta")
def _(runs: Sequence[Run]) -> int:
    carrying = [each for run in runs for each in run.messages() if each.meta]
    for each in carrying:
        for name in each.meta:
            if not _NAME.fullmatch(name):
                raise Broken(f"{name!r} is no key for _meta", evidence=[each.said.line()])
    return len(carrying)


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


# --- results and their types -------------------------------------------------------------------------------------

UNTYPED = Scene("no-result-type", "results do not say what they are", since=_SINCE)


@UNTYPED.on(FIRST, "tools/list", "tools/call", "resources/list", "prompts/list")
async def _(ask: Ask) -> Answer:
    result = await ask.usual()
    return {name: value for name, value in result.items() if name != "resultType"}


@UNTYPED.judges(ABSENT, "results without resultType")
def _(run: Run) -> None:
    run.as_usual()


ODD = Scene("unknown-result-type", "a result is of a type that nobody knows", since=_SINCE)


@ODD.on(FIRST)
async def _(ask: Ask) -> Answer:
    return {**await ask.usual(), "resultType": "com.example/unheard-of"}


@ODD.judges(UNKNOWN_TYPE, "a result of a type that nobody knows")
def _(run: Run) -> None:
    run.got_away()
    _not_for_ever(run, {each.method for each in run.after()[:1]})


def _not_for_ever(run: Run, methods: set[Any]) -> None:
    for method in methods:
        again = len(run.requests(method)) - len(run.usual.requests(method))
        if again > _RETRIES:
            raise Broken(f"{method} was sent {again} times more than usual", evidence=run.evidence())


# --- revisions ---------------------------------------------------------------------------------------------------

NONE_IN_COMMON = Scene("no-version-in-common", "the server speaks only a revision that nobody has", since=_SINCE)


@NONE_IN_COMMON.on("initialize", "server/discover", "tools/list", FIRST)
async def _(ask: Ask) -> Answer:
    data = {"supported": ["2999-01-01"], "requested": ask.meta.get(PROTOCOL_VERSION, ask.params.get("protocolVersion"))}
    raise Refuse(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


@NONE_IN_COMMON.judges(IN_COMMON, "a server of a revision that nobody has")
def _(run: Run) -> None:
    run.got_away()
    methods = [each.method for each in run.after() if each.method == "tools/call"]
    if methods:
        raise Broken("the client went on without a revision in common", evidence=run.evidence())
    _not_for_ever(run, {"server/discover", "tools/list", "initialize"})


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
