"""Several rounds (2026-07-28): an answer that wants input first, and the request that is sent again with it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

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


@rule(
    "rounds/where",
    "must",
    case="all answers",
    at=f"{_PLACE}#supported-requests",
    since="2026-07-28",
)
def rounds_where(logs: Sequence[MessageLog]) -> JudgedItems:
    """Only a tool, a prompt or a resource may want input first."""
    for answered in answered_requests(logs):
        yield
        result = answered.result
        wants = isinstance(result, dict) and result.get("resultType") == INPUT_REQUIRED
        if wants and answered.request["method"] not in _WHERE:
            raise answered.violation(f"{answered.request['method']} wants input first")


@rule(
    "rounds/something",
    "must",
    case="all answers that want input first",
    at=f"{_PLACE}#server-requirements",
    since="2026-07-28",
)
def rounds_something(logs: Sequence[MessageLog]) -> JudgedItems:
    """An answer that wants input first has questions, or a state, or both."""
    for answered in input_required_results(logs):
        yield
        if not answered.result.get("inputRequests") and "requestState" not in answered.result:
            raise answered.violation("it has neither inputRequests nor requestState")


@rule(
    "rounds/kinds",
    "must",
    case="all questions",
    at=f"{_PLACE}#input-required-result",
    since="2026-07-28",
)
def rounds_kinds(logs: Sequence[MessageLog]) -> JudgedItems:
    """What is asked is elicitation, sampling or roots."""
    for answered in input_required_results(logs):
        for key, request in (answered.result.get("inputRequests") or {}).items():
            yield
            method = request.get("method") if isinstance(request, dict) else None
            if method not in INPUT_METHODS:
                raise answered.violation(f"{key!r} asks for {preview_json(method)}")


@rule(
    "rounds/finished",
    "must",
    case="all requests that were sent again with answers",
    at=(f"{_PLACE}#basic-workflow", f"{_PLACE}#server-requirements"),
    since="2026-07-28",
    cause="The state is looked up in one process only, or the answers are not found under the keys that were asked.",
)
def rounds_finished(logs: Sequence[MessageLog]) -> JudgedItems:
    """The same request with all answers, and the state as it was, is taken: it comes to an end, or asks for more."""
    for answered in answered_requests(logs, *_WHERE):
        params = answered.request.get("params", {})
        if "inputResponses" in params or "requestState" in params:
            yield
            if "error" in answered.received.message:
                raise answered.violation("a request with all its answers is refused")


@rule(
    "rounds/extra-answers",
    "should",
    case="one answer more than was asked",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#error-handling",
    since="2026-07-28",
)
async def rounds_extra_answers(probe: Probe) -> None:
    """Answers that were not asked for are ignored."""
    async for params, answer in _calls_requiring_input(probe):
        more = retry_params(probe, answer.result)
        more["inputResponses"] = {**more.get("inputResponses", {}), "accord-check-extra": {"action": "accept"}}
        again = await _retry_with(probe, {**params, **more})
        if again.error is not None:
            raise probe.violation(f"an answer that was not asked for is an error: {preview_json(again.error)}")
        return


@rule(
    "rounds/missing-answers",
    "should",
    case="none of the answers that were asked",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#error-handling",
    since="2026-07-28",
)
async def rounds_missing_answers(probe: Probe) -> None:
    """What is missing is asked again, rather than refused."""
    async for params, answer in _calls_requiring_input(probe):
        more = {**retry_params(probe, answer.result), "inputResponses": {}}
        again = await _retry_with(probe, {**params, **more})
        if again.error is not None:
            raise probe.violation(f"a request without its answers is an error: {preview_json(again.error)}")
        return


@rule(
    "rounds/bad-answers",
    "should",
    case="answers that are numbers",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#error-handling",
    since="2026-07-28",
    cause="What comes in inputResponses is trusted to be of the type that was asked for.",
)
async def rounds_bad_answers(probe: Probe) -> None:
    """Answers that are none are refused, and end nothing."""
    async for params, answer in _calls_requiring_input(probe):
        more = retry_params(probe, answer.result)
        more["inputResponses"] = dict.fromkeys(more.get("inputResponses", {}), 7)
        again = await _retry_with(probe, {**params, **more})
        result = again.result if isinstance(again.result, dict) else {}
        if again.error is None and result.get("resultType") != INPUT_REQUIRED and not result.get("isError"):
            raise probe.violation("answers that are numbers are taken")
        return


@rule(
    "rounds/state",
    "should",
    case="a state with another end",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#server-requirements",
    since="2026-07-28",
    cause="The state is trusted as it comes, and any client can write its own: sign it (HMAC), with the request, the "
    "principal and a time in it.",
)
async def rounds_state(probe: Probe) -> None:
    """A state that was changed on the way is refused."""
    async for params, answer in _calls_requiring_input(probe):
        state = answer.result.get("requestState")
        if not isinstance(state, str) or not state:
            continue
        forged = {**retry_params(probe, answer.result), "requestState": _forge(state)}
        again = await _retry_with(probe, {**params, **forged})
        result: Any = again.result if isinstance(again.result, dict) else {}
        if again.error is None and result.get("resultType") != INPUT_REQUIRED and not result.get("isError"):
            raise probe.violation("a state that was changed is taken")
        return
    raise NotObserved("no tool gives a state")


@rule(
    "rounds/state-elsewhere",
    "should",
    case="the state and the answers of one tool, at another",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#server-requirements",
    since="2026-07-28",
    cause="The state does not say for which request it is: put the method and a digest of the params into what is "
    "signed, and compare them.",
)
async def rounds_state_elsewhere(probe: Probe) -> None:
    """A state that was given for one request is refused on another."""
    asking = [
        (params, answer) async for params, answer in _calls_requiring_input(probe) if answer.result.get("requestState")
    ]
    for (_, given), (other, _) in itertools.pairwise(asking):
        again = await _retry_with(probe, {**other, **retry_params(probe, given.result)})
        result = again.result if isinstance(again.result, dict) else {}
        if again.error is None and result.get("resultType") != INPUT_REQUIRED and not result.get("isError"):
            raise probe.violation(f"the state of another tool is taken by {other['name']}")
    if len(asking) < 2:
        raise NotObserved("fewer than two tools give a state")


async def _retry_with(probe: Probe, params: JSONObject) -> Answer:
    """Send a request again with wrong answers."""
    return await probe.send(probe.build_request("tools/call", params), misbehaved=True).wait()


async def _calls_requiring_input(probe: Probe) -> AsyncIterator[tuple[JSONObject, Answer]]:
    """The calls that want input first."""
    found = False
    for tool in await probe.callable_tools():
        params = minimal_call_params(tool)
        answer = await probe.request("tools/call", params)
        if isinstance(answer.result, dict) and answer.result.get("inputRequests"):
            found = True
            yield params, answer
    if not found:
        raise NotObserved("no tool that may be called wants input first")


def _forge(state: str) -> str:
    """Another text of the same length, different in the middle and at the end."""
    middle = len(state) // 2
    changed = "A" if state[middle] != "A" else "B"
    return state[:middle] + changed + state[middle + 1 : -1] + ("x" if state[-1] != "x" else "y")
