"""Waiting for a condition: as short as it takes, bounded, and with words for what did not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SECONDS = 100.0
"""For what waits for nothing but the processor."""


async def until(condition: Callable[[], object], why: Callable[[], object] | None = None) -> None:
    """Return once the condition is true. Raises AssertionError, with what `why` returns, if it does not become true."""
    await turns(20, condition)
    try:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(f"still: {why() if why is not None else condition}") from None


async def turns(count: int, condition: Callable[[], object] = bool) -> None:
    """Let the event loop turn so many times, or until the condition is true: what is ready by then has run."""
    for _ in range(count):
        if condition():
            return
        await asyncio.sleep(0)
