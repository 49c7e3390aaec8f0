"""Exploring servers in tests, and what of it is looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from accord.check.engine.report import TransportName
from accord.check.engine.server_target import ServerTarget
from accord.check.engine.session_factory import SessionFactory
from accord.check.fuzz.fuzz_result import FuzzFailure, FuzzResult
from accord.check.fuzz.fuzz_run import replay_sequence, run_fuzzing
from accord.check.fuzz.sequences import CallStep, decode_steps
from accord.check.probes.message_log import MessageLog
from accord.check.settings import CheckSettings

LATEST = "2025-11-25"


async def within(
    target: Any,
    settings: CheckSettings,
    revision: str,
    over: TransportName | None,
    run: Callable[[SessionFactory], Awaitable[FuzzResult]],
) -> tuple[FuzzResult, list[MessageLog]]:
    """What came of a run, and all that was said."""
    reach = ServerTarget(target)
    try:
        if over in ("http", "sse"):
            await reach.open()
        doors = SessionFactory(reach, revision, over or reach.transports(revision)[0], settings)
        try:
            return await run(doors), doors.logs
        finally:
            await doors.close()
    finally:
        await reach.close()


async def explored(
    target: Any,
    cases: int = 120,
    *,
    revision: str = LATEST,
    seed: int = 1,
    allowed: Any = True,
    timeout: float = 5,
    over: TransportName | None = None,
) -> FuzzResult:
    settings = CheckSettings(call_tools=allowed, seed=seed, timeout=timeout)
    found, _ = await within(target, settings, revision, over, lambda doors: run_fuzzing(doors, cases=cases))
    return found


async def repeated(target: Any, fault: FuzzFailure) -> FuzzResult:
    """What comes of the calls in the command that repeats a fault."""
    option, text = fault.violation().again
    assert option == "--sequence"
    settings = CheckSettings(call_tools=True)
    found, _ = await within(target, settings, LATEST, None, lambda doors: replay_sequence(doors, decode_steps(text)))
    return found


def last(fault: FuzzFailure) -> CallStep:
    """The call that fails."""
    assert fault.last is not None
    return fault.last


def names(fault: FuzzFailure) -> list[str]:
    """What is called, in order."""
    return [step.name for step in fault.steps]
