"""One visit: every case that applies in one revision over one transport, and what came of each.

Shared cases run one after the other in one conversation, which is opened again when one of them ends it. Those with a
conversation of their own run side by side. What reads comes last, with the records of all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from accord.check.budget import Budget
from accord.check.exercise import exercise
from accord.check.generated.exploring import explore, repeat
from accord.check.generated.faults import Explored
from accord.check.generated.sequences import parsed
from accord.check.notes import Notes, Watcher
from accord.check.opening import Doors
from accord.check.report import Outcome, Visit, counts, score
from accord.check.rule import Broken, Case, NotObserved, Rule, Unreached, Unspoken
from accord.check.talk import Talk
from accord.check.values import declares
from accord.errors import AccordError, describe
from accord.messages.base import JSONObject

_CASE_TIMEOUTS = 8
"""A case may take this many times as long as one answer."""
_DEATHS = 5
"""So often a shared conversation is opened again."""

Judge = Callable[[], Any]


class Visiting:
    """One visit by `doors` to try `rules`."""

    def __init__(self, doors: Doors, rules: Iterable[Rule], watcher: Watcher) -> None:
        self._doors = doors
        self._settings = doors.settings
        self._cases = [(rule, case) for rule in rules for case in rule.cases_in(doors.revision, doors.transport)]
        self._watcher = watcher
        self._shared: Talk | None = None
        self._deaths = 0
        self._notes = Notes(doors.revision, doors.transport, watcher)
        self._budget = Budget(doors.settings.timeout, doors.room)
        self._left_out: tuple[str, ...] = ()
        self.name: str = ""
        self.unspoken: str = ""
        """Why the revision is not spoken, if it is not."""
        self.reached: bool = True
        """Whether anything came that is a message of the protocol."""
        self.explored: Explored | None = None
        """What came of the generated calls, if there were any."""

    @property
    def outcomes(self) -> list[Outcome]:
        """What came of every case."""
        return self._notes.outcomes

    async def run(self) -> Visit | None:
        """Try them all. None where the server does not speak the revision."""
        began = time.monotonic()
        try:
            await self._open()
        except (Unspoken, Broken, NotObserved) as exc:
            self.unspoken = str(exc)
            self.reached = isinstance(exc, Unspoken) and not isinstance(exc, Unreached)
            return None
        error = ""
        self._watcher.visit_began(self._doors.revision, self._doors.transport, len(self._cases))
        try:
            await self._try_all()
        except (Broken, AccordError, Unspoken, NotObserved) as exc:
            error = describe(exc)
        finally:
            await self._doors.close()
        error = error or self._budget.spent
        self._read()
        error = error or "; ".join(self._notes.defects)
        visit = Visit(
            revision=self._doors.revision,
            transport=self._doors.transport,
            score=score(self.outcomes, whole=not error),
            seconds=round(time.monotonic() - began, 3),
            counts=counts(self.outcomes),
            error=error,
            left_out=self._left_out,
        )
        self._watcher.visit_ended(visit)
        return visit

    async def _open(self) -> Talk:
        self._shared = await self._doors.open("shared")
        info = self._shared.server_info
        self.name = self.name or f"{info.get('name', '')} {info.get('version', '')}".strip()
        return self._shared

    async def _try_all(self) -> None:
        for rule, case in self._of("shared"):
            await self._in_shared(rule, case)
        talk = await self._living()
        if talk is not None and not self._budget.spent:
            self._left_out += await exercise(talk, self._budget.ordinary)
        gate = asyncio.Semaphore(self._settings.jobs)
        async with asyncio.TaskGroup() as group:
            for rule, case in [*self._of("own"), *self._of("raw")]:
                group.create_task(self._in_own(rule, case, gate))
        await self._generate()

    async def _generate(self) -> None:
        """Make the generated calls once, and let every rule about them judge."""
        cases = self._of("generated")
        talk = await self._living() if cases else None
        if talk is None:
            for rule, case in cases:
                self._notes.add(rule, case, "not-observed", "the server ended too often before")
            return
        if self._settings.sequence:
            self.explored = await repeat(self._doors, parsed(self._settings.sequence))
        elif self._settings.cases:
            self.explored = await explore(self._doors, cases=self._settings.cases)
        if self.explored is not None:
            self._left_out += self.explored.left_out
            self._budget.spend_apart(self.explored.seconds)
        for rule, case in cases:
            await self._try(rule, case, talk, partial(self._judge_generated, rule, case, talk))

    async def _judge_generated(self, rule: Rule, case: Case, talk: Talk) -> None:
        if self.explored is None:
            raise NotObserved("no generated calls are wanted (--call-tools, --cases)")
        broken = case.run(self.explored)
        if not broken and not self.explored.judged.get(rule.id):
            raise NotObserved("no generated call was of the kind")
        for each in broken[1:]:
            self._notes.judge(rule, case, each)
        if broken:
            raise broken[0]

    def _of(self, kind: str) -> list[tuple[Rule, Case]]:
        return [(rule, case) for rule, case in self._cases if case.kind == kind]

    async def _living(self) -> Talk | None:
        """The shared conversation, opened again if it has ended; None when it ends too often."""
        if self._shared is not None and self._shared.alive:
            return self._shared
        self._deaths += 1
        if self._deaths > _DEATHS or self._budget.spent:
            return None
        return await self._open()

    async def _in_shared(self, rule: Rule, case: Case) -> None:
        talk = await self._living()
        if talk is None:
            self._notes.add(rule, case, "not-observed", self._budget.spent or "the server ended too often before")
            return
        talk.record.case = case.says
        try:
            await self._try(rule, case, talk, lambda: case.run(talk))
        finally:
            talk.record.case = ""

    async def _in_own(self, rule: Rule, case: Case, gate: asyncio.Semaphore) -> None:
        async with gate:
            known = self._shared or self._doors.opened[0]
            await self._try(rule, case, known, lambda: self._run_alone(case))

    async def _run_alone(self, case: Case) -> None:
        if case.kind == "raw":
            talk = await self._doors.raw(case.kind, case.says)
        else:
            talk = await self._doors.open(case.kind, case.says, capabilities=case.capabilities)
        try:
            talk.hello = talk.hello or (self._shared.hello if self._shared else {})
            await case.run(talk)
        except Broken as exc:
            exc.evidence = exc.evidence or talk.record.evidence()
            raise
        finally:
            await self._doors.end(talk)

    async def _try(self, rule: Rule, case: Case, talk: Talk, run: Judge) -> None:
        """Run one case, in bounded time, and note its verdict."""
        if case.needs is not None and not talk.has(case.needs):
            self._notes.add(rule, case, "not-applicable", f"the server does not declare {case.needs}")
            return
        if self._budget.spent:
            self._notes.add(rule, case, "not-observed", self._budget.spent)
            return
        began = time.monotonic()
        if case.calls and not await self._has_callable(talk):
            self._budget.failed(time.monotonic() - began)
            self._notes.add(rule, case, "not-observed", "no tool may be called (--call-tools)")
            return
        since = len(talk.record.entries)
        limit = self._settings.timeout * _CASE_TIMEOUTS + self._settings.opening
        try:
            async with asyncio.timeout(min(limit, self._budget.left)):
                await run()
        except Exception as exc:
            if isinstance(exc, TimeoutError) and not self._budget.left:
                exc = NotObserved(self._budget.spent)
            if isinstance(exc, Broken | TimeoutError):
                self._budget.failed(time.monotonic() - began)
            self._notes.judge(rule, case, exc, talk.record.evidence(since), began)
        else:
            self._notes.add(rule, case, "pass", seconds=time.monotonic() - began)

    async def _has_callable(self, talk: Talk) -> bool:
        try:
            return bool(await talk.callable())
        except (Broken, NotObserved):
            return False

    def _read(self) -> None:
        for rule, case in self._of("reading"):
            self._read_one(rule, case)

    def _read_one(self, rule: Rule, case: Case) -> None:
        records = self._doors.records
        if case.needs is not None and not any(_declares(record.hello, case.needs) for record in records):
            self._notes.add(rule, case, "not-applicable", f"the server does not declare {case.needs}")
            return
        try:
            judged = case.run(records)
        except Exception as exc:
            for each in (exc, *(exc.more if isinstance(exc, Broken) else ())):
                self._notes.judge(rule, case, each)
        else:
            if judged:
                self._notes.add(rule, case, "pass")
            else:
                self._notes.add(rule, case, "not-observed", "nothing of the kind passed")


def _declares(hello: JSONObject, path: str) -> bool:
    return declares(hello.get("capabilities") or {}, path)
