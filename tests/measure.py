"""Processor time, compared with other work of the same moment: so no test knows how fast a machine is, or how busy.

Bounds leave ample room: they tell work that grows with its size from work that grows with its square, and a moment from
minutes. Where something else can be counted (calls, bytes, messages), a test counts that.
"""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of this process for `work`, without garbage collection."""
    gc.disable()
    try:
        begun = time.process_time()
        work()
        return time.process_time() - begun
    finally:
        gc.enable()


def slowness() -> float:
    """Return how many times longer work takes now than on a machine with nothing else to do: 1 to 5.

    A bound that real time has to set is multiplied by it: the test stays quick on a quiet machine.
    """
    return _slowness(int(time.monotonic() / 10))


@functools.lru_cache(1)
def _slowness(_tens_of_seconds: int) -> float:
    begun = time.perf_counter()
    processor = processor_seconds(lambda: [_unit() for _ in range(3)])
    return min(max(1.0, (time.perf_counter() - begun) / processor), 5.0)


@contextmanager
def costs_at_most(units: float) -> Iterator[None]:
    """Fail where the block takes more processor time than so many times a fixed piece of work beside it.

    A unit is about 10 ms of a processor of 2025. Garbage is not collected meanwhile: after thousands of tests, a
    process holds so many objects that one collection takes longer than the block.
    """
    before = processor_seconds(_unit)
    gc.disable()
    try:
        begun = time.process_time()
        yield
        taken = time.process_time() - begun
    finally:
        gc.enable()
    unit = max(before, processor_seconds(_unit))
    assert taken < units * unit, f"{taken:.3f} s, where a unit is {unit:.3f} s"


def assert_linear(work: Callable[[int], object], size: int, factor: int = 10) -> None:
    """Fail where `factor` times the size takes not about `factor` times as long, but rather the square of that.

    What else a machine does only adds to a time: of several runs in alternation, the least counts.
    """
    small = large = float("inf")
    for _ in range(8):
        small = min(small, processor_seconds(lambda: work(size)))
        large = min(large, processor_seconds(lambda: work(size * factor)))
        if large < factor**1.5 * small:
            return
    raise AssertionError(f"{small:.4f} s, and {large:.4f} s for {factor} times the size")


def _unit() -> None:
    texts = {number: str(number) for number in range(80_000)}
    sorted(texts.values())
