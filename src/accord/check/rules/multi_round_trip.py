"""Multi round-trip requests (2026-07-28): a result asks for input, and the client sends the request again with it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial

from accord.check.engine.ordinary_traffic import minimal_call_params
from accord.check.engine.rule import JudgedItems, NotObserved, rule
from accord.check.probes.content import preview_json
from accord.check.probes.input_requests import INPUT_METHODS, INPUT_REQUIRED, input_required_results, retry_params
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject

_PLACE = "basic/patterns/mrtr"
_WHERE = ("tools/call", "prompts/get", "resources/read")


_rule = partial(rule, since="2026-07-28")


@_rule(
    "rounds/where",
    "must",
    case="all results",
    at=f"{_PLACE}#supported-requests",
)
def rounds_where(logs: Sequence[MessageLog]) -> JudgedItems:
    """Only tools/call, prompts/get and resources/read return `input_required`."""
    for answered in answered_requests(logs):
        yield
        result = answered.result
        wants = isinstance(result, dict) and result.get("resultType") == INPUT_REQUIRED
        if wants and answered.request["method"] not in _WHERE:
            raise answered.violation(f"{answered.request['method']} returned `input_required`")


@_rule(
    "rounds/something",
    "must",
    case="all results with `input_required`",
    at=f"{_PLACE}#server-requirements",
)
def rounds_something(logs: Sequence[MessageLog]) -> JudgedItems:
    """A result with `input_required` has `inputRequests`, `requestState`, or both."""
    for answered in input_required_results(logs):
        yield
        if not answered.result.get("inputRequests") and "requestState" not in answered.result:
            raise answered.violation("the result has neither inputRequests nor requestState")


@_rule(
    "rounds/kinds",
    "must",
    case="all input requests",
    at=f"{_PLACE}#input-required-result",
)
def rounds_kinds(logs: Sequence[MessageLog]) -> JudgedItems:
    """An input request is for elicitation, sampling or roots."""
    for answered in input_required_results(logs):
        for key, request in (answered.result.get("inputRequests") or {}).items():
            yield
            method = request.get("method") if isinstance(request, dict) else None
            if method not in INPUT_METHODS:
                raise answered.violation(f"the input request {key!r} has the method {preview_json(method)}")


@_rule(
    "rounds/finished",
    "must",
    case="all repeated requests with input responses",
    at=(f"{_PLACE}#basic-workflow", f"{_PLACE}#server-requirements"),
    cause="The state is stored in one process only, or the responses are looked up by other keys "
    "than those of the requests.",
)
def rounds_finished(logs: Sequence[MessageLog]) -> JudgedItems:
    """A repeated request with all input responses and an unchanged state succeeds, or requires further input."""
    for answered in answered_requests(logs, *_WHERE):
        params = answered.request.get("params", {})
        if "inputResponses" in params or "requestState" in params:
            yield
            if "error" in answered.received.message:
                raise answered.violation("a request with all input responses returned an error")


@_rule(
    "rounds/extra-answers",
    "should",
    case="an additional input response",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#error-handling",
)
async def rounds_extra_answers(probe: Probe) -> None:
    """The server ignores additional input responses."""
    again = await _retry_first(probe, lambda responses: {**responses, "accord-check-extra": {"action": "accept"}})
    if again.error is not None:
        raise probe.violation(f"an additional input response returned an error: {preview_json(again.error)}")


@_rule(
    "rounds/missing-answers",
    "should",
    case="no input responses",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#error-handling",
)
async def rounds_missing_answers(probe: Probe) -> None:
    """The server requests missing input again instead of an error."""
    again = await _retry_first(probe, lambda responses: {})
    if again.error is not None:
        raise probe.violation(f"a request without its input responses returned an error: {preview_json(again.error)}")


@_rule(
    "rounds/bad-answers",
    "should",
    case="numbers as input responses",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#error-handling",
    cause="The type of a value in inputResponses is not validated.",
)
async def rounds_bad_answers(probe: Probe) -> None:
    """The server refuses invalid input responses."""
    again = await _retry_first(probe, lambda responses: dict.fromkeys(responses, 7))
    if _has_succeeded(again):
        raise probe.violation("the call succeeded with numbers as input responses")


@_rule(
    "rounds/state",
    "should",
    case="a changed request state",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#server-requirements",
    cause="The state is not verified, so that clients can forge it: sign it (HMAC), together with "
    "the request, the principal and a time.",
)
async def rounds_state(probe: Probe) -> None:
    """The server refuses a changed request state."""
    async for params, answer in _calls_requiring_input(probe):
        state = answer.result.get("requestState")
        if not isinstance(state, str) or not state:
            continue
        forged = {**retry_params(probe, answer.result), "requestState": _forge(state)}
        if _has_succeeded(await _retry_with(probe, {**params, **forged})):
            raise probe.violation("the call succeeded with a changed state")
        return
    raise NotObserved("no tool returns a state")


@_rule(
    "rounds/state-elsewhere",
    "should",
    case="the state and the input responses of one tool for another",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#server-requirements",
    cause="The state is not bound to its request: sign the method and a digest of the params as "
    "well, and compare them.",
)
async def rounds_state_elsewhere(probe: Probe) -> None:
    """The server refuses the state of another request."""
    asking = [
        (params, answer) async for params, answer in _calls_requiring_input(probe) if answer.result.get("requestState")
    ]
    for (_, given), (other, _) in itertools.pairwise(asking):
        if _has_succeeded(await _retry_with(probe, {**other, **retry_params(probe, given.result)})):
            raise probe.violation(f"{other['name']} succeeded with the state of another tool")
    if len(asking) < 2:
        raise NotObserved("fewer than two tools return a state")


async def _retry_first(probe: Probe, change: Callable[[JSONObject], JSONObject]) -> Answer:
    """Send the first call that requires input again, with changed input responses."""
    calls = _calls_requiring_input(probe)
    params, answer = await anext(calls)
    await calls.aclose()
    more = retry_params(probe, answer.result)
    return await _retry_with(probe, {**params, **more, "inputResponses": change(more.get("inputResponses", {}))})


def _has_succeeded(answer: Answer) -> bool:
    """Return whether a call returned its final result, without an error."""
    result = answer.result if isinstance(answer.result, dict) else {}
    return answer.error is None and result.get("resultType") != INPUT_REQUIRED and not result.get("isError")


async def _retry_with(probe: Probe, params: JSONObject) -> Answer:
    """Send a request again with invalid input."""
    return await probe.send(probe.build_request("tools/call", params), misbehaved=True).wait()


async def _calls_requiring_input(probe: Probe) -> AsyncGenerator[tuple[JSONObject, Answer], None]:
    """Yield the calls that require input."""
    found = False
    for tool in await probe.callable_tools():
        params = minimal_call_params(tool)
        answer = await probe.request("tools/call", params)
        if isinstance(answer.result, dict) and answer.result.get("inputRequests"):
            found = True
            yield params, answer
    if not found:
        raise NotObserved("no callable tool requires input")


def _forge(state: str) -> str:
    """Return another string of the same length, changed in the middle and at the end."""
    middle = len(state) // 2
    changed = "A" if state[middle] != "A" else "B"
    return state[:middle] + changed + state[middle + 1 : -1] + ("x" if state[-1] != "x" else "y")
