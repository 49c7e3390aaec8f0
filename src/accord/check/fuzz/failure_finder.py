"""From one case to its faults: what is new is shrunk, and tried again alone, in a conversation of its own.

What does not fail there needs what came before: the calls as they were, or all those of the conversation. These are
made fewer then, each time in a new one.
"""

from __future__ import annotations

import time
from typing import Any

from accord.check.fuzz import response_checks as judged
from accord.check.fuzz.fuzz_client import FuzzClient, FuzzStopped
from accord.check.fuzz.fuzz_result import FuzzFailure
from accord.check.fuzz.sequence_reducer import FailingSequence, SequenceReducer
from accord.check.fuzz.sequence_runner import SequenceResult, SequenceRunner
from accord.check.fuzz.sequences import CallStep, Steps
from accord.check.fuzz.trial_plan import TrialPlan

_TRIES = {judged.CRASH: 40, judged.HANG: 8, judged.UNANSWERED: 2}
_TRIES_ELSE = 80
"""Sequences to shrink one trouble: few where each takes long."""
_NEW_SESSION_TRIES = {judged.CRASH: 24, judged.HANG: 6, judged.UNANSWERED: 0}
_NEW_SESSION_TRIES_ELSE = 24
"""Sequences to find what has to come before; each takes a new conversation."""
_EXTRA_SECONDS = 30.0
"""Seconds beyond the end in which what was found is still shrunk."""
_HISTORY = 300
"""Calls that may have led there, the last ones."""
_NOT_REPRODUCED = "; it was seen once, and not again when the same calls were made in a new conversation"


class FailureFinder:
    """Tries out sequences of calls, and adds what is wrong to `faults`; each kind of trouble once for each subject."""

    def __init__(
        self,
        running: SequenceRunner,
        caller: FuzzClient,
        plans: dict[tuple[str, str], TrialPlan],
        faults: list[FuzzFailure],
        end: float,
    ) -> None:
        self._runner = running
        self._client = caller
        self._plans = plans
        self._failures = faults
        self._end = end
        self._known: set[tuple[str, ...]] = set()

    async def run_case(self, steps: Steps) -> float:
        """Run them, judge, and shrink what is new; how many seconds they took themselves."""
        began = time.monotonic()
        ran = await self._runner.run(steps)
        took = time.monotonic() - began
        for seen in ran.problems:
            step = steps[seen.step_index]
            key = (seen.problem.rule, step.kind, step.name, seen.problem.detail)
            if key not in self._known:
                self._known.add(key)
                await self._minimize(FailingSequence(steps=steps[: seen.step_index + 1], result=ran, problem=seen))
        return took

    async def _minimize(self, failing: FailingSequence) -> None:
        history = self._runner.history[: failing.problem.calls][-_HISTORY:]
        reduction = SequenceReducer(
            failing, self._rerun, self._allows, _TRIES.get(failing.problem.problem.rule, _TRIES_ELSE)
        )
        least, remark = failing, ""
        self._client.skips_late_answers = failing.problem.problem.rule != judged.UNANSWERED
        try:
            await reduction.reduce()
            alone = await self._reproduce(reduction.smallest, (failing.steps, history))
            least, remark = (alone, "") if alone else (reduction.smallest, "" if self._is_late else _NOT_REPRODUCED)
        except FuzzStopped:  # the server does not come back: what is known is told
            least = reduction.smallest
            raise
        finally:
            self._client.skips_late_answers = False
            self.add(least, remark)

    async def _reproduce(self, least: FailingSequence, longer: tuple[Steps, ...]) -> FailingSequence | None:
        """The calls that fail in a new conversation as well: these, or what is left of longer ones; None if none do."""
        once = SequenceReducer(least, self._rerun_in_new_session, self._allows, 1)
        if await once.fails(least.steps):
            return once.smallest
        for steps in longer:
            anew = SequenceReducer(
                least,
                self._rerun_in_new_session,
                self._allows,
                _NEW_SESSION_TRIES.get(least.problem.problem.rule, _NEW_SESSION_TRIES_ELSE),
            )
            if len(steps) > 1 and await anew.fails(steps):
                await anew.reduce()
                return anew.smallest
        return None

    def add(self, failing: FailingSequence, remark: str = "") -> None:
        """Note what is wrong; `remark` follows its words."""
        trouble = failing.problem.problem
        text = trouble.text + remark
        self._failures.append(
            FuzzFailure(rule=trouble.rule, steps=failing.steps, text=text, evidence=failing.problem.evidence)
        )

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._end + _EXTRA_SECONDS

    async def _rerun(self, steps: Steps) -> SequenceResult:
        """Nothing came of it, where there is no time left."""
        return await self._runner.run(steps) if not self._is_late else SequenceResult()

    async def _rerun_in_new_session(self, steps: Steps) -> SequenceResult:
        """The same in a new conversation."""
        if not self._is_late:
            await self._client.close()
        return await self._rerun(steps)

    def _allows(self, step: CallStep, arguments: Any) -> bool:
        """Whether a call may be made in place of another: nobody makes up a cursor, or a URI."""
        plan = self._plans[step.kind, step.name]
        return not plan.target.needs_pooled_values and plan.allows(step, arguments)
