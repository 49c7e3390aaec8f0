"""How a client ends the server that it has started over stdio, and what it makes of its stderr and its end."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import STDIO, JudgedItems, NotObserved, Violation, rule

_AT = ("basic/lifecycle#stdio", "basic/transports/stdio#shutdown")


@rule(
    "client-stdio/close",
    "should",
    case="every server that was ended",
    role="client",
    at=_AT,
    over=STDIO,
    cause="The process is killed at once, and what it still had to do is lost.",
)
def client_stdio_close(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client ends its server by closing the server's stdin, and gives it the time to go."""
    for run in runs:
        for conversation in run.conversations:
            if run.ending == "itself" and conversation.shutdown_events and run.ordinary_run is run:
                yield
                if conversation.shutdown_events[0] != "closed":
                    text = f"the server was {conversation.shutdown_events[0]} without the time to end by itself"
                    lines = conversation.log.evidence()
                    raise Violation(text, evidence=(*lines, f"# the server was {conversation.shutdown_events[0]}"))


DEAF_SERVER_SCENARIO = Scenario(
    "deaf-server", "a server that stays when its stdin ends", over=STDIO, deaf=True, patience=6.0
)


@DEAF_SERVER_SCENARIO.on(FIRST_REQUEST)
async def answer_deaf_server(request: IncomingRequest) -> ScriptedAnswer:
    return await request.default_result()


@DEAF_SERVER_SCENARIO.rule(
    "client-stdio/terminates",
    "should",
    case="a server that stays when its stdin ends",
    at=_AT,
    over=STDIO,
    cause="The client goes away without a look at the process, which lives on without an owner.",
)
def client_stdio_terminates(run: ClientRun) -> None:
    """A server that does not go when its stdin is closed is ended by a signal, and not left behind."""
    run.require_intervention()
    if run.ending != "itself":
        raise NotObserved("the client did not end by itself")
    for conversation in run.conversations:
        if not {"terminated", "killed"} & {*conversation.shutdown_events}:
            raise Violation("the server was left behind", evidence=run.evidence())


STDERR_SCENARIO = Scenario(
    "stderr",
    "a server that writes on stderr",
    over=STDIO,
    stderr="ERROR: this is no error\nTraceback (most recent call last): not at all\n",
)


@STDERR_SCENARIO.on(FIRST_REQUEST)
async def answer_stderr(request: IncomingRequest) -> ScriptedAnswer:
    return await request.default_result()


@STDERR_SCENARIO.rule(
    "client-stdio/stderr",
    "should",
    case="words on stderr that look like an error",
    at=("basic/transports#stdio", "basic/transports/stdio#messages"),
    over=STDIO,
    cause="Any line there is taken for a failure to start, or is read together with stdout.",
)
def client_stdio_stderr(run: ClientRun) -> None:
    """What a server writes on stderr is no sign of an error."""
    missing = sorted(str(each) for each in run.ordinary_run.methods - run.methods)
    if run.intervened_at is None and missing:
        text = f"the client did not come to {', '.join(missing)} with a server that writes on stderr"
        raise Violation(text, evidence=run.evidence())
    run.require_ordinary_behavior()


SERVER_EXITS_SCENARIO = Scenario("server-exits", "a server that exits before it answers", over=STDIO)


@SERVER_EXITS_SCENARIO.on(FIRST_REQUEST)
async def answer_server_exits(request: IncomingRequest) -> ScriptedAnswer:
    await request.channel.abort()
    return None


@SERVER_EXITS_SCENARIO.rule(
    "client-robust/server-gone",
    "may",
    case="a server that exits before it answers",
    at="basic/lifecycle#timeouts",
    over=STDIO,
    cause="The end of the server's stdout is not noticed by those who wait for an answer.",
)
def client_robust_server_gone(run: ClientRun) -> None:
    """A server that exits before it answers is an error for whoever asked, at once."""
    run.require_progress()
