"""Running one case in its session, in bounded time.

Shared cases run in sequence in one session, which is opened again if one of them ends it. Over stdio, cases that share
a process run in sequence as well; each other case has its own session.

A visit has a budget: total time, time spent on timeouts, and memory for messages. A slow server gets much time, but a
server that often does not respond is not waited for each time. Cases beyond the budget are not observed, and the visit
says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from accord.check.engine.rule import Case, NotApplicable, NotObserved, Rule, UnsupportedRevision, Violation
from accord.check.engine.session_factory import SessionFactory
from accord.check.probes.access import Access
from accord.check.probes.message_log import MemoryBudget
from accord.check.probes.pending_answer import NO_ANSWER
from accord.check.probes.probe import Probe
from accord.errors import AccordError

_WHOLE = 60
"""A visit may take this many times as long as one response."""
_ORDINARY = 12
"""Ordinary traffic may take this many times as long: a server may have many slow tools."""
_WASTED = 15
"""All timeouts together may take this many times as long."""
_CONFIRMATION = 12
"""The confirmation of failures may take this many times as long."""


class VisitBudget:
    """The budget of a visit that begins now; `timeout` is that of a response, in seconds."""

    def __init__(self, timeout: float, room: MemoryBudget, whole: float = _WHOLE) -> None:
        self._whole = whole * timeout
        self._ordinary = _ORDINARY * timeout
        self._timeout = timeout
        self._end = time.monotonic() + self._whole
        self._wasted_left = _WASTED * timeout
        self._memory = room

    @classmethod
    def for_confirmation(cls, timeout: float, room: MemoryBudget) -> VisitBudget:
        """Return a budget that begins now, for the confirmation of failures."""
        return cls(timeout, room, _CONFIRMATION)

    @property
    def remaining(self) -> float:
        """Seconds until the visit must end."""
        return max(0.0, self._end - time.monotonic())

    @property
    def traffic_seconds(self) -> float:
        """Seconds for ordinary traffic."""
        return min(self.remaining, self._ordinary)

    def extend(self, seconds: float) -> None:
        """Add seconds that were spent on work with a limit of its own."""
        self._end += seconds

    def charge_failure(self, seconds: float) -> None:
        """Charge the seconds of a failed case if they exceed the timeout of a response."""
        if seconds >= self._timeout:
            self._wasted_left -= seconds

    @property
    def exhausted(self) -> str:
        """Why no further cases run; empty while there is time left."""
        if self._memory.exhausted:
            return self._memory.exhausted
        if self._wasted_left <= 0:
            return f"the server often did not respond: timeouts took {_WASTED * self._timeout:g} s"
        if not self.remaining:
            return f"the visit took longer than {self._whole:g} s; increase --timeout"
        return ""


ONE_PRINCIPAL = "only one principal is known: give the tokens of two (--token A --token B)"
_CASE_TIMEOUTS = 8
"""A case may take this many times as long as one response."""
_MAX_REOPENINGS = 5
"""Maximum number of times that a shared session is opened again."""
_TIME_DEPENDENT = 0.5
"""A failure that took at least this share of the timeout may depend on the speed of the machine."""


class CaseAttempt(NamedTuple):
    """One attempt of a case: its exception, its messages, and its seconds in an open session."""

    rule: Rule
    case: Case
    error: Exception | None = None
    evidence: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """True if the rule is broken after this attempt."""
        return isinstance(self.error, Violation | TimeoutError | UnsupportedRevision | AccordError)

    @property
    def symptom(self) -> str:
        """The symptom, which failures with the same cause share."""
        return getattr(self.error, "symptom", "") or self.rule.id

    @property
    def timed_out(self) -> bool:
        """True if a response did not arrive in time."""
        return isinstance(self.error, TimeoutError) or self.symptom.startswith(NO_ANSWER)

    def is_time_dependent(self, timeout: float) -> bool:
        """Return whether a faster machine may give another verdict; `timeout` is that of a response, in seconds."""
        return self.timed_out or self.seconds >= _TIME_DEPENDENT * timeout


class Timer:
    """Measures the time of an attempt, in seconds; it restarts when the session of the case is open."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began


_Run: TypeAlias = Callable[[Timer], Awaitable[None]]


