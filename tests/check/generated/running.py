"""Exploring servers in tests, and what of it is looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from accord.check.generated.exploring import explore, repeat
from accord.check.generated.faults import Explored, Fault
from accord.check.generated.sequences import Step, parsed
from accord.check.opening import Doors
from accord.check.reach import Reach
from accord.check.record import Record
from accord.check.report import TransportName
from accord.check.settings import CheckSettings

LATEST = "2025-11-25"


async def within(
    target: Any,
    settings: CheckSettings,
    revision: str,
    over: TransportName | None,
    run: Callable[[Doors], Awaitable[Explored]],
) -> tuple[Explored, list[Record]]:
    """What came of a run, and all that was said."""
    reach = Reach(target)
    try:
        if over in ("http", "sse"):
            await reach.open()
        doors = Doors(reach, revision, over or reach.transports(revision)[0], settings)
        try:
            return await run(doors), doors.records
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
) -> Explored:
    settings = CheckSettings(call_tools=allowed, seed=seed, timeout=timeout)
    found, _ = await within(target, settings, revision, over, lambda doors: explore(doors, cases=cases))
    return found


async def repeated(target: Any, fault: Fault) -> Explored:
    """What comes of the calls in the command that repeats a fault."""
    option, text = fault.broken().again
    assert option == "--sequence"
    settings = CheckSettings(call_tools=True)
    found, _ = await within(target, settings, LATEST, None, lambda doors: repeat(doors, parsed(text)))
    return found


def last(fault: Fault) -> Step:
    """The call that fails."""
    assert fault.last is not None
    return fault.last


def names(fault: Fault) -> list[str]:
    """What is called, in order."""
    return [step.name for step in fault.steps]
