"""One contiguous change of a text, and its exact inverse.

`Splice.between(old, new)` is the smallest one. Its inverse in the same text restores every byte; in a text that was
changed elsewhere, `inverses()` are the places where the inserted characters are still as they were.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

_MAX_PLACES = 20


class Splice(msgspec.Struct, frozen=True):
    """The characters `old` at an offset are replaced by `new`."""

    offset: int
    old: str
    new: str

    def __repr__(self) -> str:
        return f"Splice({self.offset}, ...)"  # the texts may contain secrets

    @classmethod
    def between(cls, old: str, new: str) -> Splice:
        """Return the smallest splice that makes `new` of `old`."""
        begin = _common_length(old, new)
        end = _common_length(old[begin:][::-1], new[begin:][::-1])
        return cls(begin, old[begin : len(old) - end], new[begin : len(new) - end])

    def inverses(self, text: str) -> Iterator[str]:
        """Yield the texts before the splice, if `text` is one after it: at its own offset first, then elsewhere."""
        offset, places = self.offset, 0
        if text.startswith(self.new, offset):
            yield text[:offset] + self.old + text[offset + len(self.new) :]
        offset = text.find(self.new) if self.new else -1
        while offset >= 0 and places < _MAX_PLACES:
            if offset != self.offset:
                yield text[:offset] + self.old + text[offset + len(self.new) :]
            offset, places = text.find(self.new, offset + 1), places + 1


def _common_length(one: str, other: str) -> int:
    """Return the number of equal characters at the begin of two texts, in logarithmically many comparisons."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
