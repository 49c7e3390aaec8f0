"""stdio: how a client ends its server, and handles stderr and the exit of the server."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import STDIO, JudgedItems, NotObserved, Violation, client_rule

_AT = ("basic/lifecycle#stdio", "basic/transports/stdio#shutdown")


@client_rule(
    "client-stdio/close",
    "should",
    case="all servers that were ended",
    at=_AT,
    over=STDIO,
    cause="The process is killed immediately, without time for its cleanup.",
)
def client_stdio_close(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client closes the stdin of its server, and waits for its exit."""
    for run in runs:
        for conversation in run.conversations:
            if run.ending == "itself" and conversation.shutdown_events and run.ordinary_run is run:
                yield
                if conversation.shutdown_events[0] != "closed":
                    text = f"the server was {conversation.shutdown_events[0]} without time to exit"
                    lines = conversation.log.evidence()
                    raise Violation(text, evidence=(*lines, f"# the server was {conversation.shutdown_events[0]}"))


DEAF_SERVER_SCENARIO = Scenario(
    "deaf-server", "a server that does not exit at the end of stdin", over=STDIO, deaf=True, patience=6.0
)


@DEAF_SERVER_SCENARIO.on(FIRST_REQUEST)
async def answer_deaf_server(request: IncomingRequest) -> ScriptedAnswer:
    return await request.default_result()


@DEAF_SERVER_SCENARIO.rule(
    "client-stdio/terminates",
    "should",
    case="a server that does not exit at the end of stdin",
    at=_AT,
    over=STDIO,
    cause="The client exits without waiting for the process, which stays as an orphan.",
)
def client_stdio_terminates(run: ClientRun) -> None:
    """A client sends a signal to a server that does not exit at the end of stdin."""
    run.require_intervention()
    if run.ending != "itself":
        raise NotObserved("the client did not exit on its own")
    for conversation in run.conversations:
        if not {"terminated", "killed"} & {*conversation.shutdown_events}:
            raise Violation("the server is still running", evidence=run.evidence())


STDERR_SCENARIO = Scenario(
    "stderr",
    "a server that writes to stderr",
    over=STDIO,
    stderr="ERROR: this is no error\nTraceback (most recent call last): not at all\n",
)


@STDERR_SCENARIO.on(FIRST_REQUEST)
async def answer_stderr(request: IncomingRequest) -> ScriptedAnswer:
    return await request.default_result()


@STDERR_SCENARIO.rule(
    "client-stdio/stderr",
    "should",
    case="text on stderr that looks like an error",
    at=("basic/transports#stdio", "basic/transports/stdio#messages"),
    over=STDIO,
    cause="A line on stderr is taken for a failure, or is merged with stdout.",
)
def client_stdio_stderr(run: ClientRun) -> None:
    """Output on stderr is not an error."""
    missing = sorted(str(each) for each in run.ordinary_run.methods - run.methods)
    if run.intervened_at is None and missing:
        text = f"the client did not send {', '.join(missing)} to a server that writes to stderr"
        raise Violation(text, evidence=run.evidence())
    run.require_ordinary_behavior()


SERVER_EXITS_SCENARIO = Scenario("server-exits", "a server that exits before its response", over=STDIO)


@SERVER_EXITS_SCENARIO.on(FIRST_REQUEST)
async def answer_server_exits(request: IncomingRequest) -> ScriptedAnswer:
    await request.channel.abort()
    return None


@SERVER_EXITS_SCENARIO.rule(
    "client-robust/server-gone",
    "may",
    case="a server that exits before its response",
    at="basic/lifecycle#timeouts",
    over=STDIO,
    cause="Pending calls ignore the end of stdout.",
)
def client_robust_server_gone(run: ClientRun) -> None:
    """The exit of a server before its response is an immediate error for the caller."""
    run.require_progress()
