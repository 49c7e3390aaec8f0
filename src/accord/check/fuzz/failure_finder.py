"""Find the failures of one case: reduce each new failure, and reproduce it alone on a new connection.

A sequence that does not fail there depends on earlier calls: those of its case, or all calls of the connection. These
are then reduced, with a new connection for each attempt.
"""

from __future__ import annotations

import time
from typing import Any

from accord.check.fuzz import response_checks
from accord.check.fuzz.fuzz_client import FuzzClient, FuzzStopped
from accord.check.fuzz.fuzz_result import FuzzFailure
from accord.check.fuzz.sequence_reducer import FailingSequence, SequenceReducer
from accord.check.fuzz.sequence_runner import SequenceResult, SequenceRunner
from accord.check.fuzz.sequences import CallStep, Steps
from accord.check.fuzz.trial_plan import TrialPlan

_TRIES = {response_checks.CRASH: 40, response_checks.HANG: 8, response_checks.UNANSWERED: 2}
_TRIES_ELSE = 80
"""The number of sequences to reduce one failure: few where each takes long."""
_NEW_SESSION_TRIES = {response_checks.CRASH: 24, response_checks.HANG: 6, response_checks.UNANSWERED: 0}
_NEW_SESSION_TRIES_ELSE = 24
"""The number of sequences to find the earlier calls that a failure needs; each opens a new connection."""
_EXTRA_SECONDS = 30.0
"""Seconds after the end of the run in which failures are still reduced."""
_HISTORY = 300
"""The number of earlier calls that may contribute to a failure."""
_NOT_REPRODUCED = "; it occurred once, and did not occur again when the same calls were made on a new connection"


class FailureFinder:
    """Runs sequences of calls, and adds failures to `failures`: each kind of problem once for each target."""

    def __init__(
        self,
        runner: SequenceRunner,
        client: FuzzClient,
        plans: dict[tuple[str, str], TrialPlan],
        failures: list[FuzzFailure],
        end: float,
    ) -> None:
        self._runner = runner
        self._client = client
        self._plans = plans
        self._failures = failures
        self._end = end
        self._known: set[tuple[str, ...]] = set()

    async def run_case(self, steps: Steps) -> float:
        """Run a sequence, check it, and reduce new failures. Return the seconds that the sequence itself took."""
        began = time.monotonic()
        result = await self._runner.run(steps)
        seconds = time.monotonic() - began
        for found in result.problems:
            step = steps[found.step_index]
            key = (found.problem.rule, step.kind, step.name, found.problem.detail)
            if key not in self._known:
                self._known.add(key)
                failing = FailingSequence(steps=steps[: found.step_index + 1], result=result, problem=found)
                await self._minimize(failing)
        return seconds

    async def _minimize(self, failing: FailingSequence) -> None:
        history = self._runner.history[: failing.problem.calls][-_HISTORY:]
        reduction = SequenceReducer(
            failing, self._rerun, self._allows, _TRIES.get(failing.problem.problem.rule, _TRIES_ELSE)
        )
        smallest, remark = failing, ""
        self._client.skips_late_answers = failing.problem.problem.rule != response_checks.UNANSWERED
        try:
            await reduction.reduce()
            reproduced = await self._reproduce(reduction.smallest, (failing.steps, history))
            smallest, remark = (
                (reproduced, "") if reproduced else (reduction.smallest, "" if self._is_late else _NOT_REPRODUCED)
            )
        except FuzzStopped:  # the server does not restart: report the failure as it is
            smallest = reduction.smallest
            raise
        finally:
            self._client.skips_late_answers = False
            self.add(smallest, remark)

    async def _reproduce(self, failing: FailingSequence, longer: tuple[Steps, ...]) -> FailingSequence | None:
        """Return a sequence that also fails on a new connection: this one or a reduced longer one; or None."""
        single_try = SequenceReducer(failing, self._rerun_in_new_session, self._allows, 1)
        if await single_try.fails(failing.steps):
            return single_try.smallest
        for steps in longer:
            reduction = SequenceReducer(
                failing,
                self._rerun_in_new_session,
                self._allows,
                _NEW_SESSION_TRIES.get(failing.problem.problem.rule, _NEW_SESSION_TRIES_ELSE),
            )
            if len(steps) > 1 and await reduction.fails(steps):
                await reduction.reduce()
                return reduction.smallest
        return None

    def add(self, failing: FailingSequence, remark: str = "") -> None:
        """Record a failure; `remark` is appended to its text."""
        problem = failing.problem.problem
        text = problem.text + remark
        self._failures.append(
            FuzzFailure(rule=problem.rule, steps=failing.steps, text=text, evidence=failing.problem.evidence)
        )

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._end + _EXTRA_SECONDS

    async def _rerun(self, steps: Steps) -> SequenceResult:
        """Run a sequence again; return an empty result when the time is over."""
        return await self._runner.run(steps) if not self._is_late else SequenceResult()

    async def _rerun_in_new_session(self, steps: Steps) -> SequenceResult:
        """Run a sequence again on a new connection."""
        if not self._is_late:
            await self._client.close()
        return await self._rerun(steps)

    def _allows(self, step: CallStep, arguments: Any) -> bool:
        """Return whether these arguments may replace those of a step; cursors and URIs are never invented."""
        plan = self._plans[step.kind, step.name]
        return not plan.target.needs_pooled_values and plan.allows(step, arguments)
