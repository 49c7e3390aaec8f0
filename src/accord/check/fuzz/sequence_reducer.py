"""Reduce a failing sequence: remove calls and shrink arguments while its last call still fails in the same way.

When a call is removed, later references to its result are replaced by the value that it returned. Arguments shrink by
removing, halving or simplifying one part at a time. Every step makes the value smaller (shorter as JSON, or earlier in
byte order), so the reduction ends; the number of attempts is bounded as well. Nothing is random.
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
    """Return the smallest allowed value found that fails; `value` itself fails."""
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
    """Yield values with one part removed or simplified."""
    for path, part in _parts(value, ()):
        if path:
            yield remove_at(value, path)
        for simpler in _simpler_parts(part):
            yield replace_at(value, path, simpler)


def _parts(value: Any, path: ValuePath) -> Iterator[tuple[ValuePath, Any]]:
    yield path, value
    members: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if len(path) < _LEVELS:
        for key, _ in members:
            yield from _parts(value_at(value, (key,)), (*path, key))


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
"""At most one in this many attempts removes calls; the others shrink arguments."""


class FailingSequence(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence of calls that fails, with the result of its last run."""

    steps: Steps
    result: SequenceResult
    problem: SequenceProblem


class SequenceReducer:
    """Reduces one failing sequence with at most `tries` runs; `smallest` is the best result so far."""

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
        """Remove calls, then shrink the arguments of each remaining call, the last one first."""
        await self.shorten()
        for number in reversed(range(len(self.smallest.steps))):
            step = self.smallest.steps[number]
            if step.wrong is None:  # invalid variants are based on minimal arguments
                await self._shrink(number, step)

    async def shorten(self) -> None:
        """Remove calls before the last one: half of them, a quarter, and so on, finally one at a time."""
        keep = self._tries_left // _FOR_CALLS
        size = len(self.smallest.steps) - 1
        while size and self._tries_left > keep:
            if not await self._remove_calls(size):
                size //= 2
            size = min(size, len(self.smallest.steps) - 1)

    async def fails(self, steps: Steps) -> bool:
        """Return whether these calls fail in the same way; if so, they become `smallest`."""
        if self._tries_left <= 0:
            return False
        self._tries_left -= 1
        result = await self._run(steps)
        wanted = _problem_kind(self.smallest.problem.problem)
        for found in result.problems:
            if found.step_index == len(steps) - 1 and _problem_kind(found.problem) == wanted:
                self.smallest = FailingSequence(steps=steps, result=result, problem=found)
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
        def with_arguments(arguments: Any) -> Steps:
            steps = self.smallest.steps
            return (*steps[:number], msgspec.structs.replace(step, arguments=arguments), *steps[number + 1 :])

        await shrink(
            step.arguments,
            lambda arguments: self.fails(with_arguments(arguments)),
            lambda arguments: self._tries_left > 0 and self._is_allowed(step, arguments),
            self._tries_left,
        )

    def _is_allowed(self, step: CallStep, arguments: Any) -> bool:
        try:
            return self._allows(step, resolve_arguments(arguments, self.smallest.result.results))
        except MissingValue:
            return False


def _problem_kind(problem: ResponseProblem) -> tuple[str, str]:
    return problem.rule, problem.detail
