"""From a sequence that fails to the shortest one: a call is left out, arguments are made less, as long as its last call
still fails in the same way.

A value that a call took from one that is left out becomes the value that was seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from accord.check.generated.running import Ran, Seen
from accord.check.generated.sequences import Missing, Step, Steps, resolved, without
from accord.check.generated.shrinking import shrunk
from accord.check.generated.troubles import Trouble

_FOR_CALLS = 2
"""One in so many tries is for leaving out calls, at most; the others are for their arguments."""


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that fail, and what was seen when they last did."""

    steps: Steps
    ran: Ran
    seen: Seen


class Reduction:
    """One attempt to find the shortest; it may try so often. `least` is what it has found, whatever stops it."""

    def __init__(
        self,
        failing: Failing,
        run: Callable[[Steps], Awaitable[Ran]],
        allows: Callable[[Step, Any], bool],
        tries: int,
    ) -> None:
        self.least: Failing = failing
        self._run = run
        self._allows = allows
        self._tries = tries

    async def reduce(self) -> None:
        """First fewer calls, then less in each, the last one first."""
        await self.shorten()
        for number in reversed(range(len(self.least.steps))):
            step = self.least.steps[number]
            if step.wrong is None:  # of one thing wrong, the rest is as small as it can be
                await self._shrink(number, step)

    async def shorten(self) -> None:
        """Leave out calls: half of those before the last one, a quarter, and so on, at last one by one."""
        keep = self._tries // _FOR_CALLS
        size = len(self.least.steps) - 1
        while size and self._tries > keep:
            if not await self._leaves_out(size):
                size //= 2
            size = min(size, len(self.least.steps) - 1)

    async def fails(self, steps: Steps) -> bool:
        """Whether these fail in the same way; then they are the least."""
        if self._tries <= 0:
            return False
        self._tries -= 1
        ran = await self._run(steps)
        wanted = _kind(self.least.seen.trouble)
        for seen in ran.seen:
            if seen.at == len(steps) - 1 and _kind(seen.trouble) == wanted:
                self.least = Failing(steps=steps, ran=ran, seen=seen)
                return True
        return False

    async def _leaves_out(self, size: int) -> bool:
        steps, results = self.least.steps, self.least.ran.results
        for start in range(0, len(steps) - 1, size):
            try:
                fewer = without(steps, range(start, min(start + size, len(steps) - 1)), results)
            except Missing:
                continue
            if await self.fails(fewer):
                return True
        return False

    async def _shrink(self, number: int, step: Step) -> None:
        def changed(arguments: Any) -> Steps:
            steps = self.least.steps
            return (*steps[:number], msgspec.structs.replace(step, arguments=arguments), *steps[number + 1 :])

        await shrunk(
            step.arguments,
            lambda arguments: self.fails(changed(arguments)),
            lambda arguments: self._tries > 0 and self._is_allowed(step, arguments),
            self._tries,
        )

    def _is_allowed(self, step: Step, arguments: Any) -> bool:
        try:
            return self._allows(step, resolved(arguments, self.least.ran.results))
        except Missing:
            return False


def _kind(trouble: Trouble) -> tuple[str, str]:
    return trouble.rule, trouble.detail
