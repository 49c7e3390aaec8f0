"""From one case to its faults: what is new is shrunk, and tried again alone, in a conversation of its own.

What does not fail there needs what came before: the calls as they were, or all those of the conversation. These are
made fewer then, each time in a new one.
"""

from __future__ import annotations

import time
from typing import Any

from accord.check.generated import troubles as judged
from accord.check.generated.calling import Caller, Stop
from accord.check.generated.faults import Fault
from accord.check.generated.reducing import Failing, Reduction
from accord.check.generated.running import Ran, Running
from accord.check.generated.sequences import Step, Steps
from accord.check.generated.trials import Plan

_TRIES = {judged.CRASH: 40, judged.HANG: 8, judged.UNANSWERED: 2}
_TRIES_ELSE = 80
"""Sequences to shrink one trouble: few where each takes long."""
_ANEW = {judged.CRASH: 24, judged.HANG: 6, judged.UNANSWERED: 0}
_ANEW_ELSE = 24
"""Sequences to find what has to come before; each takes a new conversation."""
_LATE = 30.0
"""Seconds beyond the end in which what was found is still shrunk."""
_HISTORY = 300
"""Calls that may have led there, the last ones."""
_ONCE = "; it was seen once, and not again when the same calls were made in a new conversation"


class Finding:
    """Tries out sequences of calls, and adds what is wrong to `faults`; each kind of trouble once for each subject."""

    def __init__(
        self, running: Running, caller: Caller, plans: dict[tuple[str, str], Plan], faults: list[Fault], end: float
    ) -> None:
        self._running = running
        self._caller = caller
        self._plans = plans
        self._faults = faults
        self._end = end
        self._known: set[tuple[str, ...]] = set()

    async def try_out(self, steps: Steps) -> float:
        """Run them, judge, and shrink what is new; how many seconds they took themselves."""
        began = time.monotonic()
        ran = await self._running.run(steps)
        took = time.monotonic() - began
        for seen in ran.seen:
            step = steps[seen.at]
            key = (seen.trouble.rule, step.kind, step.name, seen.trouble.detail)
            if key not in self._known:
                self._known.add(key)
                await self._least(Failing(steps=steps[: seen.at + 1], ran=ran, seen=seen))
        return took

    async def _least(self, failing: Failing) -> None:
        history = self._running.history[: failing.seen.calls][-_HISTORY:]
        reduction = Reduction(failing, self._again, self._allows, _TRIES.get(failing.seen.trouble.rule, _TRIES_ELSE))
        least, remark = failing, ""
        self._caller.hurried = failing.seen.trouble.rule != judged.UNANSWERED
        try:
            await reduction.reduce()
            alone = await self._alone(reduction.least, (failing.steps, history))
            least, remark = (alone, "") if alone else (reduction.least, "" if self._is_late else _ONCE)
        except Stop:  # the server does not come back: what is known is told
            least = reduction.least
            raise
        finally:
            self._caller.hurried = False
            self.add(least, remark)

    async def _alone(self, least: Failing, longer: tuple[Steps, ...]) -> Failing | None:
        """The calls that fail in a new conversation as well: these, or what is left of longer ones; None if none do."""
        once = Reduction(least, self._anew, self._allows, 1)
        if await once.fails(least.steps):
            return once.least
        for steps in longer:
            anew = Reduction(least, self._anew, self._allows, _ANEW.get(least.seen.trouble.rule, _ANEW_ELSE))
            if len(steps) > 1 and await anew.fails(steps):
                await anew.reduce()
                return anew.least
        return None

    def add(self, failing: Failing, remark: str = "") -> None:
        """Note what is wrong; `remark` follows its words."""
        trouble = failing.seen.trouble
        text = trouble.text + remark
        self._faults.append(Fault(rule=trouble.rule, steps=failing.steps, text=text, evidence=failing.seen.evidence))

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._end + _LATE

    async def _again(self, steps: Steps) -> Ran:
        """Nothing came of it, where there is no time left."""
        return await self._running.run(steps) if not self._is_late else Ran()

    async def _anew(self, steps: Steps) -> Ran:
        """The same in a new conversation."""
        if not self._is_late:
            await self._caller.close()
        return await self._again(steps)

    def _allows(self, step: Step, arguments: Any) -> bool:
        """Whether a call may be made in place of another: nobody makes up a cursor, or a URI."""
        plan = self._plans[step.kind, step.name]
        return not plan.subject.is_fed_only and plan.allows(step, arguments)
