"""How a client ends the server that it has started over stdio, and what it makes of its stderr and its end."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.rule import STDIO, Broken, NotObserved, Rule

_AT = ("basic/lifecycle#stdio", "basic/transports/stdio#shutdown")

CLOSE = Rule(
    "client-stdio/close",
    "should",
    "A client ends its server by closing the server's stdin, and gives it the time to go.",
    at=_AT,
    role="client",
    over=STDIO,
    cause="The process is killed at once, and what it still had to do is lost.",
)

END = Rule(
    "client-stdio/terminates",
    "should",
    "A server that does not go when its stdin is closed is ended by a signal, and not left behind.",
    at=_AT,
    role="client",
    over=STDIO,
    cause="The client goes away without a look at the process, which lives on without an owner.",
)

STDERR = Rule(
    "client-stdio/stderr",
    "should",
    "What a server writes on stderr is no sign of an error.",
    at=("basic/transports#stdio", "basic/transports/stdio#messages"),
    role="client",
    over=STDIO,
    cause="Any line there is taken for a failure to start, or is read together with stdout.",
)

GONE = Rule(
    "client-robust/server-gone",
    "may",
    "A server that exits before it answers is an error for whoever asked, at once.",
    at="basic/lifecycle#timeouts",
    role="client",
    over=STDIO,
    cause="The end of the server's stdout is not noticed by those who wait for an answer.",
)


@CLOSE.reading("every server that was ended")
def _(runs: Sequence[Run]) -> int:
    ended = 0
    for run in runs:
        for conversation in run.conversations:
            if run.ending == "itself" and conversation.endings and run.usual is run:
                ended += 1
                if conversation.endings[0] != "closed":
                    text = f"the server was {conversation.endings[0]} without the time to end by itself"
                    lines = conversation.record.evidence()
                    raise Broken(text, evidence=(*lines, f"# the server was {conversation.endings[0]}"))
    return ended


DEAF = Scene("deaf-server", "a server that stays when its stdin ends", over=STDIO, deaf=True, patience=6.0)


@DEAF.on(FIRST)
async def _(ask: Ask) -> Answer:
    return await ask.usual()


@DEAF.judges(END, "a server that stays when its stdin ends")
def _(run: Run) -> None:
    run.reached()
    if run.ending != "itself":
        raise NotObserved("the client did not end by itself")
    for conversation in run.conversations:
        if not {"terminated", "killed"} & {*conversation.endings}:
            raise Broken("the server was left behind", evidence=run.evidence())


LOUD = Scene(
    "stderr",
    "a server that writes on stderr",
    over=STDIO,
    stderr="ERROR: this is no error\nTraceback (most recent call last): not at all\n",
)


@LOUD.on(FIRST)
async def _(ask: Ask) -> Answer:
    return await ask.usual()


@LOUD.judges(STDERR, "words on stderr that look like an error")
def _(run: Run) -> None:
    missing = sorted(str(each) for each in run.usual.methods - run.methods)
    if run.turned_at is None and missing:
        text = f"the client did not come to {', '.join(missing)} with a server that writes on stderr"
        raise Broken(text, evidence=run.evidence())
    run.as_usual()


DYING = Scene("server-exits", "a server that exits before it answers", over=STDIO)


@DYING.on(FIRST)
async def _(ask: Ask) -> Answer:
    await ask.way.drop()
    return None


@DYING.judges(GONE, "a server that exits before it answers")
def _(run: Run) -> None:
    run.got_away()
