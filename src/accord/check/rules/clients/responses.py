"""Through 2025-11-25: what a client answers to requests that any server may send, and to those that nobody has."""

from __future__ import annotations

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun, error_code
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.rule import NotObserved, Rule, Violation
from accord.errors import METHOD_NOT_FOUND

_UNTIL = "2026-07-28"
_UNKNOWN_METHOD = "com.example/unheard-of"

PING = Rule(
    "client-answers/ping",
    "must",
    "A ping is answered promptly, with nothing.",
    at="basic/utilities/ping#behavior-requirements",
    role="client",
    until=_UNTIL,
    cause="Only answers are expected from the server, while a request of the client is open.",
)

UNKNOWN_METHOD = Rule(
    "client-answers/unknown-method",
    "must",
    "A request that the client does not know is answered with an error.",
    at="basic#responses",
    role="client",
    until=_UNTIL,
    cause="What is not known is dropped, and the server waits for ever.",
)

METHOD_NOT_FOUND_RULE = Rule(
    "client-answers/method-not-found",
    "should",
    "That error has the code -32601.",
    at="basic#responses",
    role="client",
    until=_UNTIL,
    cause="Every failure has the same code.",
)

ID_TYPES = Rule(
    "client-answers/id-types",
    "must",
    "The id of a request comes back with its type: 7 is not '7'.",
    at="basic#responses",
    role="client",
    until=_UNTIL,
    cause="Ids are turned into text, or into numbers.",
)

SERVER_REQUESTS_SCENARIO = Scenario("server-requests", "the server asks while it is asked", until=_UNTIL, asks=True)


@SERVER_REQUESTS_SCENARIO.on(FIRST_REQUEST)
async def answer_server_requests(ask: IncomingRequest) -> ScriptedAnswer:
    for id in (None, 7, "7", 2**53 - 1):
        await ask.send_request("ping", id=id, seconds=2.0)
    await ask.send_request(_UNKNOWN_METHOD, {}, seconds=2.0)
    return await ask.default_result()


@SERVER_REQUESTS_SCENARIO.case(PING, "a ping before an answer")
def check_ping(run: ClientRun) -> None:
    run.require_intervention()
    for request in run.server_requests("ping")[:1]:
        answer = run.response_to(request["id"])
        if answer is None:
            raise Violation("a ping was not answered", evidence=run.exchange_lines(request))
        if answer.get("result") is None or {*answer["result"]} - {"_meta"}:
            raise Violation("a ping was not answered with an empty result", evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.case(ID_TYPES, "ids that are numbers, and ids that are text")
def check_id_types(run: ClientRun) -> None:
    run.require_intervention()
    answered = [request["id"] for request in run.server_requests("ping") if run.response_to(request["id"]) is not None]
    if not answered:
        raise NotObserved("the client answers no ping")
    for request in run.server_requests("ping"):
        if request["id"] not in answered:
            text = f"the request with the id {request['id']!r} was not answered with that id"
            raise Violation(text, evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.case(UNKNOWN_METHOD, "a request that nobody has")
def check_unknown_method(run: ClientRun) -> None:
    run.require_intervention()
    for request in run.server_requests(_UNKNOWN_METHOD):
        if "error" not in (run.response_to(request["id"]) or {}):
            text = "a request that nobody has was not answered with an error"
            raise Violation(text, evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.case(METHOD_NOT_FOUND_RULE, "a request that nobody has")
def check_method_not_found(run: ClientRun) -> None:
    run.require_intervention()
    for request in run.server_requests(_UNKNOWN_METHOD):
        code = error_code(run.response_to(request["id"]))
        if code != METHOD_NOT_FOUND:
            raise Violation(f"its error has the code {code}", evidence=run.exchange_lines(request))
