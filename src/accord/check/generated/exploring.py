"""Generated calls of what may be called, judged one by one; what fails is shrunk to the fewest calls that fail.

Everything that can be called has its plan; the plans take turns, one sequence of calls each, until they are done, or so
many cases were tried, or the time is over. A server that ends, or hangs, is opened again. The same seed gives the same
calls, as far as the server gives the same answers, in time.
"""

from __future__ import annotations

import time
from typing import Any

from accord.check.generated.calling import Caller, Stop
from accord.check.generated.document import Unserved
from accord.check.generated.faults import Explored, Fault
from accord.check.generated.finding import Finding
from accord.check.generated.growth import MEMORY, Growth
from accord.check.generated.pool import Pool
from accord.check.generated.promises import promise
from accord.check.generated.reducing import Failing
from accord.check.generated.running import Ran, Running
from accord.check.generated.sequences import Steps
from accord.check.generated.subjects import subjects
from accord.check.generated.trials import Plan
from accord.check.opening import Doors
from accord.check.rule import Broken
from accord.errors import TargetError

_SECONDS = 180.0
"""For all of it. What is found until then is still shrunk, a little."""
_DRAWN = 100
"""What gets arguments by chance, at most: to make them takes time as well."""
_SLOW = 2
"""Slow answers of a tool before it is left alone."""
_TOOL_SECONDS = 20.0
"""For the calls of one tool; one that takes longer in all is left alone."""


async def explore(doors: Doors, *, cases: int, seconds: float = _SECONDS) -> Explored:
    """Try so many cases at most, for so many seconds at most. Raises `Broken`, `Unspoken`, `ConnectError` where the
    server cannot be opened to begin with.
    """
    exploring = _Exploring(doors, cases, seconds)
    try:
        await exploring.run()
    finally:
        await exploring.close()
    return exploring.explored


async def repeat(doors: Doors, steps: Steps) -> Explored:
    """Make just these calls. Raises what `explore` does, and `TargetError` for what may not be called."""
    exploring = _Exploring(doors, 1, _SECONDS)
    try:
        await exploring.repeat(steps)
    finally:
        await exploring.close()
    return exploring.explored


class _Exploring:
    """One run."""

    def __init__(self, doors: Doors, cases: int, seconds: float) -> None:
        self._settings = doors.settings
        self._cases = cases
        self._began = time.monotonic()
        self._seconds = seconds
        self._end = self._began + seconds
        self._caller = Caller(doors)
        self._pool = Pool()
        self._plans: dict[tuple[str, str], Plan] = {}
        self._spent: dict[str, float] = {}
        self._growth = Growth()
        self.explored: Explored = Explored(seed=doors.settings.seed)
        self._running = Running(self._caller, self._plans, self._pool, self.explored)
        self._finding = Finding(self._running, self._caller, self._plans, self.explored.faults, self._end)

    async def run(self) -> None:
        try:
            await self._plan()
            plans = list(self._plans.values())
            await self._draw(plans)
            await self._take_turns(plans)
            await self._keep_promises(plans)
        except Stop as exc:
            self.explored.stopped = str(exc)
        self.explored.judged[MEMORY] = int(self._growth.judged)
        if self._growth.text:
            self.explored.faults.append(Fault(rule=MEMORY, steps=(), text=self._growth.text))
        self.explored.seconds = round(time.monotonic() - self._began, 3)

    async def repeat(self, steps: Steps) -> None:
        """Judge these calls, and shrink nothing."""
        await self._plan()
        unknown = [str(step) for step in steps if (step.kind, step.name) not in self._plans]
        if unknown:
            raise TargetError(f"there is no such thing, or it may not be called: {', '.join(unknown)}")
        try:
            if len(steps) == 1:
                await self._keep_promise(self._plans[steps[0].kind, steps[0].name], steps[0].arguments)
            self.explored.cases = 1
            for seen in (await self._running.run(steps)).seen:
                self._finding.add(Failing(steps=steps[: seen.at + 1], ran=Ran(), seen=seen))
        except Stop as exc:
            self.explored.stopped = str(exc)

    async def close(self) -> None:
        await self._caller.close()

    async def _plan(self) -> None:
        for subject in await subjects(await self._caller.talk(), self.explored.beyond):
            try:
                self._plans[subject.key] = Plan(subject, self._pool)
            except Unserved as exc:
                self.explored.unserved[subject.name] = str(exc)

    async def _draw(self, plans: list[Plan]) -> None:
        choosing = [plan for plan in plans if plan.has_choice]
        if len(choosing) > _DRAWN:
            self.explored.beyond.append(f"of {len(choosing)} schemas the first {_DRAWN} got arguments by chance")
            del choosing[_DRAWN:]
        for number, plan in enumerate(choosing):
            await plan.draw(2 * self._cases // len(choosing), self._settings.seed + number)

    async def _take_turns(self, plans: list[Plan]) -> None:
        """A plan that has nothing left may get something later: what others find is fed to it."""
        while True:
            before = self.explored.cases
            for plan in plans:
                if self._is_over():
                    return
                steps = None if self._takes_long(plan) else plan.next()
                if steps is not None:
                    await self._try(plan, steps)
            if self.explored.cases == before:
                return

    async def _try(self, plan: Plan, steps: Steps) -> None:
        """One case."""
        self.explored.cases += 1
        self.explored.sequences += len(steps) > 1
        took = await self._finding.try_out(steps)
        if self._caller.pid:
            self._growth.look(self._caller.pid, self.explored.calls)
        self._spent[plan.name] = self._spent.get(plan.name, 0) + took

    def _takes_long(self, plan: Plan) -> bool:
        is_slow = self._caller.slow.get(plan.name, 0) >= _SLOW or self._spent.get(plan.name, 0) > _TOOL_SECONDS
        if is_slow and plan.name not in self.explored.slow:
            self.explored.slow.append(plan.name)
        return is_slow

    def _is_over(self) -> bool:
        if self.explored.cases >= self._cases:
            return True
        if time.monotonic() > self._end:
            self.explored.stopped = f"{self._seconds:g} s were over after {self.explored.cases} of {self._cases} cases"
        return bool(self.explored.stopped)

    async def _keep_promises(self, plans: list[Plan]) -> None:
        for plan in plans:
            if not self._caller.slow.get(plan.name, 0):
                await self._keep_promise(plan, plan.least)

    async def _keep_promise(self, plan: Plan, arguments: Any) -> None:
        """What annotations say is held against what happens."""
        try:
            kept = await promise(await self._caller.talk(), plan.subject, arguments)
        except Broken:  # what ends it, or takes long, is judged elsewhere
            return
        if kept is not None:
            self.explored.note(kept.rule)
        if kept is not None and kept.text:
            steps = (plan.step(arguments),)
            self.explored.faults.append(Fault(rule=kept.rule, steps=steps, text=kept.text, evidence=kept.evidence))
