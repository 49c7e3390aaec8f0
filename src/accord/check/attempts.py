"""Running one case in the conversation that it needs, in bounded time; what came of it is an `Attempt`.

Shared cases run one after the other in one conversation, which is opened again when one of them ends it. Over stdio,
cases that share a process run one after the other as well; every other case has a conversation of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from accord.check.budget import Budget
from accord.check.opening import Doors
from accord.check.rule import Broken, Case, NotApplicable, NotObserved, Rule, Unspoken
from accord.check.talk import Talk
from accord.check.waiting import SILENT
from accord.errors import AccordError

_CASE_TIMEOUTS = 8
"""A case may take this many times as long as one answer."""
_DEATHS = 5
"""A shared conversation is opened again at most this many times."""
_TIMED = 0.5
"""A failure that took at least this share of the timeout may depend on the speed of the machine."""


class Attempt(NamedTuple):
    """One try of one case: what it raised, what was said meanwhile, and the seconds it took in an open conversation."""

    rule: Rule
    case: Case
    error: Exception | None = None
    evidence: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the rule counts as broken after this attempt."""
        return isinstance(self.error, Broken | TimeoutError | Unspoken | AccordError)

    @property
    def symptom(self) -> str:
        """The symptom: failures with the same cause share it."""
        return getattr(self.error, "symptom", "") or self.rule.id

    def depends_on_time(self, timeout: float) -> bool:
        """Whether a faster machine may give another verdict; `timeout` is that of one answer."""
        is_late = isinstance(self.error, TimeoutError) or self.symptom.startswith(SILENT)
        return is_late or self.seconds >= _TIMED * timeout


class Timer:
    """Measures the time of one attempt, in seconds; it restarts when the conversation of the case is open."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began


_Run: TypeAlias = Callable[[Timer], Awaitable[None]]


class Attempts:
    """Runs cases in conversations that `doors` opens, as long as `budget` lasts."""

    def __init__(self, doors: Doors, budget: Budget, shared: Talk | None = None) -> None:
        self.doors: Doors = doors
        self.budget: Budget = budget
        self.shared: Talk | None = shared
        self._settings = doors.settings
        self._deaths = 0

    async def open(self) -> Talk:
        """Open the shared conversation. Raises `Unspoken`, `Broken`, `ConnectError`."""
        self.shared = await self.doors.open("shared")
        return self.shared

    async def living(self) -> Talk | None:
        """Return the shared conversation, opened again if it has ended; None when it ended too often."""
        if self.shared is not None and self.shared.alive:
            return self.shared
        self._deaths += 1
        if self._deaths > _DEATHS or self.budget.spent:
            return None
        try:
            return await self.open()
        except (Unspoken, Broken):  # one start that fails says nothing of the server
            return await self.open()

    async def in_shared(self, rule: Rule, case: Case) -> Attempt:
        """Run a case in the shared conversation."""
        talk = await self.living()
        if talk is None:
            return Attempt(rule, case, NotObserved(self.budget.spent or "the server ended too often before"))
        talk.record.case = case.says
        try:
            return await self.attempt(rule, case, talk, lambda timer: case.run(talk))
        finally:
            talk.record.case = ""

    async def alone(self, rule: Rule, case: Case) -> Attempt:
        """Run a case, of any kind, in a new conversation of its own."""
        return await self.attempt(rule, case, self._known, lambda timer: self._in_own(case, timer))

    async def in_turn(self, cases: Sequence[tuple[Rule, Case]], note: Callable[[Attempt], None]) -> None:
        """Run cases one after the other in one process, as long as it answers; `note` gets each attempt."""
        talk: Talk | None = None
        try:
            for rule, case in cases:
                if talk is not None and not talk.alive:
                    talk = None
                attempt, talk = await self._next_in_turn(rule, case, talk)
                note(attempt)
        finally:
            if talk is not None:
                await self.doors.end(talk)

    async def _next_in_turn(self, rule: Rule, case: Case, talk: Talk | None) -> tuple[Attempt, Talk | None]:
        used: list[Talk] = [] if talk is None else [talk]

        async def run(timer: Timer) -> None:
            if not used:
                used.append(await self.doors.open("own", case.says))
                timer.restart()
            used[0].record.case = case.says
            await self._run(case, used[0])

        attempt = await self.attempt(rule, case, self._known, run)
        if used and attempt.failed and not await self._answers(used[0], attempt):
            await self.doors.end(used.pop())
        return attempt, used[0] if used else None

    async def _answers(self, talk: Talk, attempt: Attempt) -> bool:
        """Whether a failed attempt got its answers, only wrong ones, and the next case may use the same process."""
        if not isinstance(attempt.error, Broken) or attempt.depends_on_time(self._settings.timeout) or not talk.alive:
            return False
        try:
            return (await talk.request(talk.harmless)).error is None
        except (Broken, NotObserved):
            return False

    async def _in_own(self, case: Case, timer: Timer) -> None:
        if case.kind == "raw":
            talk = await self.doors.raw(case.kind, case.says)
        else:
            talk = await self.doors.open("own", case.says, capabilities=case.capabilities)
            timer.restart()
        try:
            await self._run(case, talk)
        finally:
            await self.doors.end(talk)

    async def _run(self, case: Case, talk: Talk) -> None:
        since = len(talk.record.entries)
        try:
            talk.hello = talk.hello or (self.shared.hello if self.shared else {})
            await case.run(talk)
        except Broken as exc:
            exc.evidence = exc.evidence or talk.record.evidence(since)
            raise

    @property
    def _known(self) -> Talk:
        return self.shared or self.doors.opened[0]

    async def attempt(self, rule: Rule, case: Case, talk: Talk, run: _Run) -> Attempt:
        """Run a case if it applies; `talk` is an open conversation, whose capabilities and lists are known."""
        if case.needs is not None and not talk.has(case.needs):
            return Attempt(rule, case, NotApplicable(f"the server does not declare {case.needs}"))
        if self.budget.spent:
            return Attempt(rule, case, NotObserved(self.budget.spent))
        timer = Timer()
        since = len(talk.record.entries)
        try:
            async with asyncio.timeout(min(self._limit, self.budget.left)):
                await self._ask_whether_it_applies(case, talk)
                await run(timer)
        except Exception as exc:
            error = self._weighed(exc, timer.seconds)
            return Attempt(rule, case, error, talk.record.evidence(since), timer.seconds)
        return Attempt(rule, case, seconds=timer.seconds)

    @property
    def _limit(self) -> float:
        return self._settings.timeout * _CASE_TIMEOUTS + self._settings.opening

    async def _ask_whether_it_applies(self, case: Case, talk: Talk) -> None:
        """Raise `NotApplicable` or `NotObserved` for a case that does not apply, before a process is started."""
        if case.calls and not await _has_callable(talk):
            raise NotObserved("no tool may be called (--call-tools)")
        if case.applies is not None and talk.alive and self.doors.transport == "stdio":
            with contextlib.suppress(Broken):  # then the case itself finds that out
                await case.applies(talk)

    def _weighed(self, exc: Exception, seconds: float) -> Exception:
        """Charge a failure's time to the budget, and return the error to report."""
        if isinstance(exc, TimeoutError) and not self.budget.left:
            return NotObserved(self.budget.spent)
        if isinstance(exc, Broken | TimeoutError):
            self.budget.failed(seconds)
        return exc


async def _has_callable(talk: Talk) -> bool:
    try:
        return bool(await talk.callable())
    except (Broken, NotObserved):
        return False
