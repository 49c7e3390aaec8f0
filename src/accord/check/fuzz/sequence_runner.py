"""Run one sequence of calls, check each response, and pass values from results to later calls."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.fuzz.fuzz_client import FuzzClient
from accord.check.fuzz.fuzz_result import FuzzResult
from accord.check.fuzz.fuzz_targets import FuzzTarget
from accord.check.fuzz.response_checks import (
    ACCEPTED,
    ARGUMENT_ERRORS,
    CODES,
    CRASH,
    HANG,
    INTERNALS,
    LIMITS,
    OUTPUT,
    PROMPT_ARGUMENTS,
    REFUSED,
    UNANSWERED,
    ResponseProblem,
    check_response,
)
from accord.check.fuzz.sequences import CallStep, MissingValue, Steps, resolve_arguments
from accord.check.fuzz.trial_plan import TrialPlan
from accord.check.fuzz.value_pool import ValuePool
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe

_ALWAYS = (CRASH, HANG, UNANSWERED, INTERNALS)
_TOOL_RULES = {
    True: (REFUSED, OUTPUT),
    False: (ACCEPTED, LIMITS, ARGUMENT_ERRORS),
}
"""The rules that a response of a tool is checked for, by whether its arguments are valid."""


class SequenceProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem, the index of the call in its sequence, and the number of calls on the connection until then."""

    step_index: int
    problem: ResponseProblem
    evidence: tuple[str, ...]
    calls: int


class SequenceResult(msgspec.Struct, kw_only=True):
    """The results of one sequence."""

    results: list[Any] = msgspec.field(default_factory=list)
    """The result of each call with a response; None for an error."""
    problems: list[SequenceProblem] = msgspec.field(default_factory=list)


class SequenceRunner:
    """Runs sequences of calls to targets that have a plan."""

    def __init__(
        self, client: FuzzClient, plans: dict[tuple[str, str], TrialPlan], pool: ValuePool, fuzz_result: FuzzResult
    ) -> None:
        self._client = client
        self._plans = plans
        self._pool = pool
        self._result = fuzz_result
        self._probe: Probe | None = None
        self._history: list[CallStep] = []

    @property
    def history(self) -> Steps:
        """Return all calls on this connection, with the arguments that were sent."""
        return tuple(self._history)

    async def run(self, steps: Steps) -> SequenceResult:
        """Run the calls until one gets no response, or lacks a value from an earlier result."""
        result = SequenceResult()
        await self._open()
        since = self._client.log_length
        for number, step in enumerate(steps):
            plan = self._plans.get((step.kind, step.name))
            arguments = _resolve_arguments(step, result.results)
            if plan is None or (step.wrong is None and not plan.allows(step, arguments)):
                break
            if not await self._run_step(steps[: number + 1], plan, arguments, result, since):
                break
        return result

    async def _open(self) -> None:
        probe = await self._client.probe()
        if probe is not self._probe:
            self._probe, self._history = probe, []

    async def _run_step(
        self, steps: Steps, plan: TrialPlan, arguments: Any, result: SequenceResult, since: int
    ) -> bool:
        """Make the last of these calls, and return whether it got a response."""
        self._history.append(msgspec.structs.replace(steps[-1], arguments=arguments))
        log = (await self._client.probe()).log
        answer = await self._client.call(plan.name, *plan.target.build_request(arguments))
        self._result.calls = self._client.calls
        entry = log.entries[since:]
        found = [answer] if isinstance(answer, ResponseProblem) else []
        if isinstance(answer, Answer):
            result.results.append(answer.result if answer.error is None else None)
            found = await self._check_answer(plan.target, steps, arguments, answer)
        evidence = log.evidence(since, entry if isinstance(answer, Answer) else ()) if found else ()
        result.problems += [
            SequenceProblem(step_index=len(steps) - 1, problem=each, evidence=evidence, calls=len(self._history))
            for each in found
        ]
        return isinstance(answer, Answer)

    async def _check_answer(
        self, target: FuzzTarget, steps: Steps, arguments: Any, answer: Answer
    ) -> list[ResponseProblem]:
        """Return the problems of a response, and add its values to the pool."""
        probe, step = await self._client.probe(), steps[-1]
        self._count_judged(target, step)
        if step.wrong is None and answer.error is None:
            self._pool.add_result(steps, answer.result)
        found = check_response(target, step, arguments, answer, probe.revision)
        return [each for each in found if await _is_confirmed(probe, target, each)]

    def _count_judged(self, target: FuzzTarget, step: CallStep) -> None:
        is_valid = step.wrong is None
        self._result.count_judged(*_ALWAYS)
        if target.kind == "tool":
            rules = [rule for rule in _TOOL_RULES[is_valid] if rule != OUTPUT or "outputSchema" in target.item]
            self._result.count_judged(*rules)
        elif target.kind == "prompt" and not is_valid:
            self._result.count_judged(PROMPT_ARGUMENTS)
        elif is_valid:
            self._result.count_judged(CODES)


def _resolve_arguments(step: CallStep, results: list[Any]) -> Any:
    """Return the arguments with values from earlier results, or None if a value is missing."""
    try:
        return resolve_arguments(step.arguments, results)
    except MissingValue:
        return None


async def _is_confirmed(probe: Probe, target: FuzzTarget, problem: ResponseProblem) -> bool:
    """Return whether a problem counts: a tool that was removed meanwhile may answer with any error."""
    if problem.rule not in (REFUSED, ARGUMENT_ERRORS):
        return True
    pages = await probe.pages("tools/list", "tools")
    return any(each.get("name") == target.name for page in pages for each in page["tools"] if isinstance(each, dict))
