"""From 2026-07-28 on: results that ask for input, and how a client asks again with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from accord.check.clients.ask import Ask
from accord.check.clients.run import Message, Run
from accord.check.clients.scene import Answer, Scene
from accord.check.rule import Broken, NotObserved, Rule
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_AT = "basic/patterns/mrtr#client-requirements-basic-workflow"
_STATE = 'opaque "state" \\ caf\u00e9 {"a": 1}  %7B= \u2028 end '
_ROUNDS = 200
_ENOUGH = 100
"""Rounds after which nobody can say that a client ends them."""

STATE = Rule(
    "client-rounds/state",
    "must",
    "requestState comes back exactly as it was.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="It is decoded, trimmed, or written anew on its way.",
)

NO_STATE = Rule(
    "client-rounds/no-state",
    "must",
    "Where the result has no requestState, the next try has none.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="A state from before is kept, or an empty one is sent.",
)

ID = Rule(
    "client-rounds/new-id",
    "must",
    "The next try has an id of its own.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="The same message is sent again.",
)

RESPONSES = Rule(
    "client-rounds/responses",
    "must",
    "inputResponses has an answer under every key of inputRequests, each a result and no error.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="Answers come in a list, under other keys, or wrapped as JSON-RPC.",
)

SAME = Rule(
    "client-rounds/same-request",
    "must",
    "But for what was asked, the next try is the same request.",
    at="basic/patterns/mrtr#basic-workflow",
    role="client",
    since=_SINCE,
    cause="Name or arguments are left out of the next try.",
)

OTHERS = Rule(
    "client-rounds/other-requests",
    "must",
    "No other request carries the state or the answers.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="They are kept for the connection, not for the request.",
)

BOUNDED = Rule(
    "client-rounds/bounded",
    "may",
    "A request whose answer asks for input again and again is given up at some time.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="Nothing counts the rounds.",
)

_FORM = {
    "mode": "form",
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
_QUESTION = {"messages": [{"role": "user", "content": {"type": "text", "text": "6 times 7?"}}], "maxTokens": 10}
_KINDS: dict[str, tuple[str, JSONObject]] = {
    "roots": ("roots/list", {}),
    "sampling": ("sampling/createMessage", _QUESTION),
    "elicitation": ("elicitation/create", _FORM),
}
_MAY_ASK = ("tools/call", "prompts/get", "resources/read")

ROUNDS = Scene("input-required", "results ask for what the client has declared", since=_SINCE, asks=True)


@ROUNDS.on(*_MAY_ASK)
async def _(ask: Ask) -> Answer:
    if "inputResponses" in ask.params or "requestState" in ask.params:
        return await ask.usual()
    asks = _asks(ask)
    ask.conversation.stand.kept["rounds"] = number = ask.conversation.stand.kept.get("rounds", -1) + 1
    if not asks or number % 3 == 2:
        return ask.dressed({"resultType": "input_required", "requestState": f"{number}: {_STATE}"})
    state = {"requestState": f"{number}: {_STATE}"} if number % 3 == 0 else {}
    return ask.dressed({"resultType": "input_required", "inputRequests": asks, **state})


def _asks(ask: Ask) -> JSONObject:
    """One request of each kind that the client has declared, under keys that say nothing."""
    return {
        f"key {name}/1": {"method": method, "params": params}
        for name, (method, params) in _KINDS.items()
        if isinstance(ask.declared.get(name), dict)
    }


@ROUNDS.judges(STATE, "a state that is no simple text")
def _(run: Run) -> None:
    for round in _with(run, "requestState"):
        wanted, came = round.result["requestState"], round.retry.params.get("requestState")
        if came != wanted:
            raise Broken(f"the state was {wanted!r}, and came back as {came!r}", evidence=round.lines())


@ROUNDS.judges(NO_STATE, "a result without a state")
def _(run: Run) -> None:
    for round in _with(run, "requestState", without=True):
        if "requestState" in round.retry.params:
            raise Broken("there was no state, and one came", evidence=round.lines())


@ROUNDS.judges(ID, "the next try")
def _(run: Run) -> None:
    for round in _rounds(run):
        if round.first.body["id"] == round.retry.body["id"]:
            raise Broken(f"the next try has the id {round.first.body['id']!r} as well", evidence=round.lines())


@ROUNDS.judges(RESPONSES, "roots, the model and the person, as far as they are declared")
def _(run: Run) -> None:
    for round in _with(run, "inputRequests"):
        responses = round.retry.params.get("inputResponses")
        for key in round.result["inputRequests"]:
            answer = responses.get(key) if isinstance(responses, dict) else None
            if not isinstance(answer, dict) or {"error", "result", "jsonrpc"} & {*answer}:
                raise Broken(f"{key!r} has no result in inputResponses", evidence=round.lines())


@ROUNDS.judges(SAME, "the next try")
def _(run: Run) -> None:
    for round in _rounds(run):
        if _plain(round.first) != _plain(round.retry):
            raise Broken("the next try is another request", evidence=round.lines())


@ROUNDS.judges(OTHERS, "requests that have nothing to do with it")
def _(run: Run) -> None:
    retries = {id(round.retry.body) for round in _rounds(run)}
    for request in run.requests():
        carries = "requestState" in request.params or "inputResponses" in request.params
        if carries and id(request.body) not in retries and request.method not in _MAY_ASK:
            raise Broken(f"{request.method} carries what belongs to another request", evidence=[request.said.line()])


ENDLESS = Scene("endless-rounds", "a result that asks again and again", since=_SINCE)


@ENDLESS.on(*_MAY_ASK)
async def _(ask: Ask) -> Answer:
    subject = ask.conversation.stand.kept.setdefault("subject", _subject(ask.method, ask.params))
    if ask.turn >= _ROUNDS or _subject(ask.method, ask.params) != subject:
        return await ask.usual()
    asks = dict([*_asks(ask).items()][:1])
    state = {"requestState": f"round {ask.turn}"}
    return ask.dressed({"resultType": "input_required", **state, **({"inputRequests": asks} if asks else {})})


@ENDLESS.judges(BOUNDED, "a result that asks again and again")
def _(run: Run) -> None:
    run.survived()
    states = [each for each in run.requests(*_MAY_ASK) if str(each.params.get("requestState")).startswith("round ")]
    if not states:
        raise NotObserved("the client does not ask again")
    longest = max(sum(_plain(each) == _plain(other) for other in states) for each in states[:_ENOUGH])
    if longest >= _ENOUGH:
        raise Broken(f"one request was sent {longest} times", evidence=run.evidence())


# --- reading -----------------------------------------------------------------------------------------------------


class Round(NamedTuple):
    """A request, the result that asked for input, and the next try."""

    first: Message
    result: JSONObject
    retry: Message

    def lines(self) -> list[str]:
        """As evidence."""
        return [self.first.said.line(), self.retry.said.line()]


def _rounds(run: Run) -> list[Round]:
    run.survived()
    found = [*_found(run)]
    if not found:
        raise NotObserved("the client did not ask again")
    return found


def _with(run: Run, field: str, *, without: bool = False) -> list[Round]:
    """Those whose result has a field, or has it not."""
    found = [round for round in _rounds(run) if (field in round.result) is not without]
    if not found:
        raise NotObserved("the client asked again for no such result")
    return found


def _found(run: Run) -> Iterator[Round]:
    requests = run.requests(*_MAY_ASK)
    for number, request in enumerate(requests):
        result = _result_for(request)
        if result.get("resultType") == "input_required":
            later = [each for each in requests[number + 1 :] if _carries(each)]
            yield from (Round(request, result, each) for each in _nearest(request, result, later))


def _nearest(request: Message, result: JSONObject, later: list[Message]) -> list[Message]:
    """The next try, if there is one: by its state, or else as the same request, or as one about the same thing."""
    state = result.get("requestState")
    by_state = [each for each in later if state is not None and each.params.get("requestState") == state]
    same = [each for each in later if _plain(each) == _plain(request)]
    return (by_state or same or [each for each in later if _same_subject(each, request)])[:1]


def _carries(request: Message) -> bool:
    return "inputResponses" in request.params or "requestState" in request.params


def _subject(method: Any, params: JSONObject) -> tuple[Any, Any, Any]:
    return method, params.get("name"), params.get("uri")


def _same_subject(request: Message, other: Message) -> bool:
    """Whether both are about one thing; a next try may have lost what it was about."""
    mine, others = _subject(request.method, request.params), _subject(other.method, other.params)
    return mine == others or mine[1:] == (None, None)


def _result_for(request: Message) -> JSONObject:
    """The first result that was sent for it afterwards."""
    for said in request.conversation.record.entries:
        message: Any = said.message
        sent = said.direction == SENT and said.at >= request.said.at and isinstance(message, dict)
        if sent and message.get("id") == request.body["id"] and isinstance(message.get("result"), dict):
            result: JSONObject = message["result"]
            return result
    return {}


def _plain(request: Message) -> JSONObject:
    """What stays the same from try to try."""
    passing = ("_meta", "inputResponses", "requestState")
    return {"method": request.method} | {name: value for name, value in request.params.items() if name not in passing}
