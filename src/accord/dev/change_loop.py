"""The loop that turns changes of files into reloads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from accord.dev.file_watcher import FileWatcher

DEBOUNCE_SECONDS = 0.05
"""How long the files must be unchanged before a reload starts: editors write a file in several steps."""

_MOST_SECONDS = 1.0
"""The longest time that a reload waits while files go on to change."""


async def watch_changes(watcher: FileWatcher, on_change: Callable[[set[str]], Awaitable[None]]) -> None:
    """Call `on_change` with the changed files after each change, until cancelled."""
    while True:
        await asyncio.sleep(watcher.pause)
        if changed := watcher.poll():
            await _settle(watcher, changed)
            await on_change(changed)


async def _settle(watcher: FileWatcher, changed: set[str]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _MOST_SECONDS
    while loop.time() < deadline:
        await asyncio.sleep(DEBOUNCE_SECONDS)
        if not (more := watcher.poll()):
            return
        changed |= more
