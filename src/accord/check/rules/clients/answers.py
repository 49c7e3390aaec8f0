"""Through 2025-11-25: what a client answers to requests that any server may send, and to those that nobody has."""

from __future__ import annotations

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run, code_of
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.rule import Broken, NotObserved, Rule
from accord.errors import METHOD_NOT_FOUND

_UNTIL = "2026-07-28"
_NOBODYS = "com.example/unheard-of"

PING = Rule(
    "client-answers/ping",
    "must",
    "A ping is answered promptly, with nothing.",
    at="basic/utilities/ping#behavior-requirements",
    role="client",
    until=_UNTIL,
    cause="Only answers are expected from the server, while a request of the client is open.",
)

UNKNOWN = Rule(
    "client-answers/unknown-method",
    "must",
    "A request that the client does not know is answered with an error.",
    at="basic#responses",
    role="client",
    until=_UNTIL,
    cause="What is not known is dropped, and the server waits for ever.",
)

CODE = Rule(
    "client-answers/method-not-found",
    "should",
    "That error has the code -32601.",
    at="basic#responses",
    role="client",
    until=_UNTIL,
    cause="Every failure has the same code.",
)

IDS = Rule(
    "client-answers/id-types",
    "must",
    "The id of a request comes back with its type: 7 is not '7'.",
    at="basic#responses",
    role="client",
    until=_UNTIL,
    cause="Ids are turned into text, or into numbers.",
)

PINGED = Scene("server-requests", "the server asks while it is asked", until=_UNTIL, asks=True)


@PINGED.on(FIRST)
async def _(ask: Ask) -> Answer:
    for id in (None, 7, "7", 2**53 - 1):
        await ask.ask("ping", id=id, seconds=2.0)
    await ask.ask(_NOBODYS, {}, seconds=2.0)
    return await ask.usual()


@PINGED.judges(PING, "a ping before an answer")
def _(run: Run) -> None:
    run.reached()
    for request in run.asked("ping")[:1]:
        answer = run.answer_to(request["id"])
        if answer is None:
            raise Broken("a ping was not answered", evidence=run.exchanged(request))
        if answer.get("result") is None or {*answer["result"]} - {"_meta"}:
            raise Broken("a ping was not answered with an empty result", evidence=run.exchanged(request))


@PINGED.judges(IDS, "ids that are numbers, and ids that are text")
def _(run: Run) -> None:
    run.reached()
    answered = [request["id"] for request in run.asked("ping") if run.answer_to(request["id"]) is not None]
    if not answered:
        raise NotObserved("the client answers no ping")
    for request in run.asked("ping"):
        if request["id"] not in answered:
            text = f"the request with the id {request['id']!r} was not answered with that id"
            raise Broken(text, evidence=run.exchanged(request))


@PINGED.judges(UNKNOWN, "a request that nobody has")
def _(run: Run) -> None:
    run.reached()
    for request in run.asked(_NOBODYS):
        if "error" not in (run.answer_to(request["id"]) or {}):
            text = "a request that nobody has was not answered with an error"
            raise Broken(text, evidence=run.exchanged(request))


@PINGED.judges(CODE, "a request that nobody has")
def _(run: Run) -> None:
    run.reached()
    for request in run.asked(_NOBODYS):
        code = code_of(run.answer_to(request["id"]))
        if code != METHOD_NOT_FOUND:
            raise Broken(f"its error has the code {code}", evidence=run.exchanged(request))
