"""URIs of resources, and which of them are parts of another: found without a look at each."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterator

_SEPARATORS = ("/", "?", "#")


class URIIndex:
    """A set of URIs that finds those related to another URI."""

    def __init__(self) -> None:
        self._sorted: list[str] = []
        self._of_base: defaultdict[str, set[str]] = defaultdict(set)
        """The URIs by their text without slashes at the end."""
        self._lengths: Counter[int] = Counter()
        """The lengths of these texts."""

    def add(self, uri: str) -> None:
        """Add a URI that is not in the index."""
        base = uri.rstrip("/")
        insort(self._sorted, uri)
        self._of_base[base].add(uri)
        self._lengths[len(base)] += 1

    def remove(self, uri: str) -> None:
        """Remove a URI. Raises `KeyError`."""
        base = uri.rstrip("/")
        self._of_base[base].remove(uri)
        if not self._of_base[base]:
            del self._of_base[base]
        del self._sorted[bisect_left(self._sorted, uri)]
        self._lengths[len(base)] -= 1
        if not self._lengths[len(base)]:
            del self._lengths[len(base)]

    def related(self, uri: str) -> set[str]:
        """Return the URI if it is in the index, its parts, and the URIs that it is a part of."""
        return {*self._parts(uri), *self._wholes(uri)}

    def _parts(self, uri: str) -> Iterator[str]:
        base = uri.rstrip("/")
        for separator in _SEPARATORS:
            start = bisect_left(self._sorted, base + separator)
            yield from self._sorted[start : bisect_left(self._sorted, base + chr(ord(separator) + 1), start)]

    def _wholes(self, uri: str) -> Iterator[str]:
        yield from self._of_base.get(uri.rstrip("/"), ())
        for length in self._lengths:
            if uri[length : length + 1] in _SEPARATORS:
                yield from self._of_base.get(uri[:length], ())


def is_part(uri: str, of: str) -> bool:
    """Return whether `uri` is `of` or in it: updates may name "a sub-resource of the one [...] subscribed to"."""
    base = of.rstrip("/")
    return uri == of or (uri.startswith(base) and uri[len(base) : len(base) + 1] in _SEPARATORS)
