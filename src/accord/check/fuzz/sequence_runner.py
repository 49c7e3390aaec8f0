"""One sequence of calls, run from its beginning: each answer is judged, and what it holds goes where later calls want
it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.fuzz import response_checks as judged
from accord.check.fuzz.fuzz_client import FuzzClient
from accord.check.fuzz.fuzz_result import FuzzResult
from accord.check.fuzz.fuzz_targets import FuzzTarget
from accord.check.fuzz.response_checks import ResponseProblem, check_response
from accord.check.fuzz.sequences import CallStep, MissingValue, Steps, resolve_arguments
from accord.check.fuzz.trial_plan import TrialPlan
from accord.check.fuzz.value_pool import ValuePool
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe

_ALWAYS = (judged.CRASH, judged.HANG, judged.UNANSWERED, judged.INTERNALS)
_OF_TOOLS = {True: (judged.REFUSED, judged.OUTPUT), False: (judged.ACCEPTED, judged.LIMITS, judged.ARGUMENT_ERRORS)}


class SequenceProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble: with which call of a sequence, and how many calls the conversation had by then."""

    step_index: int
    problem: ResponseProblem
    evidence: tuple[str, ...]
    calls: int


class SequenceResult(msgspec.Struct, kw_only=True):
    """What came of one sequence."""

    results: list[Any] = msgspec.field(default_factory=list)
    """Of each call that was answered; None for an error."""
    problems: list[SequenceProblem] = msgspec.field(default_factory=list)


class SequenceRunner:
    """Runs sequences of calls of what has a plan."""

    def __init__(
        self, caller: FuzzClient, plans: dict[tuple[str, str], TrialPlan], pool: ValuePool, explored: FuzzResult
    ) -> None:
        self._client = caller
        self._plans = plans
        self._pool = pool
        self._result = explored
        self._probe: Probe | None = None
        self._history: list[CallStep] = []

    @property
    def history(self) -> Steps:
        """All calls of this conversation, with the arguments that were sent."""
        return tuple(self._history)

    async def run(self, steps: Steps) -> SequenceResult:
        """Run them as far as they go: until one is not answered, or has nothing of what the next one wants."""
        ran = SequenceResult()
        await self._open()
        since = self._client.log_length
        for number, step in enumerate(steps):
            plan = self._plans.get((step.kind, step.name))
            arguments = _resolve_arguments(step, ran.results)
            if plan is None or (step.wrong is None and not plan.allows(step, arguments)):
                break
            if not await self._run_step(steps[: number + 1], plan, arguments, ran, since):
                break
        return ran

    async def _open(self) -> None:
        probe = await self._client.probe()
        if probe is not self._probe:
            self._probe, self._history = probe, []

    async def _run_step(self, steps: Steps, plan: TrialPlan, arguments: Any, ran: SequenceResult, since: int) -> bool:
        """Make the last of these calls; whether it was answered."""
        self._history.append(msgspec.structs.replace(steps[-1], arguments=arguments))
        log = (await self._client.probe()).log
        answer = await self._client.call(plan.name, *plan.target.build_request(arguments))
        self._result.calls = self._client.calls
        entry = log.entries[since:]
        found = [answer] if isinstance(answer, ResponseProblem) else []
        if isinstance(answer, Answer):
            ran.results.append(answer.result if answer.error is None else None)
            found = await self._check_answer(plan.target, steps, arguments, answer)
        evidence = log.evidence(since, entry if isinstance(answer, Answer) else ()) if found else ()
        ran.problems += [
            SequenceProblem(step_index=len(steps) - 1, problem=each, evidence=evidence, calls=len(self._history))
            for each in found
        ]
        return isinstance(answer, Answer)

    async def _check_answer(
        self, subject: FuzzTarget, steps: Steps, arguments: Any, answer: Answer
    ) -> list[ResponseProblem]:
        """What is wrong with an answer; what is in it is kept."""
        probe, step = await self._client.probe(), steps[-1]
        self._count_judged(subject, step)
        if step.wrong is None and answer.error is None:
            self._pool.add_result(steps, answer.result)
        found = check_response(subject, step, arguments, answer, probe.revision)
        return [each for each in found if await _is_confirmed(probe, subject, each)]

    def _count_judged(self, subject: FuzzTarget, step: CallStep) -> None:
        is_valid = step.wrong is None
        self._result.count_judged(*_ALWAYS)
        if subject.kind == "tool":
            rules = [rule for rule in _OF_TOOLS[is_valid] if rule != judged.OUTPUT or "outputSchema" in subject.item]
            self._result.count_judged(*rules)
        elif subject.kind == "prompt" and not is_valid:
            self._result.count_judged(judged.PROMPT_ARGUMENTS)
        elif is_valid:
            self._result.count_judged(judged.CODES)


def _resolve_arguments(step: CallStep, results: list[Any]) -> Any:
    """Its arguments, with what earlier results had; None where they had it not."""
    try:
        return resolve_arguments(step.arguments, results)
    except MissingValue:
        return None


async def _is_confirmed(probe: Probe, subject: FuzzTarget, trouble: ResponseProblem) -> bool:
    """A tool that is not there any more may be refused as it likes."""
    if trouble.rule not in (judged.REFUSED, judged.ARGUMENT_ERRORS):
        return True
    pages = await probe.pages("tools/list", "tools")
    return any(each.get("name") == subject.name for page in pages for each in page["tools"] if isinstance(each, dict))
