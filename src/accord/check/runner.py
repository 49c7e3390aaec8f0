"""One visit: every case that applies in one revision over one transport, and what came of each.

First the shared cases, then ordinary traffic, then the cases with conversations of their own, side by side. What has
failed is tried again alone. What reads comes last, with the records of all. Where only some rules are wanted, and some
of them read, the cases of the other rules run as well: a rule that reads has the verdict of a whole run then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from accord.check.attempts import Attempt, Attempts, Timer
from accord.check.budget import Budget
from accord.check.confirming import Confirming
from accord.check.exercise import exercise
from accord.check.generated.exploring import explore, repeat
from accord.check.generated.faults import Explored
from accord.check.generated.sequences import parsed
from accord.check.notes import Notes, Unwatched, Watcher
from accord.check.opening import Doors
from accord.check.report import Outcome, Visit, counts, score
from accord.check.rule import Broken, Case, NotObserved, Rule, Unreached, Unspoken
from accord.check.values import declares
from accord.errors import AccordError, describe
from accord.messages.base import JSONObject

Cases: TypeAlias = list[tuple[Rule, Case]]
Note: TypeAlias = Callable[[Attempt], None]


class Visiting:
    """One visit by `doors` to try the cases that are `wanted`; those of `company` only make traffic to be read."""

    def __init__(self, doors: Doors, wanted: Cases, watcher: Watcher, company: Cases) -> None:
        self._doors = doors
        self._settings = doors.settings
        self._cases = wanted
        self._company = company
        self._watcher = watcher
        self._notes = Notes(doors.revision, doors.transport, watcher)
        self._unwatched = Notes(doors.revision, doors.transport, Unwatched())
        """For the company, of which nothing is reported."""
        self._budget = Budget(doors.settings.timeout, doors.room)
        self._attempts = Attempts(doors, self._budget)
        self._failures: list[Attempt] = []
        self._left_out: tuple[str, ...] = ()
        self._unconfirmed: tuple[str, ...] = ()
        self.name: str = ""
        self.unspoken: str = ""
        """Why the revision is not spoken, if it is not."""
        self.reached: bool = True
        """Whether anything came that is a message of the protocol."""
        self.visit: Visit | None = None
        """What came of it, once it has ended; also where it was cancelled."""
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
        self._watcher.visit_began(self._doors.revision, self._doors.transport, len(self._cases))
        error = "it was interrupted"
        try:
            await self._try_all()
            error = ""
        except (Broken, AccordError, Unspoken, NotObserved) as exc:
            error = describe(exc)
        finally:
            try:
                await self._doors.close()
            finally:  # also where it is interrupted just now
                self.visit = self._ended(began, error)
        self._watcher.visit_ended(self.visit)
        return self.visit

    def _ended(self, began: float, error: str) -> Visit:
        """What was tried so far, judged."""
        error = error or self._budget.spent
        self._read()
        error = error or "; ".join(self._notes.defects)
        return Visit(
            revision=self._doors.revision,
            transport=self._doors.transport,
            score=score(self.outcomes, whole=not error),
            seconds=round(time.monotonic() - began, 3),
            counts=counts(self.outcomes),
            error=error,
            left_out=self._left_out,
            unconfirmed=self._unconfirmed,
        )

    async def _open(self) -> None:
        info = (await self._attempts.open()).server_info
        self.name = f"{info.get('name', '')} {info.get('version', '')}".strip()

    async def _try_all(self) -> None:
        try:
            await self._in_shared(self._cases, self._failures_last)
            talk = await self._attempts.living()
            if talk is not None and not self._budget.spent:
                self._left_out += await exercise(talk, self._budget.ordinary)
            await self._in_own(self._cases, self._failures_last)
            await self._keep_company()
            await self._confirm()
        finally:
            for attempt in self._failures:  # it ended before they could be tried again
                self._settle(attempt)
        await self._generate(self._cases, self._notes)

    async def _in_shared(self, cases: Cases, note: Note) -> None:
        for rule, case in _of(cases, "shared"):
            note(await self._attempts.in_shared(rule, case))

    async def _in_own(self, cases: Cases, note: Note) -> None:
        """Side by side; those that may share a process over stdio are one of the sides."""
        gate = asyncio.Semaphore(self._settings.jobs)
        own = [*_of(cases, "own"), *_of(cases, "raw")]
        in_turn = [each for each in own if each[1].shares and self._doors.transport == "stdio"]

        async def together() -> None:
            async with gate:
                await self._attempts.in_turn(in_turn, note)

        async def alone(rule: Rule, case: Case) -> None:
            async with gate:
                note(await self._attempts.alone(rule, case))

        async with asyncio.TaskGroup() as group:
            group.create_task(together())
            for rule, case in own:
                if (rule, case) not in in_turn:
                    group.create_task(alone(rule, case))

    async def _keep_company(self) -> None:
        """Let the other cases make traffic, as long as a rule that reads may still find something in it."""
        for part in (self._in_shared, self._in_own):
            if not self._still_reading():
                return
            await part(self._company, lambda attempt: None)
        if self._still_reading():
            await self._generate(self._company, self._unwatched)

    def _still_reading(self) -> bool:
        """Whether there is company, and a rule that reads and is not known to be broken."""
        return bool(self._company) and any(not self._is_broken(case) for _, case in _of(self._cases, "reading"))

    def _is_broken(self, case: Case) -> bool:
        if not self._is_declared(case):
            return True  # there is nothing more to find
        try:
            case.run(self._doors.records)
        except Broken:
            return True
        except Exception:  # `_read` notes it as a defect
            return True
        return False

    def _failures_last(self, attempt: Attempt) -> None:
        """Note a verdict; what has failed is to be tried again first."""
        if attempt.failed:
            self._failures.append(attempt)
        else:
            self._settle(attempt)

    def _settle(self, attempt: Attempt) -> None:
        if attempt.error is None:
            self._notes.add(attempt.rule, attempt.case, "pass", seconds=attempt.seconds)
        else:
            self._notes.judge(attempt.rule, attempt.case, attempt.error, attempt.evidence, attempt.seconds)

    async def _confirm(self) -> None:
        confirming = Confirming(self._doors, self._attempts.shared)
        confirmed = await confirming.confirm(self._failures)
        self._failures.clear()
        for attempt in confirmed:
            self._settle(attempt)
        self._unconfirmed = tuple(confirming.unconfirmed)

    async def _generate(self, cases: Cases, notes: Notes) -> None:
        """Make the generated calls once, and let every rule about them judge."""
        cases = _of(cases, "generated")
        talk = await self._attempts.living() if cases else None
        if talk is None:
            for rule, case in cases:
                notes.add(rule, case, "not-observed", "the server ended too often before")
            return
        if self.explored is None:
            await self._explore()
        for rule, case in cases:
            attempt = await self._attempts.attempt(rule, case, talk, partial(self._judge_generated, rule, case, notes))
            if attempt.error is None:
                notes.add(rule, case, "pass", seconds=attempt.seconds)
            else:
                notes.judge(rule, case, attempt.error, attempt.evidence, attempt.seconds)

    async def _explore(self) -> None:
        if self._settings.sequence:
            self.explored = await repeat(self._doors, parsed(self._settings.sequence))
        elif self._settings.cases:
            self.explored = await explore(self._doors, cases=self._settings.cases)
        if self.explored is not None:
            self._left_out += self.explored.left_out
            self._budget.spend_apart(self.explored.seconds)

    async def _judge_generated(self, rule: Rule, case: Case, notes: Notes, _timer: Timer) -> None:
        if self.explored is None:
            raise NotObserved("no generated calls are wanted (--call-tools, --cases)")
        broken = case.run(self.explored)
        if not broken and not self.explored.judged.get(rule.id):
            raise NotObserved("no generated call was of the kind")
        for each in broken[1:]:
            notes.judge(rule, case, each)
        if broken:
            raise broken[0]

    def _read(self) -> None:
        for rule, case in _of(self._cases, "reading"):
            self._read_one(rule, case)

    def _read_one(self, rule: Rule, case: Case) -> None:
        if not self._is_declared(case):
            self._notes.add(rule, case, "not-applicable", f"the server does not declare {case.needs}")
            return
        try:
            judged = case.run(self._doors.records)
        except Exception as exc:
            for each in (exc, *(exc.more if isinstance(exc, Broken) else ())):
                self._notes.judge(rule, case, each)
        else:
            if judged:
                self._notes.add(rule, case, "pass")
            else:
                self._notes.add(rule, case, "not-observed", "nothing of the kind passed")

    def _is_declared(self, case: Case) -> bool:
        records = self._doors.records
        return case.needs is None or any(_declares(record.hello, case.needs) for record in records)


def _of(cases: Cases, kind: str) -> Cases:
    return [(rule, case) for rule, case in cases if case.kind == kind]


def _declares(hello: JSONObject, path: str) -> bool:
    return declares(hello.get("capabilities") or {}, path)
