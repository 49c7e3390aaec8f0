"""Generated calls of the tools that may be called, judged one by one; what fails is shrunk to the least that fails.

Each tool has its plan; they take turns, one call each, until the plans are done, or so many cases were tried, or the
time is over. A server that ends, or hangs, is opened again. The same seed gives the same calls, as far as the server
gives the same answers.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from accord.check.blocks import inside
from accord.check.generated import troubles as judged
from accord.check.generated.document import Unserved
from accord.check.generated.growth import MEMORY, Growth
from accord.check.generated.pool import Pool
from accord.check.generated.promises import promise
from accord.check.generated.shrinking import shrunk
from accord.check.generated.trials import Plan, Trial
from accord.check.generated.troubles import Trouble, troubles
from accord.check.opening import Doors
from accord.check.rule import Broken, Unspoken
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import GONE, Answer, Pending
from accord.check.wires.child import ChildWire
from accord.errors import ConnectError

CASE = "generated calls"

_SECONDS = 120.0
"""For all of it. What is found then is still shrunk, a little."""
_SHRINKING = {judged.CRASH: 40, judged.HANG: 8, judged.UNANSWERED: 2}
_LATE = 30.0
"""Seconds beyond the end in which what was found is still shrunk."""
_SHRINKING_ELSE = 80
"""Calls to shrink one trouble: few where each takes long."""
_SLOW = 2
"""Slow answers of a tool before it is left alone."""
_TOOL_SECONDS = 20.0
"""For the calls of one tool; one that takes longer in all is left alone."""
_LINKS = 30
_REOPENED = 60
"""How often a server is opened again."""
_PATIENCE = 2
"""A call that is not answered in time gets so many times longer, if the server answers others meanwhile; none longer
while it is shrunk.
"""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that is broken: by which tool, and for which arguments, the least that were found; by all, if `tool` is
    empty.
    """

    rule: str
    tool: str
    arguments: Any
    text: str
    evidence: tuple[str, ...] = ()

    def broken(self, symptom: str = "") -> Broken:
        """The same as what a case raises."""
        if not self.tool:
            return Broken(self.text, symptom=symptom or self.rule, evidence=self.evidence)
        call = f"{self.tool!r} with {shown(self.arguments)}"
        return Broken(f"{call}: {self.text}", symptom=symptom or f"{self.rule}:{self.tool}", evidence=self.evidence)


class Explored(msgspec.Struct, kw_only=True):
    """What came of it."""

    cases: int = 0
    """Generated and run; calls to shrink what failed are not counted."""
    calls: int = 0
    """All calls."""
    seconds: float = 0.0
    seed: int = 0
    judged: dict[str, int] = msgspec.field(default_factory=dict)
    """By rule: how many answers were looked at."""
    faults: list[Fault] = msgspec.field(default_factory=list)
    unserved: dict[str, str] = msgspec.field(default_factory=dict)
    """Tools for which no arguments could be made: why."""
    stopped: str = ""
    """Why it ended before its plans, if it did."""


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


class _Stop(Exception):
    """There is no point in going on: why."""


