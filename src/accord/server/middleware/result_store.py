"""Where results are kept for `Caching`: the contract, and the memory of this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from accord.errors import DeclarationError

_Result = tuple[bytes, float]
"""What is kept, and when its time is over."""


class ResultStore(Protocol):
    """Keeps results by key. The public contract for stores of your own, which several processes may share.

    Any method may raise: then the result is not kept, and that is logged. What a key begins with, up to the first
    space, is the method that it belongs to.
    """

    async def get(self, key: str) -> bytes | None:
        """What was put there, unless its time is over; None where there is nothing."""

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        """Keep this for so long, in the place of what was kept; or not, where there is no room."""

    async def clear(self, prefix: str = "") -> None:
        """Forget all keys that begin like this."""


class MemoryResults:
    """A `ResultStore` in the memory of this process: at most `most` results, of `bytes` together.

    The one that was not asked for the longest goes first. `clock` gives seconds. Raises `DeclarationError` for bounds
    below 1.
    """

    def __init__(self, most: int = 1000, bytes: int = 16 << 20, *, clock: Callable[[], float] = time.monotonic) -> None:
        if most < 1 or bytes < 1:
            raise DeclarationError(f"most and bytes are 1 or more, not {most} and {bytes}")
        self._most = most
        self._bytes = bytes
        self._clock = clock
        self._results: OrderedDict[str, _Result] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._results)

    async def get(self, key: str) -> bytes | None:
        """See `ResultStore.get`."""
        value, ends = self._results.get(key, (None, 0.0))
        if value is None:
            return None
        if self._clock() >= ends:
            self._drop(key)
            return None
        self._results.move_to_end(key)
        return value

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        """See `ResultStore.put`. What is larger than all the room is not kept."""
        self._drop(key)
        if len(value) > self._bytes:
            return
        self._results[key] = value, self._clock() + seconds
        self._size += len(value)
        while len(self._results) > self._most or self._size > self._bytes:
            self._drop(next(iter(self._results)))

    async def clear(self, prefix: str = "") -> None:
        """See `ResultStore.clear`."""
        for key in [key for key in self._results if key.startswith(prefix)]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        value, _ = self._results.pop(key, (b"", 0.0))
        self._size -= len(value)
