"""From a sequence that fails to the shortest one: a call is left out, arguments are made less, as long as its last call
still fails in the same way.

A value that a call took from one that is left out becomes the value that was seen.

From arguments that fail to the least that fail: a part is left out, halved or made plain, as long as it still fails.

Every step makes the value smaller (shorter as JSON, or else earlier in the alphabet), so it ends; how often it may try
is bounded besides. No chance is in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from accord.check.fuzz.response_checks import ResponseProblem
from accord.check.fuzz.sequence_runner import SequenceProblem, SequenceResult
from accord.check.fuzz.sequences import CallStep, MissingValue, Steps, remove_steps, resolve_arguments
from accord.check.fuzz.variants import ValuePath, remove_at, replace_at, value_at

_LEVELS = 12


async def shrink(
    value: Any, fails: Callable[[Any], Awaitable[bool]], allowed: Callable[[Any], bool], tries: int
) -> Any:
    """The least value found that is allowed and fails; `value` itself is known to."""
    tried = {_size(value)}
    while True:
        for simpler in sorted(_simpler(value), key=_size):
            size = _size(simpler)
            if size >= _size(value) or size in tried or not allowed(simpler):
                continue
            if not tries:
                return value
            tries -= 1
            tried.add(size)
            if await fails(simpler):
                value = simpler
                break
        else:
            return value


def _size(value: Any) -> tuple[int, bytes]:
    text = msgspec.json.encode(value)
    return len(text), text


def _simpler(value: Any) -> Iterator[Any]:
    """Values with one part simpler than it was."""
    for steps, part in _parts(value, ()):
        if steps:
            yield remove_at(value, steps)
        for less in _simpler_parts(part):
            yield replace_at(value, steps, less)


def _parts(value: Any, steps: ValuePath) -> Iterator[tuple[ValuePath, Any]]:
    yield steps, value
    inside: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if len(steps) < _LEVELS:
        for step, _ in inside:
            yield from _parts(value_at(value, (step,)), (*steps, step))


def _simpler_parts(part: Any) -> Iterator[Any]:
    match part:
        case True:
            yield False
        case int() | float():
            yield from _numbers(part)
        case str():
            yield from _texts(part)
        case list() if part:
            yield from ([], part[: len(part) // 2], part[len(part) // 2 :])
        case dict() if part:
            yield {}


def _numbers(number: float) -> Iterator[float]:
    yield 0
    if isinstance(number, float):
        if abs(number) < 1e15:
            yield int(number)
        yield float(f"{number:.1g}")
        return
    yield abs(number)
    sign = 1 if number > 0 else -1
    yield from (sign * 10**digits for digits in range(len(str(abs(number)))))
    step = abs(number)
    while step:
        step //= 2
        yield number - sign * step


def _texts(text: str) -> Iterator[str]:
    yield ""
    yield "a" * len(text)
    step = len(text)
    while step > 1:
        step //= 2
        for start in range(0, len(text), step):
            if len(text) <= 64 or start in (0, len(text) - step):
                yield text[:start] + text[start + step :]
    if len(text) <= 64:
        yield from (f"{text[:index]}a{text[index + 1 :]}" for index, char in enumerate(text) if char != "a")


_FOR_CALLS = 2
"""One in so many tries is for leaving out calls, at most; the others are for their arguments."""


class FailingSequence(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that fail, and what was seen when they last did."""

    steps: Steps
    result: SequenceResult
    problem: SequenceProblem


class SequenceReducer:
    """One attempt to find the shortest; it may try so often. `smallest` is what it has found, whatever stops it."""

    def __init__(
        self,
        failing: FailingSequence,
        run: Callable[[Steps], Awaitable[SequenceResult]],
        allows: Callable[[CallStep, Any], bool],
        tries: int,
    ) -> None:
        self.smallest: FailingSequence = failing
        self._run = run
        self._allows = allows
        self._tries_left = tries

    async def reduce(self) -> None:
        """First fewer calls, then less in each, the last one first."""
        await self.shorten()
        for number in reversed(range(len(self.smallest.steps))):
            step = self.smallest.steps[number]
            if step.wrong is None:  # of one thing wrong, the rest is as small as it can be
                await self._shrink(number, step)

    async def shorten(self) -> None:
        """Leave out calls: half of those before the last one, a quarter, and so on, at last one by one."""
        keep = self._tries_left // _FOR_CALLS
        size = len(self.smallest.steps) - 1
        while size and self._tries_left > keep:
            if not await self._remove_calls(size):
                size //= 2
            size = min(size, len(self.smallest.steps) - 1)

    async def fails(self, steps: Steps) -> bool:
        """Whether these fail in the same way; then they are the least."""
        if self._tries_left <= 0:
            return False
        self._tries_left -= 1
        ran = await self._run(steps)
        wanted = _problem_kind(self.smallest.problem.problem)
        for seen in ran.problems:
            if seen.step_index == len(steps) - 1 and _problem_kind(seen.problem) == wanted:
                self.smallest = FailingSequence(steps=steps, result=ran, problem=seen)
                return True
        return False

    async def _remove_calls(self, size: int) -> bool:
        steps, results = self.smallest.steps, self.smallest.result.results
        for start in range(0, len(steps) - 1, size):
            try:
                fewer = remove_steps(steps, range(start, min(start + size, len(steps) - 1)), results)
            except MissingValue:
                continue
            if await self.fails(fewer):
                return True
        return False

    async def _shrink(self, number: int, step: CallStep) -> None:
        def changed(arguments: Any) -> Steps:
            steps = self.smallest.steps
            return (*steps[:number], msgspec.structs.replace(step, arguments=arguments), *steps[number + 1 :])

        await shrink(
            step.arguments,
            lambda arguments: self.fails(changed(arguments)),
            lambda arguments: self._tries_left > 0 and self._is_allowed(step, arguments),
            self._tries_left,
        )

    def _is_allowed(self, step: CallStep, arguments: Any) -> bool:
        try:
            return self._allows(step, resolve_arguments(arguments, self.smallest.result.results))
        except MissingValue:
            return False


def _problem_kind(trouble: ResponseProblem) -> tuple[str, str]:
    return trouble.rule, trouble.detail
