"""From arguments that fail to the least that fail: a part is left out, halved or made plain, as long as it still fails.

Every step makes the value smaller (shorter as JSON, or else earlier in the alphabet), so it ends; how often it may try
is bounded besides. No chance is in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

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
