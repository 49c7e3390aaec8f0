"""Confirmation of failures: a case that failed beside others is repeated alone before it has a verdict.

A case may fail because of an earlier case, or because the machine was busy. So each failure is repeated after all
other cases, when the server responds promptly again, and the second attempt gives the verdict. Shared cases run in
another session, in reverse order: the cases before one in the first attempt come after it in the second. Over stdio,
the cases that may share a process follow in their process, unless a failure depends on time.

A reading that depends on timing is confirmed as well: the case in whose messages it found a violation runs once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from accord.check.engine.case_runner import CaseAttempt, CaseRunner, VisitBudget
from accord.check.engine.rule import Case, NotObserved, Rule, UnsupportedRevision, Violation
from accord.check.engine.session_factory import SessionFactory
from accord.check.probes.message_log import MessageLog
from accord.check.probes.pending_answer import NO_ANSWER
from accord.check.probes.probe import Probe
from accord.errors import AccordError

_RECOVERED = 0.2
"""A server that responds within this share of the timeout has recovered."""
_PROBES = 10


class FailureConfirmation:
    """Repeats failures. `shared` is the session that knows the features of the server."""

    def __init__(self, factory: SessionFactory, shared: Probe | None) -> None:
        self._factory = factory
        self._timeout = factory.settings.timeout
        self._budget = VisitBudget.for_confirmation(self._timeout, factory.memory)
        self._known_probe = shared
        self._confirmed: set[tuple[str, str]] = set()
        self.unconfirmed: list[str] = []
        """Cases that failed once, but not alone, with their texts."""

    async def confirm(self, failures: Iterable[CaseAttempt]) -> list[CaseAttempt]:
        """Repeat failures, and return the attempts that give their verdicts."""
        failures = list(failures)
        if not failures or not await self._wait_for_recovery():
            return failures
        self._factory.exit_delay = 0.0  # it may have been slow for what went on beside it
        shared = [each for each in failures if each.case.kind == "shared"]
        sharing = [each for each in failures if self._may_share(each)]
        others = [each for each in failures if each not in shared and each not in sharing]
        if self._factory.transport != "stdio" or any(each.is_time_dependent(self._timeout) for each in failures):
            return await self._confirm_shared(shared, sharing) + await self._confirm_others(others)
        async with asyncio.TaskGroup() as group:  # separate processes, and no failure depends on time
            together = group.create_task(self._confirm_shared(shared, sharing))
            alone = group.create_task(self._confirm_others(others))
        return together.result() + alone.result()

    def _may_share(self, failure: CaseAttempt) -> bool:
        """Return whether a case may be repeated in the process of the shared ones, after them."""
        return (
            self._factory.transport == "stdio" and failure.case.shares and not failure.is_time_dependent(self._timeout)
        )

    async def _confirm_shared(self, shared: list[CaseAttempt], sharing: list[CaseAttempt]) -> list[CaseAttempt]:
        failures = [*reversed(shared), *sharing]
        together = CaseRunner(self._factory, self._budget, self._factory.release_second() if failures else None)
        found = [await self._retry(each, lambda each: _retry_shared(together, each)) for each in failures]
        if together.shared is not None:
            await self._factory.close_probe(together.shared)
        return found

    async def _confirm_others(self, failures: list[CaseAttempt]) -> list[CaseAttempt]:
        alone = CaseRunner(self._factory, self._budget, self._known_probe)
        return [await self._retry(each, lambda each: alone.run_alone(each.rule, each.case)) for each in failures]

    async def _retry(self, first: CaseAttempt, attempt: Callable[[CaseAttempt], Awaitable[CaseAttempt]]) -> CaseAttempt:
        if self._key(first) in self._confirmed:
            return first
        if self._budget.exhausted:
            return self._without_retry(first)
        second = await attempt(first)
        if second.failed:
            self._confirmed.add(self._key(first))
            return second if isinstance(second.error, Violation | TimeoutError) else first
        if self._budget.exhausted and isinstance(second.error, NotObserved):
            return self._without_retry(first)
        what = "passed" if second.error is None else "could not be judged"
        self._note_unconfirmed(first.rule, first.case.says, what, first.error)
        return second

    def _note_unconfirmed(self, rule: Rule, case: str, what: str, error: Exception | None) -> None:
        for log in self._factory.logs:
            log.unconfirmed.add(case)
        self.unconfirmed.append(f"{rule.id} ({case}) failed once, and {what} alone: {error}")

    async def confirm_reading(self, rule: Rule, reading: Case, cases: Iterable[tuple[Rule, Case]]) -> None:
        """Repeat each of `cases` in whose messages a reading that depends on timing finds a violation, until the
        reading finds it again. Violations in ordinary traffic are not repeated.
        """
        alone, tried = CaseRunner(self._factory, self._budget, self._known_probe), {""}
        while (error := _violation(reading, self._factory.logs)) is not None:
            name = "".join(error.during or ())
            if name in tried:
                return
            tried.add(name)
            earlier = len(self._factory.logs)
            attempts = [await alone.run_alone(*each) for each in cases if each[1].says == name]
            has_run = any(each.error is None or each.failed for each in attempts)
            if not has_run or _violation(reading, self._factory.logs[earlier:]) is not None:
                return
            self._note_unconfirmed(rule, name, "passed", error)

    def _without_retry(self, first: CaseAttempt) -> CaseAttempt:
        if not first.is_time_dependent(self._timeout):
            return first
        text = f"it failed once, and there was no time to repeat it alone: {first.error}"
        return first._replace(error=NotObserved(text))

    def _key(self, attempt: CaseAttempt) -> tuple[str, str]:
        """Return the key under which a failure is repeated once: its symptom, with its rule unless it is a timeout."""
        return "" if attempt.symptom.startswith(NO_ANSWER) else attempt.rule.id, attempt.symptom

    async def _wait_for_recovery(self) -> bool:
        """Wait until the server responds promptly, if one process serves all sessions; false if it has ended."""
        if self._factory.transport == "stdio":
            return True
        try:
            probe = await self._factory.open()
        except (Violation, NotObserved, UnsupportedRevision, AccordError):
            return False
        try:
            for _ in range(_PROBES):
                answer = await probe.request(probe.harmless_method)
                if answer.seconds <= _RECOVERED * self._timeout:
                    break
        except (Violation, NotObserved):
            return False
        finally:
            await self._factory.close_probe(probe)
        return True


def _violation(reading: Case, logs: Sequence[MessageLog]) -> Violation | None:
    try:
        reading.run(logs)
    except Violation as exc:
        return exc
    except Exception:  # the visit notes it as a defect of the reading
        return None
    return None


async def _retry_shared(attempts: CaseRunner, failed: CaseAttempt) -> CaseAttempt:
    """Run a case in the shared session of `attempts`, opened again if the case before has ended it."""
    try:
        return await attempts.run_shared(failed.rule, failed.case)
    except (Violation, UnsupportedRevision, NotObserved, AccordError) as exc:
        return failed._replace(error=exc)
