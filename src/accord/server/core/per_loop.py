"""`PerLoop`: the state of a server on each event loop that it runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class PerLoop(dict[asyncio.AbstractEventLoop, T]):
    """Values by event loop. Nothing announces the end of a loop, so the values of closed loops are dropped when another
    loop gets one; `on_dropped` is called with each.

    Other threads may add the values of their loops meanwhile.
    """

    def __init__(self, on_dropped: Callable[[T], Any] | None = None) -> None:
        super().__init__()
        self._on_dropped = on_dropped

    def add(self, value: T) -> T:
        """Set the value of the running loop, and return it."""
        self.drop_closed()
        self[asyncio.get_running_loop()] = value
        return value

    def drop_closed(self) -> None:
        """Drop the values of closed loops."""
        for loop in list(self):
            if loop.is_closed() and (value := self.pop(loop, None)) is not None and self._on_dropped is not None:
                self._on_dropped(value)
