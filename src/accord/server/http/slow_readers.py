"""Clients that take too little of what is sent to them: what waits for all of them together is bounded.

Beyond the bound one of the account for which most waits is cut, the one that is slow for the longest time: so clients
elsewhere which read slowly still get what is theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

R = TypeVar("R", bound=Hashable)


class SlowReaders(Generic[R]):
    """Connections, or streams, with the bytes that wait for each: at most `most` in all. `cut` ends one of them."""

    def __init__(self, most: int, cut: Callable[[R], None]) -> None:
        self._most = most
        self._cut = cut
        self._readers: dict[R, tuple[str, int]] = {}  # with account and bytes, the longest slow first
        self._by_account: Counter[str] = Counter()
        self.unsent: int = 0
        """Bytes that wait."""

    def update(self, account: str, reader: R, size: int) -> None:
        """So many bytes wait for this reader now; with 0 it is not slow any more. Cut others, or this one, until what
        waits is within its bound. What waits for one alone is not bounded here.
        """
        _, before = self._readers.get(reader, ("", 0))
        if size:
            self._readers[reader] = account, size
        else:
            self._readers.pop(reader, None)
        self._by_account[account] += size - before
        self.unsent += size - before
        if not self._by_account[account]:
            del self._by_account[account]
        while self.unsent > self._most and len(self._readers) > 1:
            self._cut_one()

    def _cut_one(self) -> None:
        most = max(self._by_account, key=self._by_account.__getitem__)
        reader = next(each for each, (account, _) in self._readers.items() if account == most)
        self.update(most, reader, 0)
        self._cut(reader)
