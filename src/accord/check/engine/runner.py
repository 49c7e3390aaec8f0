"""One visit: all cases that apply in one revision over one transport, and their outcomes.

Shared cases run first, then ordinary traffic, then cases with their own sessions, concurrently. Failures are repeated
alone. Reading rules come last, with the logs of all sessions. If only some rules are selected, and some of them are
reading rules, the cases of the other rules run as well, so that reading rules have the same verdict as in a whole run;
otherwise the few whose messages show the SDK, so that findings have the same owner.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from accord.check.engine.case_runner import CaseAttempt, CaseRunner, Timer, VisitBudget
from accord.check.engine.confirmation import FailureConfirmation
from accord.check.engine.ordinary_traffic import run_ordinary_traffic
from accord.check.engine.outcomes import NullWatcher, OutcomeCollector, Watcher
from accord.check.engine.report import Outcome, Visit, counts, score
from accord.check.engine.rule import Case, NotObserved, Rule, UnreachableServer, UnsupportedRevision, Violation
from accord.check.engine.sdks import SIGNATURE_RULES
from accord.check.engine.session_factory import SessionFactory
from accord.check.fuzz.fuzz_result import FuzzResult
from accord.check.fuzz.fuzz_run import replay_sequence, run_fuzzing
from accord.check.fuzz.sequences import decode_steps
from accord.check.probes.access import UNAUTHORIZED
from accord.check.probes.content import declares
from accord.errors import AccordError, describe
from accord.messages.base import JSONObject

Cases: TypeAlias = list[tuple[Rule, Case]]
AttemptHandler: TypeAlias = Callable[[CaseAttempt], None]


class VisitRunner:
    """One visit with the cases of the `wanted` rules; `background_rules` only send messages for reading rules."""

    def __init__(self, factory: SessionFactory, wanted: Cases, watcher: Watcher, company: Cases) -> None:
        self._factory = factory
        self._settings = factory.settings
        self._cases = wanted
        self._background_cases = company
        self._watcher = watcher
        self._collector = OutcomeCollector(factory.revision, factory.transport, watcher)
        self._background_outcomes = OutcomeCollector(factory.revision, factory.transport, NullWatcher())
        """For background rules, whose outcomes are not reported."""
        self._budget = VisitBudget(factory.settings.timeout, factory.memory)
        self._attempts = CaseRunner(factory, self._budget)
        self._failures: list[CaseAttempt] = []
        self._left_out: tuple[str, ...] = ()
        self._unconfirmed: tuple[str, ...] = ()
        self._refusal: str = ""
        """Why the server opens no session without other credentials, if so."""
        self.name: str = ""
        self.unsupported_reason: str = ""
        """Why the server does not speak the revision, if so."""
        self.is_mcp: bool = True
        """Whether a message of the protocol was received."""
        self.visit: Visit | None = None
        """The visit, after its end or its cancellation."""
        self.fuzz_result: FuzzResult | None = None
        """The result of the generated calls, if there were any."""

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all cases."""
        return self._collector.outcomes

    async def run(self) -> Visit | None:
        """Run all cases. Returns None if the server does not speak the revision."""
        began = time.monotonic()
        try:
            await self._open()
        except (UnsupportedRevision, Violation, NotObserved) as exc:
            if not self._is_refused():
                self.unsupported_reason = str(exc)
                self.is_mcp = isinstance(exc, UnsupportedRevision) and not isinstance(exc, UnreachableServer)
                return None
            self._refusal = f"the server requires authorization: {exc}"
        self._watcher.visit_began(self._factory.revision, self._factory.transport, len(self._cases))
        error = "it was interrupted"
        try:
            await (self._try_refused() if self._refusal else self._try_all())
            error = self._refusal if self._judges_more_than_access() else ""
        except (Violation, AccordError, UnsupportedRevision, NotObserved) as exc:
            error = describe(exc)
        finally:
            try:
                await self._factory.close()
            finally:  # also where it is interrupted just now
                self.visit = self._build_visit(began, error)
        self._watcher.visit_ended(self.visit)
        return self.visit

    def _build_visit(self, began: float, error: str) -> Visit:
        """Return the visit with all outcomes so far."""
        error = error or self._budget.exhausted
        if not self._refusal:  # a refusal is an answer of OAuth, and not of the protocol
            self._run_readings()
        error = error or "; ".join(self._collector.defects)
        return Visit(
            revision=self._factory.revision,
            transport=self._factory.transport,
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

    def _is_refused(self) -> bool:
        """Return whether the server refused to open a session, because of the credentials."""
        if self._factory.transport != "http" or not _cases_of_kind(self._cases, "access"):
            return False
        responses = [each for log in self._factory.logs for each in log.responses]
        return any(each.status == UNAUTHORIZED or each.headers.get("www-authenticate") for each in responses[-1:])

    def _judges_more_than_access(self) -> bool:
        return len(_cases_of_kind(self._cases, "access")) < len(self._cases)

    async def _try_refused(self) -> None:
        """Run the cases that need no session; the others cannot be observed."""
        for rule, case in self._cases:
            if case.kind != "access":
                self._collector.add(rule, case, "not-observed", self._refusal)
        await self._run_access()

    async def _run_access(self) -> None:
        """Run the cases about authorization in sequence, with the messages of all others."""
        cases = _cases_of_kind(self._cases, "access")
        if not cases:
            return
        async with self._factory.open_access(self._attempts.shared, is_open=not self._refusal) as access:
            for rule, case in cases:
                access.log.case = case.says
                self._add_outcome(await self._attempts.run_access(rule, case, access))

    async def _try_all(self) -> None:
        try:
            await self._run_shared(self._cases, self._defer_failure)
            probe = await self._attempts.live_probe()
            if probe is not None and not self._budget.exhausted:
                self._left_out += await run_ordinary_traffic(probe, self._budget.traffic_seconds)
            await self._run_own(self._cases, self._defer_failure)
            await self._run_background_cases()
            await self._confirm()
        finally:
            for attempt in self._failures:  # it ended before they could be tried again
                self._add_outcome(attempt)
        await self._run_fuzz_cases(self._cases, self._collector)
        await self._run_access()  # last: a server may let a forged token end the session

    async def _run_shared(self, cases: Cases, note: AttemptHandler) -> None:
        for rule, case in _cases_of_kind(cases, "shared"):
            note(await self._attempts.run_shared(rule, case))

    async def _run_own(self, cases: Cases, note: AttemptHandler) -> None:
        """Run cases concurrently; those that may share a process over stdio run in sequence."""
        gate = asyncio.Semaphore(self._settings.jobs)
        own = [*_cases_of_kind(cases, "own"), *_cases_of_kind(cases, "raw")]
        in_turn = [each for each in own if each[1].shares and self._factory.transport == "stdio"]

        async def together() -> None:
            async with gate:
                await self._attempts.run_in_sequence(in_turn, note)

        async def alone(rule: Rule, case: Case) -> None:
            async with gate:
                note(await self._attempts.run_alone(rule, case))

        async with asyncio.TaskGroup() as group:
            group.create_task(together())
            for rule, case in own:
                if (rule, case) not in in_turn:
                    group.create_task(alone(rule, case))

    async def _run_background_cases(self) -> None:
        """Run background cases as long as a reading rule may still find a violation; otherwise those that show the SDK,
        if there is a failure that it may have caused.
        """
        if not self._needs_more_traffic() and (self._failures or _cases_of_kind(self._cases, "reading")):
            await self._run_cases_that_show_sdk()
        for part in (self._run_shared, self._run_own):
            if not self._needs_more_traffic():
                return
            await part(self._background_cases, lambda attempt: None)
        if self._needs_more_traffic():
            await self._run_fuzz_cases(self._background_cases, self._background_outcomes)

    async def _run_cases_that_show_sdk(self) -> None:
        """Run them until one has no answer: the timeouts would take the time of the selected cases."""
        for rule, case in _cases_of_kind(self._background_cases, "shared"):
            if rule.id in SIGNATURE_RULES:
                attempt = await self._attempts.run_shared(rule, case)
                if attempt.timed_out:
                    return

    def _needs_more_traffic(self) -> bool:
        """Return whether there are background rules, and a reading rule that is not known to be broken."""
        return bool(self._background_cases) and any(
            not self._is_broken(case) for _, case in _cases_of_kind(self._cases, "reading")
        )

    def _is_broken(self, case: Case) -> bool:
        if not self._is_declared(case):
            return True  # there is nothing more to find
        try:
            case.run(self._factory.logs)
        except Violation:
            return True
        except Exception:  # `_run_readings` notes it as a defect
            return True
        return False

    def _defer_failure(self, attempt: CaseAttempt) -> None:
        """Add an attempt, or repeat it first if it failed."""
        if attempt.failed:
            self._failures.append(attempt)
        else:
            self._add_outcome(attempt)

    def _add_outcome(self, attempt: CaseAttempt) -> None:
        if attempt.error is None:
            self._collector.add(attempt.rule, attempt.case, "pass", seconds=attempt.seconds)
        else:
            self._collector.add_exception(attempt.rule, attempt.case, attempt.error, attempt.evidence, attempt.seconds)

    async def _confirm(self) -> None:
        confirming = FailureConfirmation(self._factory, self._attempts.shared)
        confirmed = await confirming.confirm(self._failures)
        self._failures.clear()
        for attempt in confirmed:
            self._add_outcome(attempt)
        cases = [each for each in (*self._cases, *self._background_cases) if each[1].kind in ("shared", "own", "raw")]
        for rule, case in _cases_of_kind(self._cases, "reading"):
            if case.depends_on_timing and self._is_declared(case):
                await confirming.confirm_reading(rule, case, cases)
        self._unconfirmed = tuple(confirming.unconfirmed)

    async def _run_fuzz_cases(self, cases: Cases, notes: OutcomeCollector) -> None:
        """Make the generated calls once, and judge them with all rules about them."""
        cases = _cases_of_kind(cases, "generated")
        probe = await self._attempts.live_probe() if cases else None
        if probe is None:
            for rule, case in cases:
                notes.add(rule, case, "not-observed", "the server ended too often before")
            return
        if self.fuzz_result is None:
            await self._run_fuzzing()
        for rule, case in cases:
            attempt = await self._attempts.run(rule, case, probe, partial(self._judge_fuzz_case, rule, case, notes))
            if attempt.error is None:
                notes.add(rule, case, "pass", seconds=attempt.seconds)
            else:
                notes.add_exception(rule, case, attempt.error, attempt.evidence, attempt.seconds)

    async def _run_fuzzing(self) -> None:
        if self._settings.sequence:
            self.fuzz_result = await replay_sequence(self._factory, decode_steps(self._settings.sequence))
        elif self._settings.cases:
            self.fuzz_result = await run_fuzzing(self._factory, cases=self._settings.cases)
        if self.fuzz_result is not None:
            self._left_out += self.fuzz_result.left_out
            self._budget.extend(self.fuzz_result.seconds)

    async def _judge_fuzz_case(self, rule: Rule, case: Case, notes: OutcomeCollector, _timer: Timer) -> None:
        if self.fuzz_result is None:
            raise NotObserved("no generated calls are wanted (--call-tools, --cases)")
        broken = case.run(self.fuzz_result)
        if not broken and not self.fuzz_result.judged_counts.get(rule.id):
            raise NotObserved("no generated call was of this kind")
        for each in broken[1:]:
            notes.add_exception(rule, case, each)
        if broken:
            raise broken[0]

    def _run_readings(self) -> None:
        for rule, case in _cases_of_kind(self._cases, "reading"):
            self._run_reading(rule, case)

    def _run_reading(self, rule: Rule, case: Case) -> None:
        if not self._is_declared(case):
            self._collector.add(rule, case, "not-applicable", f"the server does not declare {case.needs}")
            return
        try:
            judged = case.run(self._factory.logs)
        except Exception as exc:
            for each in (exc, *(exc.more if isinstance(exc, Violation) else ())):
                self._collector.add_exception(rule, case, each)
        else:
            if judged:
                self._collector.add(rule, case, "pass")
            else:
                self._collector.add(rule, case, "not-observed", "no such message was received")

    def _is_declared(self, case: Case) -> bool:
        logs = self._factory.logs
        return case.needs is None or any(_declares(log.handshake_result, case.needs) for log in logs)


def _cases_of_kind(cases: Cases, kind: str) -> Cases:
    return [(rule, case) for rule, case in cases if case.kind == kind]


def _declares(hello: JSONObject, path: str) -> bool:
    return declares(hello.get("capabilities") or {}, path)
