"""The clocks of tests move when they are meant to."""

from __future__ import annotations

import asyncio
import time

from tests.clock import without_waiting


@without_waiting
async def test_an_hour_passes_at_once() -> None:
    before, begun = time.monotonic(), time.perf_counter()
    await asyncio.sleep(3600)
    passed = time.monotonic() - before
    assert passed >= 3600
    assert time.perf_counter() - begun < passed / 2


@without_waiting
async def test_the_time_does_not_jump_while_a_thread_works() -> None:
    async with asyncio.timeout(100):
        await asyncio.to_thread(time.sleep, 0.05)
