"""Multi round-trip requests (2026-07-28): how a client repeats a request with input responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer
from accord.check.engine.rule import NotObserved, Violation
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_AT = "basic/patterns/mrtr#client-requirements-basic-workflow"
_STATE = 'opaque "state" \\ caf\u00e9 {"a": 1}  %7B= \u2028 end '
_ROUNDS = 200
_ENOUGH = 100
"""Number of rounds after which a client should stop."""


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
_INPUT_METHODS = ("tools/call", "prompts/get", "resources/read")

INPUT_REQUIRED_SCENARIO = Scenario(
    "input-required", "results require input that the client supports", since=_SINCE, asks=True
)


@INPUT_REQUIRED_SCENARIO.on(*_INPUT_METHODS)
async def answer_input_required(request: IncomingRequest) -> ScriptedAnswer:
    if "inputResponses" in request.params or "requestState" in request.params:
        return await request.default_result()
    asks = _build_input_requests(request)
    request.conversation.server.state["rounds"] = number = request.conversation.server.state.get("rounds", -1) + 1
    if not asks or number % 3 == 2:
        return request.with_result_fields({"resultType": "input_required", "requestState": f"{number}: {_STATE}"})
    state = {"requestState": f"{number}: {_STATE}"} if number % 3 == 0 else {}
    return request.with_result_fields({"resultType": "input_required", "inputRequests": asks, **state})


def _build_input_requests(request: IncomingRequest) -> JSONObject:
    """Return an input request for each capability of the client, with arbitrary keys."""
    return {
        f"key {name}/1": {"method": method, "params": params}
        for name, (method, params) in _KINDS.items()
        if isinstance(request.client_capabilities.get(name), dict)
    }


@INPUT_REQUIRED_SCENARIO.rule(
    "client-rounds/state",
    "must",
    case="a state with special characters",
    at=_AT,
    since=_SINCE,
    cause="The state is decoded, trimmed or encoded again.",
)
def client_rounds_state(run: ClientRun) -> None:
    """A client returns requestState without changes."""
    for round in _retried_with_field(run, "requestState"):
        wanted, came = round.result["requestState"], round.retry.params.get("requestState")
        if came != wanted:
            raise Violation(f"the state was {wanted!r}, but the client returned {came!r}", evidence=round.lines())


@INPUT_REQUIRED_SCENARIO.rule(
    "client-rounds/no-state",
    "must",
    case="a result without a state",
    at=_AT,
    since=_SINCE,
    cause="An earlier state is stored, or an empty one is sent.",
)
def client_rounds_no_state(run: ClientRun) -> None:
    """If the result has no requestState, the repeated request has none."""
    for round in _retried_with_field(run, "requestState", without=True):
        if "requestState" in round.retry.params:
            raise Violation("the result had no state, but the client sent one", evidence=round.lines())


@INPUT_REQUIRED_SCENARIO.rule(
    "client-rounds/new-id",
    "must",
    case="the repeated request",
    at=_AT,
    since=_SINCE,
    cause="The same message is sent again.",
)
def client_rounds_new_id(run: ClientRun) -> None:
    """The repeated request has a new id."""
    for round in _retried_requests(run):
        if round.first.body["id"] == round.retry.body["id"]:
            raise Violation(f"the repeated request has the same id {round.first.body['id']!r}", evidence=round.lines())


@INPUT_REQUIRED_SCENARIO.rule(
    "client-rounds/responses",
    "must",
    case="input requests for roots, sampling and elicitation, if declared",
    at=_AT,
    since=_SINCE,
    cause="The responses are a list, have other keys, or are wrapped as JSON-RPC.",
)
def client_rounds_responses(run: ClientRun) -> None:
    """inputResponses has a result for each key of inputRequests."""
    for round in _retried_with_field(run, "inputRequests"):
        responses = round.retry.params.get("inputResponses")
        for key in round.result["inputRequests"]:
            answer = responses.get(key) if isinstance(responses, dict) else None
            if not isinstance(answer, dict) or {"error", "result", "jsonrpc"} & {*answer}:
                raise Violation(f"inputResponses has no result for {key!r}", evidence=round.lines())


@INPUT_REQUIRED_SCENARIO.rule(
    "client-rounds/same-request",
    "must",
    case="the repeated request",
    at="basic/patterns/mrtr#basic-workflow",
    since=_SINCE,
    cause="The name or the arguments are missing in the repeated request.",
)
def client_rounds_same_request(run: ClientRun) -> None:
    """The repeated request differs only in its input responses and state."""
    for round in _retried_requests(run):
        if _comparable_request(round.first) != _comparable_request(round.retry):
            raise Violation("the repeated request is another one", evidence=round.lines())


@INPUT_REQUIRED_SCENARIO.rule(
    "client-rounds/other-requests",
    "must",
    case="unrelated requests",
    at=_AT,
    since=_SINCE,
    cause="They are stored for the connection, not for the request.",
)
def client_rounds_other_requests(run: ClientRun) -> None:
    """No other request has the state or the input responses."""
    retries = {id(round.retry.body) for round in _retried_requests(run)}
    for request in run.requests():
        carries = "requestState" in request.params or "inputResponses" in request.params
        if carries and id(request.body) not in retries and request.method not in _INPUT_METHODS:
            raise Violation(
                f"{request.method} has the state or input responses of another request", evidence=[request.entry.line()]
            )


ENDLESS_ROUNDS_SCENARIO = Scenario("endless-rounds", "results require input again and again", since=_SINCE)


@ENDLESS_ROUNDS_SCENARIO.on(*_INPUT_METHODS)
async def answer_endless_rounds(request: IncomingRequest) -> ScriptedAnswer:
    subject = request.conversation.server.state.setdefault("subject", _subject(request.method, request.params))
    if request.index >= _ROUNDS or _subject(request.method, request.params) != subject:
        return await request.default_result()
    asks = dict([*_build_input_requests(request).items()][:1])
    state = {"requestState": f"round {request.index}"}
    return request.with_result_fields(
        {"resultType": "input_required", **state, **({"inputRequests": asks} if asks else {})}
    )


@ENDLESS_ROUNDS_SCENARIO.rule(
    "client-rounds/bounded",
    "may",
    case="results that require input again and again",
    at=_AT,
    since=_SINCE,
    cause="The rounds are not counted.",
)
def client_rounds_bounded(run: ClientRun) -> None:
    """A client stops repeating a request that always requires further input."""
    run.require_no_crash()
    states = [
        each for each in run.requests(*_INPUT_METHODS) if str(each.params.get("requestState")).startswith("round ")
    ]
    if not states:
        raise NotObserved("the client does not repeat the request")
    longest = max(
        sum(_comparable_request(each) == _comparable_request(other) for other in states) for each in states[:_ENOUGH]
    )
    if longest >= _ENOUGH:
        raise Violation(f"the client sent one request {longest} times", evidence=run.evidence())


# --- reading -----------------------------------------------------------------------------------------------------


class RetriedRequest(NamedTuple):
    """A request, the result that required input, and the repeated request."""

    first: ClientMessage
    result: JSONObject
    retry: ClientMessage

    def lines(self) -> list[str]:
        """Return it as evidence."""
        return [self.first.entry.line(), self.retry.entry.line()]


def _retried_requests(run: ClientRun) -> list[RetriedRequest]:
    run.require_no_crash()
    found = [*_find_retries(run)]
    if not found:
        raise NotObserved("the client did not repeat the request")
    return found


def _retried_with_field(run: ClientRun, field: str, *, without: bool = False) -> list[RetriedRequest]:
    """Return the rounds whose result has a field, or does not have it."""
    found = [round for round in _retried_requests(run) if (field in round.result) is not without]
    if not found:
        raise NotObserved("the client repeated no such request")
    return found


def _find_retries(run: ClientRun) -> Iterator[RetriedRequest]:
    requests = run.requests(*_INPUT_METHODS)
    for number, request in enumerate(requests):
        result = _result_for(request)
        if result.get("resultType") == "input_required":
            later = [each for each in requests[number + 1 :] if _is_retry(each)]
            yield from (RetriedRequest(request, result, each) for each in _nearest_retry(request, result, later))


def _nearest_retry(request: ClientMessage, result: JSONObject, later: list[ClientMessage]) -> list[ClientMessage]:
    """Return the repeated request, if any: by its state, or as the same request, or as one about the same subject."""
    state = result.get("requestState")
    by_state = [each for each in later if state is not None and each.params.get("requestState") == state]
    same = [each for each in later if _comparable_request(each) == _comparable_request(request)]
    return (by_state or same or [each for each in later if _same_subject(each, request)])[:1]


def _is_retry(request: ClientMessage) -> bool:
    return "inputResponses" in request.params or "requestState" in request.params


def _subject(method: Any, params: JSONObject) -> tuple[Any, Any, Any]:
    return method, params.get("name"), params.get("uri")


def _same_subject(request: ClientMessage, other: ClientMessage) -> bool:
    """Return whether both requests have the same subject, which a repeated request may lose."""
    mine, others = _subject(request.method, request.params), _subject(other.method, other.params)
    return mine == others or mine[1:] == (None, None)


def _result_for(request: ClientMessage) -> JSONObject:
    """Return the first result that was sent for it later."""
    for entry in request.conversation.log.entries:
        message: Any = entry.message
        sent = entry.direction == SENT and entry.at >= request.entry.at and isinstance(message, dict)
        if sent and message.get("id") == request.body["id"] and isinstance(message.get("result"), dict):
            result: JSONObject = message["result"]
            return result
    return {}


def _comparable_request(request: ClientMessage) -> JSONObject:
    """Return the part of the params that repeated requests share."""
    passing = ("_meta", "inputResponses", "requestState")
    return {"method": request.method} | {name: value for name, value in request.params.items() if name not in passing}
