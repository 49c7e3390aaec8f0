"""Run generated calls, check each response, and reduce failures to the fewest calls that fail.

Each target has a plan; the plans take turns, one sequence of calls each, until they are complete or the maximum number
of cases or seconds is reached. A server that ends or hangs is opened again. The same seed gives the same calls if the
server gives the same responses in time.
"""

from __future__ import annotations

import time
from typing import Any

from accord.check.engine.rule import Violation
from accord.check.engine.session_factory import SessionFactory
from accord.check.fuzz.failure_finder import FailureFinder
from accord.check.fuzz.fuzz_client import FuzzClient, FuzzStopped
from accord.check.fuzz.fuzz_result import FuzzFailure, FuzzResult
from accord.check.fuzz.fuzz_targets import fuzz_targets
from accord.check.fuzz.hint_checks import check_hints
from accord.check.fuzz.memory_growth import MEMORY, MemoryGrowth
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.sequence_reducer import FailingSequence
from accord.check.fuzz.sequence_runner import SequenceResult, SequenceRunner
from accord.check.fuzz.sequences import Steps
from accord.check.fuzz.trial_plan import TrialPlan
from accord.check.fuzz.value_pool import ValuePool
from accord.errors import TargetError

_SECONDS = 180.0
"""The maximum duration of a run; failures found until then are still reduced for a short time."""
_MAX_RANDOM_PLANS = 100
"""The maximum number of targets with random arguments, because generating them takes time."""
_SLOW = 2
"""The number of late responses after which a target is not called any more."""
_TOOL_SECONDS = 20.0
"""The total duration of the calls of one target after which it is not called any more."""


async def run_fuzzing(factory: SessionFactory, *, cases: int, seconds: float = _SECONDS) -> FuzzResult:
    """Run at most `cases` cases for at most `seconds`. Raises `Violation`, `UnsupportedRevision`, `ConnectError` if the
    server cannot be opened the first time.
    """
    run = _FuzzRun(factory, cases, seconds)
    try:
        await run.run()
    finally:
        await run.close()
    return run.result


async def replay_sequence(factory: SessionFactory, steps: Steps) -> FuzzResult:
    """Make exactly these calls. Raises what `run_fuzzing` raises, and `TargetError` for calls that are not allowed."""
    run = _FuzzRun(factory, 1, _SECONDS)
    try:
        await run.replay(steps)
    finally:
        await run.close()
    return run.result


class _FuzzRun:
    """One run."""

    def __init__(self, factory: SessionFactory, cases: int, seconds: float) -> None:
        self._settings = factory.settings
        self._cases = cases
        self._began = time.monotonic()
        self._seconds = seconds
        self._end = self._began + seconds
        self._client = FuzzClient(factory)
        self._pool = ValuePool()
        self._plans: dict[tuple[str, str], TrialPlan] = {}
        self._seconds_by_target: dict[str, float] = {}
        self._memory_growth = MemoryGrowth()
        self.result: FuzzResult = FuzzResult(seed=factory.settings.seed)
        self._runner = SequenceRunner(self._client, self._plans, self._pool, self.result)
        self._finder = FailureFinder(self._runner, self._client, self._plans, self.result.failures, self._end)

    async def run(self) -> None:
        try:
            await self._create_plans()
            plans = list(self._plans.values())
            await self._draw_arguments(plans)
            await self._run_plans(plans)
            await self._check_all_hints(plans)
        except FuzzStopped as exc:
            self.result.stop_reason = str(exc)
        self.result.judged_counts[MEMORY] = int(self._memory_growth.is_conclusive)
        if self._memory_growth.problem:
            self.result.failures.append(FuzzFailure(rule=MEMORY, steps=(), text=self._memory_growth.problem))
        self.result.seconds = round(time.monotonic() - self._began, 3)

    async def replay(self, steps: Steps) -> None:
        """Make these calls and check them, without reducing failures."""
        await self._create_plans()
        unknown = [str(step) for step in steps if (step.kind, step.name) not in self._plans]
        if unknown:
            raise TargetError(
                f"unknown, or may not be called: {', '.join(unknown)}; see `accord list` and --call-tools"
            )
        try:
            if len(steps) == 1:
                await self._check_hints(self._plans[steps[0].kind, steps[0].name], steps[0].arguments)
            self.result.cases = 1
            for found in (await self._runner.run(steps)).problems:
                self._finder.add(
                    FailingSequence(steps=steps[: found.step_index + 1], result=SequenceResult(), problem=found)
                )
        except FuzzStopped as exc:
            self.result.stop_reason = str(exc)

    async def close(self) -> None:
        await self._client.close()

    async def _create_plans(self) -> None:
        for target in await fuzz_targets(await self._client.probe(), self.result.over_limit):
            try:
                self._plans[target.key] = TrialPlan(target, self._pool)
            except GenerationError as exc:
                self.result.not_generated[target.name] = str(exc)

    async def _draw_arguments(self, plans: list[TrialPlan]) -> None:
        varying = [plan for plan in plans if plan.has_choice]
        if len(varying) > _MAX_RANDOM_PLANS:
            self.result.over_limit.append(
                f"of {len(varying)} schemas, the first {_MAX_RANDOM_PLANS} got random arguments"
            )
            del varying[_MAX_RANDOM_PLANS:]
        for number, plan in enumerate(varying):
            await plan.draw(2 * self._cases // len(varying), self._settings.seed + number)

    async def _run_plans(self, plans: list[TrialPlan]) -> None:
        """Run the plans in turns. A plan without calls may get more later, with values from other results."""
        while True:
            before = self.result.cases
            for plan in plans:
                if self._is_over():
                    return
                steps = None if self._is_slow(plan) else plan.next()
                if steps is not None:
                    await self._run_case(plan, steps)
            if self.result.cases == before:
                return

    async def _run_case(self, plan: TrialPlan, steps: Steps) -> None:
        self.result.cases += 1
        self.result.sequences += len(steps) > 1
        seconds = await self._finder.run_case(steps)
        if self._client.pid:
            self._memory_growth.sample(self._client.pid, self.result.calls)
        self._seconds_by_target[plan.name] = self._seconds_by_target.get(plan.name, 0) + seconds

    def _is_slow(self, plan: TrialPlan) -> bool:
        is_slow = (
            self._client.slow_calls.get(plan.name, 0) >= _SLOW
            or self._seconds_by_target.get(plan.name, 0) > _TOOL_SECONDS
        )
        if is_slow and plan.name not in self.result.slow_targets:
            self.result.slow_targets.append(plan.name)
        return is_slow

    def _is_over(self) -> bool:
        if self.result.cases >= self._cases:
            return True
        if time.monotonic() > self._end:
            self.result.stop_reason = (
                f"the limit of {self._seconds:g} s was reached after {self.result.cases} of {self._cases} cases"
            )
        return bool(self.result.stop_reason)

    async def _check_all_hints(self, plans: list[TrialPlan]) -> None:
        for plan in plans:
            if not self._client.slow_calls.get(plan.name, 0):
                await self._check_hints(plan, plan.minimal_arguments)

    async def _check_hints(self, plan: TrialPlan, arguments: Any) -> None:
        """Compare the annotations of a tool with its behaviour."""
        try:
            result = await check_hints(await self._client.probe(), plan.target, arguments)
        except Violation:  # other rules judge a server that ends or is slow
            return
        if result is not None:
            self.result.count_judged(result.rule)
        if result is not None and result.text:
            steps = (plan.step(arguments),)
            self.result.failures.append(
                FuzzFailure(rule=result.rule, steps=steps, text=result.text, evidence=result.evidence)
            )
