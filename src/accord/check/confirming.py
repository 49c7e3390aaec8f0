"""Confirming failures: what has failed in company is tried again alone before it becomes a verdict.

A case may fail for what another case did a moment before, or because the machine was busy. So each failure is tried
once more when everything else is over and the server answers promptly again, and that attempt gives the verdict.
Shared cases have another conversation for that, in the reverse order: whatever came before a case in the first attempt
comes after it in the second. Over stdio the cases that may share a process come after them, and all that goes on beside
the other cases, unless a failure depends on time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from accord.check.attempts import Attempt, Attempts
from accord.check.budget import Budget
from accord.check.opening import Doors
from accord.check.rule import Broken, NotObserved, Unspoken
from accord.check.talk import Talk
from accord.check.waiting import SILENT
from accord.errors import AccordError

_PROMPT = 0.2
"""A server that answers within this share of the timeout has recovered."""
_PROBES = 10


class Confirming:
    """Tries failures again. `shared` is the conversation that knows what the server has."""

    def __init__(self, doors: Doors, shared: Talk | None) -> None:
        self._doors = doors
        self._timeout = doors.settings.timeout
        self._budget = Budget.for_confirming(self._timeout, doors.room)
        self._known = shared
        self._confirmed: set[tuple[str, str]] = set()
        self.unconfirmed: list[str] = []
        """What failed once, and held when it was tried alone: in words."""

    async def confirm(self, failures: Iterable[Attempt]) -> list[Attempt]:
        """Try failures again, and return the attempts that give their verdicts."""
        failures = list(failures)
        if not failures or not await self._recovers():
            return failures
        self._doors.outlived = 0.0  # it may have been slow for what went on beside it
        shared = [each for each in failures if each.case.kind == "shared"]
        sharing = [each for each in failures if self._may_share(each)]
        others = [each for each in failures if each not in shared and each not in sharing]
        if self._doors.transport != "stdio" or any(each.depends_on_time(self._timeout) for each in failures):
            return await self._confirm_shared(shared, sharing) + await self._confirm_others(others)
        async with asyncio.TaskGroup() as group:  # separate processes, and no failure depends on time
            together = group.create_task(self._confirm_shared(shared, sharing))
            alone = group.create_task(self._confirm_others(others))
        return together.result() + alone.result()

    def _may_share(self, failure: Attempt) -> bool:
        """Whether a case may be tried again in the process of the shared ones, after them."""
        return self._doors.transport == "stdio" and failure.case.shares and not failure.depends_on_time(self._timeout)

    async def _confirm_shared(self, shared: list[Attempt], sharing: list[Attempt]) -> list[Attempt]:
        failures = [*reversed(shared), *sharing]
        together = Attempts(self._doors, self._budget, self._doors.release_second() if failures else None)
        found = [await self._again(each, lambda each: _shared(together, each)) for each in failures]
        if together.shared is not None:
            await self._doors.end(together.shared)
        return found

    async def _confirm_others(self, failures: list[Attempt]) -> list[Attempt]:
        alone = Attempts(self._doors, self._budget, self._known)
        return [await self._again(each, lambda each: alone.alone(each.rule, each.case)) for each in failures]

    async def _again(self, first: Attempt, attempt: Callable[[Attempt], Awaitable[Attempt]]) -> Attempt:
        if self._key(first) in self._confirmed:
            return first
        if self._budget.spent:
            return self._untried(first)
        second = await attempt(first)
        if second.failed:
            self._confirmed.add(self._key(first))
            return second if isinstance(second.error, Broken | TimeoutError) else first
        if self._budget.spent and isinstance(second.error, NotObserved):
            return self._untried(first)
        what = "passed" if second.error is None else "could not be judged"
        self.unconfirmed.append(f"{first.rule.id} ({first.case.says}) failed once, and {what} alone: {first.error}")
        return second

    def _untried(self, first: Attempt) -> Attempt:
        if not first.depends_on_time(self._timeout):
            return first
        text = f"it failed once, and no time was left to try it again alone: {first.error}"
        return first._replace(error=NotObserved(text))

    def _key(self, attempt: Attempt) -> tuple[str, str]:
        """Return the key under which a failure is confirmed once: its symptom, with its rule unless it is silence."""
        return "" if attempt.symptom.startswith(SILENT) else attempt.rule.id, attempt.symptom

    async def _recovers(self) -> bool:
        """Wait until the server answers promptly, where one process serves all conversations; false if it is gone."""
        if self._doors.transport == "stdio":
            return True
        try:
            talk = await self._doors.open()
        except (Broken, NotObserved, Unspoken, AccordError):
            return False
        try:
            for _ in range(_PROBES):
                answer = await talk.request(talk.harmless)
                if answer.seconds <= _PROMPT * self._timeout:
                    break
        except (Broken, NotObserved):
            return False
        finally:
            await self._doors.end(talk)
        return True


async def _shared(attempts: Attempts, failed: Attempt) -> Attempt:
    """Run a case in the shared conversation of `attempts`, opened again if the case before has ended it."""
    try:
        return await attempts.in_shared(failed.rule, failed.case)
    except (Broken, Unspoken, NotObserved, AccordError) as exc:
        return failed._replace(error=exc)
