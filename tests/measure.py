"""Processor time, compared with other work of the same moment: so no test knows how fast a machine is, or how busy.

Bounds leave ample room: they tell work that grows with its size from work that grows with its square, and a moment from
minutes. Where something else can be counted (calls, bytes, messages), a test counts that.
"""

from __future__ import annotations

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


@contextmanager
def costs_at_most(units: float) -> Iterator[None]:
    """Fail where the block takes more processor time than so many times a fixed piece of work beside it.

    A unit is about 10 ms of a processor of 2025.
    """
    before = processor_seconds(_unit)
    begun = time.process_time()
    yield
    taken = time.process_time() - begun
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
