"""Slow readers: a bound on the unsent bytes of all clients together.

Over the bound, the connection of the account with the most unsent bytes that has been slow for the longest time is
closed, so that slow clients elsewhere still receive their messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

R = TypeVar("R", bound=Hashable)


class SlowReaders(Generic[R]):
    """Connections or streams with their unsent bytes, at most `most` in total. `cut` closes one of them."""

    def __init__(self, most: int, cut: Callable[[R], None]) -> None:
        self._most = most
        self._cut = cut
        self._readers: dict[R, tuple[str, int]] = {}  # with account and bytes, the longest slow first
        self._by_account: Counter[str] = Counter()
        self.unsent: int = 0
        """The total of unsent bytes."""

    def update(self, account: str, reader: R, size: int) -> None:
        """Set the unsent bytes of a reader; 0 means that it is not slow any more. Close readers until the total is
        within its bound; a single reader is not bounded here.
        """
        _, previous = self._readers.get(reader, ("", 0))
        if size:
            self._readers[reader] = account, size
        else:
            self._readers.pop(reader, None)
        self._by_account[account] += size - previous
        self.unsent += size - previous
        if not self._by_account[account]:
            del self._by_account[account]
        while self.unsent > self._most and len(self._readers) > 1:
            self._cut_one()

    def _cut_one(self) -> None:
        account = max(self._by_account, key=self._by_account.__getitem__)
        reader = next(each for each, (owner, _) in self._readers.items() if owner == account)
        self.update(account, reader, 0)
        self._cut(reader)
