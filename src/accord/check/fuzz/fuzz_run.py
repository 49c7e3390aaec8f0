"""Generated calls of what may be called, judged one by one; what fails is shrunk to the fewest calls that fail.

Everything that can be called has its plan; the plans take turns, one sequence of calls each, until they are done, or so
many cases were tried, or the time is over. A server that ends, or hangs, is opened again. The same seed gives the same
calls, as far as the server gives the same answers, in time.
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
"""For all of it. What is found until then is still shrunk, a little."""
_MAX_RANDOM_PLANS = 100
"""What gets arguments by chance, at most: to make them takes time as well."""
_SLOW = 2
"""Slow answers of a tool before it is left alone."""
_TOOL_SECONDS = 20.0
"""For the calls of one tool; one that takes longer in all is left alone."""


async def run_fuzzing(factory: SessionFactory, *, cases: int, seconds: float = _SECONDS) -> FuzzResult:
    """Try so many cases at most, for so many seconds at most. Raises `Violation`, `UnsupportedRevision`, `ConnectError`
    where the server cannot be opened to begin with.
    """
    exploring = _FuzzRun(factory, cases, seconds)
    try:
        await exploring.run()
    finally:
        await exploring.close()
    return exploring.result


async def replay_sequence(factory: SessionFactory, steps: Steps) -> FuzzResult:
    """Make just these calls. Raises what `run_fuzzing` does, and `TargetError` for what may not be called."""
    exploring = _FuzzRun(factory, 1, _SECONDS)
    try:
        await exploring.replay(steps)
    finally:
        await exploring.close()
    return exploring.result


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
        """Judge these calls, and shrink nothing."""
        await self._create_plans()
        unknown = [str(step) for step in steps if (step.kind, step.name) not in self._plans]
        if unknown:
            raise TargetError(f"there is no such thing, or it may not be called: {', '.join(unknown)}")
        try:
            if len(steps) == 1:
                await self._check_hints(self._plans[steps[0].kind, steps[0].name], steps[0].arguments)
            self.result.cases = 1
            for seen in (await self._runner.run(steps)).problems:
                self._finder.add(
                    FailingSequence(steps=steps[: seen.step_index + 1], result=SequenceResult(), problem=seen)
                )
        except FuzzStopped as exc:
            self.result.stop_reason = str(exc)

    async def close(self) -> None:
        await self._client.close()

    async def _create_plans(self) -> None:
        for subject in await fuzz_targets(await self._client.probe(), self.result.over_limit):
            try:
                self._plans[subject.key] = TrialPlan(subject, self._pool)
            except GenerationError as exc:
                self.result.not_generated[subject.name] = str(exc)

    async def _draw_arguments(self, plans: list[TrialPlan]) -> None:
        choosing = [plan for plan in plans if plan.has_choice]
        if len(choosing) > _MAX_RANDOM_PLANS:
            self.result.over_limit.append(
                f"of {len(choosing)} schemas the first {_MAX_RANDOM_PLANS} got arguments by chance"
            )
            del choosing[_MAX_RANDOM_PLANS:]
        for number, plan in enumerate(choosing):
            await plan.draw(2 * self._cases // len(choosing), self._settings.seed + number)

    async def _run_plans(self, plans: list[TrialPlan]) -> None:
        """A plan that has nothing left may get something later: what others find is fed to it."""
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
        """One case."""
        self.result.cases += 1
        self.result.sequences += len(steps) > 1
        took = await self._finder.run_case(steps)
        if self._client.pid:
            self._memory_growth.sample(self._client.pid, self.result.calls)
        self._seconds_by_target[plan.name] = self._seconds_by_target.get(plan.name, 0) + took

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
            self.result.stop_reason = f"{self._seconds:g} s were over after {self.result.cases} of {self._cases} cases"
        return bool(self.result.stop_reason)

    async def _check_all_hints(self, plans: list[TrialPlan]) -> None:
        for plan in plans:
            if not self._client.slow_calls.get(plan.name, 0):
                await self._check_hints(plan, plan.minimal_arguments)

    async def _check_hints(self, plan: TrialPlan, arguments: Any) -> None:
        """What annotations say is held against what happens."""
        try:
            kept = await check_hints(await self._client.probe(), plan.target, arguments)
        except Violation:  # what ends it, or takes long, is judged elsewhere
            return
        if kept is not None:
            self.result.count_judged(kept.rule)
        if kept is not None and kept.text:
            steps = (plan.step(arguments),)
            self.result.failures.append(
                FuzzFailure(rule=kept.rule, steps=steps, text=kept.text, evidence=kept.evidence)
            )