class _Exploring:
    """One run."""

    def __init__(self, doors: Doors, cases: int, seconds: float) -> None:
        self._doors = doors
        self._cases = cases
        self._began = time.monotonic()
        self._end = self._began + seconds
        self._talk: Talk | None = None
        self._opened = 0
        self._pool = Pool()
        self._found: set[tuple[str, str, str]] = set()
        self._slow: dict[str, int] = {}
        self._spent: dict[str, float] = {}
        self._shrinking = False
        self._growth = Growth()
        self.explored: Explored = Explored(seed=doors.settings.seed)

    async def run(self) -> None:
        try:
            plans = await self._plans()
            await self._take_turns(plans)
            await self._follow_links()
            await self._keep_promises(plans)
        except _Stop as exc:
            self.explored.stopped = str(exc)
        self.explored.judged[MEMORY] = int(self._growth.judged)
        if self._growth.text:
            self._fault(MEMORY, "", {}, self._growth.text, ())
        self.explored.seconds = round(time.monotonic() - self._began, 3)

    async def close(self) -> None:
        if self._talk is not None:
            await self._talk.close()
        self._talk = None

    async def _plans(self) -> list[Plan]:
        talk = await self._living()
        plans = []
        for tool in await talk.callable():
            try:
                if inside(tool, "execution").get("taskSupport") != "required":
                    plans.append(Plan(tool, self._pool))
            except Unserved as exc:
                self.explored.unserved[str(tool.get("name"))] = str(exc)
        choosing = [plan for plan in plans if plan.has_choice]
        for number, plan in enumerate(choosing):
            await plan.draw(2 * self._cases // len(choosing), self._doors.settings.seed + number)
        return plans

    async def _take_turns(self, plans: list[Plan]) -> None:
        left = list(plans)
        while left:
            for plan in list(left):
                if self._is_over():
                    return
                trial = None if self._takes_long(plan) else plan.next()
                if trial is None:
                    left.remove(plan)
                else:
                    self.explored.cases += 1
                    began = time.monotonic()
                    await self._try(plan, trial)
                    self._weigh()
                    self._spent[plan.name] = self._spent.get(plan.name, 0) + time.monotonic() - began

    def _weigh(self) -> None:
        """Look at the memory of the process, where it is one of ours."""
        wire = self._talk.wire if self._talk is not None else None
        if isinstance(wire, ChildWire):
            self._growth.look(wire.pid, self.explored.calls)

    def _takes_long(self, plan: Plan) -> bool:
        return self._slow.get(plan.name, 0) >= _SLOW or self._spent.get(plan.name, 0) > _TOOL_SECONDS

    def _is_over(self) -> bool:
        return self.explored.cases >= self._cases or time.monotonic() > self._end

    async def _try(self, plan: Plan, trial: Trial) -> None:
        """One case: call, judge, and shrink what is new."""
        for trouble, evidence in await self._call(plan, trial):
            key = (trouble.rule, plan.name, trouble.detail)
            if key not in self._found:
                self._found.add(key)
                await self._shrink(plan, trial, trouble, evidence)

    async def _shrink(self, plan: Plan, trial: Trial, trouble: Trouble, evidence: tuple[str, ...]) -> None:
        least = trial.arguments, trouble, evidence

        async def fails(arguments: Any) -> bool:
            nonlocal least
            for again, bytes_ in await self._call(plan, msgspec.structs.replace(trial, arguments=arguments)):
                if (again.rule, again.detail) == (trouble.rule, trouble.detail):
                    least = arguments, again, bytes_
                    return True
            return False

        def allowed(arguments: Any) -> bool:
            return time.monotonic() < self._end + _LATE and plan.allows(trial, arguments)

        try:
            self._shrinking = True
            if trial.sort == "valid":  # of one thing wrong, the rest is as small as it can be
                await shrunk(trial.arguments, fails, allowed, _SHRINKING.get(trouble.rule, _SHRINKING_ELSE))
        finally:
            self._shrinking = False
            arguments, last, bytes_ = least
            self._fault(last.rule, plan.name, arguments, last.text, bytes_)

    def _fault(self, rule: str, tool: str, arguments: Any, text: str, evidence: tuple[str, ...]) -> None:
        self.explored.faults.append(Fault(rule=rule, tool=tool, arguments=arguments, text=text, evidence=evidence))

    async def _call(self, plan: Plan, trial: Trial) -> list[tuple[Trouble, tuple[str, ...]]]:
        """Make one call; what is wrong with its answer, with the bytes."""
        talk = await self._living()
        self.explored.calls += 1
        pending = talk.begin("tools/call", {"name": plan.name, "arguments": trial.arguments})
        answer = await self._answer(talk, pending)
        if isinstance(answer, Trouble):
            found = [answer]
        elif answer is None:
            found = []
        else:
            self._note(plan, trial)
            found = [
                each for each in troubles(plan, trial, answer, talk.revision) if await self._is_true(talk, plan, each)
            ]
            if trial.sort == "valid" and answer.error is None:
                self._pool.learn(answer.result)
        return [(each, talk.record.evidence(pending.since)) for each in found]

    async def _answer(self, talk: Talk, pending: Pending) -> Answer | Trouble | None:
        """The answer, or what is wrong with its absence; None for one that comes late."""
        try:
            answer = await pending.answer()
        except Broken as exc:
            if exc.symptom.startswith(GONE):
                return await self._crashed(talk)
            return await self._silent(talk, pending)
        if answer.code == 0 and not answer.status and not await _speaks(talk):
            return await self._crashed(talk)
        if judged.is_limited(answer):
            raise _Stop("the server limits how often its tools are called")
        return answer

    async def _crashed(self, talk: Talk) -> Trouble:
        await self.close()
        words = talk.record.stderr.strip().splitlines()[-1:] if talk.record.stderr else []
        code = "" if talk.record.exit_code is None else f" with exit code {talk.record.exit_code}"
        return Trouble(rule=judged.CRASH, text=f"the server ends{code}" + "".join(f": {word[:200]}" for word in words))

    async def _silent(self, talk: Talk, pending: Pending) -> Trouble | None:
        seconds = talk.settings.timeout
        patience = 0 if self._shrinking else _PATIENCE * seconds
        if not await _speaks(talk):
            text = f"no answer in {seconds:g} s, nor to anything else: the whole server hangs"
            await self.close()
            return Trouble(rule=judged.HANG, text=text)
        tool = str(inside(pending.request, "params").get("name"))
        self._slow[tool] = self._slow.get(tool, 0) + 1
        try:
            await pending.answer(patience)
        except Broken as exc:
            if exc.symptom.startswith(GONE):
                return await self._crashed(talk)
            talk.notify("notifications/cancelled", {"requestId": pending.id})
            return Trouble(rule=judged.UNANSWERED, text=f"no answer in {seconds + patience:g} s")
        return None

    async def _is_true(self, talk: Talk, plan: Plan, trouble: Trouble) -> bool:
        """A tool that is not there any more may be refused as it likes."""
        if trouble.rule not in (judged.REFUSED, judged.ARGUMENT_ERRORS):
            return True
        pages = await talk.pages("tools/list", "tools")
        return any(each.get("name") == plan.name for page in pages for each in page["tools"] if isinstance(each, dict))

    def _note(self, plan: Plan, trial: Trial) -> None:
        for rule in _JUDGED[trial.sort]:
            if rule != judged.OUTPUT or "outputSchema" in plan.tool:
                self._count(rule)

    def _count(self, rule: str) -> None:
        self.explored.judged[rule] = self.explored.judged.get(rule, 0) + 1

    async def _follow_links(self) -> None:
        """Resources that tools linked to are read: the server has to live on."""
        for uri in self._pool.links[:_LINKS]:
            self.explored.cases += 1
            talk = await self._living()
            pending = talk.begin("resources/read", {"uri": uri})
            answer = await self._answer(talk, pending)
            if isinstance(answer, Trouble):
                evidence = talk.record.evidence(pending.since)
                self._fault(answer.rule, "resources/read", {"uri": uri}, answer.text, evidence)

    async def _keep_promises(self, plans: list[Plan]) -> None:
        """What annotations say is held against what happens."""
        for plan in plans:
            if self._slow.get(plan.name, 0):
                continue
            try:
                kept = await promise(await self._living(), plan)
            except Broken:  # what ends it, or takes long, was judged before
                continue
            if kept is not None:
                self._count(kept.rule)
            if kept is not None and kept.text:
                self._fault(kept.rule, plan.name, plan.least, kept.text, kept.evidence)

    async def _living(self) -> Talk:
        """The conversation, opened again if it has ended."""
        if self._talk is not None and self._talk.alive:
            return self._talk
        await self.close()
        self._opened += 1
        if self._opened > _REOPENED:
            raise _Stop("the server ended too often")
        try:
            self._talk = await self._doors.open("own", CASE)
            await self._talk.tools()
        except (Broken, ConnectError, Unspoken) as exc:
            if self._opened == 1:
                raise
            raise _Stop(f"the server cannot be opened again: {exc}") from exc
        return self._talk


_ALWAYS = (judged.CRASH, judged.HANG, judged.UNANSWERED, judged.INTERNALS)
_JUDGED: dict[str, tuple[str, ...]] = {
    "valid": (*_ALWAYS, judged.REFUSED, judged.OUTPUT),
    "wrong": (*_ALWAYS, judged.ACCEPTED, judged.LIMITS, judged.ARGUMENT_ERRORS),
}


async def _speaks(talk: Talk) -> bool:
    """Whether the server still answers something harmless."""
    try:
        answer = await talk.request(talk.harmless)
    except Broken:
        return False
    return answer.code != 0 or bool(answer.status)