class CaseRunner:
    """Runs cases in sessions that `factory` opens, within the budget."""

    def __init__(self, factory: SessionFactory, budget: VisitBudget, shared: Probe | None = None) -> None:
        self.factory: SessionFactory = factory
        self.budget: VisitBudget = budget
        self.shared: Probe | None = shared
        self._settings = factory.settings
        self._reopenings = 0

    async def open(self) -> Probe:
        """Open the shared session. Raises `UnsupportedRevision`, `Violation`, `ConnectError`."""
        self.shared = await self.factory.open("shared")
        return self.shared

    async def live_probe(self) -> Probe | None:
        """Return the shared session, opened again if it has ended; None if it ended too often."""
        if self.shared is not None and self.shared.alive:
            return self.shared
        self._reopenings += 1
        if self._reopenings > _MAX_REOPENINGS or self.budget.exhausted:
            return None
        try:
            return await self.open()
        except (UnsupportedRevision, Violation):  # one start that fails says nothing of the server
            return await self.open()

    async def run_shared(self, rule: Rule, case: Case) -> CaseAttempt:
        """Run a case in the shared session."""
        probe = await self.live_probe()
        if probe is None:
            return CaseAttempt(rule, case, NotObserved(self.budget.exhausted or "the server ended too often before"))
        probe.log.case = case.says
        try:
            return await self.run(rule, case, probe, lambda timer: case.run(probe))
        finally:
            probe.log.case = ""

    async def run_access(self, rule: Rule, case: Case, access: Access) -> CaseAttempt:
        """Run a case about authorization."""
        if self.budget.exhausted:
            return CaseAttempt(rule, case, NotObserved(self.budget.exhausted))
        timer = Timer()
        try:
            async with asyncio.timeout(min(self._case_timeout, self.budget.remaining)):
                await case.run(access)
        except Exception as exc:
            return CaseAttempt(rule, case, self._classify_error(exc, timer.seconds), seconds=timer.seconds)
        return CaseAttempt(rule, case, seconds=timer.seconds)

    async def run_alone(self, rule: Rule, case: Case) -> CaseAttempt:
        """Run a case of any kind in a new session."""
        return await self.run(rule, case, self._known_probe, lambda timer: self._run_in_own_session(case, timer))

    async def run_in_sequence(self, cases: Sequence[tuple[Rule, Case]], note: Callable[[CaseAttempt], None]) -> None:
        """Run cases in sequence in one process, as long as it responds; `note` gets each attempt."""
        probe: Probe | None = None
        try:
            for rule, case in cases:
                if probe is not None and not probe.alive:
                    probe = None
                attempt, probe = await self._run_next(rule, case, probe)
                note(attempt)
        finally:
            if probe is not None:
                await self.factory.close_probe(probe)

    async def _run_next(self, rule: Rule, case: Case, probe: Probe | None) -> tuple[CaseAttempt, Probe | None]:
        used: list[Probe] = [] if probe is None else [probe]

        async def run(timer: Timer) -> None:
            if not used:
                used.append(await self.factory.open("own", case.says))
                timer.restart()
            used[0].log.case = case.says
            await self._run_case(case, used[0])

        attempt = await self.run(rule, case, self._known_probe, run)
        if used and attempt.failed and not await self._answers(used[0], attempt):
            await self.factory.close_probe(used.pop())
        return attempt, used[0] if used else None

    async def _answers(self, probe: Probe, attempt: CaseAttempt) -> bool:
        """Return whether a failed attempt got only invalid responses, so that the next case may use its process."""
        if (
            not isinstance(attempt.error, Violation)
            or attempt.is_time_dependent(self._settings.timeout)
            or not probe.alive
        ):
            return False
        try:
            return (await probe.request(probe.harmless_method)).error is None
        except (Violation, NotObserved):
            return False

    async def _run_in_own_session(self, case: Case, timer: Timer) -> None:
        if case.kind == "raw":
            probe = await self.factory.open_raw(case.kind, case.says)
        else:
            probe = await self.factory.open("own", case.says, capabilities=case.capabilities)
            timer.restart()
        try:
            await self._run_case(case, probe)
        finally:
            await self.factory.close_probe(probe)

    async def _run_case(self, case: Case, probe: Probe) -> None:
        since = len(probe.log.entries)
        try:
            probe.handshake_result = probe.handshake_result or (self.shared.handshake_result if self.shared else {})
            await case.run(probe)
        except Violation as exc:
            exc.evidence = exc.evidence or probe.log.evidence(since)
            raise

    @property
    def _known_probe(self) -> Probe:
        return self.shared or self.factory.probes[0]

    async def run(self, rule: Rule, case: Case, probe: Probe, run: _Run) -> CaseAttempt:
        """Run a case if it applies; `probe` is an open session, whose capabilities and lists are known."""
        if case.needs is not None and not probe.has_capability(case.needs):
            return CaseAttempt(rule, case, NotApplicable(f"the server does not declare {case.needs}"))
        if 1 < case.principals > len(self._settings.tokens):
            return CaseAttempt(rule, case, NotObserved(ONE_PRINCIPAL))
        if self.budget.exhausted:
            return CaseAttempt(rule, case, NotObserved(self.budget.exhausted))
        timer = Timer()
        since = len(probe.log.entries)
        try:
            async with asyncio.timeout(min(self._case_timeout, self.budget.remaining)):
                await self._check_preconditions(case, probe)
                await run(timer)
        except Exception as exc:
            error = self._classify_error(exc, timer.seconds)
            return CaseAttempt(rule, case, error, probe.log.evidence(since), timer.seconds)
        return CaseAttempt(rule, case, seconds=timer.seconds)

    @property
    def _case_timeout(self) -> float:
        return self._settings.timeout * _CASE_TIMEOUTS + self._settings.opening

    async def _check_preconditions(self, case: Case, probe: Probe) -> None:
        """Raise `NotApplicable` or `NotObserved` for a case that does not apply, before a process is started."""
        if case.calls and not await _has_callable_tool(probe):
            raise NotObserved("no tool may be called (--call-tools)")
        if case.applies is not None and probe.alive and self.factory.transport == "stdio":
            with contextlib.suppress(Violation):  # then the case itself finds that out
                await case.applies(probe)

    def _classify_error(self, exc: Exception, seconds: float) -> Exception:
        """Charge the time of a failure to the budget, and return the error to report."""
        if isinstance(exc, TimeoutError) and not self.budget.remaining:
            return NotObserved(self.budget.exhausted)
        if isinstance(exc, Violation | TimeoutError):
            self.budget.charge_failure(seconds)
        return exc


async def _has_callable_tool(probe: Probe) -> bool:
    try:
        return bool(await probe.callable_tools())
    except (Violation, NotObserved):
        return False
